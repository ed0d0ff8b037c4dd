"""The seam as tests use it, once for each Kafka client, and a broker that can be stopped."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kafka
import psutil
import pytest
from confluent_kafka import TopicPartition as ClientPartition

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.metadata import ALL_DETAILS, Detail
from pyspark_upsert_kafka.core.options.frozen_options import Position, PositionMode, Topics
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.clients import (
    ReadSettings,
    Sender,
    load_client,
    load_sending_client,
)
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.local.broker import Node
from pyspark_upsert_kafka.kafka.loss_checks import LOSS_CHECKS, LossChecks
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, octets
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.conftest import Broker, broker_at

if TYPE_CHECKING:
    from tests.kafka.secured import Secured

CLIENTS = ["librdkafka", "kafka-python"]

NATIVE_OFF = "librdkafka in batches, with its own functions off"
"""As an executor works on which they are turned off."""

WAYS = [*CLIENTS, "librdkafka in batches", NATIVE_OFF]
"""Each way to read and to send."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With kafka-python, and without librdkafka's own functions, `make test` runs the tests ``every_client``, and no more."""
    for item in items:
        case = getattr(item, "callspec", None)
        if case is None or Path(__file__).parent not in item.path.parents:
            continue
        is_placed = any(map(item.get_closest_marker, ("every_client", "long", "alone")))
        if "kafka-python" in case.params.values() and not is_placed:
            item.add_marker(pytest.mark.long("another client than the default one"))
        if NATIVE_OFF in case.params.values() and not is_placed:
            item.add_marker(pytest.mark.long("another way than the default one"))


@dataclass(frozen=True)
class Edge:
    """What the project asks of a Kafka client, for tests of one broker.

    Args:
        client: Name of the client.
        servers: The bootstrap servers.
        properties: Further properties of the client.
        with_metadata: Whether messages to send may have timestamps and headers, unless a test says so itself.
        details: What messages that are read have beside key, value and offset, unless a test says so itself.
        checks: When it is checked whether data is lost.
    """

    client: str
    servers: str
    properties: tuple[tuple[str, str], ...] = ()
    with_metadata: bool = True
    details: frozenset[Detail] = ALL_DETAILS
    checks: LossChecks = LOSS_CHECKS

    @property
    def has_transactions(self) -> bool:
        """Whether the client knows read_committed and idempotence; kafka-python-ng does not."""
        return self.client == "librdkafka" or kafka.__version__.startswith("3.")

    @property
    def has_topic_ids(self) -> bool:
        """Whether the client tells a topic from its successor of the same name."""
        return self.has_transactions

    @property
    def has_leader_epochs(self) -> bool:
        """Whether the client tells the leader epoch of a message."""
        return self.has_transactions

    def at(self, servers: str) -> Edge:
        """The same for another broker."""
        return replace(self, servers=servers)

    def impatient(self) -> Edge:
        """The same, which looks sooner whether there is anything left to read, and is certain sooner of a loss."""
        return replace(
            self, checks=LossChecks(time, stall_s=0.2, certain_after_s=0.5, interval_s=0.1)
        )

    def given(self, properties: dict[str, object]) -> Edge:
        """The same with these properties of the client."""
        more = tuple((name, str(value)) for name, value in properties.items())
        return replace(self, properties=self.properties + more)

    def all_properties(self) -> Properties:
        """What the user would have given, who accepts what a client cannot do."""
        accepted = {} if self.has_transactions else {"enable.idempotence": "false"}
        return Properties({"bootstrap.servers": self.servers, **accepted, **dict(self.properties)})

    @contextmanager
    def cluster(self) -> Iterator[Cluster]:
        """A connection for admin requests."""
        with closing(load_client(self.client).cluster(self.all_properties(), "driver")) as cluster:
            yield cluster

    def view(self, cluster: Cluster, *topics: str, committed: bool | None = None) -> ClusterView:
        """The bounds of these topics; None = committed messages only, where the client can."""
        committed = self.has_transactions if committed is None else committed
        return cluster.view(cluster.topics(Topics(topics)), read_committed=committed)

    def topic_id(self, topic: str) -> str:
        """The id of a topic; empty text = the client knows none."""
        with self.cluster() as cluster:
            return cluster.topics(Topics((topic,)))[topic].id

    def bounds(self, topic: str, *, committed: bool | None = None) -> list[Bounds]:
        """The bounds of each partition of a topic."""
        with self.cluster() as cluster:
            view = self.view(cluster, topic, committed=committed)
        return [bounds for _, bounds in sorted(view.bounds.items())]

    def positions(self, topic: str, kind: PositionMode, **how: Any) -> dict[int, int]:
        """Where a position is, by partition."""
        with self.cluster() as cluster:
            view = self.view(cluster, topic)
            found = cluster.positions(Position(kind, **how), view)
        return {tp.partition: offset for tp, offset in found.items()}

    def batches(
        self,
        range_: Range,
        *,
        committed: bool | None = None,
        fail_on_data_loss: bool = True,
        details: frozenset[Detail] | None = None,
    ) -> Iterator[RawBatch]:
        """The batches of a range."""
        read_committed = self.has_transactions if committed is None else committed
        wanted = self.details if details is None else details
        settings = ReadSettings(
            self.all_properties(), read_committed, fail_on_data_loss, wanted, checks=self.checks
        )
        return load_client(self.client).reader(settings).read(range_)

    def offsets(self, range_: Range, **how: Any) -> list[int]:
        """The offsets that reading a range gives."""
        return [offset for batch in self.batches(range_, **how) for offset in batch.offsets]

    def values(self, range_: Range, **how: Any) -> list[bytes | None]:
        """The values that reading a range gives."""
        return [value for batch in self.batches(range_, **how) for value in batch.values]

    @contextmanager
    def sender(self, *topics: str, with_metadata: bool = False) -> Iterator[Sender]:
        """A sender, closed at the end as a task closes it."""
        with closing(
            load_sending_client(self.client, "a test").sender(
                self.all_properties(),
                topics,
                DeliveryGuarantee.AT_LEAST_ONCE,
                with_metadata=with_metadata or self.with_metadata,
            )
        ) as sender:
            yield sender

    def send(self, topic: str, *pairs: tuple[bytes | None, bytes | None]) -> None:
        """Sends (key, value) pairs and waits until they are confirmed."""
        with self.sender(topic) as sender:
            sender.send(messages(topic, *pairs))
            sender.flush()


