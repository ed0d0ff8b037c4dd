"""Offsets that a consumer group has committed, read and written without joining the group (KIP-396)."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, wait
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.admin_requests import CommitWarning
from pyspark_upsert_kafka.kafka.connections import timeouts
from pyspark_upsert_kafka.kafka.librdkafka.admin_client import RetryingAdminClient
from pyspark_upsert_kafka.kafka.librdkafka.properties import open_client


class GroupOffsets:
    """The committed offsets of a consumer group.

    Args:
        admin: Sends the requests.
        group: The group's name.
    """

    def __init__(self, admin: RetryingAdminClient, group: str) -> None:
        self._admin, self._group = admin, group
        self._outcome = _CommitOutcome(group)
        self._under_way: Future[Any] | None = None

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The committed offset of each partition; a negative one stands for none."""
        check_access(self._admin, self._group)
        wanted = [ck.TopicPartition(tp.topic, tp.partition) for tp in partitions]
        # librdkafka's admin client lists offsets too, but dereferences a null pointer when the group's coordinator
        # has just moved, or is not there yet.
        mine = {"group.id": self._group, "enable.auto.commit": False}
        consumer = open_client(ck.Consumer, {**self._admin.config, **mine})

        def request(timeout: float) -> dict[TopicPartition, int]:
            found = consumer.committed(wanted, timeout)
            for tp in found:
                if tp.error is not None:
                    raise ck.KafkaException(tp.error)
            return {TopicPartition(tp.topic, tp.partition): tp.offset for tp in found}

        try:
            return self._admin.call(f"look up the offsets of group {self._group!r}", request)
        finally:
            consumer.close()

    def operations(self) -> frozenset[str] | None:
        """What the user may do with the group, as names of ACL operations; None = brokers do not tell, as of a new group."""

        def request(timeout: float) -> frozenset[str] | None:
            futures = self._admin.client.describe_consumer_groups(
                [self._group], include_authorized_operations=True, request_timeout=timeout
            )
            try:
                found = self._admin.result(futures[self._group]).authorized_operations
            except ck.KafkaException as error:
                code = error.args[0].code()
                if code == ck.KafkaError.GROUP_AUTHORIZATION_FAILED:
                    return frozenset()
                if code == ck.KafkaError.GROUP_ID_NOT_FOUND:
                    return None
                raise
            return None if found is None else frozenset(each.name for each in found)

        return self._admin.call(f"look up what is allowed with group {self._group!r}", request)

    def commit(self, positions: Positions) -> None:
        """Commits positions without waiting; a warning is logged of the first failure."""
        offsets = [ck.TopicPartition(tp.topic, tp.partition, at) for tp, at in positions.items()]
        groups = [ck.ConsumerGroupTopicPartitions(self._group, offsets)]
        try:
            futures = self._admin.client.alter_consumer_group_offsets(groups)
        except (ck.KafkaException, ValueError) as error:
            self._outcome.warning.warn(error)
        else:
            self._under_way = futures[self._group]
            self._under_way.add_done_callback(self._outcome.check)

    def wait(self) -> None:
        """Waits for the last commit: a client that ends with one under way may end the process with it."""
        if self._under_way is not None:
            wait([self._under_way], timeouts.CLOSE_TIMEOUT_S)


def check_access(admin: RetryingAdminClient, group: str) -> None:
    """Checks that the group may be seen: a consumer would wait for an answer in vain.

    Raises:
        BrokerError: It may not, or no broker answers.
    """

    def request(timeout: float) -> None:
        futures = admin.client.describe_consumer_groups([group], request_timeout=timeout)
        try:
            admin.result(futures[group])
        except ck.KafkaException as error:
            if error.args[0].code() != ck.KafkaError.GROUP_ID_NOT_FOUND:
                raise

    admin.call(f"look up the offsets of group {group!r}", request)


class _CommitOutcome:
    """Checks whether commits succeeded.

    It is called in librdkafka's thread, perhaps when nothing else is left of the connection. So it must not refer to the
    client: that would be destroyed in this thread, which is not allowed.
    """

    def __init__(self, group: str) -> None:
        self.warning = CommitWarning(group)

    def check(self, future: Future[Any]) -> None:
        """Warns when a commit failed, as a whole or for one of its partitions."""
        error: object = future.exception()
        if error is None:
            error = next((tp.error for tp in future.result().topic_partitions if tp.error), None)
        if error is not None:
            self.warning.warn(error)
