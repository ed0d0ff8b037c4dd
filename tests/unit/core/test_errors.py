"""Errors: one tree, texts that say everything, and the way from process to process."""

from __future__ import annotations

import ast
import builtins
import pickle
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

import pyspark_upsert_kafka
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.error_modes import ErrorMode
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    CheckpointError,
    DataLossError,
    DecodeError,
    DeliveryError,
    EncodeError,
    OptionError,
    RetriableBrokerError,
    RetriableDeliveryError,
    SchemaChangedError,
    SchemaError,
    UnknownTopicError,
    UpsertKafkaError,
    shown,
    warn_once,
)
from pyspark_upsert_kafka.core.options.catalog import OPTIONS
from pyspark_upsert_kafka.formats.json.json_document import parse

EVERY = [
    UpsertKafkaError("what is wrong"),
    OptionError("what is wrong"),
    SchemaError("what is wrong"),
    DecodeError("t", 3, 42, "value", "not JSON"),
    EncodeError("id", "it is NULL"),
    DeliveryError("t", 3, b"k", "too large", failed=2),
    DataLossError("t", 3, 42, 50, "retention"),
    CheckpointError("what is wrong"),
    BrokerError("what is wrong"),
    RetriableBrokerError("what is wrong"),
    RetriableDeliveryError("t", 3, b"k", "too late"),
    UnknownTopicError("what is wrong"),
    SchemaChangedError(
        "t", 3, 42, "Schema id 7", "t-value", "tier INT", "id BIGINT", "id BIGINT, tier INT"
    ),
]

TEXTS = [
    (
        DecodeError("orders", 3, 42, "value", "it is not JSON"),
        (
            "The message at topic 'orders', partition 3, offset 42 cannot be decoded (stage: value): "
            "it is not JSON. To go on past such messages, set 'error-handling.mode' to 'ignore', "
            "'log' or 'column'."
        ),
    ),
    (EncodeError("id", "it is NULL"), "Column 'id' cannot be written: it is NULL"),
    (
        DeliveryError("orders", 3, b'{"id": 1}', "message too large"),
        (
            "A message to topic 'orders', partition 3, key {\"id\": 1} was not delivered: message too "
            "large. The batch is not done; nothing of it was reported as written."
        ),
    ),
    (
        DeliveryError("orders", None, None, "timed out", failed=2),
        (
            "A message to topic 'orders', partition not assigned, key null was not delivered: timed "
            "out (2 messages of this task failed; this was the first). The batch is not done; nothing "
            "of it was reported as written."
        ),
    ),
    (
        DataLossError("orders", 3, 42, 50, "retention took them"),
        (
            "Some data may have been lost: topic 'orders', partition 3, wanted offset 42, earliest "
            "available offset 50: retention took them. To go on from what is there, set "
            "'failOnDataLoss' to 'false'."
        ),
    ),
    (
        DataLossError("orders", None, None, None, "the topic was deleted"),
        (
            "Some data may have been lost: topic 'orders': the topic was deleted. To go on from what is "
            "there, set 'failOnDataLoss' to 'false'."
        ),
    ),
    (
        DataLossError("orders", 3, 42, 0, "it ends at offset 7; was it truncated?"),
        (
            "Some data may have been lost: topic 'orders', partition 3, wanted offset 42, earliest "
            "available offset 0: it ends at offset 7; was it truncated? To go on from what is there, set "
            "'failOnDataLoss' to 'false'."
        ),
    ),
]


@pytest.mark.parametrize(("error", "text"), TEXTS)
def test_an_error_says_everything(error, text):
    """Spark shows only the text, so each part is in it, and what to do."""
    assert str(error) == text


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_an_error_passes_from_process_to_process(error):
    """Pickled and unpickled it is the same error: class, text and parts."""
    again = pickle.loads(pickle.dumps(error))

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    assert again.args == error.args


