"""Where a new query starts and ends, in streams and batches alike."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.data_loss import unconfirmed_losses
from pyspark_upsert_kafka.core.positions.offsets import StreamOffset
from pyspark_upsert_kafka.kafka.interfaces import Cluster
from pyspark_upsert_kafka.kafka.reading.rechecking import LossChecks
from pyspark_upsert_kafka.source.planning.loss import checked_start


def start_offset(cluster: Cluster, options: ReadOptions) -> tuple[StreamOffset, ClusterView]:
    """Where a new query starts and, for a bounded one, where it stops; and the view of its topics.

    A partition that ``specific-offsets`` does not name starts at its earliest offset, as in Flink; in a
    bounded query, a partition without an end is not read.

    Raises:
        BrokerError: No broker answers, or a named topic does not exist.
        DataLossError: A wanted start is gone, and ``failOnDataLoss`` is true.
    """

    def current_view() -> ClusterView:
        topics = cluster.topics(options.table.topics)
        return cluster.view(topics, read_committed=options.read_committed)

    checks = LossChecks(time)
    view = checks.until_certain(current_view(), partial(_missing_topics, options), current_view)
    wanted = _start(cluster, view, options)
    view = checks.until_certain(view, partial(unconfirmed_losses, wanted), current_view)
    start = checked_start(wanted, view, options)
    if options.end.mode == "unbounded":
        return start, view
    stop = cluster.positions(options.end, view)
    begins = {tp: at for tp, at in start.positions.items() if tp in stop}
    return replace(start, positions=begins, begins=begins, stop=stop), view


def _missing_topics(options: ReadOptions, view: ClusterView) -> set[str]:
    """Topics that existed when their names were looked up, and no longer when their offsets were."""
    return {name for name in options.table.topics.names if name not in view.topic_ids}


def _start(cluster: Cluster, view: ClusterView, options: ReadOptions) -> StreamOffset:
    earliest = {tp: bounds.earliest for tp, bounds in view.bounds.items()}
    named = cluster.positions(options.start, view)
    return StreamOffset({**earliest, **named}, topic_ids=view.topic_ids)
