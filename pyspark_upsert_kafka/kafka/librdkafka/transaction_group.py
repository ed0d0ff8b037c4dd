"""The consumer group for which a transaction commits an offset, seen by a consumer that never joins it.

librdkafka's admin client lists the offsets of groups too, but dereferences a null pointer when a group's
coordinator has just moved, or is not there yet; and it leaves offsets out that a transaction is about to change.
"""

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
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, open_client

logger = logging.getLogger("pyspark_upsert_kafka")

_ANSWER_S = 5.0
"""When a consumer has no answer for so long, the group may be one that must not be seen: it does not say so."""


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
        mine = {"group.id": name, "enable.auto.commit": False}
        self._consumer = open_client(ck.Consumer, {**config, **mine})

    def committed(self, topic: str) -> GroupOffset | None:
        """What the group has committed on the topic; an open transaction that may change it is waited for."""
        return self._first([topic])

    def committed_anywhere(self) -> GroupOffset | None:
        """What the group has committed on any topic that may be seen."""
        return self._first(self._request("list topics", self._topics))

    def metadata(self) -> object:
        """What a transaction needs to know of the group; nobody is asked for it."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def _first(self, topics: Sequence[str]) -> GroupOffset | None:
        wanted = [ck.TopicPartition(topic, 0) for topic in topics]

        def request(timeout: float) -> list[ck.TopicPartition]:
            try:
                found = self._consumer.committed(wanted, min(timeout, _ANSWER_S))
            except ck.KafkaException as error:
                if error.args[0].code() == ck.KafkaError._TIMED_OUT:  # noqa: SLF001
                    self._check_access()
                raise
            for tp in found:
                if tp.error is not None:
                    raise ck.KafkaException(tp.error)
            return [tp for tp in found if tp.offset >= 0]

        found = self._request(f"look up the offsets of group {self._name!r}", request)
        if not found:
            return None
        tp = found[0]
        return GroupOffset(tp.topic, tp.partition, tp.offset, tp.metadata or "")

    def _topics(self, timeout: float) -> list[str]:
        found = self._consumer.list_topics(timeout=timeout).topics
        return [name for name, topic in found.items() if topic.error is None]

    def _check_access(self) -> None:
        with pooled_admin(self._properties, "writer") as admin:
            admin.check_group(self._name)

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
