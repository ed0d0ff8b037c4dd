"""Offsets that a consumer group has committed, read and written without joining the group (KIP-396)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.librdkafka.admin_client import RetryingAdminClient

logger = logging.getLogger("pyspark_upsert_kafka")


class Group:
    """A consumer group, for its offsets only.

    Args:
        admin: Who asks.
        name: The group's name.
    """

    def __init__(self, admin: RetryingAdminClient, name: str) -> None:
        self._admin, self._name = admin, name
        self._outcome = _Outcome(name)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The committed offset of each partition; a negative one stands for none."""
        wanted = [ck.TopicPartition(tp.topic, tp.partition) for tp in partitions]
        group = [ck.ConsumerGroupTopicPartitions(self._name, wanted)]

        def request(timeout: float) -> dict[TopicPartition, int]:
            futures = self._admin.client.list_consumer_group_offsets(group, request_timeout=timeout)
            found = self._admin.result(futures[self._name]).topic_partitions
            for tp in found:
                if tp.error is not None:
                    raise ck.KafkaException(tp.error)
            return {TopicPartition(tp.topic, tp.partition): tp.offset for tp in found}

        return self._admin.call(f"look up the offsets of group {self._name!r}", request)

    def commit(self, positions: Positions) -> None:
        """Commits positions without waiting; trouble is one warning."""
        offsets = [ck.TopicPartition(tp.topic, tp.partition, at) for tp, at in positions.items()]
        if not offsets:
            return
        request = [ck.ConsumerGroupTopicPartitions(self._name, offsets)]
        try:
            futures = self._admin.client.alter_consumer_group_offsets(request)
        except (ck.KafkaException, ValueError) as error:
            self._outcome.warn(error)
        else:
            futures[self._name].add_done_callback(self._outcome)


class _Outcome:
    """What became of commits: the first trouble is a warning.

    It is called in librdkafka's thread and may be the last that is left of a connection: so it must not
    hold the client, which that thread is not allowed to destroy.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._warned = False

    def __call__(self, future: Future[Any]) -> None:
        error: object = future.exception()
        if error is None:
            error = next((tp.error for tp in future.result().topic_partitions if tp.error), None)
        if error is not None:
            self.warn(error)

    def warn(self, error: object) -> None:
        """Says what is wrong, once."""
        if not self._warned:
            self._warned = True
            logger.warning(
                "Offsets are not committed to group %r, so Kafka's tools do not show how far the query "
                "is: %s. The query itself goes on; its checkpoint decides.",
                self._group, error,
            )  # fmt: skip
