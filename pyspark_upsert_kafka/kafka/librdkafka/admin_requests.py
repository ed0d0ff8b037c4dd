"""What librdkafka's admin client is asked: topics, bounds, offsets by time, groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType

from pyspark_upsert_kafka.core.cluster_view import Bounds
from pyspark_upsert_kafka.core.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.failures import AttemptError, Failure, Kind
from pyspark_upsert_kafka.kafka.librdkafka.admin_client import RetryingAdminClient
from pyspark_upsert_kafka.kafka.librdkafka.group_offsets import Group
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config
from pyspark_upsert_kafka.kafka.timeouts import Timeouts

_AUTO_CREATE = "allow.auto.create.topics"


class LibrdkafkaAdmin:
    """Asks the brokers through one admin client."""

    def __init__(self, properties: Properties, role: str) -> None:
        config = client_config(properties, role, {})
        self.may_create = str(config.get(_AUTO_CREATE, "false")).lower() == "true"
        self.group = str(config.pop("group.id", ""))
        self._admin = RetryingAdminClient(config, Timeouts.from_properties(properties.resolved()))
        self._offsets_of_group = Group(self._admin, self.group)
        self.servers, self.timeouts = self._admin.servers, self._admin.timeouts

    def close(self) -> None:
        """Nothing is left to do: the admin client's threads end with it."""

    def names(self) -> Sequence[str]:
        """Names of all topics."""
        return self._admin.call("list topics", self._admin.all_topics)

    def existing(self, names: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Name -> id and number of partitions, of the topics that exist."""

        def request(timeout: float) -> dict[str, tuple[str, int]]:
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

        return self._admin.call(f"look up the topics {', '.join(names)}", request)

    def create(self, names: Sequence[str]) -> None:
        """Lets the broker create missing topics, by asking for each as a producer does."""
        for name in names:

            def request(timeout: float, name: str = name) -> object:
                return self._admin.client.list_topics(name, timeout=timeout)

            self._admin.call(f"create topic {name}", request)

    def bounds(
        self, partitions: Sequence[TopicPartition], *, committed: bool
    ) -> dict[TopicPartition, Bounds]:
        """The bounds of these partitions."""
        asked = [(OffsetSpec.earliest(), False), (OffsetSpec.latest(), False)]
        if committed:
            asked.append((OffsetSpec.latest(), True))
        earliest, high, *stable = self._offsets(partitions, asked)
        latest = stable[0] if stable else high
        # The answers are of slightly different moments, and others write meanwhile.
        return {
            tp: Bounds(earliest[tp], latest[tp], max(high[tp], latest[tp])) for tp in partitions
        }

    def latest(
        self, partitions: Sequence[TopicPartition], *, committed: bool
    ) -> dict[TopicPartition, int]:
        """The latest offsets of these partitions."""
        (found,) = self._offsets(partitions, [(OffsetSpec.latest(), committed)])
        return found

    def at_timestamp(
        self, partitions: Sequence[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int]:
        """The first offset at or after a time; negative = none."""
        (found,) = self._offsets(partitions, [(OffsetSpec.for_timestamp(timestamp_ms), False)])
        return found

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed; negative = none."""
        return self._offsets_of_group.committed(partitions)

    def commit(self, positions: Positions) -> None:
        """Commits positions to the group, without waiting; trouble is one warning."""
        self._offsets_of_group.commit(positions)

    def settings(self, topics: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Settings of topics, by topic and name; a BrokerError when we may not know."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]

        def request(timeout: float) -> dict[str, dict[str, str]]:
            futures = self._admin.client.describe_configs(resources, request_timeout=timeout)
            found = {each.name: self._admin.result(future) for each, future in futures.items()}
            return {
                topic: {name: str(all_[name].value) for name in names}
                for topic, all_ in found.items()
            }

        return self._admin.call("look up topic settings", request)

    def _offsets(
        self, partitions: Iterable[TopicPartition], asked: Sequence[tuple[OffsetSpec, bool]]
    ) -> list[dict[TopicPartition, int]]:
        """For each (offset spec, only committed ones) the offsets of all partitions."""
        wanted = [ck.TopicPartition(tp.topic, tp.partition) for tp in partitions]
        if not wanted:
            return [{} for _ in asked]

        def request(timeout: float) -> list[dict[TopicPartition, int]]:
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
                    TopicPartition(tp.topic, tp.partition): known(self._admin.result(future).offset)
                    for tp, future in answer.items()
                }
                for answer in answers
            ]

        return self._admin.call("look up offsets", request)


def known(offset: int) -> int:
    """An offset that was answered.

    Raises:
        AttemptError: After a lost connection librdkafka may give none, and no error either.
    """
    if offset == ck.OFFSET_INVALID:
        raise AttemptError(Failure(Kind.RETRIABLE, "no offset was answered"))
    return offset


def _level(committed: bool) -> ck.IsolationLevel:
    return ck.IsolationLevel.READ_COMMITTED if committed else ck.IsolationLevel.READ_UNCOMMITTED


def _topic_id(topic: Any) -> str:
    id_ = str(topic.topic_id)
    return "" if not id_.strip("A") else id_  # brokers before Kafka 2.8: all zero
