"""LocalKafka: a real single-node Apache Kafka on this machine, for tests, demos and trials."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.kafka.broker_guard import BrokerGuard
from pyspark_upsert_kafka.kafka.jars import broker_jars

_HOST = "127.0.0.1"
_OLDEST_JAVA = 17
_START_SECONDS = 120.0
_PORT_ATTEMPTS = 5

# Below the range from which systems take the ports of outgoing connections: there, a client that
# calls a stopped broker again and again could be given the broker's own port.
_PORTS = range(20_000, 32_000)

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

_LOG = "-Dorg.slf4j.simpleLogger"
_FORMAT_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"{_LOG}.defaultLogLevel=warn")
_BROKER_FLAGS = ("-XX:+UseSerialGC", "-Xmx512m", f"{_LOG}.showDateTime=true")

# They change what a JVM runs, or add lines to what it prints.
_JVM_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH")

_COMPLAINT = re.compile(r" ERROR |^Error |(Exception|Error): ")

_logger = logging.getLogger("pyspark_upsert_kafka")


class LocalKafka:
    """A real single-node Apache Kafka (KRaft), run by the Java that Spark uses.

    It stops, and its data is deleted, at the end of the ``with`` block, and also when the program
    ends in any other way, be it killed. The first use downloads the broker, 44 MB.

    Args:
        port: Port of the broker on 127.0.0.1, from 1 to 65535; None = a free one.
        config: Broker settings as in ``server.properties``, on top of those of a single node.
            ``listeners`` are added to the plain one, as in ``{"listeners":
            "SASL_PLAINTEXT://127.0.0.1:9095", "sasl.enabled.mechanisms": "PLAIN", ...}``.

    Raises:
        OptionError: The port is not one.

    Example:
        >>> with LocalKafka() as kafka:  # doctest: +SKIP
        ...     kafka.bootstrap_servers
        '127.0.0.1:25071'
    """

    def __init__(self, *, port: int | None = None, config: Mapping[str, str] | None = None) -> None:
        if port is not None and not 0 < port < 65536:
            raise OptionError(f"The port of LocalKafka must be from 1 to 65535, but is {port!r}.")
        self._wanted_port = self._port = port
        self._config = dict(config or {})
        self._node: _Node | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address of the broker, host and port.

        Raises:
            BrokerError: The broker was not started.

        Example:
            >>> kafka.bootstrap_servers  # doctest: +SKIP
            '127.0.0.1:25071'
        """
        if self._node is None or self._port is None:
            raise BrokerError(
                "LocalKafka has no address before it starts: use it in a with statement, or call "
                "start() first."
            )
        return f"{_HOST}:{self._port}"

    def start(self) -> None:
        """Start the broker and wait until it answers; after ``stop()``, with its port and data.

        That takes about three seconds. Starting a broker that runs changes nothing. A start that
        fails leaves nothing behind.

        Raises:
            BrokerError: No Java, no jars, a port in use, or settings that Kafka refuses.

        Example:
            >>> kafka.stop()  # doctest: +SKIP
            >>> kafka.start()  # doctest: +SKIP
        """
        with ExitStack() as undo:
            undo.callback(self.close)
            if self._node is None:
                self._node = _Node.create()
                # Formatting reads the settings, ports and all, but stores no port.
                self._node.format(self._settings(9092, 9093))
            if not self._node.runs():
                self._port = self._launch(self._node)
                _logger.info("Apache Kafka is up at %s", self.bootstrap_servers)
            undo.pop_all()

    def stop(self) -> None:
        """Stop the broker in good order and keep its data for the next ``start()``.

        Example:
            >>> kafka.stop()  # doctest: +SKIP
        """
        if self._node is not None:
            self._node.guard.stop()

    def close(self) -> None:
        """Stop the broker and delete its data.

        Example:
            >>> kafka.close()  # doctest: +SKIP
        """
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

    def _launch(self, node: _Node) -> int:
        """Start the broker, again on other ports when somebody took the free ones meanwhile."""
        for _ in range(_PORT_ATTEMPTS):
            if self._port is not None:
                _refuse_unusable(self._port)
            port = self._port or _free_port()
            if node.launch(self._settings(port, _free_port(unlike=port)), port):
                return port
        raise BrokerError(f"Apache Kafka cannot listen on its ports: {node.complaints()}")

    def _settings(self, port: int, controller_port: int) -> dict[str, str]:
        listeners = [f"PLAINTEXT://{_HOST}:{port}", f"CONTROLLER://{_HOST}:{controller_port}"]
        if "listeners" in self._config:
            listeners.append(self._config["listeners"])
        return {
            **_SETTINGS,
            "controller.quorum.voters": f"1@{_HOST}:{controller_port}",
            **self._config,
            "listeners": ",".join(listeners),
        }


