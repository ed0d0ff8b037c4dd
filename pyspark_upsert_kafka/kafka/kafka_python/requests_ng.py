"""Single requests over the connections of kafka-python-ng, each within a timeout."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.commit import GroupCoordinatorRequest
from kafka.protocol.metadata import MetadataRequest

from pyspark_upsert_kafka.core.offsets import TopicPartition
from pyspark_upsert_kafka.kafka.kafka_python.errors import checked


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
