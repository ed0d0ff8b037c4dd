"""What a stream's driver knows of its topics, asked of the brokers no more often than needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pyspark_upsert_kafka.connector.bad_messages import check_dead_letter_topic
from pyspark_upsert_kafka.connector.planning.query_start import start_offset
from pyspark_upsert_kafka.connector.planning.unseen_messages import StandsStill
from pyspark_upsert_kafka.core.clock import SYSTEM_CLOCK, WallClock
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView, TopicInfo
from pyspark_upsert_kafka.core.positions.data_loss import unconfirmed_losses
from pyspark_upsert_kafka.core.positions.offsets import (
    StreamOffset,
)
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.loss_checks import LossChecks

_NEVER = float("-inf")

_LONGEST_WAIT_S = 1.0
"""How long one call by Spark waits at most, so that a query over very many partitions can be stopped."""

WHOLE_VIEW_LIVES = 10
"""While nothing changes, every tenth request looks up the whole view, the others the latest offsets only."""


def view_lifetime_s(partitions: int) -> float:
    """How long a view of a number of partitions is used before another is requested.

    >>> view_lifetime_s(10), view_lifetime_s(1000)
    (0.2, 2.0)
    """
    return max(0.2, partitions * 0.002)


class Observer:
    """Caches the view of a stream's topics; connects when first used, so that a reader can be pickled.

    Args:
        options: How the topics are read.
        clock: Says when the brokers are asked again; it is pickled too.
    """

    def __init__(self, options: ReadOptions, clock: WallClock = SYSTEM_CLOCK) -> None:
        self._options, self.clock = options, clock
        self._cluster: Cluster | None = None
        self._viewed_at = self._viewed_whole_at = self._discovered_at = _NEVER
        self.last_view: ClusterView | None = None
        self._stands_still = StandsStill()

    @property
    def cluster(self) -> Cluster:
        """The connection, opened when first asked for.

        Raises:
            BrokerError: No broker answers, or there is no dead-letter topic.
        """
        if self._cluster is None:
            table = self._options.table
            self._cluster = load_client(table.client).cluster(table.properties, "driver")
            check_dead_letter_topic(self._cluster, self._options)
        return self._cluster

    def close(self) -> None:
        """Ends the connection."""
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.close()

    @property
    def is_fresh(self) -> bool:
        """Whether the last view is recent enough to be used again."""
        view = self.last_view
        return view is not None and (
            self.clock.monotonic() - self._viewed_at < view_lifetime_s(len(view.bounds))
        )

    def looked_since(self, moment: float) -> bool:
        """Whether the last view is of a time after a moment of the clock."""
        return self._viewed_at >= moment

    def wait_until_stale(self) -> bool:
        """Waits until the last view is no longer used; False = that would take too long, and it is still used."""
        if self.last_view is not None:
            left = (
                self._viewed_at
                + view_lifetime_s(len(self.last_view.bounds))
                - self.clock.monotonic()
            )
            self.clock.sleep(max(0.0, min(left, _LONGEST_WAIT_S)))
        return not self.is_fresh

    @property
    def discovery_is_due(self) -> bool:
        """Whether it is time to look for new partitions and topics: at each start, then at intervals."""
        interval = self._options.discovery_interval_s
        if self._discovered_at == _NEVER:
            return True
        waited = self.clock.monotonic() - self._discovered_at
        return waited >= interval > 0 and not self.is_fresh

    def forget_discovery(self) -> None:
        """Makes it time to look for new partitions and topics, as at a start."""
        self._discovered_at = _NEVER

    def is_unchanged(self) -> bool:
        """Whether the latest offsets are still those of the last view, at the cost of one small request.

        From time to time it says no, so that the whole view is looked up: a topic may be a new one.
        """
        view = self.last_view
        if view is None:
            return False
        waited = self.clock.monotonic() - self._viewed_whole_at
        if waited >= WHOLE_VIEW_LIVES * view_lifetime_s(len(view.bounds)):
            return False
        latest = self.cluster.latest(view, read_committed=self._options.read_committed)
        if latest != view.latest:
            return False
        self._viewed_at = self.clock.monotonic()
        return True

    def begin(self) -> StreamOffset:
        """Where a new query starts.

        Raises:
            BrokerError: No broker answers, or a named topic does not exist.
            DataLossError: A wanted start is gone, and ``failOnDataLoss`` is true.
        """
        self._discovered_at = self.clock.monotonic()
        start, view = start_offset(self.cluster, self._options, self.clock)
        self._remember(view)
        return start

    def view(self, offset: StreamOffset, wanted: StreamOffset | None = None) -> ClusterView:
        """The topics of a query that has read up to this offset, as of a moment ago.

        Something wanted is missing in it only if it was missing in every view for some seconds.

        Args:
            offset: Names the topics.
            wanted: What should exist; by default the offset.

        Raises:
            BrokerError: No broker answers.
        """
        look = partial(self._look, partial(self._existing, offset))
        view = self.last_view if self.last_view is not None and self.is_fresh else look()
        return LossChecks(self.clock).until_certain(
            view, partial(unconfirmed_losses, wanted or offset), look
        )

    def discover(self, offset: StreamOffset) -> ClusterView:
        """A new view as `view` returns it, with topics that match the pattern by now."""
        self._discovered_at = self.clock.monotonic()
        look = partial(self._look, lambda: {**self._existing(offset), **self._matching()})
        return LossChecks(self.clock).until_certain(
            look(), partial(unconfirmed_losses, offset), look
        )

    def current(self) -> ClusterView:
        """All topics of the query as of now, from one view."""
        nothing = StreamOffset({})
        return self._look(lambda: {**self._existing(nothing), **self._matching()})

    def _existing(self, offset: StreamOffset) -> Mapping[str, TopicInfo]:
        wanted = self._options.table.topics
        topics = set(wanted.names)
        if wanted.pattern is not None:
            known = {tp.topic for tp in offset.positions}
            topics |= {topic for topic in known if wanted.pattern.fullmatch(topic)}
        return self.cluster.existing(sorted(topics))

    def _matching(self) -> Mapping[str, TopicInfo]:
        wanted = self._options.table.topics
        return {} if wanted.pattern is None else self.cluster.topics(wanted)

    def _look(self, topics: Callable[[], Mapping[str, TopicInfo]]) -> ClusterView:
        return self._remember(
            self.cluster.view(topics(), read_committed=self._options.read_committed)
        )

    def _remember(self, view: ClusterView) -> ClusterView:
        """The view, or the previous object if they are equal: a new object means that something has changed."""
        if self.last_view is None:
            self.cluster.wait_out(self._options.outage_timeout_s)
        self._stands_still.look(view, self._options, self.clock.monotonic())
        self._viewed_at = self._viewed_whole_at = self.clock.monotonic()
        if self.last_view is None or view != self.last_view:
            self.last_view = view
        return self.last_view
