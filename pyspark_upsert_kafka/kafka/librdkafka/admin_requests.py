"""The admin requests by librdkafka's admin client."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType

from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.cluster_view import TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.admin_requests import (
    EARLIEST,
    LATEST,
    AdminRequests,
    OffsetLookup,
    answered_offset,
    answered_topic,
    lent,
)
from pyspark_upsert_kafka.kafka.connections.pool import Pool
from pyspark_upsert_kafka.kafka.connections.timeouts import Timeouts
from pyspark_upsert_kafka.kafka.librdkafka.admin_client import RetryingAdminClient
from pyspark_upsert_kafka.kafka.librdkafka.group_offsets import GroupOffsets
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config

_LEVELS = {True: ck.IsolationLevel.READ_COMMITTED, False: ck.IsolationLevel.READ_UNCOMMITTED}
"""By whether only what is committed counts."""

_AUTO_CREATE = "allow.auto.create.topics"


class LibrdkafkaAdmin(AdminRequests):
    """Sends the requests through one admin client.

    Args:
        properties: The client's properties.
        role: Part of the client id.
    """

    def __init__(self, properties: Properties, role: str) -> None:
        config = client_config(properties, role, {})
        self.may_create = str(config.get(_AUTO_CREATE, "false")).lower() == "true"
        self.group = str(config.pop("group.id", ""))
        self._admin = RetryingAdminClient(config, Timeouts.from_properties(properties.resolved()))
        self._group_offsets = GroupOffsets(self._admin, self.group)
        self.servers, self.timeouts = self._admin.servers, self._admin.timeouts
        self.outage = self._admin.outage

    def close(self) -> None:
        """Waits for a commit that is under way, and ends the admin client."""
        self._group_offsets.close()
        self._admin.close()

    def names(self) -> Sequence[str]:
        """Names of all topics."""
        return self._admin.call("list topics", self._admin.all_topics)

    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those of the topics that exist, by name."""

        def request(timeout: float) -> dict[str, TopicInfo]:
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
                    found[name] = answered_topic(name, _topic_id(topic), len(topic.partitions))
            return found

        return self._admin.call(f"look up the topics {', '.join(names)}", request)

    def brokers(self) -> list[str]:
        """The addresses of all brokers."""

        def request(timeout: float) -> list[str]:
            future = self._admin.client.describe_cluster(request_timeout=timeout)
            return [f"{node.host}:{node.port}" for node in self._admin.result(future).nodes]

        return self._admin.call("list brokers", request)

    def operations(self, topics: Sequence[str]) -> dict[str, frozenset[str]] | None:
        """What the user may do with topics, as names of ACL operations; None = brokers before Kafka 2.3 do not tell."""

        def request(timeout: float) -> dict[str, frozenset[str]] | None:
            futures = self._admin.client.describe_topics(
                ck.TopicCollection(list(topics)),
                include_authorized_operations=True,
                request_timeout=timeout,
            )
            found = {
                name: self._admin.result(future).authorized_operations
                for name, future in futures.items()
            }
            if None in found.values():
                return None
            return {name: frozenset(each.name for each in of) for name, of in found.items()}

        return self._admin.call("look up what is allowed", request)

    def group_operations(self) -> frozenset[str] | None:
        """What the user may do with the group, as names of ACL operations; None = brokers do not tell."""
        return self._group_offsets.operations()

    def create(self, names: Sequence[str]) -> None:
        """Lets the broker create missing topics, by a metadata request for each as a producer sends."""
        for name in names:

            def request(timeout: float, name: str = name) -> object:
                return self._admin.client.list_topics(name, timeout=timeout)

            self._admin.call(f"create topic {name}", request)

    def list_offsets(
        self, partitions: Sequence[TopicPartition], lookups: Sequence[OffsetLookup]
    ) -> list[dict[TopicPartition, int]]:
        """The offsets of the partitions for each lookup, all requested at once; negative = none."""
        wanted = [ck.TopicPartition(tp.topic, tp.partition) for tp in partitions]
        if not wanted:
            return [{} for _ in lookups]

        def request(timeout: float) -> list[dict[TopicPartition, int]]:
            answers = [
                self._admin.client.list_offsets(
                    dict.fromkeys(wanted, _spec(lookup)),
                    isolation_level=_LEVELS[lookup.read_committed],
                    request_timeout=timeout,
                )
                for lookup in lookups
            ]
            return [
                {
                    TopicPartition(tp.topic, tp.partition): answered_offset(
                        self._admin.result(future).offset, lookup
                    )
                    for tp, future in answer.items()
                }
                for lookup, answer in zip(lookups, answers, strict=True)
            ]

        return self._admin.call("look up offsets", request)

    def group_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed; negative = none."""
        return self._group_offsets.committed(partitions)

    def groups(self) -> list[str]:
        """Names of the consumer groups that may be seen."""

        def request(timeout: float) -> list[str]:
            future = self._admin.client.list_consumer_groups(request_timeout=timeout)
            return [group.group_id for group in self._admin.result(future).valid]

        return self._admin.call("list consumer groups", request)

    def offsets_retention_s(self) -> float:
        """For how long brokers keep the offsets of groups, in seconds; a BrokerError when the ACLs do not allow it."""

        def request(timeout: float) -> float:
            broker = next(iter(self._admin.client.list_topics(timeout=timeout).brokers))
            asked = [ConfigResource(ResourceType.BROKER, str(broker))]
            (future,) = self._admin.client.describe_configs(asked, request_timeout=timeout).values()
            return 60.0 * int(self._admin.result(future)["offsets.retention.minutes"].value)

        return self._admin.call("look up a broker's settings", request)

    def commit(self, positions: Positions) -> None:
        """Commits positions to the group, without waiting; a warning is logged of the first failure."""
        self._group_offsets.commit(positions)

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """Those of the configs that are told, by topic and name; a BrokerError when the ACLs do not allow it."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]

        def request(timeout: float) -> dict[str, dict[str, str]]:
            futures = self._admin.client.describe_configs(resources, request_timeout=timeout)
            all_of = {each.name: self._admin.result(future) for each, future in futures.items()}
            return {
                topic: {
                    name: str(found.value)
                    for name in names
                    if (found := all_.get(name)) is not None and found.value is not None
                }
                for topic, all_ in all_of.items()
            }

        return self._admin.call("look up topic settings", request)


def _spec(lookup: OffsetLookup) -> OffsetSpec:
    if lookup.timestamp_ms == EARLIEST:
        return OffsetSpec.earliest()
    if lookup.timestamp_ms == LATEST:
        return OffsetSpec.latest()
    return OffsetSpec.for_timestamp(lookup.timestamp_ms)


def _topic_id(topic: Any) -> str:
    id_ = str(topic.topic_id)
    # confluent-kafka (2.16) never releases the id of a description: one more object with each lookup.
    if _references(topic) == _references(_WITH_ID) + 1:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(topic.topic_id))
    return "" if not id_.strip("A") else id_  # brokers before Kafka 2.8: all zero


_WITH_ID = SimpleNamespace(topic_id=ck.Uuid(0, 1))


def _references(described: Any) -> int:
    """How many references there are to the id of a description."""
    return sys.getrefcount(described.topic_id)


POOL: Pool[LibrdkafkaAdmin] = Pool(LibrdkafkaAdmin.close)


def pooled_admin(
    properties: Properties, role: str, outage_s: float = 0.0
) -> AbstractContextManager[LibrdkafkaAdmin]:
    """An admin connection with these properties, kept for the next task."""
    return lent(POOL, LibrdkafkaAdmin, properties, role, outage_s)
