"""Questions by kafka-python-ng: single requests, since its admin client may wait for ever.

It knows no topic ids, and is not asked where an open transaction begins: its reader could not keep to it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from kafka import KafkaClient
from kafka import errors as kafka_errors
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.commit import GroupCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import OffsetRequest

from pyspark_upsert_kafka.core.cluster_view import Bounds
from pyspark_upsert_kafka.core.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.kafka_python.admin_requests import KafkaPythonAdmin
from pyspark_upsert_kafka.kafka.kafka_python.errors import checked, connecting, needs_kafka_python_3
from pyspark_upsert_kafka.kafka.kafka_python.properties import opened

_TOPIC = 2
"""The resource type in the protocol."""

_CONSUMER = -1
"""A replica's number, of one that is none."""

_NO_MEMBER, _NO_GENERATION, _KEPT_AS_BROKER_SAYS = "", -1, -1


class KafkaPythonNgAdmin(KafkaPythonAdmin):
    """Asks with kafka-python-ng."""

    def names(self) -> Sequence[str]:
        """Names of all topics."""
        return self._call("list topics", lambda client, s: [*_metadata(client, None, s)])

    def existing(self, names: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Name -> id and number of partitions, of the topics that exist."""

        def request(client: Any, timeout: float) -> dict[str, tuple[str, int]]:
            found = _metadata(client, names, timeout)
            return {name: ("", len(leaders)) for name, leaders in found.items()}

        return self._call(f"look up the topics {', '.join(names)}", request)

    def create(self, names: Sequence[str]) -> None:
        """Lets the broker create missing topics, by asking for each as a producer does."""
        self._call(
            f"create topic {', '.join(names)}",
            lambda client, s: _anyone(client, MetadataRequest[4](list(names), True), s),
        )

    def bounds(
        self, partitions: Sequence[TopicPartition], *, committed: bool
    ) -> dict[TopicPartition, Bounds]:
        """The bounds of these partitions."""
        if committed:
            raise no_read_committed()
        return super().bounds(partitions, committed=False)

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed; negative = none."""
        fetch = OffsetFetchRequest[1](
            self.group, _by_topic((tp, tp.partition) for tp in partitions)
        )

        def request(client: Any, timeout: float) -> dict[TopicPartition, int]:
            answer = _coordinator(client, self.group, fetch, timeout)
            return {
                TopicPartition(topic, partition): checked(code, offset)
                for topic, found in answer.topics
                for partition, offset, _, code in found
            }

        return self._call(f"look up the offsets of group {self.group!r}", request)

    def settings(self, topics: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Settings of topics, by topic and name; a BrokerError when we may not know."""
        resources = [(_TOPIC, topic, list(names)) for topic in topics]

        def request(client: Any, timeout: float) -> dict[str, dict[str, str]]:
            answer = _anyone(client, DescribeConfigsRequest[1](resources, False), timeout)
            return {
                topic: checked(code, {entry[0]: entry[1] for entry in entries})
                for code, _, _, topic, entries in answer.resources
            }

        return self._call("look up topic settings", request)

    def _open(self, timeout: float) -> Any:
        return opened(KafkaClient, {**self._config, **connecting(timeout)})

    def _metadata(self, client: Any) -> Any:
        return client.cluster

    def _offsets(
        self, partitions: Sequence[TopicPartition], at: int, *, committed: bool
    ) -> dict[TopicPartition, int]:
        def request(client: Any, timeout: float) -> dict[TopicPartition, int]:
            leaders = _leaders(client, partitions, timeout)
            found = {}
            for node in {*leaders.values()}:
                led = [tp for tp in partitions if leaders[tp] == node]
                wanted = _by_topic((tp, (tp.partition, at)) for tp in led)
                lookup = OffsetRequest[2](_CONSUMER, int(committed), wanted)
                for topic, answers in _asked(client, node, lookup, timeout).topics:
                    for partition, code, _, offset in answers:
                        found[TopicPartition(topic, partition)] = checked(code, offset)
            return found

        return self._call("look up offsets", request) if partitions else {}

    def _commit(self, positions: Positions) -> None:
        commit = OffsetCommitRequest[2](
            self.group, _NO_GENERATION, _NO_MEMBER, _KEPT_AS_BROKER_SAYS,
            _by_topic((tp, (tp.partition, offset, "")) for tp, offset in positions.items()),
        )  # fmt: skip

        def request(client: Any, timeout: float) -> None:
            for _, answers in _coordinator(client, self.group, commit, timeout).topics:
                for _, code in answers:
                    checked(code, None)

        self._call("commit", request)


def no_read_committed() -> Exception:
    """The error for a reader that must not see aborted messages."""
    return needs_kafka_python_3(
        "cannot tell the messages of aborted transactions from others",
        "accept them with 'properties.isolation.level' = 'read_uncommitted'",
    )


def _asked(client: Any, node: int | str, request: Any, timeout: float) -> Any:
    """What a node answers; raises KafkaError."""
    deadline = time.monotonic() + timeout
    _until(client, deadline, lambda: _is_ready(client, node))
    future = client.send(node, request)
    _until(client, deadline, lambda: future.is_done)
    if future.failed():
        raise future.exception
    return future.value


def _is_ready(client: Any, node: int | str) -> bool:
    """Whether a node can be asked; raises KafkaError when nobody listens there."""
    if client.ready(node, metadata_priority=False):
        return True
    client.poll(timeout_ms=0)
    if client.is_disconnected(node):
        raise kafka_errors.KafkaConnectionError(f"node {node} cannot be reached")
    return False


def _until(client: Any, deadline: float, done: Callable[[], bool]) -> None:
    while not done():
        if time.monotonic() > deadline:
            raise kafka_errors.KafkaTimeoutError("no answer in time")
        client.poll(timeout_ms=100)


def _anyone(client: Any, request: Any, timeout: float) -> Any:
    node = client.least_loaded_node()
    if node is None:
        client.poll(timeout_ms=100)
        raise kafka_errors.NoBrokersAvailable
    return _asked(client, node, request, timeout)


def _metadata(
    client: Any, names: Sequence[str] | None, timeout: float
) -> dict[str, dict[TopicPartition, int]]:
    """Name -> partition -> leader, of the topics that exist; None = of all."""
    wanted = None if names is None else list(names)
    answer = _anyone(client, MetadataRequest[4](wanted, False), timeout)
    found = {}
    for code, name, _, partitions in answer.topics:
        if code == kafka_errors.UnknownTopicOrPartitionError.errno:
            continue
        checked(code, None)
        found[name] = {TopicPartition(name, each[1]): each[2] for each in partitions}
    return found


def _leaders(
    client: Any, partitions: Sequence[TopicPartition], timeout: float
) -> dict[TopicPartition, int]:
    topics = _metadata(client, sorted({tp.topic for tp in partitions}), timeout)
    leaders = {tp: leader for found in topics.values() for tp, leader in found.items()}
    unknown = [tp for tp in partitions if tp not in leaders]
    if unknown:
        raise kafka_errors.UnknownTopicOrPartitionError(str(unknown[0]))
    for tp in partitions:
        if leaders[tp] < 0:
            raise kafka_errors.LeaderNotAvailableError(str(tp))
        _known(client, leaders[tp], timeout)
    return leaders


def _known(client: Any, node: int, timeout: float) -> None:
    """Has the client learn the address of a node."""
    if client.cluster.broker_metadata(node) is None:
        future = client.cluster.request_update()
        _until(client, time.monotonic() + timeout, lambda: future.is_done)
        if client.cluster.broker_metadata(node) is None:
            raise kafka_errors.BrokerNotAvailableError(str(node))


def _coordinator(client: Any, group: str, request: Any, timeout: float) -> Any:
    """What the coordinator of a group answers."""
    found = _anyone(client, GroupCoordinatorRequest[0](group), timeout)
    checked(found.error_code, None)
    _known(client, found.coordinator_id, timeout)
    return _asked(client, found.coordinator_id, request, timeout)


def _by_topic(pairs: Any) -> list[tuple[str, list[Any]]]:
    """As the protocol has it: what belongs to a topic in one list."""
    found = defaultdict(list)
    for tp, what in pairs:
        found[tp.topic].append(what)
    return list(found.items())
