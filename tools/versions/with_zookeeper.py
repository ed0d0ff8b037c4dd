"""A single-node Kafka with ZooKeeper, as brokers before KRaft run, from the jars of that Kafka."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.kafka.local.broker import environment, find_java
from pyspark_upsert_kafka.kafka.local.guard import BrokerGuard
from pyspark_upsert_kafka.kafka.local.ports import HOST, free_ports

_START_SECONDS = 120.0
_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")


class KafkaWithZooKeeper:
    """A broker and its ZooKeeper, which end with this program, and their data with them.

    Args:
        jars: Folder with the jars of Kafka and of its ZooKeeper.

    Example::

        with KafkaWithZooKeeper(jars) as kafka:
            options = {"properties.bootstrap.servers": kafka.bootstrap_servers}
    """

    def __init__(self, jars: Path) -> None:
        self._jars = jars
        self._running = ExitStack()
        self.bootstrap_servers = ""

    def __enter__(self) -> KafkaWithZooKeeper:  # noqa: PYI034 - typing.Self needs Python 3.11
        """Starts both.

        Raises:
            BrokerError: One of them ended, or did not answer in time.
        """
        with ExitStack() as undo:
            zookeeper, broker = free_ports(2)
            servers = f"{HOST}:{broker}"
            main = "org.apache.zookeeper.server.ZooKeeperServerMain"
            self._start(undo, main, _zookeeper_settings(zookeeper), lambda: True)
            settings = _broker_settings(broker, zookeeper)
            self._start(undo, "kafka.Kafka", settings, lambda: _answers(servers))
            self.bootstrap_servers = servers
            self._running = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _start(
        self,
        running: ExitStack,
        main: str,
        settings: Mapping[str, str],
        is_up: Callable[[], bool],
    ) -> None:
        folder = Path(tempfile.mkdtemp(prefix="old-kafka-"))
        log = folder / "log"
        guard = BrokerGuard.over(folder, log, environment())
        running.callback(guard.close)
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (folder / "settings").write_text("".join(lines), encoding="ascii")
        guard.run([find_java(), "-cp", f"{self._jars}/*", *_FLAGS, main, "settings"])
        deadline = time.monotonic() + _START_SECONDS
        while not is_up():
            if guard.exit_code() is not None or time.monotonic() > deadline:
                raise BrokerError(f"{main} did not start: {_last_lines(log)}")
            time.sleep(0.1)


def _zookeeper_settings(port: int) -> dict[str, str]:
    return {
        "clientPort": str(port),
        "clientPortAddress": HOST,
        "dataDir": "data",
        "maxClientCnxns": "0",
        "admin.enableServer": "false",
    }


def _broker_settings(port: int, zookeeper: int) -> dict[str, str]:
    return {
        "broker.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "zookeeper.connect": f"{HOST}:{zookeeper}",
        "zookeeper.connection.timeout.ms": "60000",
        "log.dirs": "data",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def _answers(servers: str) -> bool:
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    try:
        return bool(client.list_topics(timeout=2.0).brokers)
    except KafkaException:
        return False


def _last_lines(log: Path) -> str:
    lines: Sequence[str] = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-20:]) or "it wrote no log."
