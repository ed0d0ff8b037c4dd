"""Which offsets a sample of messages is read from: the beginning and the end of each partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition

_MOST_PARTITIONS = 100
"""A sample has messages of no more partitions than these, evenly chosen: each costs a request."""


@dataclass(frozen=True)
class SamplePart:
    """The sample of one partition.

    Args:
        ranges: What is read, one after another, until there are enough messages.
        most: How many are enough.
    """

    ranges: tuple[Range, ...]
    most: int


def sample_parts(view: ClusterView, count: int) -> list[SamplePart]:
    """Of each partition about as many messages, half of them from its end and half from its begin.

    After compaction and transactions there are fewer messages than offsets there: then more of the beginning is read.

    Args:
        view: What the brokers have.
        count: The most messages that are read.
    """
    sizes = {tp: bounds.latest - bounds.earliest for tp, bounds in sorted(view.bounds.items())}
    filled = [tp for tp, size in sizes.items() if size]
    step = max(1, -(-len(filled) // _MOST_PARTITIONS))
    shares = _shares({tp: sizes[tp] for tp in filled[::step]}, count)
    return [_part(view, tp, share) for tp, share in shares.items() if share]


def _part(view: ClusterView, tp: TopicPartition, share: int) -> SamplePart:
    bounds = view.bounds[tp]
    whole = Range(
        *tp, bounds.earliest, bounds.latest, view.topic_ids[tp.topic], is_checked_after=False
    )
    if share == whole.size:
        return SamplePart((whole,), share)
    first, last = whole.begin + share // 2, whole.end - (share - share // 2)
    ranges = (
        replace(whole, begin=last),
        replace(whole, end=first),
        replace(whole, begin=first, end=last),
    )
    return SamplePart(tuple(each for each in ranges if each.size), share)


def _shares(sizes: Mapping[TopicPartition, int], count: int) -> dict[TopicPartition, int]:
    """A number of messages, shared among partitions: each gets the same, as far as it has so many, and the largest what is left."""
    shares = {}
    left = count
    for index, tp in enumerate(sorted(sizes, key=lambda tp: (sizes[tp], tp))):
        shares[tp] = min(sizes[tp], left // (len(sizes) - index))
        left -= shares[tp]
    return dict(sorted(shares.items()))