@dataclass(frozen=True)
class _Node:
    """What lasts from the first start to the end.

    Args:
        java: The program that runs Java.
        jars: Folder with the jars of the broker.
        folder: Settings, data and log of the broker.
        guard: Runs the broker in the folder, and deletes the folder at last.
        cluster_id: Tells this broker from any other that answers on its port.
    """

    java: str
    jars: Path
    folder: Path
    guard: BrokerGuard
    cluster_id: str

    @classmethod
    def create(cls) -> _Node:
        java, jars = _find_java(), broker_jars()
        folder = Path(tempfile.mkdtemp(prefix="local-kafka-"))
        guard = BrokerGuard.over(folder, folder / "broker.log", _environment())
        return cls(java, jars, folder, guard, _new_cluster_id())

    def runs(self) -> bool:
        return self.guard.exit_code() is None

    def format(self, settings: Mapping[str, str]) -> None:
        self._write(settings)
        tool = ("kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c")
        self._run(*_FORMAT_FLAGS, *tool)
        for _ in self._patiently():
            if not self.runs():
                break
        if self.guard.exit_code() != 0:
            raise BrokerError(f"Apache Kafka refused its settings: {self.complaints()}")

    def launch(self, settings: Mapping[str, str], port: int) -> bool:
        """Start the broker and wait until it answers; False = a port was in use."""
        self._write(settings)
        self._run(*_BROKER_FLAGS, "kafka.Kafka")
        for _ in self._patiently():
            if _answering_cluster(port) == self.cluster_id:
                return True
            if not self.runs():
                break
        if "failed to bind to" in self._read_log():
            return False
        raise BrokerError(f"Apache Kafka ended while it started: {self.complaints()}")

    def _write(self, settings: Mapping[str, str]) -> None:
        # What JSON escapes, and how, is what a Java properties file understands.
        lines = [f"{name}={json.dumps(str(value))[1:-1]}\n" for name, value in settings.items()]
        (self.folder / "server.properties").write_text("".join(lines), encoding="ascii")

    def _run(self, *arguments: str) -> None:
        (self.folder / "broker.log").write_bytes(b"")
        self.guard.run([self.java, "-cp", f"{self.jars}/*", *arguments, "server.properties"])

    def _patiently(self) -> Iterator[None]:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            yield
            time.sleep(0.05)
        raise BrokerError(
            f"Apache Kafka did not start within {_START_SECONDS:.0f} s: {self.complaints()}"
        )

    def _read_log(self) -> str:
        return (self.folder / "broker.log").read_text(encoding="utf-8", errors="replace")

    def complaints(self) -> str:
        """The last errors in the log, or its last lines when it names none."""
        lines = self._read_log().splitlines()
        errors = [line for line in lines if _COMPLAINT.search(line)]
        return "\n".join((errors or lines)[-5:]) or "it wrote no log."


def _answering_cluster(port: int) -> str | None:
    """The id of the cluster whose broker answers on the port."""
    try:
        socket.create_connection((_HOST, port), timeout=1.0).close()
        client = AdminClient({"bootstrap.servers": f"{_HOST}:{port}", "log_level": 0})
        cluster = client.list_topics(timeout=5.0)
    except (OSError, KafkaException):
        return None
    # A broker that is not yet admitted answers too, with a list of brokers that is empty.
    return str(cluster.cluster_id) if cluster.brokers else None


def _find_java() -> str:
    """The Java that Spark uses, when it is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    need = f"LocalKafka needs Java {_OLDEST_JAVA} or newer, as Spark does"
    advice = (
        "Install one, for example from https://adoptium.net, and let JAVA_HOME name its folder."
    )
    if java is None:
        raise BrokerError(
            f"{need}, but JAVA_HOME is not set and there is no java on PATH. {advice}"
        )
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, env=_environment(), check=False
        )
    except OSError as error:
        raise BrokerError(
            f"{need}, but {java} cannot be run ({error.strerror}). {advice}"
        ) from error
    said = (run.stderr + run.stdout).strip()
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None:
        raise BrokerError(f"{need}, but {java} -version says {said[:200]!r}. {advice}")
    if int(version[1]) < _OLDEST_JAVA:
        raise BrokerError(f"{need}, but {java} is Java {version[1]}. {advice}")
    return java


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _JVM_VARIABLES}


def _new_cluster_id() -> str:
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # The tools take a leading dash for an option.
    return _new_cluster_id() if text.startswith("-") else text


def _bind_error(port: int) -> OSError | None:
    with socket.socket() as probe:
        # As Java does: connections of a broker that has stopped do not keep its port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            return error
    return None


def _refuse_unusable(port: int) -> None:
    error = _bind_error(port)
    if error is not None:
        raise BrokerError(
            f"Port {port} on {_HOST} cannot be used ({error.strerror}). End the program that uses "
            "it, choose another port, or leave the port out to get a free one."
        )


def _free_port(unlike: int | None = None) -> int:
    for _ in range(1000):
        port = _PORTS[secrets.randbelow(len(_PORTS))]
        if port != unlike and _bind_error(port) is None:
            return port
    raise BrokerError(f"No free port on {_HOST} from {_PORTS.start} to {_PORTS.stop - 1}.")
