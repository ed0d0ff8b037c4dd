"""A real broker, unique topics, and plain clients to see what is really in a topic."""

from __future__ import annotations

import gc
import os
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import hypothesis
import pytest
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.kafka.kafka_python import cluster as kafka_python_cluster
from pyspark_upsert_kafka.kafka.kafka_python import reader as kafka_python_reader
from pyspark_upsert_kafka.kafka.kafka_python import sender as kafka_python_sender
from tests import fast_start, user_environment
from tests.laws import PROFILE
from tests.local_glue import local_glue
from tests.local_registry import LocalRegistry, Registry
from tests.processes import NEVER_FENCED, Processes, import_share, shared_address
from tests.table_options import table_options
from tools.local_topics import producer

user_environment.set_aside(os.environ)
os.environ.update(fast_start.settings(os.environ))

hypothesis.settings.load_profile(PROFILE)


def pytest_configure(config: pytest.Config) -> None:
    """Several test processes share a broker and a registry."""
    if config.getoption("numprocesses", None):
        config.pluginmanager.register(Processes())


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Thousands of tests are there to stay: the garbage collector looks at none of them."""
    gc.disable()
    try:
        import_share(session.config)
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An address in the name of a test differs from process to process: none of them could be told which tests to run."""
    named = sorted({item.nodeid.partition("[")[0] for item in items if " at 0x" in item.nodeid})
    if named:
        raise pytest.UsageError(f"Give the cases of {', '.join(named)} ids without addresses.")


@dataclass(frozen=True)
class Message:
    """A message as a plain client sees it."""

    key: bytes | None
    value: bytes | None
    partition: int = 0
    offset: int = 0
    timestamp: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Broker:
    """A broker and what a test does with it, by plain clients of its own."""

    servers: str
    admin: AdminClient = field(repr=False)
    idle: list[Producer] = field(default_factory=list, repr=False)

    def topic(self, partitions: int = 1, **config: str) -> str:
        """Creates a topic with a unique name; ``cleanup_policy='compact'`` sets ``cleanup.policy``."""
        name = f"t-{uuid.uuid4().hex[:12]}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self._create(NewTopic(name, partitions, 1, config=settings))
        return name

    def delete(self, topic: str) -> None:
        """Deletes a topic, and waits until the broker no longer knows it: the controller has deleted it first."""
        self.idle.clear()  # another topic of that name is not the one that they know
        self.admin.delete_topics([topic])[topic].result()
        while topic in self.admin.list_topics(timeout=30).topics:
            time.sleep(0.05)

    def grow(self, topic: str, partitions: int) -> None:
        """Gives a topic more partitions, and waits until the broker says so."""
        self.idle.clear()  # they know the partitions that there were
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()
        while len(self.admin.list_topics(topic, timeout=30).topics[topic].partitions) != partitions:
            time.sleep(0.05)

    def create(self, topic: str, partitions: int = 1) -> None:
        """Creates a topic of that name; a broker with ZooKeeper needs a moment if another of that name was deleted."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self._create(NewTopic(topic, partitions, 1))
            except KafkaException as error:
                is_there = error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
                if not is_there or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def _create(self, topic: NewTopic) -> None:
        """The controller has a new topic first; whoever asks the broker is to find it there."""
        for attempt in count():
            try:
                self.admin.create_topics([topic])[topic.topic].result()
            except KafkaException as error:
                code = error.args[0].code()
                if attempt and code == KafkaError.TOPIC_ALREADY_EXISTS:
                    break
                # A connection that broke does not tell whether the topic was created.
                if code != KafkaError._TRANSPORT:
                    raise
            else:
                break
        while topic.topic not in self.admin.list_topics(timeout=30).topics:
            time.sleep(0.05)

    def configure(self, topic: str, **config: str) -> None:
        """Changes settings of a topic; ``max_message_bytes='1000'`` sets ``max.message.bytes``."""
        changes = [
            ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
        self.admin.incremental_alter_configs([resource])[resource].result()
        # The controller has answered; the broker hears of it later.
        asked, wanted = (
            ConfigResource(ResourceType.TOPIC, topic),
            {e.name: e.value for e in changes},
        )
        while True:
            found = self.admin.describe_configs([asked])[asked].result()
            if all(found[name].value == value for name, value in wanted.items()):
                break
            time.sleep(0.05)

    def producer(self, **config: object) -> Producer:
        """A plain producer that keeps the order: without idempotence a new topic may get its first messages last."""
        return producer(self.servers, **config)

    def produce(
        self,
        topic: str,
        *messages: tuple[object, ...],
        partition: int | None = None,
        **config: object,
    ) -> None:
        """Sends (key, value[, headers]) messages and waits for them; text is encoded.

        The next call has the producer of this one: a new one waits half a second for the id that keeps the order.
        """
        reused = not config
        producer = self.idle.pop() if reused and self.idle else self.producer(**config)
        where = {} if partition is None else {"partition": partition}
        undelivered: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                undelivered.append(error)

        for key, value, *headers in messages:
            while True:
                try:
                    more = {"headers": headers[0]} if headers else {}
                    producer.produce(
                        topic, key=key, value=value, on_delivery=delivered, **where, **more
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(600) == 0
        assert not undelivered, undelivered[0]
        if reused:
            self.idle.append(producer)

    def messages(self, topic: str) -> list[Message]:
        """All committed messages of a topic, by partition and offset.

        A commit is confirmed before readers may see its messages: what is there now is waited for until it is committed or aborted.
        """
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": uuid.uuid4().hex,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,  # at the end of a partition there is nothing to wait for
            }
        )
        partitions = consumer.list_topics(topic, timeout=120).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        waiting, found = set(partitions), []
        while waiting:
            message = consumer.poll(300)
            assert message is not None, f"nothing from {topic} for five minutes"
            if message.error() is not None:  # the client mends what is not the end
                if message.error().code() == KafkaError._PARTITION_EOF:
                    place = TopicPartition(topic, message.partition())
                    _, high = consumer.get_watermark_offsets(place, cached=True)
                    if message.offset() >= high:
                        waiting.discard(message.partition())
                continue
            found.append(
                Message(
                    message.key(), message.value(), message.partition(), message.offset(),
                    message.timestamp()[1], tuple(message.headers() or ()),
                )
            )  # fmt: skip
        consumer.close()
        return sorted(found, key=lambda message: (message.partition, message.offset))

    def wait_for_transactions(self, topic: str) -> None:
        """Waits until readers see what was committed or aborted: brokers confirm it before that."""
        partitions = self.admin.list_topics(topic, timeout=120).topics[topic].partitions
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}

        def ends(isolation: IsolationLevel) -> list[int]:
            answers = self.admin.list_offsets(asked, isolation_level=isolation)
            return [answers[place].result().offset for place in asked]

        while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
            time.sleep(0.05)

    def pairs(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Key and value of all messages of a topic, by partition and offset."""
        return [(message.key, message.value) for message in self.messages(topic)]


