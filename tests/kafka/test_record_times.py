"""Partitions kept together in time by what real brokers and clients say, in topics with transactions and without."""

from __future__ import annotations

from functools import partial

import pytest

from pyspark_upsert_kafka.connector.planning.batch_ends import RecordTimes
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.positions.planning import Alignment
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client
from tests.conftest import Broker
from tests.kafka.conftest import Edge

NOON_MS, HOUR_MS, MINUTE_MS = 1_767_268_800_000, 3_600_000, 60_000


def backfill(broker: Broker, transaction: int | None, *, aborts: bool = False) -> str:
    """A topic with a partition of this noon, one of the hours since six, and one that is idle."""
    topic = broker.topic(3, retention_ms="-1")
    producer = broker.producer(**({"transactional.id": topic} if transaction else {}))
    if transaction:
        producer.init_transactions()
    times = {
        0: [NOON_MS + n for n in range(60)],
        1: [NOON_MS - n // 20 * HOUR_MS for n in range(139, 19, -1)],
    }
    for partition, all_times in times.items():
        size = transaction or len(all_times)
        for begin in range(0, len(all_times), size):
            for is_aborted in (True, False) if aborts else (False,):
                if transaction:
                    producer.begin_transaction()
                for time in all_times[begin : begin + size]:
                    later = NOON_MS + HOUR_MS if is_aborted else time
                    producer.produce(topic, value=b"", partition=partition, timestamp=later)
                if transaction:
                    producer.abort_transaction() if is_aborted else producer.commit_transaction()
    assert producer.flush(60) == 0
    return topic


def record_times(edge: Edge, cluster, view: ClusterView):
    """What is tested, and a reader of timestamps."""
    settings = ReadSettings(
        edge.all_properties(),
        edge.has_transactions,
        fail_on_data_loss=True,
        details=frozenset({Detail.TIMESTAMP}),
    )
    reader = load_client(edge.client).reader(settings)
    return RecordTimes(cluster, reader), reader


@pytest.mark.parametrize("transaction", [None, 20, 1])
def test_no_partition_runs_ahead(edge: Edge, broker: Broker, transaction: int | None) -> None:
    """Markers of transactions have the time of the commit, which is no time of a message."""
    topic = backfill(broker, transaction, aborts=transaction == 20 and edge.has_transactions)
    broker.wait_for_transactions(topic)
    batches = []
    with edge.cluster() as cluster:
        view = edge.view(cluster, topic)
        times, reader = record_times(edge, cluster, view)
        alignment = Alignment(MINUTE_MS, NOON_MS)
        at = {tp: bounds.earliest for tp, bounds in view.bounds.items()}
        while at != view.latest:
            begin = times.start_batch(view, at, view.latest)
            asks = partial(times.first_after, view, begin, view.latest)
            ends = alignment.ends(begin, view.latest, asks)
            assert ends != at
            batches.append(
                sorted(
                    time
                    for tp, end in ends.items()
                    if end > at[tp]
                    for batch in reader.read(Range(*tp, at[tp], end, view.topic_ids[topic]))
                    for time in batch.timestamps
                )
            )
            at = ends

    read = [each for each in batches if each]
    assert sum(map(len, read)) == 180
    assert all(each[-1] - each[0] <= MINUTE_MS for each in read)
    assert [each[0] for each in read] == sorted(each[0] for each in read)
    assert len(batches) <= len(read) + 2, "few batches read nothing but markers"


def test_times_of_the_broker_are_refused_when_they_are_found(edge: Edge, broker: Broker) -> None:
    """Also those of a topic that is found while the query runs."""
    first, later = broker.topic(), broker.topic(message_timestamp_type="LogAppendTime")
    with edge.cluster() as cluster:
        view, both = edge.view(cluster, first), edge.view(cluster, first, later)
        times, _ = record_times(edge, cluster, view)
        begin = {TopicPartition(first, 0): 0}
        times.start_batch(view, begin, begin)
        with pytest.raises(OptionError, match=f"{later}.*LogAppendTime"):
            times.start_batch(both, begin, begin)
