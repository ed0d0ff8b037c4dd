"""The admin requests by kafka-python 3: its admin client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka import IsolationLevel, KafkaAdminClient, KafkaProducer, OffsetAndMetadata
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource

from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.positions.cluster_view import TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition, spelt_by_kafka
from pyspark_upsert_kafka.kafka.admin_requests import (
    OffsetLookup,
    answered_offset,
    answered_topic,
)
from pyspark_upsert_kafka.kafka.connections.failures import AttemptError, Failure, Kind
from pyspark_upsert_kafka.kafka.kafka_python.admin_requests import KafkaPythonAdmin
from pyspark_upsert_kafka.kafka.kafka_python.errors import connect_timeouts
from pyspark_upsert_kafka.kafka.kafka_python.properties import open_client


class KafkaPython3Admin(KafkaPythonAdmin):
    """Sends the requests with kafka-python 3."""

    def names(self) -> Sequence[str]:
        """Names of all topics."""
        return self._call("list topics", lambda admin, _: [*admin.list_topics()])

    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those of the topics that exist, by name."""

        def request(admin: Any, _: float) -> dict[str, TopicInfo]:
            found = {}
            for topic in admin.describe_topics(list(names)):
                error = kafka_errors.for_code(topic["error_code"])
                if error is kafka_errors.UnknownTopicOrPartitionError:
                    continue
                if error is not kafka_errors.NoError:
                    raise error(topic["name"])
                name, partitions = topic["name"], len(topic["partitions"])
                found[name] = answered_topic(name, _topic_id(topic), partitions)
            return found

        return self._call(f"look up the topics {', '.join(names)}", request)

    def brokers(self) -> list[str]:
        """The addresses of all brokers."""

        def request(admin: Any, _: float) -> list[str]:
            return [
                f"{each['host']}:{each['port']}" for each in admin.describe_cluster()["brokers"]
            ]

        return self._call("list brokers", request)

    def create(self, names: Sequence[str]) -> None:
        """Lets the broker create missing topics, by a metadata request for each as a producer sends."""

        def request(_: Any, timeout: float) -> None:
            opened = open_client(
                KafkaProducer,
                {
                    **self._config,
                    "allow_auto_create_topics": True,
                    "max_block_ms": int(timeout * 1000),
                    **connect_timeouts(timeout),
                },
            )
            with closing(opened) as producer:
                for name in names:
                    producer.partitions_for(name)

        self._call(f"create topic {', '.join(names)}", request)

    def group_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed; negative = none."""

        def request(admin: Any, _: float) -> dict[TopicPartition, int]:
            found = admin.list_group_offsets({self.group: list(partitions)})[self.group]
            return {TopicPartition(*tp): at.offset for tp, at in found.items()}

        return self._call(f"look up the offsets of group {self.group!r}", request)

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """Those of the configs that are told, by topic and name; a BrokerError when the ACLs do not allow it."""
        resources = [ConfigResource("TOPIC", topic, list(names)) for topic in topics]

        def request(admin: Any, _: float) -> dict[str, dict[str, str]]:
            found = admin.describe_configs(resources, config_filter="all").get("topic", {})
            return {topic: _values(topic, found.get(topic, {}), names) for topic in topics}

        return self._call("look up topic settings", request)

    def _connect(self, timeout: float) -> Any:
        return open_client(KafkaAdminClient, {**self._config, **connect_timeouts(timeout)})

    def _metadata(self, client: Any) -> Any:
        return client._manager.cluster  # noqa: SLF001

    def _offsets(
        self, partitions: Sequence[TopicPartition], lookup: OffsetLookup
    ) -> dict[TopicPartition, int]:
        level = (
            IsolationLevel.READ_COMMITTED
            if lookup.read_committed
            else IsolationLevel.READ_UNCOMMITTED
        )
        wanted = dict.fromkeys(partitions, lookup.timestamp_ms)

        def request(admin: Any, timeout: float) -> dict[TopicPartition, int]:
            found = admin.list_partition_offsets(
                wanted, isolation_level=level, timeout_ms=timeout * 1000
            )
            offsets = {TopicPartition(*tp): answer.offset for tp, answer in found.items()}
            return {tp: answered_offset(offsets.get(tp), lookup) for tp in partitions}

        return self._call("look up offsets", request)

    def _commit(self, positions: Positions) -> None:
        offsets = {tp: OffsetAndMetadata(at, "", -1) for tp, at in positions.items()}

        def request(admin: Any, _: float) -> None:
            for error in admin.alter_group_offsets(self.group, offsets).values():
                if error is not kafka_errors.NoError:
                    raise error

        self._call("commit", request)


def _values(topic: str, config: dict[str, Any], names: Sequence[str]) -> dict[str, str]:
    """The values of those of the configs that the broker tells; an error in the place of all the library does not tell.

    Raises:
        AttemptError: It tells none.
    """
    if not config:
        text = (
            f"topic {topic!r} does not exist, or the ACL operation DescribeConfigs on it is missing"
        )
        raise AttemptError(Failure(Kind.FATAL, text))
    told = {name: config[name]["value"] for name in names if name in config}
    return {name: str(value) for name, value in told.items() if value is not None}


def _topic_id(topic: Any) -> str:
    id_ = str(topic.get("topic_id") or "")
    return spelt_by_kafka(id_) if id_.strip("0-") else ""  # brokers before Kafka 2.8 know no ids
