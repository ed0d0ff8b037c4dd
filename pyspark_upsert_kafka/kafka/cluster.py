"""Topics, bounds and positions of a cluster, over the admin requests of either client."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from pyspark_upsert_kafka.core.clock import Clock
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, UnknownTopicError
from pyspark_upsert_kafka.core.options.values import Position, Topics
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests

_MISSING_AFTER_S = 5.0
"""A topic does not exist when no lookup has found it for so long: one just created is not known to every broker yet."""

_PAUSE_S = 0.2

_MAX_MESSAGE_BYTES = "max.message.bytes"

logger = logging.getLogger("pyspark_upsert_kafka")


class KafkaCluster:
    """The `Cluster` of the seam, for any client.

    Args:
        admin: The client's requests.
        clock: Tells the time, and waits.
    """

    def __init__(self, admin: AdminRequests, clock: Clock = time) -> None:
        self._admin, self._clock = admin, clock

    def wait_out(self, outage_s: float) -> None:
        """Has requests wait for so long for brokers that are all away."""
        self._admin.outage.limit_s = outage_s

    def close(self) -> None:
        """Ends the connection."""
        self._admin.close()

    def topics(self, wanted: Topics) -> dict[str, TopicInfo]:
        """The wanted topics, by name; one just created, or to be created, is waited for."""
        if wanted.pattern is not None:
            return self.existing(self._matching(wanted))
        found = self.existing(wanted.names)
        wait_s = min(_MISSING_AFTER_S, self._admin.timeouts.api_s)
        if len(found) < len(wanted.names) and self._admin.may_create:
            self._admin.create([name for name in wanted.names if name not in found])
            wait_s = self._admin.timeouts.api_s
        deadline = self._clock.monotonic() + wait_s
        while len(found) < len(wanted.names) and self._clock.monotonic() < deadline:
            self._clock.sleep(_PAUSE_S)
            found = self.existing(wanted.names)
        missing = [name for name in wanted.names if name not in found]
        if missing:
            raise BrokerError(missing_topic(missing[0], self._admin.servers))
        return found

    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those of the topics that exist, by name."""
        return self._admin.existing(names) if names else {}

    def view(self, topics: Mapping[str, TopicInfo], *, read_committed: bool) -> ClusterView:
        """The bounds of every partition of these topics, without those deleted meanwhile."""
        deadline = self._clock.monotonic() + self._admin.timeouts.api_s
        while True:
            try:
                return ClusterView(
                    {name: topic.id for name, topic in topics.items()},
                    self._admin.bounds(partitions_of(topics), read_committed=read_committed),
                )
            except UnknownTopicError:
                # Metadata may know a new partition before its leader does.
                left = self.existing(list(topics))
                if left == topics and self._clock.monotonic() > deadline:
                    raise
                topics = left
                self._clock.sleep(_PAUSE_S)

    def latest(self, view: ClusterView, *, read_committed: bool) -> dict[TopicPartition, int]:
        """The latest offset of each partition of a view as it is now; empty when one is gone."""
        try:
            return self._admin.latest(list(view.bounds), read_committed=read_committed)
        except UnknownTopicError:
            return {}

    def positions(self, position: Position, view: ClusterView) -> dict[TopicPartition, int]:
        """Where a position is in each partition of the view."""
        partitions = list(view.bounds)
        if position.mode == "earliest-offset":
            return {tp: bounds.earliest for tp, bounds in view.bounds.items()}
        if position.mode == "timestamp":
            found = self._admin.at_timestamp(partitions, position.timestamp_ms or 0)
            return timestamp_offsets(found, view)
        if position.mode == "specific-offsets":
            return specific_offsets(position, view)
        if position.mode == "group-offsets":
            committed = self._admin.group_offsets(partitions)
            return group_offsets(committed, position, view, self._admin.group)
        return view.latest

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """Configs of topics, by topic and name, without those that brokers do not tell."""
        return self._admin.topic_configs(topics, names)

    def brokers(self) -> list[str]:
        """The addresses of all brokers."""
        return self._admin.brokers()

    def operations(self, topics: Sequence[str]) -> dict[str, frozenset[str]] | None:
        """What the user may do with topics that exist, by topic; None = the client or the brokers do not tell."""
        return self._admin.operations(topics)

    def group_operations(self) -> frozenset[str] | None:
        """What the user may do with the group of the properties; None = the client or the brokers do not tell."""
        return self._admin.group_operations()

    def commit(self, positions: Positions) -> None:
        """Commits positions to the group of the properties, without waiting; a warning is logged of the first failure."""
        if positions:
            self._admin.commit(positions)

    def _matching(self, wanted: Topics) -> list[str]:
        pattern = wanted.pattern
        names = sorted(
            name
            for name in self._admin.names()
            if pattern is not None and pattern.fullmatch(name) and not name.startswith("__")
        )
        if pattern is not None and not names:
            warn_once(
                f"No topic at '{self._admin.servers}' matches 'topic-pattern' = '{pattern.pattern}', so there is nothing to "
                "read yet. A pattern is a regular expression that matches the whole name, as in 'users-.*'. Topics that the "
                "user may not describe are not seen."
            )
        return names


def partitions_of(topics: Mapping[str, TopicInfo]) -> list[TopicPartition]:
    """Every partition of these topics."""
    return [
        TopicPartition(name, number)
        for name, topic in sorted(topics.items())
        for number in range(topic.partitions)
    ]


def max_message_bytes(admin: AdminRequests, topics: Sequence[str]) -> list[int]:
    """The ``max.message.bytes`` of each topic that brokers tell; nothing when the ACLs do not allow it, as they need not for writing.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
    """
    KafkaCluster(admin).topics(Topics(names=tuple(topics)))
    try:
        found = admin.topic_configs(topics, [_MAX_MESSAGE_BYTES])
    except BrokerError as error:
        logger.info("Topic settings are not known: %s", error)
        return []
    return [int(each[_MAX_MESSAGE_BYTES]) for each in found.values() if _MAX_MESSAGE_BYTES in each]


def missing_topic(name: str, servers: str) -> str:
    """The message about a missing topic: how to create it, compacted if it holds a table."""
    return (
        f"Topic {name!r} does not exist at {servers!r}. Check its name, or create it, for example: "
        f"kafka-topics.sh --bootstrap-server {servers} --create --topic {name} --partitions 4 "
        "--config cleanup.policy=compact (without --config for dead letters, and for messages without a key). "
        "With 'properties.allow.auto.create.topics' = 'true', the broker creates it."
    )


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
