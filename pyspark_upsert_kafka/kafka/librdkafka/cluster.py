"""What librdkafka's admin client knows: topics, bounds, offsets by time, groups."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.core.options import Position, Topics
from pyspark_upsert_kafka.core.planning import Bounds, ClusterView
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.librdkafka.admin import Admin
from pyspark_upsert_kafka.kafka.librdkafka.asking import UnknownTopicError
from pyspark_upsert_kafka.kafka.librdkafka.groups import Group, group_positions
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config

logger = logging.getLogger("pyspark_upsert_kafka")

_AUTO_CREATE = "allow.auto.create.topics"

_APPEARS_WITHIN_S = 2.0
"""How long a topic just created may be unknown to the broker that is asked."""

_CREATED_WITHIN_S = 30.0


class LibrdkafkaCluster:
    """Asks the brokers through one admin client."""

    def __init__(self, properties: Properties, role: str) -> None:
        config = client_config(properties, role, {})
        self._may_create = str(config.get(_AUTO_CREATE, "false")).lower() == "true"
        self._group_name = str(config.pop("group.id", ""))
        self._admin = Admin(config)
        self._group = Group(self._admin, self._group_name)

    def close(self) -> None:
        """Nothing is left to do: the admin client's threads end with it."""

    def topics(self, wanted: Topics) -> dict[str, tuple[str, int]]:
        """Name -> id and number of partitions of the wanted topics."""
        if wanted.pattern is not None:
            return self.existing(self._matching(wanted))
        found = self.existing(wanted.names)
        patience = _APPEARS_WITHIN_S
        if len(found) < len(wanted.names) and self._may_create:
            self._create(wanted.names)
            patience = _CREATED_WITHIN_S
        deadline = time.monotonic() + patience
        while len(found) < len(wanted.names) and time.monotonic() < deadline:
            time.sleep(0.2)
            found = self.existing(wanted.names)
        missing = [name for name in wanted.names if name not in found]
        if missing:
            raise BrokerError(_no_such_topic(missing[0], self._admin.servers))
        return found

    def existing(self, names: Sequence[str]) -> dict[str, tuple[str, int]]:
        """The same for those of the names that exist."""
        if not names:
            return {}

        def question(timeout: float) -> dict[str, tuple[str, int]]:
            futures = self._admin.client.describe_topics(
                ck.TopicCollection(list(names)), request_timeout=timeout
            )
            found = {}
            for name, future in futures.items():
                try:
                    topic = self._admin.result(future)
                except ck.KafkaException as error:
                    if error.args[0].code() != ck.KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
                else:
                    found[name] = (_topic_id(topic), len(topic.partitions))
            return found

        return self._admin.ask(f"look up the topics {', '.join(names)}", question)

    def view(self, topics: Mapping[str, tuple[str, int]], *, committed: bool) -> ClusterView:
        """The bounds of every partition of these topics, without those deleted meanwhile."""
        deadline = time.monotonic() + _APPEARS_WITHIN_S
        while True:
            try:
                return self._view(topics, committed=committed)
            except UnknownTopicError:
                left = self.existing(list(topics))
                if len(left) == len(topics) and time.monotonic() > deadline:
                    raise
                topics = left
                time.sleep(0.2)

    def positions(self, position: Position, view: ClusterView) -> dict[TopicPartition, int]:
        """Where a position is in each partition of the view."""
        if position.kind == "earliest-offset":
            return {tp: bounds.earliest for tp, bounds in view.bounds.items()}
        if position.kind == "timestamp":
            return self._at_timestamp(position.timestamp_ms or 0, view)
        if position.kind == "specific-offsets":
            return _specific(position, view)
        if position.kind == "group-offsets":
            return group_positions(
                self._group.committed(view.bounds), position, view, self._group_name
            )
        return view.latest

    def commit(self, positions: Positions) -> None:
        """Commits positions to the group of the properties, without waiting; trouble is one warning."""
        self._group.commit(positions)

    def max_message_bytes(self, topics: Sequence[str]) -> int | None:
        """The smallest ``max.message.bytes`` of the topics; None when we may not know."""
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]

        def question(timeout: float) -> list[int]:
            futures = self._admin.client.describe_configs(resources, request_timeout=timeout)
            settings = [self._admin.result(future) for future in futures.values()]
            return [int(each["max.message.bytes"].value) for each in settings]

        try:
            return min(self._admin.ask("look up topic settings", question))
        except BrokerError as error:
            logger.info("Topic settings are not known: %s", error)
            return None

    def _matching(self, wanted: Topics) -> list[str]:
        metadata = self._admin.ask(
            "list topics", lambda timeout: self._admin.client.list_topics(timeout=timeout)
        )
        pattern = wanted.pattern
        return sorted(
            name
            for name in metadata.topics
            if pattern is not None and pattern.fullmatch(name) and not name.startswith("__")
        )

    def _create(self, names: Iterable[str]) -> None:
        """Lets the broker create missing topics, by asking for each as a producer does."""
        for name in names:

            def question(timeout: float, name: str = name) -> object:
                return self._admin.client.list_topics(name, timeout=timeout)

            self._admin.ask(f"create topic {name}", question)

    def _view(self, topics: Mapping[str, tuple[str, int]], *, committed: bool) -> ClusterView:
        partitions = [
            TopicPartition(topic, number)
            for topic, (_, count) in sorted(topics.items())
            for number in range(count)
        ]
        asked = [(OffsetSpec.earliest(), False), (OffsetSpec.latest(), False)]
        if committed:
            asked.append((OffsetSpec.latest(), True))
        earliest, high, *stable = self._offsets(partitions, asked)
        latest = stable[0] if stable else high
        return ClusterView(
            {topic: id_ for topic, (id_, _) in topics.items()},
            {
                # The answers are of slightly different moments, and others write meanwhile.
                tp: Bounds(earliest[tp], latest[tp], max(high[tp], latest[tp]))
                for tp in partitions
            },
        )

    def _offsets(
        self, partitions: Iterable[TopicPartition], asked: Sequence[tuple[OffsetSpec, bool]]
    ) -> list[dict[TopicPartition, int]]:
        """For each (offset spec, only committed ones) the offsets of all partitions."""
        wanted = [ck.TopicPartition(tp.topic, tp.partition) for tp in partitions]
        if not wanted:
            return [{} for _ in asked]

        def question(timeout: float) -> list[dict[TopicPartition, int]]:
            try:
                return offsets(timeout)
            except ck.KafkaException as error:
                if error.args[0].code() == ck.KafkaError._NOENT:  # noqa: SLF001 - "No leaders found"
                    # What had no leader once can stay so in librdkafka's memory until it looks around.
                    self._admin.client.list_topics(timeout=timeout)
                raise

        def offsets(timeout: float) -> list[dict[TopicPartition, int]]:
            answers = [
                self._admin.client.list_offsets(
                    dict.fromkeys(wanted, spec),
                    isolation_level=_level(committed),
                    request_timeout=timeout,
                )
                for spec, committed in asked
            ]
            return [
                {
                    TopicPartition(tp.topic, tp.partition): self._admin.result(future).offset
                    for tp, future in answer.items()
                }
                for answer in answers
            ]

        return self._admin.ask("look up offsets", question)

    def _at_timestamp(self, timestamp_ms: int, view: ClusterView) -> dict[TopicPartition, int]:
        (found,) = self._offsets(view.bounds, [(OffsetSpec.for_timestamp(timestamp_ms), False)])
        return {
            tp: bounds.latest if found[tp] < 0 else min(found[tp], bounds.latest)
            for tp, bounds in view.bounds.items()
        }


def _level(committed: bool) -> ck.IsolationLevel:
    return ck.IsolationLevel.READ_COMMITTED if committed else ck.IsolationLevel.READ_UNCOMMITTED


def _topic_id(topic: Any) -> str:
    id_ = str(topic.topic_id)
    return "" if not id_.strip("A") else id_  # brokers before Kafka 2.8: all zero


def _no_such_topic(name: str, servers: str) -> str:
    return (
        f"Topic {name!r} does not exist at {servers!r}. Create it compacted, for example: "
        f"kafka-topics.sh --bootstrap-server {servers} --create --topic {name} --partitions 4 "
        "--config cleanup.policy=compact (or let the broker create it with "
        "'properties.allow.auto.create.topics' = 'true')."
    )


def _specific(position: Position, view: ClusterView) -> dict[TopicPartition, int]:
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
