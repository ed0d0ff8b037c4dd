"""A batch read on the driver and in its tasks."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning import batch_reader, unseen_messages
from pyspark_upsert_kafka.connector.planning.batch_reader import BatchReader, ranges_of_batch
from pyspark_upsert_kafka.connector.planning.unseen_messages import Hidden
from pyspark_upsert_kafka.connector.reading import task_reading
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from tests.table_options import table_options
from tests.unit.connector.fake_cluster import FakeCluster, table


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """Topic ``t`` with two partitions that hold nothing."""
    found = FakeCluster()
    found.create("t", 2)
    monkeypatch.setattr(errors, "_warned", set())
    monkeypatch.setattr(batch_reader, "freeze_modules", lambda: None)
    client: Any = type("Client", (), {"cluster": lambda *_: found})()
    monkeypatch.setattr(batch_reader, "load_client", lambda _: client)
    return found


def options(**more: object) -> ReadOptions:
    """Of a batch read."""
    given = table_options(**{"read.mode": "changelog", **more})
    return read_options(given, format_options, stream=False)


def test_a_topic_without_messages_gives_no_rows(cluster: FakeCluster) -> None:
    """One task that reads nothing: Spark would make one of its own."""
    reader = BatchReader(table(options()), options())
    (only,) = reader.partitions()

    assert list(reader.read(only)) == []


def test_each_task_reads_its_ranges(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the table and the options of the query."""
    cluster.produce("t", 0, 10)
    cluster.produce("t", 1, 5)
    given = options()
    reader = BatchReader(table(given), given)
    monkeypatch.setattr(task_reading, "read_ranges", lambda *found: iter([found]))

    found = [each for partition in reader.partitions() for each in reader.read(partition)]

    assert [ranges for ranges, *_ in found] == [
        (Range("t", 0, 0, 10, topic_id="id-1"),),
        (Range("t", 1, 0, 5, topic_id="id-1"),),
    ]
    assert all(rest == [table(given), given] for _, *rest in found)


def test_what_the_options_warn_of_is_told_where_a_query_is_planned(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, and without the secret."""
    given = options(**{"properties.ssl.key.pem": "geheim"})
    reader = BatchReader(table(given), given)
    assert caplog.messages == []
    reader.partitions()
    reader.partitions()

    (told,) = caplog.messages
    assert "'properties.ssl.key.pem'" in told
    assert "geheim" not in told


def test_a_missing_dead_letter_topic_is_told_before_anything_is_read(cluster: FakeCluster) -> None:
    """Planning asks for it, as for the topics of the table."""
    cluster.produce("t", 0, 10)
    given = options(**{"error-handling.mode": "log", "error-handling.log.target": "dead"})

    with pytest.raises(BrokerError, match="dead"):
        BatchReader(table(given), given).partitions()


def test_what_is_loaded_is_frozen_where_a_reader_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process has loaded what it needs by then."""
    frozen = []
    monkeypatch.setattr(batch_reader, "freeze_modules", lambda: frozen.append(1))
    BatchReader(table(options()), options())

    assert frozen == [1]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, [[TopicPartition("t", 1)]]),
        ({"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "partition:0,offset:4;partition:1,offset:4"}, []),
    ],
)  # fmt: skip
def test_what_open_transactions_hide_is_told_where_a_read_ends_at_the_latest_offset(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], told: list[object]
) -> None:
    """Of the partitions that are read; an end that was given is before what is hidden, or waits for nothing."""
    cluster.produce("t", 0, 10)
    cluster.set("t", 1, 0, 20, latest=4)
    monkeypatch.setattr(unseen_messages, "load_client", lambda _: _client(cluster))
    found: list[list[Hidden]] = []
    ranges = ranges_of_batch(cluster, options(**more), tell=found.append)

    assert [[each.place for each in some] for some in found] == told
    assert [each.end for each in ranges] == [4 if more else 10, 4]


def _client(cluster: FakeCluster) -> Any:
    return type("Client", (), {"reader": lambda *_: cluster})()
