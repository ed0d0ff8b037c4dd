"""Transactions on a real broker: one writer for each transactional id, and messages with their receipt or neither."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial

import psutil
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from pyspark_upsert_kafka.connector.writing.delivery import ExactlyOnceDelivery
from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError, OptionError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.receipts import Call, GroupOffset
from pyspark_upsert_kafka.kafka.clients import TransactionalSender, load_client
from tests.conftest import Broker
from tests.kafka.conftest import NATIVE_OFF, eventually, hung, messages, numbered, turn_off


class Transactions:
    """Senders with transactional ids of their own, over the broker that tests share."""

    def __init__(self, broker: Broker, *, with_metadata: bool) -> None:
        self.broker, self.with_metadata = broker, with_metadata
        self.id = f"sink-{uuid.uuid4()}-0-1"

    def open(self, topic: str, id_: str = "", **properties: str) -> TransactionalSender:
        """A sender; whatever had the id before is fenced off."""
        given = {name.replace("_", "."): value for name, value in properties.items()}
        return load_client("librdkafka").transactional_sender(
            Properties({"bootstrap.servers": self.broker.servers, **given}),
            (topic,),
            id_ or self.id,
            with_metadata=self.with_metadata,
        )

    def write(self, topic: str, count: int, start: int = 0) -> GroupOffset:
        """Writes numbered messages in a transaction of the first id, with a receipt that is returned."""
        offset = GroupOffset(topic, 0, start + count, '{"tasks": 1}')
        with closing(self.open(topic)) as sender:
            sender.begin()
            sender.send(messages(topic, *numbered(count, start)))
            sender.flush()
            sender.commit(offset)
        return offset


@pytest.fixture(params=["one by one", "in batches", NATIVE_OFF])
def with_metadata(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Messages may have timestamps and headers, or go by the batch."""
    turn_off(monkeypatch, request.param)
    return bool(request.param == "one by one")


@pytest.fixture
def transactions(broker: Broker, with_metadata: bool) -> Transactions:
    """Transactions of ids that no other test has."""
    return Transactions(broker, with_metadata=with_metadata)


@pytest.mark.every_client
def test_messages_and_receipt_are_committed_together(broker, transactions):
    """After the commit both are there, and the next sender finds the receipt as it was given."""
    topic = broker.topic(3)
    with closing(transactions.open(topic)) as sender:
        assert sender.committed(topic) is None
    for start in (0, 20):
        offset = transactions.write(topic, 20, start)
        with closing(transactions.open(topic)) as sender:
            assert sender.committed(topic) == offset

    assert sorted(broker.pairs(topic)) == sorted(numbered(40))


def test_a_transaction_that_is_not_committed_leaves_nothing(broker, transactions):
    """Closed before its commit: no message, no receipt, and no reader waits for it."""
    topic = broker.topic()
    with closing(transactions.open(topic)) as sender:
        sender.begin()
        sender.send(messages(topic, *numbered(5)))
        sender.flush()

    with closing(transactions.open(topic)) as sender:
        assert sender.committed(topic) is None
    assert broker.pairs(topic) == []


def with_a_message_sent(sender: TransactionalSender, topic: str) -> TransactionalSender:
    """The sender in the middle of its transaction."""
    sender.begin()
    sender.send(messages(topic, (b"late", b"1")))
    sender.flush()
    return sender


def test_who_opens_an_id_fences_off_the_one_before(broker, transactions):
    """The open transaction is aborted, and whatever its sender does next fails and says why."""
    topic = broker.topic()
    late = with_a_message_sent(transactions.open(topic), topic)
    offset = transactions.write(topic, 1)

    def goes_on() -> None:
        late.send(messages(topic, (b"late", b"2")))
        late.flush()
        late.commit(GroupOffset(topic, 0, 99, ""))

    with pytest.raises(BrokerError) as error:
        goes_on()
    late.close()

    for part in (transactions.id, "fenced off", "newer attempt of the task"):
        assert part in str(error.value)
    assert broker.pairs(topic) == numbered(1)
    with closing(transactions.open(topic)) as sender:
        assert sender.committed(topic) == offset


def test_a_late_sender_that_only_commits_is_fenced_off(broker, transactions):
    """Also when everything but the receipt was sent before."""
    topic = broker.topic()
    late = with_a_message_sent(transactions.open(topic), topic)
    transactions.write(topic, 1)

    with pytest.raises(BrokerError, match="fenced off"):
        late.commit(GroupOffset(topic, 0, 99, ""))
    late.close()

    assert broker.pairs(topic) == numbered(1)


