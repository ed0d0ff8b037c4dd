"""What is particular to kafka-python 3: its connections, and requests by its admin client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka import IsolationLevel, KafkaAdminClient, KafkaProducer, OffsetAndMetadata
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource
from kafka.cluster import collect_hosts
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.positions.cluster_view import TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition, spelt_by_kafka
from pyspark_upsert_kafka.kafka.cluster import (
    OffsetLookup,
    answered_offset,
    answered_topic,
)
from pyspark_upsert_kafka.kafka.failures import AttemptError, Failure, FailureKind
from pyspark_upsert_kafka.kafka.kafka_python.cluster import SILENT, Address, KafkaPythonCluster
from pyspark_upsert_kafka.kafka.kafka_python.errors import connect_timeouts
from pyspark_upsert_kafka.kafka.kafka_python.properties import open_client

_CONNECT_MS = KafkaConnectionManager.DEFAULT_CONFIG["socket_connection_setup_timeout_ms"]


class Connections(KafkaNetClient):  # type: ignore[misc]
    """The library's own, with another choice of the broker for what any broker can answer."""

    def __init__(self, **config: Any) -> None:
        net = NetworkSelector(**config)
        super().__init__(net, _Manager(net, **_avoiding(config)), **config)


class _Manager(KafkaConnectionManager):  # type: ignore[misc]
    def least_loaded_node(self) -> Any:
        """The node that the library would choose, or another one where that has not answered."""
        chosen = super().least_loaded_node()
        nodes = {(each.host, each.port): each.node_id for each in self.cluster.brokers()}
        preferred = [nodes[address] for address in SILENT.preferred(nodes)]
        if chosen is None or chosen in preferred:
            return chosen
        return next((node for node in preferred if self.connection_delay(node) == 0), chosen)

    def send(self, request: Any, node_id: Any = None, request_timeout_ms: Any = None) -> Any:
        """The future answer; whether it comes in time is taken note of."""
        node = self.least_loaded_node() if node_id is None else node_id
        return SILENT.watched(super().send(request, node, request_timeout_ms), self._address(node))

    def update_backoff(self, node_id: Any) -> Any:
        """Takes note of a broker to which no connection was made, or that says nothing on it."""
        if (address := self._address(node_id)) is not None:
            SILENT.note(address)
        return super().update_backoff(node_id)

    def _address(self, node: Any) -> Address | None:
        found = None if node is None else self.cluster.broker_metadata(node)
        return None if found is None else (found.host, found.port)


def _avoiding(config: dict[str, Any]) -> dict[str, Any]:
    """The arguments without bootstrap servers that have not answered; and no connection is waited for longer than a request.

    The library chooses among these servers by chance, and waits for the one.
    """
    servers = config["bootstrap_servers"].split(",")
    parsed = [(host, port) for host, port, _ in collect_hosts(servers, randomize=False)]
    preferred = SILENT.preferred(parsed)
    bootstrap = [
        server for server, address in zip(servers, parsed, strict=True) if address in preferred
    ]
    connect_ms = min(config["request_timeout_ms"], _CONNECT_MS)
    return {
        **config,
        "bootstrap_servers": bootstrap,
        "socket_connection_setup_timeout_ms": connect_ms,
        "socket_connection_setup_timeout_max_ms": connect_ms,
    }


class KafkaPython3Cluster(KafkaPythonCluster):
    """Sends the requests with kafka-python 3."""

    def names(self) -> Sequence[str]:
        """Names of all topics."""
        return self._call("list topics", lambda admin, _: [*admin.list_topics()])

    def described(self, names: Sequence[str]) -> dict[str, TopicInfo]:
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
        raise AttemptError(Failure(FailureKind.FATAL, text))
    told = {name: config[name]["value"] for name in names if name in config}
    return {name: str(value) for name, value in told.items() if value is not None}


def _topic_id(topic: Any) -> str:
    id_ = str(topic.get("topic_id") or "")
    return spelt_by_kafka(id_) if id_.strip("0-") else ""  # brokers before Kafka 2.8 know no ids
