"""`upsert_sink` on the driver: what it passes on to the sink, and what it checks before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.writing import update_mode
from pyspark_upsert_kafka.connector.writing.update_mode import (
    CallNumbers,
    RunningBatch,
    upsert_sink,
)
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.receipts import Call, call_of_text, digest
from tests.table_options import table_options
from tests.unit.connector.writing.fake_transactions import FakeKafka

CALL = Call("sink", "query", 0, 7, 2, ("t",), "1f3b", "90ab")


class Rows:
    """A micro-batch that notes what is written of it, and in which session."""

    def __init__(self, speculation: str | None = None, *, connect: bool = False) -> None:
        self.written: list[dict[str, str]] = []
        self.activated: list[object] = []
        settings = {} if speculation is None else {"spark.speculation": speculation}
        self.sparkSession = SimpleNamespace(conf=settings)
        if not connect:
            self.sparkSession._jsparkSession = "the session"
            self.sparkSession._jvm = "the JVM"
            self.sparkSession._get_j_spark_session_class = lambda _: SimpleNamespace(
                setActiveSession=self.activated.append
            )
        self.write = self
        self.schema = StructType([StructField("id", LongType())])

    def format(self, name: str) -> Rows:
        """The sink's."""
        assert name == "upsert-kafka"
        return self

    def mode(self, name: str) -> Rows:
        """Rows are added."""
        assert name == "append"
        return self

    def options(self, **given: str) -> Rows:
        """Those of the sink."""
        self.written.append(given)
        return self

    def save(self) -> None:
        """Writes."""


@pytest.fixture(autouse=True)
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The tables whose topics were looked at; rows are in one order."""
    found: list[object] = []
    monkeypatch.setattr(errors, "_warned", set())
    monkeypatch.setattr(
        update_mode, "warn_unless_compacted", lambda table, **_: found.append(table)
    )
    monkeypatch.setattr(update_mode, "arranged", lambda rows, _: (rows, "by-key"))
    return found


def test_the_sink_gets_the_options_but_those_of_the_function(looked_at: list[object]) -> None:
    """And in which order rows are."""
    rows: Any = Rows()
    given = table_options(**{"sink.parallelism": "2", "sequence-by": "n"})
    upsert_sink(given)(rows, 7)

    assert rows.written == [{**table_options(), "upsert-sink.order": "by-key"}]
    assert rows.activated == ["the session"]
    assert len(looked_at) == 1


def test_over_spark_connect_there_is_no_session_to_activate() -> None:
    """The rest is the same."""
    rows: Any = Rows(connect=True)
    upsert_sink(table_options())(rows, 7)

    assert len(rows.written) == 1


@pytest.mark.parametrize(("speculation", "times"), [("true", 1), ("false", 0), (None, 0)])
def test_speculation_is_told(
    caplog: pytest.LogCaptureFixture, speculation: str | None, times: int
) -> None:
    """Two attempts of a task may write at a time; once, and with the topic."""
    sink = upsert_sink(table_options())
    for _ in range(2):
        rows: Any = Rows(speculation)
        sink(rows, 7)

    assert len([each for each in caplog.messages if "topic t is written" in each]) == times


def test_exactly_once_a_call_is_prepared_around_the_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tasks know it; with speculation nothing is prepared."""
    log: list[object] = []

    @contextmanager
    def prepared(rows: Rows, batch: int, options: Any, _: object) -> Iterator[Call]:
        log.append((batch, options.transactional_id_prefix, len(rows.written)))
        yield CALL
        log.append(len(rows.written))

    monkeypatch.setattr(update_mode, "_prepared", prepared)
    given = {
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": "sink",
        "sink.parallelism": "2",
    }
    rows: Any = Rows("false")
    upsert_sink(table_options(**given))(rows, 7)
    (written,) = rows.written

    assert log == [(7, "sink", 0), 1]
    assert call_of_text(written["upsert-sink.call"]) == CALL
    assert written["upsert-sink.order"] == "by-key"
    rows = Rows("true")
    with pytest.raises(OptionError, match=r"'spark\.speculation' is on"):
        upsert_sink(table_options(**given))(rows, 7)
    assert (rows.written, len(log)) == ([], 2)


def test_calls_of_a_batch_are_numbered_and_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the query, the batch and the topics, and its driver's receipt is there before a task starts."""
    kafka, prepared = FakeKafka(), []
    running = RunningBatch("query", "run", 7, "the entry of the checkpoint")
    monkeypatch.setattr(update_mode, "_call_numbers", CallNumbers())
    monkeypatch.setattr(update_mode, "running_batch", lambda *_: running)
    monkeypatch.setattr(update_mode, "transactions", lambda _: kafka.open)
    given = {
        "topic": "t;u",
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": "sink",
        "sink.parallelism": "2",
    }
    schema = StructType().add("id", LongType()).add("_topic", StringType())
    raw = table_options(**given)
    options = write_options(raw, format_options, update_mode=True)

    def prepare(rows_hash: int) -> None:
        rows: Any = SimpleNamespace(schema=schema, semanticHash=lambda: rows_hash)
        with update_mode._prepared(rows, 7, options, raw) as call:
            prepared.append(call)
            assert kafka.receipts[call.driver_id].topic == "t"

    prepare(1)
    prepare(1)
    with pytest.raises(OptionError, match="nothing tells one from the other"):
        prepare(2)

    assert [each.number for each in prepared] == [0, 1]
    assert {(each.prefix, each.query, each.batch, each.tasks) for each in prepared} == {
        ("sink", "query", 7, 2)
    }
    assert {each.topics for each in prepared} == {("t", "u")}
    assert len({(each.content, each.sink) for each in prepared}) == 1
    assert prepared[0].content == digest("the entry of the checkpoint", "id LongType()")


def test_a_literal_secret_is_told_where_the_sink_is_made(caplog: pytest.LogCaptureFixture) -> None:
    """And is not shown with the sink."""
    sink = upsert_sink(table_options(**{"properties.ssl.key.pem": "geheim"}))

    assert "'properties.ssl.key.pem'" in caplog.text
    assert "geheim" not in f"{caplog.text} {sink!r}"
    assert "'topic': 't'" in repr(sink)


@pytest.mark.parametrize("name", ["upsert-sink.order", "UPSERT-SINK.CALL"])
def test_what_the_function_tells_the_sink_is_no_option(name: str) -> None:
    """A user who gave it would tell tasks something wrong."""
    with pytest.raises(OptionError, match=f"^Option '{name.lower()}' is for upsert_sink itself"):
        upsert_sink(table_options(**{name: "in-task"}))