def test_the_parts_of_an_error_are_its_arguments():
    """All of them, however they were given."""
    assert DeliveryError("t", 3, b"k", reason="late").args == ("t", 3, b"k", "late", 1)
    assert DataLossError("t", 3, 42, earliest=None, reason="gone").args == (
        "t",
        3,
        42,
        None,
        "gone",
    )
    assert EncodeError("id", reason="NULL").args == ("id", "NULL")
    assert DecodeError("t", 3, 42, "key", reason="?").args == ("t", 3, 42, "key", "?")


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_every_error_is_one_of_ours(error):
    """One base catches all."""
    assert isinstance(error, UpsertKafkaError)


TREE = {
    "UpsertKafkaError": "Exception",
    "OptionError": "UpsertKafkaError",
    "SchemaError": "UpsertKafkaError",
    "DecodeError": "UpsertKafkaError",
    "EncodeError": "UpsertKafkaError",
    "DeliveryError": "UpsertKafkaError",
    "DataLossError": "UpsertKafkaError",
    "CheckpointError": "UpsertKafkaError",
    "BrokerError": "UpsertKafkaError",
    "RetriableBrokerError": "BrokerError",
    "RetriableDeliveryError": "DeliveryError",
    "UnknownTopicError": "BrokerError",
    "SchemaChangedError": "SchemaError",
}
"""Every error that users can meet, and its parent."""

CAUGHT_WITHIN = {
    "AttemptError",
    "NoSchemaError",
    "OtherStandardError",
    "SchemaStopError",
    "TokenEndpointError",
    "TooManyMessagesError",
    "UnknownColumnsError",
    "UnknownSchemaError",
    "UnreadableError",
}
"""Exceptions by which modules of the package talk to each other: no user meets one."""


def test_the_tree_is_whole():
    """These classes and no other, each under its parent."""
    found = {
        name: each.__mro__[1].__name__
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, UpsertKafkaError)
    }

    assert found == TREE
    assert {type(error).__name__ for error in EVERY} == found.keys()


def test_the_tree_is_drawn():
    """The docstring of the module shows each error under its parent."""
    drawn = {}
    parents = {}
    for line in errors.__doc__.splitlines():
        if name := re.match(r"([├└─│ ]*)(\w+Error)\b", line):
            depth = len(name[1]) // 4
            parents[depth] = name[2]
            drawn[name[2]] = parents[depth - 1] if depth else "Exception"

    assert drawn == TREE


def test_every_error_can_be_imported():
    """A program can catch each error by its name."""
    assert TREE.keys() <= {*pyspark_upsert_kafka.__all__}


def test_no_module_has_errors_of_its_own():
    """Each exception class of any module is in the tree, or private, or never leaves the package."""
    outside = {
        name
        for name, place in exceptions_of_the_package().items()
        if place != "core/errors.py" and not name.startswith("_")
    }

    assert outside == CAUGHT_WITHIN


