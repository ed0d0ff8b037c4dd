"""A node of Apache Kafka on this machine: its folder, its processes, and what it says."""

from __future__ import annotations

import base64
import json
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
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.kafka.local.guard import BrokerGuard
from pyspark_upsert_kafka.kafka.local.jars import broker_jars
from pyspark_upsert_kafka.kafka.local.ports import HOST

_START_SECONDS = 120.0

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
    return {name: value for name, value in os.environ.items() if name not in _JVM_VARIABLES}