def broker_at(servers: str) -> Broker:
    """What tests do with the broker at this address."""
    # Its log would tell, line by line, that a broker is gone which a test has ended.
    return Broker(servers, AdminClient({"bootstrap.servers": servers, "log_level": 0}))


@pytest.fixture(scope="module", autouse=True)
def _no_client_outlives_its_tests() -> Iterator[None]:
    """Idle clients of kafka-python look for brokers that are gone, log that, and draw random pauses.

    Hypothesis complains when another thread draws random numbers while it makes examples.
    """
    yield
    for module in (kafka_python_cluster, kafka_python_reader, kafka_python_sender):
        module.POOL.close_idle()


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """The broker that tests share; KAFKA_BOOTSTRAP_SERVERS points them at one that runs already."""
    given = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    running = given or shared_address(request.config, "broker")
    if running:
        yield broker_at(running)
        return
    with LocalKafka(config=NEVER_FENCED) as kafka:
        yield broker_at(kafka.bootstrap_servers)


@pytest.fixture(scope="session")
def registry(request: pytest.FixtureRequest) -> Iterator[Registry]:
    """The schema registry that tests share."""
    running = shared_address(request.config, "registry")
    if running:
        yield Registry(running)
        return
    with LocalRegistry() as registry:
        yield registry


@pytest.fixture(scope="session")
def glue() -> Iterator[str]:
    """The address of a schema registry of AWS Glue, of this test process."""
    with local_glue() as url:
        yield url


@pytest.fixture
def own_kafka() -> Iterator[Callable[..., LocalKafka]]:
    """Starts brokers of a test's own, to stop, start and configure."""
    started: list[LocalKafka] = []

    def start(**settings: object) -> LocalKafka:
        kafka = LocalKafka(**settings)
        started.append(kafka)
        kafka.start()
        return kafka

    yield start
    for kafka in started:
        kafka.close()


def options(broker: Broker, topic: str | Sequence[str], **more: object) -> dict[str, str]:
    """Options of a JSON table on this broker; more options as in `table_options`."""
    place = {
        "topic": topic if isinstance(topic, str) else ";".join(topic),
        "properties.bootstrap.servers": broker.servers,
    }
    return table_options(**{**place, **more})
