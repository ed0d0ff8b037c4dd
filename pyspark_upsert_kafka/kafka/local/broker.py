"""`LocalKafka` itself: start, stop and close, ports and settings of a node."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.kafka.local import ports
from pyspark_upsert_kafka.kafka.local.node import Node
from pyspark_upsert_kafka.kafka.local.ports import HOST
from pyspark_upsert_kafka.kafka.local.security import LocalSecurity, create_accounts

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
    "metadata.max.idle.interval.ms": "0",  # else two records a second, and a third of an idle broker's CPU time
}

_logger = logging.getLogger("pyspark_upsert_kafka")


class LocalKafka:
    """A real single-node Apache Kafka (KRaft), run by the Java that Spark uses.

    It stops, and its data is deleted, at the end of the ``with`` block, and also if the program ends in any other way, even
    if it is killed. The first use downloads the broker, 44 MB. Its JVM is configured to start fast, not to run fast. The
    environment variable ``LOCAL_KAFKA_OPTS`` adds JVM flags (``-XX:TieredStopAtLevel=4`` turns on the optimising compiler,
    to measure speed). ``LOCAL_KAFKA_JARS`` names a folder with the jars of another version.

    Args:
        port: Port of the broker on 127.0.0.1, from 1 to 65535; None = a free port.
        config: Broker settings as in ``server.properties``, in addition to those of a single node.
            ``listeners`` are added to the plain one, as in ``{"listeners":
            "SASL_PLAINTEXT://127.0.0.1:9095", "sasl.enabled.mechanisms": "PLAIN", ...}``.
        security: Adds addresses with authentication, one for each security protocol; None = there is only the plain
            address, without authentication.

    Raises:
        OptionError: The port is out of range.

    Example::

        from pyspark_upsert_kafka import LocalKafka

        with LocalKafka(config={"num.partitions": "4"}) as kafka:
            print(kafka.bootstrap_servers)
    """

    def __init__(
        self,
        *,
        port: int | None = None,
        config: Mapping[str, str] | None = None,
        security: LocalSecurity | None = None,
    ) -> None:
        if port is not None and not 0 < port < 65536:
            raise OptionError(f"The port of LocalKafka must be from 1 to 65535, but is {port!r}.")
        self._wanted_port = self._port = port
        self._config = dict(config or {})
        self._security = security
        self._secured_ports: dict[str, int] = {}
        self._more_settings: dict[str, str] = {}
        self._node: Node | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address of the broker without authentication, host and port.

        Raises:
            BrokerError: The broker was not started.
        """
        if self._node is None or self._port is None:
            raise _not_started()
        return f"{HOST}:{self._port}"

    def address(self, protocol: str) -> str:
        """The address for a security protocol, host and port.

        Args:
            protocol: ``SASL_PLAINTEXT``, ``SASL_SSL`` or ``SSL``, if ``security`` has it.

        Raises:
            BrokerError: The broker was not started.
            OptionError: ``security`` does not have the protocol.
        """
        offered = self._security.protocols if self._security else ()
        if protocol not in offered:
            raise OptionError(
                f"This LocalKafka has no address for {protocol!r}, only for {', '.join(offered) or 'PLAINTEXT'}: "
                "give users, certificates or both in its argument security."
            )
        if protocol not in self._secured_ports:
            raise _not_started()
        return f"{HOST}:{self._secured_ports[protocol]}"

    def start(self) -> None:
        """Starts the broker and waits until it answers. After ``stop()`` it has the same port and data.

        This takes about three seconds. If the broker already runs, nothing happens. If the start fails, everything is
        removed again.

        Raises:
            BrokerError: There is no Java, there are no jars, a port is in use, or Kafka rejects the settings.
        """
        with ExitStack() as undo:
            undo.callback(self.close)
            is_new = self._node is None
            if self._node is None:
                self._node = Node.create()
                self._more_settings = self._security.settings() if self._security else {}
                # Formatting reads the settings, ports and all, but stores no port.
                self._node.format(self._settings(9092, 9093, {}))
            if not self._node.runs():
                self._launch(self._node)
                _logger.info("Apache Kafka is up at %s", self.bootstrap_servers)
            if is_new and self._security:
                create_accounts(self._security, self.bootstrap_servers)
            undo.pop_all()

    def stop(self) -> None:
        """Shuts the broker down and keeps its data for the next ``start()``."""
        if self._node is not None:
            self._node.guard.stop()

    def close(self) -> None:
        """Stops the broker and deletes its data."""
        node, self._node, self._port = self._node, None, self._wanted_port
        self._secured_ports = {}
        if node is not None:
            node.guard.close()

    def __enter__(self) -> LocalKafka:  # noqa: PYI034 - typing.Self needs Python 3.11
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LocalKafka(port={self._port})"

    def _launch(self, node: Node) -> None:
        """Starts the broker, and retries with other ports if the free ones were taken meanwhile."""
        protocols = self._security.protocols if self._security else ()
        for _ in range(_PORT_ATTEMPTS):
            if self._port is not None:
                ports.refuse_unusable(self._port)
            free = ports.free_ports(2 + len(protocols), unlike=self._port)
            port = self._port or free.pop()
            secured = self._secured_ports or dict(zip(protocols, free[1:], strict=False))
            if node.launch(self._settings(port, free[0], secured), port):
                self._port, self._secured_ports = port, secured
                return
        raise BrokerError(f"Apache Kafka cannot listen on its ports: {node.complaints()}")

    def _settings(
        self, port: int, controller_port: int, secured: Mapping[str, int]
    ) -> dict[str, str]:
        addresses = {"PLAINTEXT": port, "CONTROLLER": controller_port, **secured}
        listeners = [f"{name}://{HOST}:{number}" for name, number in addresses.items()]
        if "listeners" in self._config:
            listeners.append(self._config["listeners"])
        return {
            **_SETTINGS,
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            **self._more_settings,
            **self._config,
            "listeners": ",".join(listeners),
        }


def _not_started() -> BrokerError:
    return BrokerError(
        "LocalKafka has no address before it starts: use it in a with statement, or call start() first."
    )
