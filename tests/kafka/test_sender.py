"""Sending: one key, one partition, one order; confirmed, or an error that says which message."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress

import pytest

from pyspark_upsert_kafka.connector.writing.keyed_buffer import KeyedBuffer
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    DeliveryError,
    OptionError,
    UpsertKafkaError,
)
from pyspark_upsert_kafka.core.options.frozen_options import BufferFlush
from pyspark_upsert_kafka.kafka.clients import Sender, load_client
from pyspark_upsert_kafka.kafka.librdkafka.sender import DeliveryReports
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages
from tests.conftest import Broker, broker_at
from tests.kafka.conftest import (
    WAYS,
    Edge,
    eventually,
    messages,
    no_more_than,
    numbered,
    open_things,
    turn_off,
)


@pytest.fixture(params=WAYS)
def edge(request: pytest.FixtureRequest, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Edge:
    """Each way to send, over the broker that tests share."""
    turn_off(monkeypatch, request.param)
    client, _, batches = request.param.partition(" in ")
    return Edge(client, broker.servers, with_metadata=not batches)


def murmur2(data: bytes) -> int:
    """``org.apache.kafka.common.utils.Utils.murmur2``, written down once more."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & mask
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ (k >> 24)) * m & mask
        h = (h * m & mask) ^ k
    rest = data[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ (h >> 13)) * m & mask
    return h ^ (h >> 15)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_that_of_java(key, expected):
    """The vectors of Kafka's own ``UtilsTest``."""
    assert murmur2(key) == expected & 0xFFFFFFFF


@pytest.mark.every_client
def test_a_key_goes_where_the_java_client_puts_it(broker, edge):
    """Each key is in the partition that murmur2 of its bytes says, in the order it was sent."""
    topic = broker.topic(7)
    edge.send(topic, *numbered(200), *numbered(200))

    found = broker.messages(topic)

    assert len(found) == 400
    assert all(m.partition == (murmur2(m.key) & 0x7FFFFFFF) % 7 for m in found)


@pytest.mark.every_client
def test_what_a_message_holds(broker, edge):
    """A null value is a real null; timestamps and headers arrive as given, 0 = now."""
    topic = broker.topic()
    with edge.sender(topic, with_metadata=True) as sender:
        pairs = [(b"k", None), (b"k", b""), (b"k", b"v")]
        headers = [None, [("a", b"1"), ("a", b"")], []]
        sender.send(messages(topic, *pairs, timestamps=[1_000, 2_000, 0], headers=headers))
        sender.flush()

    found = broker.messages(topic)

    assert [m.value for m in found] == [None, b"", b"v"]
    assert [m.headers for m in found] == [(), (("a", b"1"), ("a", b"")), ()]
    assert [m.timestamp for m in found[:2]] == [1_000, 2_000]
    assert found[2].timestamp > 1_700_000_000_000


@pytest.mark.every_client
@pytest.mark.parametrize(
    ("pair", "header", "refused"),
    [
        ((b"k", b"v"), [("a", None)], "no header without a value, and 'a' has none"),
        ((None, None), [], "neither key nor value"),
    ],
)
def test_what_not_every_client_sends(broker, edge, pair, header, refused):
    """A header without a value, and a message that is all null: a client that cannot, says so."""
    topic = broker.topic()
    with edge.sender(topic, with_metadata=True) as sender:
        if edge.client == "librdkafka":
            sender.send(messages(topic, pair, headers=[header]))
            sender.flush()
        else:
            with pytest.raises(DeliveryError, match=refused):
                sender.send(messages(topic, pair, headers=[header]))

    expected = [(pair, tuple(header))] if edge.client == "librdkafka" else []
    assert [((m.key, m.value), m.headers) for m in broker.messages(topic)] == expected


def test_several_topics(broker, edge):
    """Each message goes to its topic."""
    one, two = broker.topic(), broker.topic()
    with edge.sender(one, two) as sender:
        sender.send(messages([one, two, one], *numbered(3)))
        sender.flush()

    assert [key for key, _ in broker.pairs(one)] == [b"key 0", b"key 2"]
    assert [key for key, _ in broker.pairs(two)] == [b"key 1"]


