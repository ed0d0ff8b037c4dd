"""Looks at the topics of a stream, not more often than needed."""

from __future__ import annotations

import time

from pyspark_upsert_kafka.core.offsets import StreamOffset
from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.core.planning import ClusterView
from pyspark_upsert_kafka.kafka.client import Cluster
from pyspark_upsert_kafka.kafka.clients import client_named

_VIEW_LIVES_S = 0.2
"""An idle query asks about 94 times a second; the broker is asked five times."""


class Observer:
    """What a stream's driver knows of its topics; opened lazily, so that a reader can be pickled."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster: Cluster | None = None
        self._viewed_at = self._discovered_at = float("-inf")
        self.last_view: ClusterView | None = None
        self.discovering = False
        """Whether the last view was a look for new partitions and topics too."""

    @property
    def cluster(self) -> Cluster:
        """The connection, opened when first asked for."""
        if self._cluster is None:
            table = self._options.table
            self._cluster = client_named(table.client).cluster(table.properties, "driver")
        return self._cluster

    def view(self, offset: StreamOffset | None) -> ClusterView:
        """The topics as they were a moment ago.

        Args:
            offset: Where the query is; None = it is new, so each of its topics must exist.

        Raises:
            BrokerError: No broker answers, or a topic of a new query does not exist.
        """
        now = time.monotonic()
        if self.last_view is None or now - self._viewed_at >= _VIEW_LIVES_S:
            self.last_view = self._look(offset, now)
            self._viewed_at = time.monotonic()
        return self.last_view

    def everything(self) -> ClusterView:
        """All topics of the query that exist, as they are now."""
        wanted = self._options.table.topics
        topics = (
            self.cluster.existing(wanted.names)
            if wanted.pattern is None
            else self.cluster.topics(wanted)
        )
        return self.cluster.view(topics, committed=self._options.read_committed)

    def _look(self, offset: StreamOffset | None, now: float) -> ClusterView:
        wanted, interval = self._options.table.topics, self._options.discovery_interval_s
        self.discovering = interval > 0 and now - self._discovered_at >= interval
        if offset is None:
            topics = self.cluster.topics(wanted)
            self._discovered_at = now
        else:
            names = {tp.topic for tp in offset.positions} | set(offset.topic_ids)
            topics = self.cluster.existing(sorted(names | set(wanted.names)))
            if self.discovering:
                self._discovered_at = now
                if wanted.pattern is not None:
                    topics.update(self.cluster.topics(wanted))
        return self.cluster.view(topics, committed=self._options.read_committed)