def exceptions_of_the_package():
    """Every exception class that a module defines, by name, with the module's place in the package."""
    root = Path(pyspark_upsert_kafka.__file__).parent
    classes = {
        node.name: (file.relative_to(root).as_posix(), [ast.unparse(base) for base in node.bases])
        for file in root.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    return {name: place for name, (place, _) in classes.items() if is_exception(name, classes)}


def is_exception(name, classes):
    """Whether a class, of the package or built in, is an exception."""
    if name in classes:
        return any(is_exception(base.rpartition(".")[2], classes) for base in classes[name][1])
    known = getattr(builtins, name, None)
    return isinstance(known, type) and issubclass(known, BaseException)


@pytest.mark.parametrize("kind", [OptionError, SchemaError])
def test_what_the_user_got_wrong_is_a_value_error(kind):
    """Wrong options and schemas are ValueErrors too, as Python has it."""
    assert issubclass(kind, ValueError)


CONTROLS = "a\x1b[2J\r\u202e\x9b"
WITH_CONTROLS = [
    *(kind(CONTROLS) for kind in (OptionError, SchemaError, CheckpointError, BrokerError, RetriableBrokerError, UnknownTopicError)),
    UpsertKafkaError(f"{CONTROLS}\n{CONTROLS}"),
    DecodeError(CONTROLS, 3, 42, "value", CONTROLS),
    EncodeError(CONTROLS, CONTROLS),
    *(kind(CONTROLS, 3, CONTROLS.encode(), CONTROLS) for kind in (DeliveryError, RetriableDeliveryError)),
    DataLossError(CONTROLS, 3, 42, 50, CONTROLS),
    SchemaChangedError(CONTROLS, 3, 42, *[CONTROLS] * 5),
]  # fmt: skip


def test_what_errors_may_show_has_an_example():
    """A new error is tried with controls too."""
    assert {type(error) for error in WITH_CONTROLS} == {type(error) for error in EVERY}


@pytest.mark.parametrize("error", WITH_CONTROLS, ids=lambda error: type(error).__name__)
def test_the_text_of_an_error_has_no_controls(error):
    """Names and data come from outside: a terminal that shows the error executes nothing."""
    assert all(line.isprintable() for line in str(error).split("\n"))
    assert r"a\x1b[2J\r\u202e\x9b" in str(error)


def test_an_error_keeps_its_parts():
    """A program can ask an error what its text says."""
    loss = DataLossError("t", 3, 42, 50, "retention")

    assert (loss.topic, loss.partition, loss.wanted, loss.earliest, loss.reason) == loss.args


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (None, "null"),
        (b"", ""),
        (b'{"id": 1}', '{"id": 1}'),
        ("ä".encode(), "ä"),
        (b"\x00\xff", r"b'\x00\xff'"),
        (b"a" * 200, "a" * 200),
        (b"a" * 201, "a" * 200 + "… (201 bytes)"),
        ("ä".encode() * 201, "ä" * 200 + "… (402 bytes)"),
        (("a" + "ä" * 150).encode(), "a" + "ä" * 150),
        (b"\xff" * 1000, "b'" + r"\xff" * 49 + r"\x" + "… (1000 bytes)"),
    ],
)
def test_bytes_in_an_error_are_readable_and_short(data, text):
    """Text is shown as text, other bytes as Python writes them, and long ones are cut."""
    assert shown(data) == text


@pytest.mark.parametrize("mode", get_args(ErrorMode))
def test_each_mode_is_named_where_users_look(mode: str) -> None:
    """What may be done with bad messages: in the help of the option, in its pages, and in the error of a bad message."""
    docs = Path(__file__).parents[3] / "docs"
    (errors_page, monitoring) = (
        (docs / page).read_text(encoding="utf-8") for page in ("errors.md", "monitoring.md")
    )

    assert f"`{mode}` (" in OPTIONS["error-handling.mode"].help
    assert f"| `{mode}` | " in errors_page
    assert re.search(rf"^\| `{mode}`[ ,]", monitoring, re.MULTILINE)
    assert mode == "fail" or f"'{mode}'" in str(DecodeError("t", 3, 42, "value", "not JSON"))


def _parsed(data: bytes) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        parse(data)


@pytest.mark.alone("asserts how much memory is taken")
@pytest.mark.parametrize("show", [shown, _parsed])
def test_a_long_text_of_control_characters_costs_an_error_little(
    show: Callable[[bytes], object],
) -> None:
    """What is not shown of a message is not escaped either: that would take seventy times its bytes."""
    message = b"\x01" * 1_000_000
    tracemalloc.start()
    show(message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(message)


def test_a_warning_comes_once_whatever_its_detail(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A detail, which may cost something, is made only where the text is logged."""
    monkeypatch.setattr(errors, "_warned", set())
    made = []

    def detail() -> str:
        made.append(1)
        return f" For example {len(made)}, 50%s."

    for _ in range(2):
        warn_once("A text of 100 %d.", detail=detail)

    assert caplog.messages == ["A text of 100 %d. For example 1, 50%s."]
    assert made == [1]
