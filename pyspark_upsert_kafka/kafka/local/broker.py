"""`LocalKafka` itself: start, stop and close, ports and settings of a node."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.kafka.local import ports
from pyspark_upsert_kafka.kafka.local.node import Node
from pyspark_upsert_kafka.kafka.local.ports import HOST

_PORT_ATTEMPTS = 5

# One node, hence one replica; few partitions of internal topics, hence a fast first commit.
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    # Kafka's own default plus the controller, so that ``listeners`` can be added.
    "listener.security.protocol.map": (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
    ),
    "log.dirs": "data",  # relative to the folder: a path with a comma would be two paths
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}

_logger = logging.getLogger("pyspark_upsert_kafka")


class LocalKafka:
    """A real single-node Apache Kafka (KRaft), run by the Java that Spark uses.

    It stops, and its data is deleted, at the end of the ``with`` block, and also when the program
    ends in any other way, be it killed. The first use downloads the broker, 44 MB. It starts fast rather
    than run fast: the environment variable ``LOCAL_KAFKA_OPTS`` takes further flags of its JVM
    (``-XX:TieredStopAtLevel=4`` for the optimising compiler, to measure speed).

    Args:
        port: Port of the broker on 127.0.0.1, from 1 to 65535; None = a free one.
        config: Broker settings as in ``server.properties``, on top of those of a single node.
            ``listeners`` are added to the plain one, as in ``{"listeners":
            "SASL_PLAINTEXT://127.0.0.1:9095", "sasl.enabled.mechanisms": "PLAIN", ...}``.

    Raises:
        OptionError: The port is not one.

    Example::

        with LocalKafka() as kafka:
            options = {"properties.bootstrap.servers": kafka.bootstrap_servers}
    """

    def __init__(self, *, port: int | None = None, config: Mapping[str, str] | None = None) -> None:
        if port is not None and not 0 < port < 65536:
            raise OptionError(f"The port of LocalKafka must be from 1 to 65535, but is {port!r}.")
        self._wanted_port = self._port = port
        self._config = dict(config or {})
        self._node: Node | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address of the broker, host and port.

        Raises:
            BrokerError: The broker was not started.
        """
        if self._node is None or self._port is None:
            raise BrokerError(
                "LocalKafka has no address before it starts: use it in a with statement, or call "
                "start() first."
            )
        return f"{HOST}:{self._port}"

    def start(self) -> None:
        """Start the broker and wait until it answers; after ``stop()``, with its port and data.

        That takes about three seconds. Starting a broker that runs changes nothing. A start that
        fails leaves nothing behind.

        Raises:
            BrokerError: No Java, no jars, a port in use, or settings that Kafka refuses.
        """
        with ExitStack() as undo:
            undo.callback(self.close)
            if self._node is None:
                self._node = Node.create()
                # Formatting reads the settings, ports and all, but stores no port.
                self._node.format(self._settings(9092, 9093))
            if not self._node.runs():
                self._port = self._launch(self._node)
                _logger.info("Apache Kafka is up at %s", self.bootstrap_servers)
            undo.pop_all()

    def stop(self) -> None:
        """Stop the broker in good order and keep its data for the next ``start()``."""
        if self._node is not None:
            self._node.guard.stop()

    def close(self) -> None:
        """Stop the broker and delete its data."""
        node, self._node, self._port = self._node, None, self._wanted_port
        if node is not None:
            node.guard.close()

    def __enter__(self) -> LocalKafka:  # noqa: PYI034 - typing.Self needs Python 3.11
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LocalKafka(port={self._port})"

    def _launch(self, node: Node) -> int:
        """Start the broker, again on other ports when somebody took the free ones meanwhile."""
        for _ in range(_PORT_ATTEMPTS):
            if self._port is not None:
                ports.refuse_unusable(self._port)
            port = self._port or ports.free_port()
            if node.launch(self._settings(port, ports.free_port(unlike=port)), port):
                return port
        raise BrokerError(f"Apache Kafka cannot listen on its ports: {node.complaints()}")

    def _settings(self, port: int, controller_port: int) -> dict[str, str]:
        listeners = [f"PLAINTEXT://{HOST}:{port}", f"CONTROLLER://{HOST}:{controller_port}"]
        if "listeners" in self._config:
            listeners.append(self._config["listeners"])
        return {
            **_SETTINGS,
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            **self._config,
            "listeners": ",".join(listeners),
        }
