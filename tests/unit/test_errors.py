"""Errors: one tree, texts that say everything, and the way from process to process."""

from __future__ import annotations

import pickle

import pytest

from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    DataLossError,
    DecodeError,
    DeliveryError,
    EncodeError,
    OptionError,
    SchemaError,
    UpsertKafkaError,
    shown,
)

EVERY = [
    UpsertKafkaError("what is wrong"),
    OptionError("what is wrong"),
    SchemaError("what is wrong"),
    DecodeError("t", 3, 42, "value", "not JSON"),
    EncodeError("id", "it is NULL"),
    DeliveryError("t", 3, b"k", "too large", failed=2),
    DataLossError("t", 3, 42, 50, "retention"),
    BrokerError("what is wrong"),
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


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_every_error_is_one_of_ours(error):
    """One base catches all."""
    assert isinstance(error, UpsertKafkaError)


def test_the_tree_is_the_one_of_the_contract():
    """The contract's classes and no other, each a child of the base, drawn in the docstring."""
    found = {
        name: each.__mro__[1].__name__
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, UpsertKafkaError)
    }

    assert found == {
        "UpsertKafkaError": "Exception",
        "OptionError": "UpsertKafkaError",
        "SchemaError": "UpsertKafkaError",
        "DecodeError": "UpsertKafkaError",
        "EncodeError": "UpsertKafkaError",
        "DeliveryError": "UpsertKafkaError",
        "DataLossError": "UpsertKafkaError",
        "BrokerError": "UpsertKafkaError",
    }
    assert {type(error).__name__ for error in EVERY} == found.keys()
    assert all(name in errors.__doc__ for name in found)


@pytest.mark.parametrize("kind", [OptionError, SchemaError])
def test_what_the_user_got_wrong_is_a_value_error(kind):
    """Wrong options and schemas are ValueErrors too, as Python has it."""
    assert issubclass(kind, ValueError)


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
