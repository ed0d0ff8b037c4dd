"""The admin requests by kafka-python-ng: single requests, since its admin client may wait for ever.

It knows no topic ids, and no lookup is sent for where an open transaction begins: its reader could not
keep to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from kafka import KafkaClient
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import OffsetRequest

from pyspark_upsert_kafka.core.cluster_view import TopicInfo
from pyspark_upsert_kafka.core.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.admin_requests import OffsetLookup
from pyspark_upsert_kafka.kafka.kafka_python.admin_requests import KafkaPythonAdmin
from pyspark_upsert_kafka.kafka.kafka_python.errors import checked, connect_timeouts
from pyspark_upsert_kafka.kafka.kafka_python.installed import no_read_committed
from pyspark_upsert_kafka.kafka.kafka_python.properties import open_client
from pyspark_upsert_kafka.kafka.kafka_python.requests_ng import (
    partition_leaders,
    send,
    send_to_any,
    send_to_coordinator,
    topic_leaders,
)

_TOPIC = 2
"""The resource type in the protocol."""

_CONSUMER = -1
"""A replica's number, of one that is none."""

_READ_UNCOMMITTED = 0

_NO_MEMBER, _NO_GENERATION, _KEPT_AS_BROKER_SAYS = "", -1, -1


class KafkaPythonNgAdmin(KafkaPythonAdmin):
    """Sends the requests with kafka-python-ng."""

    def names(self) -> Sequence[str]:
        """Names of all topics."""
        return self._call("list topics", lambda client, s: [*topic_leaders(client, None, s)])

    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those of the topics that exist, by name."""

        def request(client: Any, timeout: float) -> dict[str, TopicInfo]:
            found = topic_leaders(client, names, timeout)
            return {name: TopicInfo("", len(leaders)) for name, leaders in found.items()}

        return self._call(f"look up the topics {', '.join(names)}", request)

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

    def settings(self, topics: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Settings of topics, by topic and name; a BrokerError when the ACLs do not allow it."""
        resources = [(_TOPIC, topic, list(names)) for topic in topics]

        def request(client: Any, timeout: float) -> dict[str, dict[str, str]]:
            answer = send_to_any(client, DescribeConfigsRequest[1](resources, False), timeout)
            return {
                topic: checked(code, {entry[0]: entry[1] for entry in entries})
                for code, _, _, topic, entries in answer.resources
            }

        return self._call("look up topic settings", request)

    def _connect(self, timeout: float) -> Any:
        return open_client(KafkaClient, {**self._config, **connect_timeouts(timeout)})

    def _metadata(self, client: Any) -> Any:
        return client.cluster

    def _offsets(
        self, partitions: Sequence[TopicPartition], lookup: OffsetLookup
    ) -> dict[TopicPartition, int]:
        if lookup.committed:
            raise no_read_committed()

        def request(client: Any, timeout: float) -> dict[TopicPartition, int]:
            leaders = partition_leaders(client, partitions, timeout)
            found = {}
            for node in {*leaders.values()}:
                led = [tp for tp in partitions if leaders[tp] == node]
                wanted = _by_topic((tp, (tp.partition, lookup.timestamp_ms)) for tp in led)
                offsets = OffsetRequest[2](_CONSUMER, _READ_UNCOMMITTED, wanted)
                for topic, answers in send(client, node, offsets, timeout).topics:
                    for partition, code, _, offset in answers:
                        found[TopicPartition(topic, partition)] = checked(code, offset)
            return found

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
    """As the protocol has it: what belongs to a topic in one list."""
    found = defaultdict(list)
    for tp, what in pairs:
        found[tp.topic].append(what)
    return list(found.items())
