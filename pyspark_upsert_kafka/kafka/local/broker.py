"""`LocalKafka`: a node of Apache Kafka on this machine, its folder and its process, and how it is started, stopped and closed."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import shlex
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
from pyspark_upsert_kafka.kafka.local import ports
from pyspark_upsert_kafka.kafka.local.guard import BrokerGuard
from pyspark_upsert_kafka.kafka.local.jars import broker_jars
from pyspark_upsert_kafka.kafka.local.ports import HOST
from pyspark_upsert_kafka.kafka.local.security import LocalSecurity, create_accounts

_START_SECONDS = 300.0

_LOG = "-Dorg.slf4j.simpleLogger"
_FORMAT_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"{_LOG}.defaultLogLevel=warn")
# A broker for tests lives for seconds or minutes: without the optimising compiler it starts with half the
# CPU time. Who measures speed asks for it in LOCAL_KAFKA_OPTS, whose flags come last and win.
_BROKER_FLAGS = (
    "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", f"{_LOG}.showDateTime=true",
)  # fmt: skip

_COMPLAINT = re.compile(r" ERROR |^Error |^Unrecognized |(Exception|Error): ")

_OLDEST_JAVA = 17

# They change what a JVM runs, or add lines to what it prints.
_JVM_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH")


@dataclass(frozen=True)
class Node:
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
    def create(cls) -> Node:
        """A node with a folder of its own, of which nothing runs yet."""
        java, jars = find_java(), chosen_jars()
        folder = Path(tempfile.mkdtemp(prefix="local-kafka-"))
        guard = BrokerGuard.over(folder, folder / "broker.log", environment())
        return cls(java, jars, folder, guard, _new_cluster_id())

    def runs(self) -> bool:
        """Whether its broker, or the tool that formats its data, is at work."""
        return self.guard.exit_code() is None

    def format(self, settings: Mapping[str, str]) -> None:
        """Prepare the folder of the data, once.

        Raises:
            BrokerError: Kafka refuses the settings.
        """
        self._write(settings)
        tool = ("kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c")
        self._run(*_FORMAT_FLAGS, *_own_flags(), *tool)
        for _ in self._patiently():
            if not self.runs():
                break
        if self.guard.exit_code() != 0:
            raise BrokerError(f"Apache Kafka refused its settings: {self.complaints()}")

    def launch(self, settings: Mapping[str, str], port: int) -> bool:
        """Start the broker and wait until it answers; False = a port was in use.

        Raises:
            BrokerError: It ended by itself, or did not answer in time.
        """
        self._write(settings)
        self._run(*_BROKER_FLAGS, *_own_flags(), "kafka.Kafka")
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


def chosen_jars() -> Path:
    """The folder with the jars of the broker: LOCAL_KAFKA_JARS, or the one with those that are downloaded.

    Raises:
        BrokerError: That folder holds no Apache Kafka, or the jars cannot be downloaded.
    """
    given = os.environ.get("LOCAL_KAFKA_JARS")
    if not given:
        return broker_jars()
    if not any(Path(given).glob("kafka_2.*.jar")):
        raise BrokerError(
            f"LOCAL_KAFKA_JARS must name the folder with the jars of an Apache Kafka, such as 'libs' of its "
            f"distribution, but there is no kafka_2.*.jar in {given!r}."
        )
    return Path(given).absolute()


def _own_flags() -> list[str]:
    return shlex.split(os.environ.get("LOCAL_KAFKA_OPTS", ""))


def _answering_cluster(port: int) -> str | None:
    """The id of the cluster whose broker answers on the port."""
    try:
        socket.create_connection((HOST, port), timeout=1.0).close()
        client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
        cluster = client.list_topics(timeout=5.0)
    except (OSError, KafkaException):
        return None
    # A broker that is not yet admitted answers too, with a list of brokers that is empty.
    return str(cluster.cluster_id) if cluster.brokers else None


def _new_cluster_id() -> str:
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # The tools take a leading dash for an option.
    return _new_cluster_id() if text.startswith("-") else text


def find_java() -> str:
    """The program that runs Java: of JAVA_HOME, or else the first on PATH.

    Raises:
        BrokerError: There is none, it does not run, or it is too old.
    """
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
            [java, "-version"], capture_output=True, text=True, env=environment(), check=False
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


def environment() -> dict[str, str]:
    """The environment variables for a Java, without those that change what it does."""
    kept = {name: value for name, value in os.environ.items() if name not in _JVM_VARIABLES}
    # With LC_ALL=C, Java could not open a file in a folder whose name has letters beyond ASCII.
    return {**kept, "LC_ALL": "C.UTF-8"}


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
    "log.retention.ms": "-1",  # else a message whose timestamp is older than a week is gone some minutes later
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
    if it is killed. Messages are kept however old their timestamps are, unless ``config`` or a topic sets a retention.

    The first use downloads the broker, 44 MB. Its JVM is configured to start fast, not to run fast. The environment variable
    ``LOCAL_KAFKA_OPTS`` adds JVM flags (``-XX:TieredStopAtLevel=4`` turns on the optimising compiler, to measure speed).
    ``LOCAL_KAFKA_JARS`` names a folder with the jars of another version.

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
