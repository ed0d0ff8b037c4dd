"""What a client or a broker says is shown only after `ClientErrors.shown`, wherever the package gets it."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import confluent_kafka as ck
import pytest
from kafka import errors as kafka_errors

import pyspark_upsert_kafka
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.failures import ClientErrors, Failure, FailureKind
from pyspark_upsert_kafka.kafka.kafka_python.errors import ClientId
from pyspark_upsert_kafka.kafka.kafka_python.properties import client_config
from pyspark_upsert_kafka.kafka.kafka_python.reader import KafkaPythonFetcher
from pyspark_upsert_kafka.kafka.librdkafka.errors import WithoutSecrets
from pyspark_upsert_kafka.kafka.librdkafka.sender import DeliveryReports
from pyspark_upsert_kafka.kafka.retrying import Retrying, Timeouts

ROOT = Path(pyspark_upsert_kafka.__file__).parent / "kafka"
SECRET = "pa55word"
SETTINGS = {"sasl.password": SECRET}
SAID = f"\x1b[2J{SECRET}\nERROR all is lost"
SHOWN = r"\x1b[2J***\nERROR all is lost"

NOT_SHOWN = {
    ("librdkafka/errors.py", "kind_of"),  # looks for words
    ("librdkafka/errors.py", "classify"),  # for `Retrying`, which shows it
    ("librdkafka/properties.py", "_invalid"),  # shows it in the next line
    ("kafka_python/errors.py", "classify"),  # for `Retrying`
}
"""Where a text of a client is taken and not shown at once."""


def taken() -> Iterator[tuple[str, str, bool]]:
    """Each place where an error of a client becomes text: its file, its function, and whether `shown` gets it there."""
    for file in [*ROOT.glob("librdkafka/*.py"), *ROOT.glob("kafka_python/*.py")]:
        yield from _taken(
            ast.parse(file.read_text("utf-8")), str(file.relative_to(ROOT)), "", shown=False
        )


def _taken(
    node: ast.AST, file: str, function: str, *, shown: bool
) -> Iterator[tuple[str, str, bool]]:
    if isinstance(node, ast.FunctionDef):
        function = node.name
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name == "shown" or ast.unparse(node.func).endswith("errors.add"):
            shown = True
        elif (
            name == "str" and not node.args and isinstance(node.func, ast.Attribute)
        ) or name == "describe_error":
            yield file, function, shown
    for child in ast.iter_child_nodes(node):
        yield from _taken(child, file, function, shown=shown)


def test_each_error_of_a_client_is_shown_by_one_function():
    """A new place that forgets it is found here."""
    found = list(taken())

    assert len(found) > 10
    assert {(file, function) for file, function, shown in found if not shown} == NOT_SHOWN


def test_the_answer_to_a_request():
    """Whatever a client's exception says, for good or after the last attempt."""
    for kind in (
        FailureKind.FATAL,
        FailureKind.SECURITY,
        FailureKind.RETRIABLE,
        FailureKind.UNKNOWN_TOPIC,
    ):
        clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: None)
        retrying = Retrying(
            "here:9092", Timeouts(1.0, 0.0), ClientErrors(SETTINGS), (ValueError,), lambda error, kind=kind: Failure(kind, str(error)),
            clock=clock,
        )  # fmt: skip
        with pytest.raises(BrokerError) as error:
            retrying.call("look", _refused)
        assert SHOWN in str(error.value)
        assert error.value.__cause__ is None
        assert error.value.__context__ is None


def _refused(_: float) -> None:
    raise ValueError(SAID)


def test_what_a_client_reports_by_itself():
    """It is the end of other errors."""
    errors = ClientErrors(SETTINGS)
    errors.add(SAID, security=True)
    assert SHOWN in errors.describe()
    assert errors.security_error == SHOWN


def test_a_message_that_a_broker_refuses():
    """A broker gives a reason in its own words."""
    reports = DeliveryReports(SETTINGS)
    reports.add("t", 0, b"k", ck.KafkaError(ck.KafkaError.INVALID_RECORD, SAID))
    with pytest.raises(Exception, match="was not delivered") as error:
        reports.raise_first()
    assert SHOWN in str(error.value)


def test_the_log_of_librdkafka(caplog):
    """A line stays a line."""
    WithoutSecrets(SETTINGS).log(40, "%s [%s] %s", "FAIL", "app", SAID)
    assert [record.getMessage() for record in caplog.records] == [f"FAIL [app] {SHOWN}"]


@pytest.mark.parametrize("level", [logging.INFO, logging.ERROR])
def test_the_log_of_kafka_python(caplog, level):
    """Of our own clients: the handlers of a program get it as it may be shown, and other clients keep theirs."""
    ours = client_config(
        Properties(
            {
                "bootstrap.servers": "b:1",
                **SETTINGS,
                "sasl.username": "me",
                "sasl.mechanism": "PLAIN",
            }
        ),
        "driver",
        {},
    )
    log = logging.getLogger("kafka.conn")
    with caplog.at_level(logging.INFO, "kafka.conn"):
        for config in (ours, {"client_id": "another"}):
            log.log(level, "%s: SASL: %s", SimpleNamespace(config=config), SAID)

    found = [record.getMessage().partition(": SASL: ")[2] for record in caplog.records]
    assert found == [SHOWN, SAID]
    client_id: ClientId = ours["client_id"]
    assert (SHOWN in client_id.errors.describe()) == (level == logging.ERROR)


def test_a_fetch_of_kafka_python():
    """Its exceptions are told as they may be shown."""
    client_id = ClientId("reader")
    client_id.errors = ClientErrors(SETTINGS)

    def poll(**_: object) -> dict[Any, Any]:
        raise kafka_errors.TopicAuthorizationFailedError(SAID)

    consumer = SimpleNamespace(
        config={"client_id": client_id},
        assign=lambda _: None,
        seek=lambda *_: None,
        poll=poll,
    )
    fetcher = KafkaPythonFetcher(
        cast("Any", consumer), cast("Any", None), Range("t", 0, 0, 9), details=frozenset()
    )
    assert SHOWN in str(fetcher.poll(0, 9).fatal_error)
