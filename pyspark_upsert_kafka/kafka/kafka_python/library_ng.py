"""What is particular to kafka-python-ng: its connections, and single requests, since its admin client may wait for ever.

It knows no topic ids. Where the first open transaction begins is not looked up: its reader could not stop there.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafka import KafkaClient
from kafka import errors as kafka_errors
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.commit import GroupCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import OffsetRequest

from pyspark_upsert_kafka.core.positions.cluster_view import TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.cluster import (
    OffsetLookup,
    answered_offset,
    answered_topic,
)
from pyspark_upsert_kafka.kafka.kafka_python.cluster import SILENT, Address, KafkaPythonCluster
from pyspark_upsert_kafka.kafka.kafka_python.errors import checked, connect_timeouts
from pyspark_upsert_kafka.kafka.kafka_python.installed import no_read_committed
from pyspark_upsert_kafka.kafka.kafka_python.properties import open_client


class Connections(KafkaClient):  # type: ignore[misc]
    """The library's own, with another choice of the broker for what any broker can answer."""

    def least_loaded_node(self) -> Any:
        """The node that the library would choose, or another one where that has not answered."""
        chosen = super().least_loaded_node()
        nodes = {(each.host, each.port): each.nodeId for each in self.cluster.brokers()}
        preferred = [nodes[address] for address in SILENT.preferred(nodes)]
        if chosen is None or chosen in preferred:
            return chosen
        # One whose connection is open, or else one that may be opened now.
        connected = [node for node in preferred if self.connected(node)]
        others = [node for node in preferred if self._may_connect(node)]
        return [*connected, *others, chosen][0]

    def send(self, node_id: Any, request: Any, wakeup: bool = True) -> Any:
        """The future answer; whether it comes in time is taken note of."""
        return SILENT.watched(super().send(node_id, request, wakeup), self._address(node_id))

    def check_version(
        self,
        node_id: Any = None,
        timeout: float = 2,
        strict: bool = False,
    ) -> Any:
        """The version of a broker, of the first that answers; the library would not tell which did not."""
        deadline = time.monotonic() + timeout
        while True:
            node = self.least_loaded_node() if node_id is None else node_id
            try:
                left = max(0.0, deadline - time.monotonic())
                return super().check_version(node, left, strict)
            except (kafka_errors.NodeNotReadyError, kafka_errors.NoBrokersAvailable):
                if (address := self._address(node)) is not None:
                    SILENT.note(address)
                if node_id is not None:
                    raise
            if time.monotonic() >= deadline:
                raise kafka_errors.NoBrokersAvailable

    def _may_connect(self, node: Any) -> bool:
        return not self.is_disconnected(node) or self.connection_delay(node) == 0

    def _address(self, node: Any) -> Address | None:
        found = None if node is None else self.cluster.broker_metadata(node)
        return None if found is None else (found.host, found.port)


_TOPIC = 2
"""The resource type in the protocol."""

_CONSUMER = -1
"""A replica's number, of one that is none."""

_READ_UNCOMMITTED = 0

_NO_MEMBER, _NO_GENERATION, _KEPT_AS_BROKER_SAYS = "", -1, -1


