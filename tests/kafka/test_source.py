"""The source as Spark asks it, over a real broker and both clients, without Spark: what is cheap to try."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import KafkaException
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from pyspark_upsert_kafka import UpsertKafkaDataSource
from pyspark_upsert_kafka.core.errors import CheckpointError, DataLossError, DecodeError
from tests.conftest import Broker, options
from tests.kafka.conftest import Edge, eventually

SCHEMA = StructType(
    [
        StructField("id", LongType()),
        StructField("name", StringType()),
        StructField("_change_type", StringType()),
    ]
)
CHANGELOG = {"read.mode": "changelog"}


@dataclass(frozen=True)
class Source:
    """A table of a topic, as one of the clients reads it."""

    given: dict[str, str]

    def rows(self, schema: StructType = SCHEMA) -> list[tuple[Any, ...]]:
        """The rows of a batch read."""
        reader = UpsertKafkaDataSource(self.given).reader(schema)
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    def query(self) -> Any:
        """What a streaming query asks, driven by hand."""
        return UpsertKafkaDataSource(self.given).streamReader(SCHEMA)

    def latest(self, start: dict[str, Any] | None = None) -> dict[str, Any]:
        """The end of the batch that a query, just started, plans after this start."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        query = self.query()
        return dict(query.latestOffset(start or query.initialOffset(), ReadAllAvailable()))


def source(broker: Broker, edge: Edge, topic: str, **more: object) -> Source:
    """The table in a topic."""
    accepted = {} if edge.has_transactions else {"properties.isolation.level": "read_uncommitted"}
    return Source(options(broker, topic, **{"kafka.client": edge.client, **accepted, **more}))


def row(id_: int) -> tuple[str, str]:
    """Key and value of a row."""
    return f'{{"id":{id_}}}', f'{{"id":{id_},"name":"n{id_}"}}'


BAD = ('{"id":0}', "no JSON")


@pytest.mark.parametrize(
    ("messages", "offset", "good"),
    [
        ([BAD, row(1), row(2)], 0, [1, 2]),
        ([row(1), row(2), BAD], 2, [1, 2]),
        ([BAD], 0, []),
        ([BAD, BAD], 0, []),
    ],
    ids=["first", "last", "alone", "nothing else"],
)
def test_a_bad_message_wherever_it_is(
    broker: Broker, edge: Edge, messages: Sequence[tuple[str, str]], offset: int, good: list[int]
) -> None:
    """First, last or alone in its batch: it fails the query by its place, or only itself is missing."""
    topic = broker.topic()
    broker.produce(topic, *messages)

    with pytest.raises(DecodeError, match=f"'{topic}', partition 0, offset {offset} cannot"):
        source(broker, edge, topic, **CHANGELOG).rows()

    ignored = source(broker, edge, topic, **CHANGELOG, **{"error-handling.mode": "ignore"})
    assert [id_ for id_, *_ in ignored.rows()] == good


@pytest.mark.parametrize(
    ("timestamp", "shown"),
    [(-1_000, dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.timezone.utc)), (-(2**62), None), (2**62, None),
     (253_402_300_800_000, None)],
    ids=["before 1970", "before year 1", "far future", "year 10000"],
)  # fmt: skip
def test_timestamps_that_are_hardly_dates(
    broker: Broker, edge: Edge, timestamp: int, shown: dt.datetime | None
) -> None:
    """The row is read, whatever its timestamp; what is outside the years 1 to 9999 is NULL."""
    topic = broker.topic(message_timestamp_after_max_ms=str(2**63 - 1))
    producer = broker.producer()
    producer.produce(topic, row(1)[1], row(1)[0], timestamp=timestamp)
    producer.produce(topic, row(2)[1], row(2)[0], timestamp=1_700_000_000_000)
    assert producer.flush(60) == 0

    schema = StructType([*SCHEMA.fields, StructField("_timestamp", TimestampType())])
    first, second = source(broker, edge, topic, **CHANGELOG).rows(schema)

    assert (first[0], second[0]) == (1, 2)
    assert first[-1] == shown
    assert second[-1].timestamp() == 1_700_000_000


@pytest.mark.long("a loss is certain after ten seconds")
def test_a_topic_that_comes_back_with_fewer_partitions(
    broker: Broker, edge: Edge, caplog: pytest.LogCaptureFixture
) -> None:
    """Its other partitions are lost data; or what is there now is read, from its beginning."""
    topic = broker.topic(3)
    for partition in range(3):
        broker.produce(topic, row(partition), row(partition), partition=partition)
    planned = source(broker, edge, topic).latest()
    broker.delete(topic)
    assert eventually(lambda: created(broker, topic))
    broker.produce(topic, row(7))

    with ThreadPoolExecutor() as pool:  # both look for ten seconds
        strict = pool.submit(source(broker, edge, topic).latest, planned)
        lenient = source(broker, edge, topic, failOnDataLoss="false").latest(planned)

    with pytest.raises(DataLossError, match=topic):
        strict.result()
    assert list(lenient["topics"][topic]["positions"]) == ["0"]
    assert topic in caplog.text


def created(broker: Broker, topic: str) -> bool:
    """Creates a topic with one partition; False = one of that name is still being deleted."""
    try:
        broker.create(topic)
    except KafkaException:
        return False
    return True


def test_a_checkpoint_that_nobody_here_has_written(broker: Broker, edge: Edge) -> None:
    """Of a later version or of another source: refused, with what it holds."""
    topic = broker.topic()
    planned = source(broker, edge, topic).latest()
    for strange in ({**planned, "version": 3}, {"t": {"0": 5}}):
        with pytest.raises(CheckpointError, match="checkpoint"):
            source(broker, edge, topic).latest(strange)
