"""Snapshots of a topic that is compacted while they are read: a real broker, small segments and a cleaner without a pause."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructType

from pyspark_upsert_kafka import UpsertKafkaDataSource
from pyspark_upsert_kafka.core.errors import DecodeError
from tests.conftest import Broker, options
from tests.kafka.conftest import Edge, eventually
from tools.histories.history import CLEANER, Counts, history
from tools.histories.table_first import table_first

SCHEMA = StructType().add("id", LongType()).add("n", LongType())
SMALL_SEGMENTS = {"segment_ms": "100", "min_cleanable_dirty_ratio": "0.001"}
FILLER = -1
MOST_HISTORIES = 20


class Snapshot:
    """A snapshot that is planned, and read later."""

    def __init__(self, broker: Broker, edge: Edge, topic: str, **more: object) -> None:
        accepted = (
            {} if edge.has_transactions else {"properties.isolation.level": "read_uncommitted"}
        )
        given = options(broker, topic, **{"kafka.client": edge.client, **accepted, **more})
        self._reader = UpsertKafkaDataSource(given).reader(SCHEMA)
        self.parts: Sequence[Any] = self._reader.partitions()
        self.ends = {range_.partition: range_.end for part in self.parts for range_ in part.value}

    def table(self) -> dict[int, int]:
        """The rows."""
        batches = [batch for part in self.parts for batch in self._reader.read(part)]
        rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        # The filler is a row of each partition.
        rows = [(key, number) for key, number in rows if key != FILLER]
        assert len(dict(rows)) == len(rows), "a key is there twice"
        return dict(rows)


def row(key: int, number: int | None) -> tuple[str, str | None]:
    """Key and value of a row; of a delete without one."""
    return f'{{"id":{key}}}', None if number is None else f'{{"id":{key},"n":{number}}}'


def compact(broker: Broker, topic: str, snapshot: Snapshot) -> None:
    """Waits until nothing is left of what was planned."""
    time.sleep(
        0.2
    )  # the next message is in a segment of its own, and lets the cleaner at the others
    for partition in snapshot.ends:
        broker.produce(topic, row(FILLER, 0), partition=partition)
    ends = snapshot.ends
    assert eventually(
        lambda: all(found.offset >= ends[found.partition] for found in broker.messages(topic))
    )


@pytest.mark.long("waits for the cleaner of a broker of its own")
@pytest.mark.parametrize("more", [{}, {"minPartitions": 7}])
def test_what_compaction_takes_before_it_is_read_shows_its_newest_row(
    edge: Edge, stoppable_broker: Broker, more: dict[str, object]
) -> None:
    """All rows are updated, some are deleted and others added before any is read; and a second time after that."""
    topic = stoppable_broker.topic(3, cleanup_policy="compact", **SMALL_SEGMENTS)
    stoppable_broker.produce(topic, *(row(key, key) for key in range(600)))
    snapshot = Snapshot(stoppable_broker, edge.at(stoppable_broker.servers), topic, **more)
    changes = [row(key, key + 1000) for key in range(650)]
    deletes = [row(key, None) for key in range(10)]
    stoppable_broker.produce(topic, *changes, *deletes)
    compact(stoppable_broker, topic, snapshot)
    expected = {key: key + 1000 for key in range(10, 650)}
    again = Snapshot(stoppable_broker, edge.at(stoppable_broker.servers), topic)
    # Only retention and deletions move it, by which reads of the past know that messages are gone.
    assert {range_.begin for part in again.parts for range_ in part.value} == {0}

    assert snapshot.table() == expected
    stoppable_broker.produce(topic, *(row(key, key + 2000) for key in range(10, 650)))
    assert {key: number % 1000 for key, number in snapshot.table().items()} == {
        key: key for key in range(10, 650)
    }


@pytest.mark.parametrize(
    ("settings", "more", "new_keys"),
    [
        ({"cleanup_policy": "compact"}, {}, [9]),
        ({"cleanup_policy": "compact"}, {"minPartitions": 4}, [9]),
        ({"cleanup_policy": "compact", "min_compaction_lag_ms": "86400000"}, {}, []),
        ({"cleanup_policy": "delete"}, {}, []),
    ],
)
def test_what_compaction_has_not_taken_is_as_of_the_planning(
    edge: Edge,
    broker: Broker,
    settings: dict[str, str],
    more: dict[str, object],
    new_keys: list[int],
) -> None:
    """Changed or deleted since; only where keys may have been lost, those without a row are looked for."""
    topic = broker.topic(**settings)
    broker.produce(topic, *(row(key, key) for key in range(5)), row(1, 11), row(2, None))
    snapshot = Snapshot(broker, edge, topic, **more)
    broker.produce(topic, row(3, 33), row(4, None), row(9, 9), row(9, 99))

    assert snapshot.table() == {0: 0, 1: 11, 3: 3, 4: 4, **dict.fromkeys(new_keys, 99)}


@pytest.mark.long("waits for the cleaner of a broker of its own")
def test_a_key_that_is_spelt_in_two_ways_shows_no_row_from_before_the_planning(
    edge: Edge, stoppable_broker: Broker
) -> None:
    """To compaction these are two keys: it keeps the older spelling, and takes the newer one, which was overwritten since."""
    topic = stoppable_broker.topic(cleanup_policy="compact", **SMALL_SEGMENTS)
    stoppable_broker.produce(topic, ('{"id": 1}', '{"id":1,"n":1}'), row(1, 2))
    snapshot = Snapshot(stoppable_broker, edge.at(stoppable_broker.servers), topic)
    stoppable_broker.produce(topic, row(1, 3))
    time.sleep(0.2)  # as in `compact`
    stoppable_broker.produce(topic, row(FILLER, 0))
    assert eventually(
        lambda: [each.offset for each in stoppable_broker.messages(topic)][:2] == [0, 2]
    )

    assert snapshot.table() == {1: 3}


def test_a_bad_message_past_the_planned_end_is_one_like_others(edge: Edge, broker: Broker) -> None:
    """It is an error that names its offset, or it is left out."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, row(1, 1))
    given = {"error-handling.mode": "ignore"}
    fails, ignores = Snapshot(broker, edge, topic), Snapshot(broker, edge, topic, **given)
    broker.produce(topic, ("no JSON", '{"id":2}'), row(3, 3))

    with pytest.raises(DecodeError, match="offset 1"):
        fails.table()
    assert ignores.table() == {1: 1, 3: 3}