def test_a_full_queue_is_waited_for(broker, edge):
    """A queue of ten messages loses none of a thousand."""
    topic = broker.topic()
    small = edge.given({"queue.buffering.max.messages": 10})
    small.send(topic, *numbered(1_000))

    assert broker.pairs(topic) == numbered(1_000)


@pytest.mark.every_client
def test_a_message_larger_than_the_topic_allows(broker, edge):
    """The error names topic and key of that message, and its neighbours are not refused for it."""
    topic = broker.topic(max_message_bytes="10000")

    with pytest.raises(DeliveryError) as error:
        edge.send(topic, *numbered(50), (b"large", os.urandom(20_000)), (b"end", b""))

    assert (error.value.topic, error.value.key) == (topic, b"large")
    assert "too large" in str(error.value)
    assert set(numbered(50)) <= set(broker.pairs(topic))


def test_one_refused_message_is_not_told_as_another(broker, edge):
    """A broker refuses a whole batch for a time in the future: the error says that it is one of so many."""
    topic = broker.topic(message_timestamp_after_max_ms="60000")
    future = int(time.time() * 1000) + 3_600_000
    slow = edge.given({"linger.ms": 500})

    def send() -> None:
        with slow.sender(topic, with_metadata=True) as sender:
            sender.send(messages(topic, *numbered(10), timestamps=[0] * 6 + [future] + [0] * 3))
            sender.flush()

    with pytest.raises(DeliveryError) as error:
        send()

    told = (
        f"at least one of the {error.value.failed} messages of the batch that begins with this key"
    )
    assert told in str(error.value) or error.value.key == b"key 6"
    assert error.value.key in [key for key, _ in numbered(7)]
    assert (error.value.topic, error.value.partition) == (topic, 0)


@pytest.mark.parametrize("buffered", [False, True])
def test_a_message_larger_than_the_queue(broker, edge, buffered):
    """It would never fit in: an error that names the setting, once what is queued has been sent."""
    topic = broker.topic()
    small = edge.given({"queue.buffering.max.kbytes": 100}).all_properties()
    sender = load_client(edge.client).sender(
        small, [topic], DeliveryGuarantee.AT_LEAST_ONCE, with_metadata=edge.with_metadata
    )
    if buffered:
        sender = KeyedBuffer(sender, BufferFlush(51, 3600.0))
    pairs = [*numbered(50), (b"large", os.urandom(200_000))]

    with (
        closing(sender),
        pytest.raises(DeliveryError, match=r"200005 bytes.*buffer\.memory") as error,
    ):
        sender.send(messages(topic, *pairs))

    assert (error.value.topic, error.value.key) == (topic, b"large")


def test_a_topic_that_does_not_exist(broker, edge):
    """It is an error before anything is sent, and shows how to create it."""
    with pytest.raises(BrokerError, match=r"no-such-topic.*cleanup\.policy=compact"):
        edge.send("no-such-topic", (b"k", b"v"))


@pytest.mark.every_client
@pytest.mark.parametrize("in_batches", [True, False])
def test_a_new_producer_has_asked_for_its_id_before_it_sends(
    broker: Broker, caplog: pytest.LogCaptureFixture, in_batches: bool
) -> None:
    """Else librdkafka asks half a second later, or a whole one, and the rows of a task wait for so long."""
    caplog.set_level(logging.DEBUG, "pyspark_upsert_kafka.librdkafka")
    topic = broker.topic()
    edge = Edge("librdkafka", broker.servers, with_metadata=not in_batches)

    with edge.given({"debug": "eos", "client.id": topic}).sender(topic):
        pass

    asked = [text for text in caplog.messages if "Acquiring ProducerId" in text]
    assert [each for each in asked if "/bootstrap:" not in each], "by a connection that is kept"