_ZOMBIE = """
import os, signal, sys
from functools import partial
from pyspark_upsert_kafka.core.receipts import Call
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.connector.writing.delivery import ExactlyOnceDelivery
from tests.kafka.conftest import messages

servers, topic, query, with_metadata = sys.argv[1:]
client = load_client("librdkafka")
opened = partial(
    client.transactional_sender, Properties({"bootstrap.servers": servers}), (topic,),
    with_metadata=with_metadata == "True",
)
delivery = ExactlyOnceDelivery(Call("sink", query, 0, 7, 2, (topic,), "1f3b"), 1, opened)
delivery.send(messages(topic, (b"late", b"1")))
os.kill(os.getpid(), signal.SIGSTOP)
delivery.send(messages(topic, (b"late", b"2")))
delivery.commit()
"""
"""A task that sleeps in the middle of its batch, as on a machine that hangs."""


def test_a_zombie_writes_nothing(broker, with_metadata):
    """A task is stopped in the middle of a batch, another run writes the batch, and the first goes on."""
    topic, query = broker.topic(), str(uuid.uuid4())
    program = [sys.executable, "-c", _ZOMBIE, broker.servers, topic, query, str(with_metadata)]
    zombie = psutil.Popen(program, stderr=subprocess.PIPE)
    assert eventually(lambda: zombie.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE))
    client = load_client("librdkafka")
    properties = Properties({"bootstrap.servers": broker.servers})
    opened = partial(client.transactional_sender, properties, (topic,))
    delivery = ExactlyOnceDelivery(Call("sink", query, 0, 7, 2, (topic,), "1f3b"), 1, opened)
    delivery.send(messages(topic, *numbered(3)))
    delivery.commit()

    zombie.send_signal(signal.SIGCONT)
    _, said = zombie.communicate(timeout=300)

    assert zombie.returncode != 0
    assert b"fenced off" in said
    assert broker.pairs(topic) == numbered(3)


def test_other_ids_are_left_alone(broker, transactions):
    """Two senders with ids of their own write at the same time."""
    topic = broker.topic()
    with (
        closing(transactions.open(topic)) as one,
        closing(transactions.open(topic, transactions.id + "0")) as other,
    ):
        for sender in (one, other):
            sender.begin()
            sender.send(messages(topic, *numbered(3)))
        for sender in (other, one):
            sender.flush()
            sender.commit(GroupOffset(topic, 0, 1, ""))

    assert sorted(broker.pairs(topic)) == sorted(numbered(3) * 2)


def test_a_receipt_on_another_topic_is_found(broker, transactions):
    """A sink whose topic was changed is to be told so."""
    before, now = broker.topic(), broker.topic()
    offset = transactions.write(before, 1)

    with closing(transactions.open(now)) as sender:
        assert sender.committed(now) is None
        assert sender.committed_anywhere() == offset


def test_the_group_is_named_as_the_transactional_id(broker, transactions):
    """So that administrators find the receipts, and grant rights by one prefix."""
    topic = broker.topic()
    transactions.write(topic, 7)

    asked = [ConsumerGroupTopicPartitions(transactions.id)]

    def offsets() -> list[tuple[str, int, int]]:
        found = broker.admin.list_consumer_group_offsets(asked)[transactions.id].result()
        return [(each.topic, each.partition, each.offset) for each in found.topic_partitions]

    # A commit is confirmed before it has reached the group.
    assert eventually(lambda: offsets() == [(topic, 0, 7)])


def test_a_message_that_is_refused_leaves_nothing(broker, transactions):
    """The first message that the broker does not take is the error; the others are aborted with it."""
    topic = broker.topic(max_message_bytes="1000")
    with closing(transactions.open(topic)) as sender:
        sender.begin()
        sender.send(messages(topic, *numbered(3)))
        sender.flush()

        def send_large() -> None:
            sender.send(messages(topic, (b"large", b"x" * 5000)))
            sender.flush()

        with pytest.raises(DeliveryError, match="large"):
            send_large()

    transactions.write(topic, 1)
    assert broker.pairs(topic) == numbered(1)


def test_a_timeout_beyond_what_the_broker_allows(broker, transactions):
    """The brokers' limit is named, and the option to lower."""
    with pytest.raises(BrokerError) as error:
        transactions.open(broker.topic(), transaction_timeout_ms="3600000")

    for part in ("'properties.transaction.timeout.ms'", "'transaction.max.timeout.ms'"):
        assert part in str(error.value)


def test_a_short_timeout_of_the_transaction_shortens_that_of_messages(broker, transactions):
    """Librdkafka takes no message timeout that is longer, and users give the one without the other."""
    with closing(transactions.open(broker.topic(), transaction_timeout_ms="5000")) as sender:
        sender.begin()


def test_a_topic_that_does_not_exist(transactions):
    """It is told how to create it, as without transactions."""
    with pytest.raises(BrokerError, match="Topic 'nowhere-to-be-found' does not exist"):
        transactions.open("nowhere-to-be-found")