def test_an_end_that_is_the_latest_offset_is_warned_of(
    edge: Edge, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is read past an end that the user has named, so compaction may take rows before they are read."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, row(1, 1))
    end = {
        "scan.bounded.mode": "specific-offsets",
        "scan.bounded.specific-offsets": "partition:0,offset:1",
    }

    assert Snapshot(broker, edge, topic, **end).table() == {1: 1}
    assert "'scan.bounded.mode' = 'specific-offsets') may lack rows" in caplog.text


@pytest.mark.long("a loss is certain after ten seconds")
def test_a_topic_that_is_gone_has_nothing_past_the_planned_end(edge: Edge, broker: Broker) -> None:
    """Where lost data is no error, reading on is none either."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, row(1, 1))
    snapshot = Snapshot(broker, edge, topic, failOnDataLoss="false")
    broker.delete(topic)

    assert snapshot.table() == {}


def test_an_open_transaction_past_the_planned_end_is_not_waited_for(
    edge: Edge, broker: Broker
) -> None:
    """What it has written is no row yet, nor is what stands behind it."""
    if not edge.has_transactions:
        pytest.skip("kafka-python-ng has no read_committed")
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, row(1, 1))
    snapshot = Snapshot(broker, edge, topic)
    broker.produce(topic, row(2, 2))
    producer = broker.producer(**{"transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    key, value = row(3, 3)
    producer.produce(topic, key=key, value=value)
    producer.flush()
    broker.produce(topic, row(4, 4))

    assert snapshot.table() == {1: 1, 2: 2}
    producer.commit_transaction()  # returns before readers may see it
    assert eventually(lambda: snapshot.table() == {1: 1, 2: 2, 3: 3, 4: 4})


@pytest.mark.long("histories take minutes")
def test_no_history_loses_a_key_or_shows_an_old_row(own_kafka: Any) -> None:
    """`make histories`, in short: writers and the cleaner never pause while snapshots are read.

    Two histories, and more if compaction has taken nothing that a snapshot needed.
    """
    kafka, counts = own_kafka(config=CLEANER), Counts()
    for seed in range(MOST_HISTORIES):
        history(kafka.bootstrap_servers, Random(seed), counts)
        if seed > 0 and counts.found_late > 0:
            break

    assert counts.snapshots >= 4
    assert counts.found_late > 0, "compaction took nothing that a snapshot needed"


@pytest.mark.long("histories take minutes")
def test_no_history_leads_a_stream_that_begins_with_the_table_astray(own_kafka: Any) -> None:
    """Each first batch is the table as of its end, but for keys whose newer change follows, and the changes lead on from there.

    Two histories, and more if compaction has taken nothing from a first batch.
    """
    kafka, counts = own_kafka(config=CLEANER), Counts()
    for seed in range(MOST_HISTORIES):
        table_first(kafka.bootstrap_servers, Random(seed), counts)
        if seed > 0 and counts.left_out > 0:
            break

    assert counts.first_batches >= 2
    assert counts.left_out > 0, "compaction took nothing from a first batch"
