"""Where a start or end position of the options is in each partition."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_upsert_kafka.core.cluster_view import ClusterView
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.core.options import Position


def timestamp_offsets(
    found: Mapping[TopicPartition, int], view: ClusterView
) -> dict[TopicPartition, int]:
    """The first offsets at or after a time; where there is none, or none that may be read, the latest.

    Args:
        found: The brokers' answer; a negative offset stands for none.
        view: What the brokers have.
    """
    return {
        tp: bounds.latest if found[tp] < 0 else min(found[tp], bounds.latest)
        for tp, bounds in view.bounds.items()
    }


def specific_offsets(position: Position, view: ClusterView) -> dict[TopicPartition, int]:
    """The offsets that the user has named.

    Raises:
        OptionError: A named partition does not exist.
        BrokerError: The topic is gone.
    """
    if not view.topic_ids:
        raise BrokerError("The topic was deleted while its offsets were looked up.")
    (topic,) = view.topic_ids
    found = {}
    for partition, offset in position.offsets:
        tp = TopicPartition(topic, partition)
        if tp not in view.bounds:
            raise OptionError(
                f"Specific offsets name partition {partition} of topic {topic!r}, which has the "
                f"partitions 0 to {len(view.bounds) - 1}."
            )
        found[tp] = offset
    return found


def group_offsets(
    committed: Positions, position: Position, view: ClusterView, group: str
) -> dict[TopicPartition, int]:
    """The offsets that a group has committed; where it has none, ``auto.offset.reset`` decides.

    Args:
        committed: The group's offsets; a negative one stands for none.
        position: What to do where there is none.
        view: What the brokers have.
        group: The group's name.

    Raises:
        OptionError: There is none, and nothing says what to do.
    """
    found = {}
    for tp, bounds in view.bounds.items():
        if committed[tp] >= 0:
            found[tp] = committed[tp]
        elif position.reset == "none":
            raise OptionError(
                f"Group {group!r} has no committed offset for {tp}: commit one, or say where to "
                "start with 'properties.auto.offset.reset' = 'earliest' or 'latest'."
            )
        else:
            found[tp] = bounds.earliest if position.reset == "earliest" else bounds.latest
    return found