def test_kafka_python_is_refused():
    """Not in a task after rows were sent, but when the batch is prepared."""
    with pytest.raises(OptionError, match=r"Set 'kafka\.client' to 'librdkafka'"):
        load_client("kafka-python").transactional_sender(Properties({}), ("t",), "id")


def test_calls_of_a_sink_and_their_receipts(broker, transactions):
    """A call's receipt comes back from the broker as what the call made of it."""
    topic = broker.topic()
    call = Call("sink", str(uuid.uuid4()), 0, 2**31, 3, (topic,), "1f3b")
    with closing(transactions.open(topic, call.driver_id)) as plan:
        plan.begin()
        plan.commit(call.receipt)

    with closing(transactions.open(topic, call.driver_id)) as plan:
        assert plan.committed(topic) == call.receipt


@pytest.mark.long("waits while a broker hangs")
def test_a_commit_ends_in_time_while_the_broker_hangs(stoppable, stoppable_broker, with_metadata):
    """Librdkafka would wait for as long as the broker hangs; whether it is committed the next attempt finds out."""
    topic, id_ = stoppable_broker.topic(), f"sink-{uuid.uuid4()}"
    times = {"request.timeout.ms": "1000", "default.api.timeout.ms": "2500"}
    given = Properties({"bootstrap.servers": stoppable_broker.servers, **times})
    patient = Properties({"bootstrap.servers": stoppable_broker.servers})
    client = load_client("librdkafka")
    # A broker's first transaction takes its time.
    client.transactional_sender(patient, (topic,), id_).close()
    opened = client.transactional_sender(given, (topic,), id_, with_metadata=with_metadata)
    sender = with_a_message_sent(opened, topic)
    with hung(stoppable):
        with pytest.raises(BrokerError, match=r"(?s)receipt|commit"):
            sender.commit(GroupOffset(topic, 0, 1, "{}"))
        sender.close()

    with closing(client.transactional_sender(patient, (topic,), id_)) as again:
        receipt = again.committed(topic)
    assert len(stoppable_broker.pairs(topic)) == (0 if receipt is None else 1)


@pytest.mark.long("waits while a broker hangs")
def test_messages_that_no_broker_takes_in_time_are_told_so(
    stoppable, stoppable_broker, with_metadata
):
    """Also where the abort is not answered either: that is no reason, and nothing that a user could call again."""
    topic, id_ = stoppable_broker.topic(), f"sink-{uuid.uuid4()}"
    times = {
        "delivery.timeout.ms": "3000",
        "request.timeout.ms": "1000",
        "transaction.timeout.ms": "6000",
    }
    given = Properties({"bootstrap.servers": stoppable_broker.servers, **times})
    patient = Properties({"bootstrap.servers": stoppable_broker.servers})
    client = load_client("librdkafka")
    client.transactional_sender(patient, (topic,), id_).close()
    opened = client.transactional_sender(given, (topic,), id_, with_metadata=with_metadata)
    with closing(with_a_message_sent(opened, topic)) as sender, hung(stoppable):
        sender.send(messages(topic, *numbered(10)))
        with pytest.raises(DeliveryError, match=r"delivery\.timeout\.ms"):
            sender.flush()

    with closing(client.transactional_sender(patient, (topic,), id_)) as again:
        assert again.committed(topic) is None
    assert stoppable_broker.pairs(topic) == []


def test_groups_are_found_by_how_their_names_begin(broker, transactions):
    """Those of a sink's receipts, of whatever query; what each has committed is seen through any sender."""
    topic, other = broker.topic(), f"{transactions.id}-of-another"
    receipt = transactions.write(topic, 1)
    with closing(transactions.open(topic, other)) as sender:
        found = sender.groups(transactions.id)
        seen = sender.committed(topic, transactions.id), sender.committed(topic)

    assert found == [transactions.id]
    assert seen == (receipt, None)


def test_brokers_tell_for_how_long_they_keep_receipts(broker, transactions):
    """Seven days, unless they are told otherwise."""
    with closing(transactions.open(broker.topic())) as sender:
        assert sender.retention_s() == 7 * 24 * 3600


@pytest.mark.parametrize("is_committed", [True, False])
def test_what_readers_do_not_see_yet_is_waited_for(broker: Broker, is_committed: bool) -> None:
    """`Broker.messages`: brokers confirm a commit, and an abort, before readers see what comes of it."""
    topic = broker.topic()
    producer = broker.producer(**{"transactional.id": topic})
    producer.init_transactions(300)
    producer.begin_transaction()
    producer.produce(topic, key="a", value="1")
    producer.flush(300)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(broker.pairs, topic)
        wait([reading], timeout=1)
        assert not reading.done()
        end = producer.commit_transaction if is_committed else producer.abort_transaction
        end(300)
        assert reading.result(300) == ([(b"a", b"1")] if is_committed else [])