def messages(
    topic: str | Sequence[str], *pairs: tuple[bytes | None, bytes | None], **more: Any
) -> Messages:
    """Messages of (key, value) pairs."""
    return Messages(
        topic, octets(key for key, _ in pairs), octets(value for _, value in pairs), **more
    )


def numbered(count: int, start: int = 0) -> list[tuple[bytes, bytes]]:
    """(key, value) pairs that tell one another apart."""
    return [(b"key %d" % n, b"value %d" % n) for n in range(start, start + count)]


def eventually(condition: Callable[[], object], seconds: float = 300.0) -> bool:
    """Whether the condition becomes true within a limit that nothing should need."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def open_things() -> tuple[int, int]:
    """How many threads and file descriptors this process has."""
    process = psutil.Process()
    return process.num_threads(), process.num_fds()


def received() -> dict[int, int]:
    """Bytes that came over each TCP connection of this process, by local port, as the kernel has them."""
    found = {}
    for connection in psutil.Process().net_connections("tcp"):
        if connection.status == psutil.CONN_ESTABLISHED:
            with socket.socket(fileno=os.dup(connection.fd)) as copy:
                info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
            found[connection.laddr.port] = int.from_bytes(info[128:136], sys.byteorder)
    return found


def no_more_than(before: tuple[int, int], spare: int = 4) -> bool:
    """Whether there are as few threads and descriptors; clients of other tests may connect anew."""
    return all(now <= then + spare for now, then in zip(open_things(), before, strict=True))


def own_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the connector itself has logged; a client may log too."""
    return [each.getMessage() for each in caplog.records if each.name == "pyspark_upsert_kafka"]


def delete_before(broker: Broker, topic: str, offset: int, partition: int = 0) -> None:
    """Deletes the records of a partition before an offset, as retention does."""
    (future,) = broker.admin.delete_records([ClientPartition(topic, partition, offset)]).values()
    future.result()


@contextmanager
def hung(kafka: LocalKafka) -> Iterator[None]:
    """While it lasts, the broker keeps its connections and says nothing on them."""
    with node_hung(kafka._node):
        yield


@contextmanager
def node_hung(node: Node) -> Iterator[None]:
    """The same for a broker of a cluster."""
    (broker,) = psutil.Process(node.guard.process.pid).children()
    broker.send_signal(signal.SIGSTOP)
    try:
        # On a busy machine its threads go on answering for a while.
        assert eventually(lambda: is_stopped(broker.pid))
        yield
    finally:
        broker.send_signal(signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    """Whether no thread of a process runs any more."""
    states = [
        each.read_text().rpartition(")")[2].split()[0]
        for each in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return set(states) == {"T"}


def turn_off(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Turns librdkafka's own functions off, where that is the way."""
    if way == NATIVE_OFF:
        monkeypatch.setenv("PYSPARK_UPSERT_KAFKA_NATIVE", "off")


@pytest.fixture(params=CLIENTS)
def edge(request: pytest.FixtureRequest, broker: Broker) -> Edge:
    """The seam over the broker that tests share."""
    return Edge(request.param, broker.servers)


@pytest.fixture(scope="session")
def _stoppable() -> Iterator[LocalKafka]:
    config = {
        # Compaction and deletion within seconds, for topics that ask for it.
        "log.cleaner.backoff.ms": "100",
        "log.retention.check.interval.ms": "500",
        "log.segment.delete.delay.ms": "100",
        # A broker that has hung would be fenced a moment after it goes on, and clients then know no controller for long.
        "broker.session.timeout.ms": "120000",
    }
    with LocalKafka(config=config) as kafka:
        yield kafka


@pytest.fixture
def stoppable(_stoppable: LocalKafka) -> Iterator[LocalKafka]:
    """A broker that a test may stop; it is started again after the test."""
    yield _stoppable
    _stoppable.start()


@pytest.fixture
def stoppable_broker(stoppable: LocalKafka) -> Broker:
    """What tests do with the broker that can be stopped."""
    return broker_at(stoppable.bootstrap_servers)


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The broker that asks who its clients are."""
    from tests.kafka.secured import secured_broker  # not before this file: it is a part of it

    with secured_broker(tmp_path_factory.mktemp("secured")) as secured:
        yield secured