def test_idempotence_that_a_client_does_not_have_is_refused(broker, edge):
    """It is asked for by default, and to do without it is for the user to say."""
    topic = broker.topic()
    asked = edge.given({"enable.idempotence": "true"})
    if edge.has_transactions:
        asked.send(topic, (b"k", b"v"))
    else:
        with pytest.raises(OptionError, match=r"enable\.idempotence' = 'false'"):
            asked.send(topic, (b"k", b"v"))

    assert broker.pairs(topic) == ([(b"k", b"v")] if edge.has_transactions else [])


@pytest.mark.long("waits for a broker that is away")
def test_no_confirmation_is_an_error(stoppable, edge):
    """Messages that time out fail the flush: an empty queue proves nothing."""
    broker = broker_at(stoppable.bootstrap_servers)
    edge = edge.at(stoppable.bootstrap_servers).given({"message.timeout.ms": 2_000})
    topic = broker.topic()
    with edge.sender(topic) as sender:
        sender.send(messages(topic, (b"k", b"first")))
        sender.flush()
        stoppable.stop()
        sender.send(messages(topic, (b"lost", b"v"), (b"lost too", b"v")))

        with pytest.raises(DeliveryError) as error:
            sender.flush()

    assert (error.value.topic, error.value.key) == (topic, b"lost")
    if edge.client == "librdkafka":
        assert "within the time of 'properties.delivery.timeout.ms'" in str(error.value)


@pytest.mark.long("waits for a broker that is away")
def test_a_broker_that_restarts_in_the_middle(stoppable, edge):
    """Sending goes on by itself: everything is there in order, and once where the client can."""
    broker, edge = broker_at(stoppable.bootstrap_servers), edge.at(stoppable.bootstrap_servers)
    topic = broker.topic()
    with edge.sender(topic) as sender:
        sender.send(messages(topic, *numbered(1_000)))
        stoppable.stop()
        again = threading.Timer(3, stoppable.start)
        again.start()
        sender.send(messages(topic, *numbered(1_000, 1_000)))
        sender.flush()
        again.join()

    found = broker.pairs(topic)
    assert list(dict.fromkeys(found)) == numbered(2_000)
    assert len(found) == 2_000 or not edge.has_transactions


def send_in_thread(sender: Sender, part: Messages) -> threading.Thread:
    """Sends in a thread, as a buffer's clock does, and does not look at what becomes of it."""

    def send() -> None:
        with suppress(UpsertKafkaError):
            sender.send(part)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.long("waits for a broker that is away")
@pytest.mark.parametrize("buffered", [False, True])
def test_nothing_is_sent_after_closing(stoppable, edge, buffered):
    """A task fails while the broker is away; what its successor has written stays the newest of each key."""
    broker, edge = broker_at(stoppable.bootstrap_servers), edge.at(stoppable.bootstrap_servers)
    topic, count = broker.topic(), 30_000
    small = edge.given({"queue.buffering.max.messages": 1_000})
    sender = load_client(edge.client).sender(
        small.all_properties(),
        [topic],
        DeliveryGuarantee.AT_LEAST_ONCE,
        with_metadata=edge.with_metadata,
    )
    if buffered:
        sender = KeyedBuffer(sender, BufferFlush(2 * count, 0.2))
    sender.send(messages(topic, (b"first", b"")))
    sender.flush()
    stoppable.stop()
    keys = [b"key %d" % n for n in range(count)]
    thread = send_in_thread(sender, messages(topic, *[(key, b"old") for key in keys]))
    time.sleep(
        2.0
    )  # the client's queue is full by then, and the sender or the buffer's clock waits for room
    if not buffered:
        sender.cancel()
        thread.join(120)
    sender.close()
    assert not thread.is_alive()

    stoppable.start()
    with edge.sender(topic) as successor:
        successor.send(messages(topic, *[(key, b"new") for key in keys]))
        successor.flush()
    time.sleep(3.0)  # for what the first one may still have

    assert {value for key, value in broker.pairs(topic) if key != b"first"} == {b"new"}


