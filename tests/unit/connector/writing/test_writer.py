"""What Spark's writers check and warn of, and when."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StructType

from pyspark_upsert_kafka.connector.spark_task import TaskIdentity
from pyspark_upsert_kafka.connector.writing import delivery, writer
from pyspark_upsert_kafka.connector.writing.writer import BatchWriter, StreamWriter
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import OptionError, UnknownTopicError
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.core.positions.progress import Written
from tests.table_options import table_options

SCHEMA = StructType().add("id", LongType())
ORDER = {"upsert-sink.order": "by-key"}


class Cluster:
    """A broker that has the topic t; plays its client too."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def cluster(self, _: object, group: str) -> Cluster:
        """A connection."""
        self.log.append(f"connected as {group}")
        return self

    def topics(self, topics: Topics) -> None:
        """Whether they are there."""
        self.log.append(f"asked for {topics}")
        if topics.names != ("t",):
            raise UnknownTopicError("There is no such topic.")

    def close(self) -> None:
        """The connection's end."""
        self.log.append("closed")


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What brokers are asked, and for which topics it is looked up whether they are compacted."""
    cluster = Cluster()
    monkeypatch.setattr(errors, "_warned", set())
    monkeypatch.setattr(writer, "freeze_modules", lambda: None)
    monkeypatch.setattr(writer, "load_sending_client", lambda *_: cluster)
    monkeypatch.setattr(
        writer,
        "warn_unless_compacted",
        lambda table, **_: cluster.log.append(f"looked whether {table.topics} is compacted"),
    )
    return cluster.log


LOOKED = "looked whether t is compacted"


@pytest.mark.parametrize(("more", "looks"), [({}, [LOOKED]), (ORDER, [])])
def test_a_batch_is_checked_before_its_first_row(
    asked: list[str], more: dict[str, str], looks: list[str]
) -> None:
    """Its topic is there; `upsert_sink` has looked already whether it is compacted."""
    BatchWriter(SCHEMA, {**table_options(), **more})

    assert asked == ["connected as driver", "asked for t", "closed", *looks]


def test_a_topic_that_is_not_there_fails_the_batch(asked: list[str]) -> None:
    """And the connection is closed."""
    with pytest.raises(UnknownTopicError):
        BatchWriter(SCHEMA, table_options(topic="u"))
    assert asked[-1] == "closed"


def test_a_stream_asks_no_broker_before_its_first_task(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first task of each batch looks; the others do not."""
    stream = StreamWriter(SCHEMA, table_options())
    assert asked == []
    monkeypatch.setattr(delivery, "write_rows", lambda *given: given)
    for number in (1, 0):
        identity = TaskIdentity("query", 7, number, 0)
        monkeypatch.setattr(writer, "current_task", lambda identity=identity: identity)
        *_, found = stream.write(iter(()))
        assert found == identity
        assert asked == ([LOOKED] if number == 0 else [])


def test_what_tasks_have_written_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """By batches and by micro-batches; one that is aborted reports nothing."""
    reported = []
    monkeypatch.setattr(writer, "report_batch", reported.append)
    messages = [Written(1, 0, 10), None]
    BatchWriter(SCHEMA, table_options()).commit(messages)
    stream = StreamWriter(SCHEMA, table_options())
    stream.commit(messages, 7)
    stream.abort(messages, 8)

    assert reported == [messages, messages]


@pytest.mark.parametrize("kind", [BatchWriter, StreamWriter])
@pytest.mark.parametrize(("more", "times"), [({}, 1), (ORDER, 0)])
def test_a_literal_secret_is_told_by_the_writer(
    caplog: pytest.LogCaptureFixture, kind: type, more: dict[str, str], times: int
) -> None:
    """Unless `upsert_sink` has told it."""
    kind(SCHEMA, {**table_options(**{"properties.ssl.key.pem": "geheim"}), **more})

    assert caplog.text.count("'properties.ssl.key.pem'") == times


@pytest.mark.parametrize("kind", [BatchWriter, StreamWriter])
def test_options_are_checked_where_a_writer_is_made(kind: type) -> None:
    """No row is written with wrong ones."""
    with pytest.raises(OptionError, match=r"sink\.delivery-guarantee"):
        kind(SCHEMA, table_options(**{"sink.delivery-guarantee": "perhaps"}))


@pytest.mark.parametrize("kind", [BatchWriter, StreamWriter])
def test_what_is_loaded_is_frozen_where_a_writer_is_made(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process has loaded what it needs by then."""
    frozen = []
    monkeypatch.setattr(writer, "freeze_modules", lambda: frozen.append(kind))
    kind(SCHEMA, table_options())

    assert frozen == [kind]
