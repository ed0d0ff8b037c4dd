"""Where the micro-batches of a query end, within the limits of its options."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.errors import UnknownTopicError
from pyspark_upsert_kafka.core.options import Limits, ReadOptions
from pyspark_upsert_kafka.core.positions.alignment import Alignment
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Positions, StreamOffset
from pyspark_upsert_kafka.core.positions.planning import advanced
from pyspark_upsert_kafka.source.planning.message_sizes import MessageSizes, message_sizes
from pyspark_upsert_kafka.source.planning.observer import Observer
from pyspark_upsert_kafka.source.planning.record_times import RecordTimes, record_times


class BatchEnds:
    """Where the micro-batches of a query end. What it remembers of messages saves requests, and is seen again after a restart.

    Args:
        observer: The view of the query's topics.
        options: The query's.
    """

    def __init__(self, observer: Observer, options: ReadOptions) -> None:
        self._observer, self._options = observer, options
        self._alignment: Alignment | None = None
        self._times: RecordTimes | None = None
        self._sizes: MessageSizes | None = None

    def end(
        self, now: StreamOffset, view: ClusterView, limits: Limits, target: Positions | None
    ) -> StreamOffset:
        """The end of the next batch.

        Args:
            now: Where reading is.
            view: What the brokers have.
            limits: How much the batch reads.
            target: Nothing past these positions; None = no limit.

        Raises:
            BrokerError: No broker answers.
            OptionError: Timestamps of a topic cannot be compared.
        """
        aligned = self._aligned(now, view, limits, target)
        end = advanced(now, view, max_offsets=limits.max_offsets, target=aligned)
        if limits.max_bytes is None:
            return end
        if self._sizes is None:
            self._sizes = message_sizes(self._options)
        positions = self._sizes.ends(view, now.positions, end.positions, limits.max_bytes)
        return replace(end, positions=positions)

    def _aligned(
        self, now: StreamOffset, view: ClusterView, limits: Limits, target: Positions | None
    ) -> Positions | None:
        """Nothing past these positions, so that no partition runs ahead in time; None = no limit."""
        if limits.max_drift_s is None:
            return target
        if self._alignment is None or self._times is None:
            self._alignment = Alignment(int(limits.max_drift_s * 1000), now_ms())
            self._times = record_times(self._observer.cluster, self._options)
        reachable = advanced(now, view, target=target).positions
        try:
            begin = self._times.start_batch(view, now.positions, reachable)
            asks = partial(self._times.first_after, view, begin, reachable)
            return self._alignment.ends(begin, reachable, asks)
        except UnknownTopicError:  # the next view shows whether it is gone
            return now.positions