@pytest.mark.parametrize("raised", [MemoryError, KeyboardInterrupt])
def test_a_report_that_is_not_taken_is_an_error(broker, edge, monkeypatch, raised):
    """No memory, or Ctrl-C, while the client says that a message was refused: nobody takes it for delivered."""
    if edge.client != "librdkafka":
        pytest.skip("kafka-python keeps the outcome of each message")
    topic, larger = broker.topic(max_message_bytes="10000"), broker.topic()
    with edge.sender(topic, larger) as sender:  # the client takes what the larger one may hold

        def fail(*_: object) -> None:
            raise raised

        with monkeypatch.context() as patched:
            patched.setattr(DeliveryReports, "add", fail)
            with pytest.raises(raised):
                send_and_flush(sender, messages(topic, (b"large", os.urandom(20_000))))
        with pytest.raises(raised):
            sender.flush()
        with pytest.raises(raised):
            sender.send(messages(topic, (b"next", b"v")))

    edge.send(topic, (b"end", b"v"))
    assert (b"end", b"v") in broker.pairs(topic), "another producer is used"


def send_and_flush(sender: Sender, part: Messages) -> None:
    """Sends messages and waits until they are confirmed."""
    sender.send(part)
    sender.flush()


_FORKS = """
import os, sys
from tests.kafka.conftest import Edge, numbered

client, with_metadata, servers, topic = sys.argv[1:]
edge = Edge(client, servers, with_metadata=with_metadata == "True")
edge.send(topic, *numbered(10))
child = os.fork()
edge.send(topic, *numbered(10, 10 if child else 20))
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.long("starts programs that fork")
def test_a_fork_opens_clients_of_its_own(broker, edge):
    """It has its parent's, but not their threads; both go on, and both end."""
    topic = broker.topic()
    command = [sys.executable, "-c", _FORKS, edge.client, str(edge.with_metadata)]

    done = subprocess.run(
        [*command, broker.servers, topic], check=False, capture_output=True, text=True, timeout=300
    )

    assert done.returncode == 0, done.stderr
    assert sorted(broker.pairs(topic)) == sorted(numbered(30))


@pytest.mark.alone("counts threads and descriptors")
def test_nothing_leaks(broker, edge):
    """Senders are kept for the next task; those that failed are thrown away with their threads."""
    topic = broker.topic(max_message_bytes="10000")
    edge.send(topic, *numbered(10))
    before = open_things()

    for number in range(30):
        edge.send(topic, *numbered(10))
        if number % 10 == 0:
            with pytest.raises(DeliveryError):
                edge.send(topic, (b"large", os.urandom(20_000)))

    assert eventually(lambda: no_more_than(before, spare=15))
    assert len(broker.pairs(topic)) == 310


@pytest.mark.alone("counts threads and descriptors")
def test_senders_to_many_topics_leave_few_connections(broker, edge):
    """Of fifteen topics written one after another, the connections used last are kept."""
    topics = [broker.topic() for _ in range(15)]
    found = []
    for topic in topics:
        edge.send(topic, *numbered(3))
        found.append(open_things())

    full = found[9]  # the pool has as many as it keeps

    assert eventually(lambda: no_more_than(full)), found


def test_a_topic_that_takes_larger_messages_now(broker, edge):
    """What a sender knew of the topic is forgotten with the first message that is too large."""
    topic = broker.topic(max_message_bytes="10000")
    edge.send(topic, *numbered(3))
    broker.configure(topic, max_message_bytes="3000000")
    large = os.urandom(2_000_000)

    def is_taken() -> bool:
        """Whether the topic's log takes it, which hears of its new settings last."""
        with suppress(AssertionError):
            broker.produce(topic, (b"other", large), **{"message.max.bytes": 3_000_000})
            return True
        return False

    assert eventually(is_taken)
    with suppress(DeliveryError):
        edge.send(topic, (b"large", large))
    edge.send(topic, (b"large", large))

    assert broker.pairs(topic)[-1] == (b"large", large)
