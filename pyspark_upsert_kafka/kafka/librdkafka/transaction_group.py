"""The consumer group for which a transaction commits an offset."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.delivery.receipts import GroupOffset
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.connections.retrying import Retrying
from pyspark_upsert_kafka.kafka.connections.timeouts import Timeouts
from pyspark_upsert_kafka.kafka.librdkafka.admin_requests import pooled_admin
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors, classify
from pyspark_upsert_kafka.kafka.librdkafka.group_offsets import GroupConsumer
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config

logger = logging.getLogger("pyspark_upsert_kafka")


class TransactionGroup:
    """The group's offsets on partition 0 of topics.

    It connects in the background as soon as it is made, while the transaction is opened.

    Args:
        properties: As the user gave them.
        name: The group, which has the name of the transactional id.
    """

    def __init__(self, properties: Properties, name: str) -> None:
        self._properties, self._name = properties, name
        # Without ``isolation.level`` it is read_committed, for offsets too.
        config = client_config(properties, "writer", {})
        config.pop("isolation.level", None)
        self._consumer = GroupConsumer(config, name)

    def committed(self, topic: str) -> GroupOffset | None:
        """What the group has committed on the topic; an open transaction that may change it is waited for."""
        return self._first([topic])

    def committed_anywhere(self) -> GroupOffset | None:
        """What the group has committed on any topic that may be seen."""
        return self._first(self._request("list topics", self._consumer.topics))

    def metadata(self) -> object:
        """What a transaction needs to know of the group; nobody is asked for it."""
        return self._consumer.metadata()

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def _first(self, topics: Sequence[str]) -> GroupOffset | None:
        wanted = [ck.TopicPartition(topic, 0) for topic in topics]

        def request(timeout: float) -> list[ck.TopicPartition]:
            found = self._consumer.committed(wanted, timeout)
            return [tp for tp in found if tp.offset >= 0]

        found = self._request(f"look up the offsets of group {self._name!r}", request)
        if not found:
            return None
        tp = found[0]
        return GroupOffset(tp.topic, tp.partition, tp.offset, tp.metadata or "")

    def _request(self, what: str, request: Any) -> Any:
        given = self._properties.resolved()
        return Retrying(
            given["bootstrap.servers"], Timeouts.from_properties(given), ReportedErrors(given),
            (ck.KafkaException,), classify,
        ).call(what, request)  # fmt: skip


def groups(properties: Properties, prefix: str) -> list[str]:
    """The consumer groups whose names begin so; none if brokers do not tell."""
    with pooled_admin(properties, "writer") as admin:
        try:
            return [name for name in admin.groups() if name.startswith(prefix)]
        except BrokerError as error:
            _unknown(error)
            return []


def retention_s(properties: Properties) -> float | None:
    """How long brokers keep what a group has committed, in seconds; None if they do not tell."""
    with pooled_admin(properties, "writer") as admin:
        try:
            return admin.offsets_retention_s()
        except BrokerError as error:
            _unknown(error)
            return None


def _unknown(error: BrokerError) -> None:
    """Writing needs no ACL for what is not told."""
    logger.info("Something that only a warning depends on is not known: %s", error)