class KafkaPythonNgCluster(KafkaPythonCluster):
    """Sends the requests with kafka-python-ng."""

    def names(self) -> Sequence[str]:
        """Names of all topics."""
        return self._call("list topics", lambda client, s: [*topic_leaders(client, None, s)])

    def described(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those of the topics that exist, by name."""

        def request(client: Any, timeout: float) -> dict[str, TopicInfo]:
            found = topic_leaders(client, names, timeout)
            return {name: answered_topic(name, "", len(leaders)) for name, leaders in found.items()}

        return self._call(f"look up the topics {', '.join(names)}", request)

    def brokers(self) -> list[str]:
        """The addresses of all brokers."""

        def request(client: Any, timeout: float) -> list[str]:
            no_topics: list[str] = []
            answer = send_to_any(client, MetadataRequest[4](no_topics, False), timeout)
            return [f"{host}:{port}" for _, host, port, _ in answer.brokers]

        return self._call("list brokers", request)

    def create(self, names: Sequence[str]) -> None:
        """Lets the broker create missing topics, by a metadata request for them as a producer sends."""
        self._call(
            f"create topic {', '.join(names)}",
            lambda client, s: send_to_any(client, MetadataRequest[4](list(names), True), s),
        )

    def group_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed; negative = none."""
        fetch = OffsetFetchRequest[1](
            self.group, _by_topic((tp, tp.partition) for tp in partitions)
        )

        def request(client: Any, timeout: float) -> dict[TopicPartition, int]:
            answer = send_to_coordinator(client, self.group, fetch, timeout)
            return {
                TopicPartition(topic, partition): checked(code, offset)
                for topic, found in answer.topics
                for partition, offset, _, code in found
            }

        return self._call(f"look up the offsets of group {self.group!r}", request)

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """Those of the configs that are told, by topic and name; a BrokerError when the ACLs do not allow it."""
        resources = [(_TOPIC, topic, list(names)) for topic in topics]

        def request(client: Any, timeout: float) -> dict[str, dict[str, str]]:
            answer = send_to_any(client, DescribeConfigsRequest[1](resources, False), timeout)
            return {
                topic: checked(
                    code, {name: value for name, value, *_ in entries if value is not None}
                )
                for code, _, _, topic, entries in answer.resources
            }

        return self._call("look up topic settings", request)

    def _connect(self, timeout: float) -> Any:
        return open_client(Connections, {**self._config, **connect_timeouts(timeout)})

    def _metadata(self, client: Any) -> Any:
        return client.cluster

    def _offsets(
        self, partitions: Sequence[TopicPartition], lookup: OffsetLookup
    ) -> dict[TopicPartition, int]:
        if lookup.read_committed:
            raise no_read_committed()

        def request(client: Any, timeout: float) -> dict[TopicPartition, int]:
            leaders = partition_leaders(client, partitions, timeout)
            found: dict[TopicPartition, int] = {}
            for node in {*leaders.values()}:
                led = [tp for tp in partitions if leaders[tp] == node]
                wanted = _by_topic((tp, (tp.partition, lookup.timestamp_ms)) for tp in led)
                offsets = OffsetRequest[2](_CONSUMER, _READ_UNCOMMITTED, wanted)
                for topic, answers in send(client, node, offsets, timeout).topics:
                    for partition, code, _, offset in answers:
                        found[TopicPartition(topic, partition)] = checked(code, offset)
            return {tp: answered_offset(found.get(tp), lookup) for tp in partitions}

        return self._call("look up offsets", request)

    def _commit(self, positions: Positions) -> None:
        commit = OffsetCommitRequest[2](
            self.group, _NO_GENERATION, _NO_MEMBER, _KEPT_AS_BROKER_SAYS,
            _by_topic((tp, (tp.partition, offset, "")) for tp, offset in positions.items()),
        )  # fmt: skip

        def request(client: Any, timeout: float) -> None:
            for _, answers in send_to_coordinator(client, self.group, commit, timeout).topics:
                for _, code in answers:
                    checked(code, None)

        self._call("commit", request)


def _by_topic(pairs: Iterable[tuple[TopicPartition, Any]]) -> list[tuple[str, list[Any]]]:
    """For each topic one list of what belongs to it, as the protocol wants it."""
    found = defaultdict(list)
    for tp, what in pairs:
        found[tp.topic].append(what)
    return list(found.items())


def send(client: Any, node: int | str, request: Any, timeout: float) -> Any:
    """The answer of a node.

    Raises:
        KafkaError: It cannot be reached, or gives none in time.
    """
    deadline = time.monotonic() + timeout
    _poll_until(client, deadline, lambda: _is_ready(client, node))
    future = client.send(node, request)
    _poll_until(client, deadline, lambda: future.is_done)
    if future.failed():
        raise future.exception
    return future.value


def send_to_any(client: Any, request: Any, timeout: float) -> Any:
    """The answer of whichever node is there; raises KafkaError."""
    node = client.least_loaded_node()
    if node is None:
        client.poll(timeout_ms=100)
        raise kafka_errors.NoBrokersAvailable
    return send(client, node, request, timeout)


def send_to_coordinator(client: Any, group: str, request: Any, timeout: float) -> Any:
    """The answer of the coordinator of a group; raises KafkaError."""
    found = send_to_any(client, GroupCoordinatorRequest[0](group), timeout)
    checked(found.error_code, None)
    _resolve(client, found.coordinator_id, timeout)
    return send(client, found.coordinator_id, request, timeout)


def topic_leaders(
    client: Any, names: Sequence[str] | None, timeout: float
) -> dict[str, dict[TopicPartition, int]]:
    """The leader of each partition of the topics that exist, by topic; of all for None."""
    wanted = None if names is None else list(names)
    answer = send_to_any(client, MetadataRequest[4](wanted, False), timeout)
    found = {}
    for code, name, _, partitions in answer.topics:
        if code == kafka_errors.UnknownTopicOrPartitionError.errno:
            continue
        checked(code, None)
        found[name] = {TopicPartition(name, each[1]): each[2] for each in partitions}
    return found


def partition_leaders(
    client: Any, partitions: Sequence[TopicPartition], timeout: float
) -> dict[TopicPartition, int]:
    """The leader of each partition, whose address the client then knows; raises KafkaError."""
    topics = topic_leaders(client, sorted({tp.topic for tp in partitions}), timeout)
    leaders = {tp: leader for found in topics.values() for tp, leader in found.items()}
    unknown = [tp for tp in partitions if tp not in leaders]
    if unknown:
        raise kafka_errors.UnknownTopicOrPartitionError(str(unknown[0]))
    for tp in partitions:
        if leaders[tp] < 0:
            raise kafka_errors.LeaderNotAvailableError(str(tp))
        _resolve(client, leaders[tp], timeout)
    return leaders


def _is_ready(client: Any, node: int | str) -> bool:
    """Whether a request can be sent to a node; raises KafkaError when nobody listens there."""
    if client.ready(node, metadata_priority=False):
        return True
    client.poll(timeout_ms=0)
    if client.is_disconnected(node):
        raise kafka_errors.KafkaConnectionError(f"node {node} cannot be reached")
    return False


def _poll_until(client: Any, deadline: float, done: Callable[[], bool]) -> None:
    while not done():
        if time.monotonic() > deadline:
            raise kafka_errors.KafkaTimeoutError("no answer in time")
        client.poll(timeout_ms=100)


def _resolve(client: Any, node: int, timeout: float) -> None:
    """Has the client learn the address of a node."""
    if client.cluster.broker_metadata(node) is None:
        future = client.cluster.request_update()
        _poll_until(client, time.monotonic() + timeout, lambda: future.is_done)
        if client.cluster.broker_metadata(node) is None:
            raise kafka_errors.BrokerNotAvailableError(str(node))
