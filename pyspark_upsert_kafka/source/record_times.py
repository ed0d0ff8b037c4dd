"""What brokers say of the timestamps of messages, for the alignment of partitions."""

from __future__ import annotations

import logging

from pyspark_upsert_kafka.core.cluster_view import ClusterView
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.offsets import Positions
from pyspark_upsert_kafka.core.options import Position
from pyspark_upsert_kafka.kafka.interfaces import Cluster

logger = logging.getLogger("pyspark_upsert_kafka")

_TYPE = "message.timestamp.type"


def first_after(cluster: Cluster, view: ClusterView, begin: Positions, time_ms: int) -> Positions:
    """The first offset later than a time in each partition that has something to read; else the latest.

    Args:
        cluster: The connection.
        view: What the brokers have.
        begin: Where reading is.
        time_ms: The time, in ms since the epoch.
    """
    waiting = {
        tp: bounds
        for tp, bounds in view.bounds.items()
        if bounds.latest > begin.get(tp, bounds.latest)
    }
    position = Position("timestamp", timestamp_ms=time_ms + 1)
    return cluster.positions(position, ClusterView(view.topic_ids, waiting))


def refuse_log_append_time(cluster: Cluster, view: ClusterView) -> None:
    """Raises an OptionError when the broker sets the timestamps of a topic: they say nothing of its events."""
    try:
        settings = cluster.settings(sorted(view.topic_ids), [_TYPE])
    except BrokerError as error:  # reading needs no ACL for the settings of topics
        logger.info("It is not known whose timestamps the messages have: %s", error)
        return
    for topic, each in sorted(settings.items()):
        if each.get(_TYPE) == "LogAppendTime":
            raise OptionError(
                f"'scan.watermark.alignment.max-drift' compares the times at which messages were made, but topic "
                f"{topic!r} has {_TYPE} = LogAppendTime: its timestamps are those of the broker. Leave the option out."
            )
