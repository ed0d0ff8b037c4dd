"""Which data is lost, when that is certain, and where to continue.

One answer of a broker does not prove a loss: its metadata may be stale, or its log behind that of another
broker. So a loss is certain only when every check over some seconds finds it. Only a loss
by retention is certain at once, since an earliest offset never goes back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark_upsert_kafka.core.errors import DataLossError
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import StreamOffset, TopicPartition
from pyspark_upsert_kafka.core.positions.planning import known_ids

K = TypeVar("K", bound=Hashable)

RETENTION = "the offsets were removed by retention, or by a deletion of records"


def missing_since(before: Mapping[K, float], missing: Iterable[K], now: float) -> dict[K, float]:
    """Since when all checks have missed each of these; what a check has found is dropped.

    >>> missing_since({"a": 1.0, "b": 1.0}, ["b", "c"], now=5.0)
    {'b': 1.0, 'c': 5.0}
    """
    return {each: before.get(each, now) for each in missing}


def is_certain(since: Mapping[K, float], now: float, after_s: float) -> bool:
    """Whether all that is missing has been missing for so many seconds."""
    return all(now - at >= after_s for at in since.values())


@dataclass(frozen=True)
class _Loss:
    reason: str
    certain: bool = False


def lost_data(offset: StreamOffset, view: ClusterView) -> dict[TopicPartition, DataLossError]:
    """The partitions for which the broker no longer has what the offset still needs.

    A deleted or re-created topic, a missing partition, a position before the earliest or past the
    last written offset.
    """
    lost = {}
    for tp, loss in sorted(_losses(offset, view).items()):
        bounds = view.bounds.get(tp)
        earliest = bounds.earliest if bounds else None
        wanted = offset.positions[tp]
        lost[tp] = DataLossError(tp.topic, tp.partition, wanted, earliest, loss.reason)
    return lost


def unconfirmed_losses(
    offset: StreamOffset, view: ClusterView
) -> set[tuple[TopicPartition, str | None]]:
    """Losses of which one check is no proof: partitions, each with the id that its topic has in this view."""
    return {
        (tp, view.topic_ids.get(tp.topic))
        for tp, loss in _losses(offset, view).items()
        if not loss.certain
    }


def _losses(offset: StreamOffset, view: ClusterView) -> dict[TopicPartition, _Loss]:
    lost = {}
    for tp, wanted in offset.positions.items():
        if offset.stop is not None and wanted >= offset.stop.get(tp, wanted):
            continue  # a bounded stream has read all it wants of this partition
        loss = _loss(tp, wanted, offset, view)
        if loss is not None:
            lost[tp] = loss
    return lost


def _loss(tp: TopicPartition, wanted: int, offset: StreamOffset, view: ClusterView) -> _Loss | None:
    if tp.topic not in view.topic_ids:
        return _Loss(
            "the topic was deleted, or the options no longer name it (a checkpoint of another query, perhaps: "
            "then start with a new one)"
        )
    if is_other_topic(offset.topic_ids.get(tp.topic, ""), view.topic_ids[tp.topic]):
        return _Loss("the topic was deleted and created again (its id is another)")
    bounds = view.bounds.get(tp)
    if bounds is None:
        return _Loss("the partition is gone; was the topic created again?")
    if wanted < bounds.earliest:
        return _Loss(RETENTION, certain=True)
    if wanted > bounds.high:
        return _Loss(
            f"the partition ends at offset {bounds.high}; was the topic created again, or the "
            "partition truncated?"
        )
    return None


def is_other_topic(known: str, seen: str) -> bool:
    """Whether two ids are of different topics; brokers before Kafka 2.8 know no ids."""
    return bool(known and seen and known != seen)


def recovered(offset: StreamOffset, view: ClusterView) -> StreamOffset:
    """The offset from which to continue after a loss (``failOnDataLoss`` = false).

    Partitions that are gone are dropped. One with lost offsets begins again at the earliest, but a
    truncated one of the same topic at its end: reading it from the earliest would repeat rows.
    """
    lost = _losses(offset, view)
    positions = {tp: at for tp, at in offset.positions.items() if tp not in lost}
    begins = {}
    for tp in lost:
        bounds = view.bounds.get(tp)
        if bounds is None:
            continue
        known = offset.topic_ids.get(tp.topic, "")
        truncated = offset.positions[tp] > bounds.high and known == view.topic_ids[tp.topic] != ""
        begins[tp] = bounds.latest if truncated else bounds.earliest
    found = {**positions, **begins}
    return replace(offset, positions=found, begins=begins, topic_ids=known_ids(found, offset, view))
