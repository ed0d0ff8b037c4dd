"""Looks at the topics of a stream, not more often than needed."""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyspark_upsert_kafka.core.offsets import StreamOffset
from pyspark_upsert_kafka.core.options import ReadOptions, Topics
from pyspark_upsert_kafka.core.planning import ClusterView
from pyspark_upsert_kafka.kafka.client import Cluster
from pyspark_upsert_kafka.kafka.clients import client_named

_VIEW_LIVES_S = 0.2
"""An idle query asks about 94 times a second; the broker is asked five times."""

_NEVER = float("-inf")


class Observer:
    """What a stream's driver knows of its topics; opened lazily, so that a reader can be pickled."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster: Cluster | None = None
        self._viewed_at = self._discovered_at = _NEVER
        self.last_view: ClusterView | None = None

    @property
    def cluster(self) -> Cluster:
        """The connection, opened when first asked for.

        Raises:
            BrokerError: No broker answers, or there is no dead-letter topic.
        """
        if self._cluster is None:
            table, dead_letters = self._options.table, self._options.dead_letter_topic
            self._cluster = client_named(table.client).cluster(table.properties, "driver")
            if dead_letters is not None:
                self._cluster.topics(Topics(names=(dead_letters,)))
        return self._cluster

    @property
    def discovery_is_due(self) -> bool:
        """Whether it is time to look for new partitions and topics: at each start, then now and then."""
        interval = self._options.discovery_interval_s
        if self._discovered_at == _NEVER:
            return True
        waited = time.monotonic() - self._discovered_at
        return interval > 0 and waited >= max(interval, _VIEW_LIVES_S)

    def first_view(self) -> ClusterView:
        """The topics of a new query.

        Raises:
            BrokerError: No broker answers, or a named topic does not exist.
        """
        self._discovered_at = time.monotonic()
        return self._seen(self.cluster.topics(self._options.table.topics))

    def view(self, offset: StreamOffset) -> ClusterView:
        """The topics of a query that has come to this offset, as they were a moment ago.

        Raises:
            BrokerError: No broker answers.
        """
        if self.last_view is not None and time.monotonic() - self._viewed_at < _VIEW_LIVES_S:
            return self.last_view
        return self._seen(self._existing(offset))

    def discover(self, offset: StreamOffset) -> ClusterView:
        """The same, after a look for topics that are new under the pattern."""
        self._discovered_at = time.monotonic()
        return self._seen({**self._existing(offset), **self._matching()})

    def everything(self) -> ClusterView:
        """All topics of the query that exist, as they are now."""
        return self._seen({**self._existing(StreamOffset({})), **self._matching()})

    def _existing(self, offset: StreamOffset) -> Mapping[str, tuple[str, int]]:
        wanted = self._options.table.topics
        known = {tp.topic for tp in offset.positions if _covers(wanted, tp.topic)}
        return self.cluster.existing(sorted(known | set(wanted.names)))

    def _matching(self) -> Mapping[str, tuple[str, int]]:
        wanted = self._options.table.topics
        return {} if wanted.pattern is None else self.cluster.topics(wanted)

    def _seen(self, topics: Mapping[str, tuple[str, int]]) -> ClusterView:
        view = self.cluster.view(topics, committed=self._options.read_committed)
        self.last_view, self._viewed_at = view, time.monotonic()
        return view


def _covers(wanted: Topics, topic: str) -> bool:
    if wanted.pattern is None:
        return topic in wanted.names
    return wanted.pattern.fullmatch(topic) is not None
