"""A cluster of brokers: topics, bounds, positions, groups; and the error when nobody answers."""

from __future__ import annotations

import re
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.local import ports
from pyspark_upsert_kafka.kafka.retrying import Retrying
from tests.conftest import Broker
from tests.kafka.conftest import (
    delete_before,
    eventually,
    no_more_than,
    numbered,
    open_things,
    own_messages,
)

SHORT = {"request.timeout.ms": 500, "default.api.timeout.ms": 1_000}
"""Timeouts of those who know that nobody will answer."""


def named(*names: str) -> Topics:
    """Topics by list."""
    return Topics(names)


@pytest.mark.every_client
def test_topics_are_found_by_name(broker, edge):
    """A topic has its number of partitions and an id that is stable and its own, or none."""
    one, two = broker.topic(1), broker.topic(3)

    with edge.cluster() as cluster:
        found = cluster.topics(named(one, two))
        again = cluster.existing([two, one, "no-such-topic"])

    assert {name: topic.partitions for name, topic in found.items()} == {one: 1, two: 3}
    assert again == found
    ids = {topic.id for topic in found.values()} - {""}
    assert len(ids) == (2 if edge.has_topic_ids else 0)
    assert {len(id_) for id_ in ids} <= {22}, "a checkpoint holds ids in Kafka's own spelling"


def test_topics_are_found_by_pattern(broker, edge):
    """A pattern means whole names; internal topics are never meant; no match is no error."""
    prefix = f"p-{uuid.uuid4().hex[:8]}"
    for name in ("a", "b", "ab"):
        broker.create(f"{prefix}.{name}")

    with edge.cluster() as cluster:
        assert set(cluster.topics(Topics(pattern=re.compile(rf"{prefix}\..")))) == {
            f"{prefix}.a",
            f"{prefix}.b",
        }
        assert cluster.topics(Topics(pattern=re.compile(prefix))) == {}


def test_internal_topics_match_no_pattern(broker, edge):
    """The topic of committed offsets is there, and yet ``.*`` does not mean it."""
    topic = broker.topic()
    with edge.given({"group.id": uuid.uuid4().hex}).cluster() as cluster:
        cluster.commit({TopicPartition(topic, 0): 0})
        assert eventually(
            lambda: "__consumer_offsets" in broker.admin.list_topics(timeout=30).topics
        )

        found = cluster.topics(Topics(pattern=re.compile(".*")))

    assert topic in found
    assert not [name for name in found if name.startswith("__")]


def test_a_missing_topic_is_said_with_the_command_that_creates_it(broker, edge):
    """The error shows how to create the topic compacted; a lookup creates nothing."""
    there, missing = broker.topic(), f"missing-{uuid.uuid4().hex[:8]}"

    with edge.cluster() as cluster, pytest.raises(BrokerError) as error:
        cluster.topics(named(there, missing))

    assert f"--create --topic {missing}" in str(error.value)
    assert f"--bootstrap-server {edge.servers}" in str(error.value)
    assert "cleanup.policy=compact" in str(error.value)
    assert "without --config for dead letters, and for messages without a key" in str(error.value)
    assert missing not in broker.admin.list_topics(timeout=30).topics


def test_a_missing_topic_is_created_when_that_is_asked_for(broker, edge):
    """With allow.auto.create.topics the broker creates the topic in its own way."""
    missing = f"created-{uuid.uuid4().hex[:8]}"

    with edge.given({"allow.auto.create.topics": "true"}).cluster() as cluster:
        found = cluster.topics(named(missing))

    assert missing in found
    assert missing in broker.admin.list_topics(timeout=30).topics


@pytest.mark.every_client
def test_a_topic_created_again_has_another_id(broker, edge):
    """The id tells a topic from its successor of the same name, where the client tells the id."""
    topic = broker.topic()
    with edge.cluster() as cluster:
        before = cluster.existing([topic])[topic]
        broker.delete(topic)
        assert eventually(lambda: not cluster.existing([topic]))
        broker.create(topic)
        assert eventually(lambda: cluster.existing([topic]))

        assert (cluster.existing([topic])[topic] != before) == edge.has_topic_ids


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_no_broker_is_an_error_that_names_the_servers(edge, host):
    """Where nobody answers, or no such host is known, it is said when the time for an answer is over."""
    servers = f"{host}:{ports.free_port()}"

    with (
        edge.at(servers).given(SHORT).cluster() as cluster,
        pytest.raises(BrokerError, match="within 1 seconds") as error,
    ):
        cluster.topics(named("t"))

    assert repr(servers) in str(error.value)
    assert "properties.bootstrap.servers" in str(error.value)


def test_a_port_that_is_silent_is_no_broker(edge):
    """A program that takes connections and says nothing does not make anyone hang."""
    # Not a port that the system chooses: Spark's processes could be given it next.
    with socket.create_server(("127.0.0.1", ports.free_port())) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        edge = edge.at(servers).given(SHORT)
        with edge.cluster() as cluster, pytest.raises(BrokerError, match="answered"):
            cluster.topics(named("t"))


@pytest.mark.alone("counts the threads of this process")
def test_a_closed_connection_calls_no_broker(edge):
    """Its threads end, even where the error that it raised is kept, and with it all that the error's frames name."""

    def threads() -> set[str]:
        return {task.name for task in Path("/proc/self/task").iterdir()}

    def error_of_a_closed_connection() -> pytest.ExceptionInfo[BrokerError]:
        with (
            edge.at(f"127.0.0.1:{ports.free_port()}").given(SHORT).cluster() as cluster,
            pytest.raises(BrokerError) as error,
        ):
            cluster.topics(named("t"))
        return error

    error_of_a_closed_connection()  # libraries start threads of their own at their first use
    before = threads()
    error = error_of_a_closed_connection()

    assert eventually(lambda: threads() <= before), error


@pytest.mark.long("restarts a broker")
def test_a_broker_that_comes_up_late_is_waited_for(edge, stoppable, stoppable_broker, monkeypatch):
    """A request sent while the broker is down is answered once it is up."""
    topic = stoppable_broker.topic()
    failed, judge = threading.Event(), Retrying._raise_if_fatal

    def judge_failure(self: Retrying, *failure: object) -> None:
        failed.set()
        judge(self, *failure)

    monkeypatch.setattr(Retrying, "_raise_if_fatal", judge_failure)
    edge = edge.at(stoppable_broker.servers).given(
        {"request.timeout.ms": 1_000, "default.api.timeout.ms": 300_000}
    )
    stoppable.stop()
    with edge.cluster() as cluster, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(cluster.topics, named(topic))
        assert failed.wait(300)  # an attempt failed
        assert not answer.done()
        stoppable.start()

        assert answer.result(300)[topic].partitions == 1


@pytest.mark.long("restarts a broker")
def test_a_broker_that_restarts_is_waited_for(edge, stoppable, stoppable_broker):
    """Whatever it says while it comes back, as that a partition has no leader: the request is retried."""
    topic = stoppable_broker.topic()

    def restart() -> None:
        stoppable.stop()
        stoppable.start()

    with (
        edge.at(stoppable_broker.servers).cluster() as cluster,
        ThreadPoolExecutor(1) as pool,
    ):
        for _ in range(2):
            restarted = pool.submit(restart)
            while not restarted.done():
                view = edge.view(cluster, topic)
                assert list(view.bounds.values()) == [Bounds(0, 0, 0)]
                time.sleep(0.2)
            restarted.result()


@pytest.mark.alone("restarts a broker, and measures how long a lookup takes")
def test_what_was_known_of_a_leader_is_looked_up_anew(edge, stoppable, stoppable_broker):
    """A topic created again has a leader of a lower epoch than the one before it had after a restart."""
    topic = stoppable_broker.topic()
    patient = edge.at(stoppable_broker.servers).given({"default.api.timeout.ms": 600_000})
    with patient.cluster() as cluster:
        edge.view(cluster, topic)
        stoppable.stop()
        stoppable.start()
        edge.view(cluster, topic)
        stoppable_broker.delete(topic)
        assert eventually(lambda: not cluster.existing([topic]))
        stoppable_broker.create(topic)
        begin = time.monotonic()

        assert list(edge.view(cluster, topic).bounds.values()) == [Bounds(0, 0, 0)]

    assert time.monotonic() - begin < 150, "then a new client, the last resort, is opened"


def test_timeouts_that_make_no_sense_are_refused(edge):
    """As the Java client does: all attempts together last at least as long as one."""
    wrong = edge.given({"request.timeout.ms": 2_000, "default.api.timeout.ms": 1_000})

    with pytest.raises(OptionError, match=r"properties\.default\.api\.timeout\.ms' = '1000'"):
        wrong.bounds("t")


def test_timeouts_are_no_unknown_properties(broker, edge, caplog):
    """Both clients follow them, in admin requests, writing and reading: none is dropped with a warning."""
    topic = broker.topic()
    edge = edge.given({"request.timeout.ms": 20_000, "default.api.timeout.ms": 40_000})
    edge.send(topic, *numbered(1))

    assert edge.values(Range(topic, 0, 0, 1)) == [b"value 0"]
    assert own_messages(caplog) == []


@pytest.mark.every_client
def test_bounds_are_those_of_the_log(broker, edge):
    """Empty: 0 to 0. Then one past the last message; and the earliest after deleted records."""
    topic = broker.topic(2)
    broker.produce(topic, *numbered(5), partition=1)
    assert edge.bounds(topic) == [Bounds(0, 0, 0), Bounds(0, 5, 5)]

    delete_before(broker, topic, 3, partition=1)

    assert edge.bounds(topic) == [Bounds(0, 0, 0), Bounds(3, 5, 5)]


@pytest.mark.every_client
def test_the_latest_offset_is_before_an_open_transaction(broker, edge):
    """Under read_committed what is open, and all behind it, is not there yet; its end is a marker."""
    topic = broker.topic()
    broker.produce(topic, *numbered(2))
    producer = transactional(broker)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush()
    broker.produce(topic, *numbered(1))

    assert edge.bounds(topic, committed=False) == [Bounds(0, 4, 4)]
    if not edge.has_transactions:
        with pytest.raises(OptionError, match=r"isolation\.level' = 'read_uncommitted'"):
            edge.bounds(topic, committed=True)
        return
    assert edge.bounds(topic) == [Bounds(0, 2, 4)]

    producer.commit_transaction()
    assert eventually(lambda: edge.bounds(topic) == [Bounds(0, 5, 5)])


def transactional(broker: Broker) -> Producer:
    """A plain client's producer that has no open transaction."""
    producer = broker.producer(**{"transactional.id": uuid.uuid4().hex})
    producer.init_transactions()
    return producer


def test_the_latest_offset_is_never_beyond_the_last_written_one(broker, edge):
    """However fast others write: a start at the latest offset must not look like lost data."""
    topic = broker.topic()
    producer = broker.producer(**{"linger.ms": 0})
    enough = threading.Event()

    def write() -> None:
        while not enough.is_set():
            producer.produce(topic, b"more")
            producer.poll(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with edge.cluster() as cluster:

            def bounds() -> Bounds:
                (found,) = edge.view(cluster, topic).bounds.values()
                return found

            assert eventually(lambda: bounds().latest)
            found = [bounds() for _ in range(30)]
            assert eventually(lambda: bounds().latest > found[0].latest)
    finally:
        enough.set()
        writer.join()
        producer.flush()

    assert all(each.latest <= each.high for each in found)


def test_a_topic_deleted_meanwhile_is_not_in_the_view(broker, edge):
    """Between the lookups of topics and of their bounds, one may go: it counts as gone."""
    stays, goes = broker.topic(), broker.topic(2)
    with edge.cluster() as cluster:
        topics = cluster.topics(named(stays, goes))
        broker.delete(goes)
        assert eventually(lambda: not cluster.existing([goes]))

        view = cluster.view(topics, read_committed=edge.has_transactions)

    assert set(view.topic_ids) == {stays}
    assert set(view.bounds) == {TopicPartition(stays, 0)}


def test_the_latest_offsets_are_looked_up_alone(broker, edge):
    """As a view has them; and nothing once a topic is gone, which only a whole view can tell."""
    topic = broker.topic(2)
    broker.produce(topic, *numbered(3), partition=1)
    committed = edge.has_transactions

    with edge.cluster() as cluster:
        view = edge.view(cluster, topic)
        assert cluster.latest(view, read_committed=committed) == view.latest
        broker.produce(topic, *numbered(2), partition=0)
        assert {
            tp.partition: at for tp, at in cluster.latest(view, read_committed=committed).items()
        } == {
            0: 2,
            1: 3,
        }
        broker.delete(topic)
        assert eventually(lambda: cluster.latest(view, read_committed=committed) == {})


def test_a_setting_that_brokers_do_not_tell_is_left_out(broker, edge):
    """As where an older broker, or one that is not Apache Kafka, does not know it."""
    topic = broker.topic(cleanup_policy="compact")

    with edge.cluster() as cluster:
        found = cluster.topic_configs([topic], ["cleanup.policy", "not.known.here"])

    assert found == {topic: {"cleanup.policy": "compact"}}


@pytest.mark.every_client
def test_settings_of_topics_are_told(broker, edge):
    """Those that were given and those that are the broker's own, as text."""
    given, plain = (
        broker.topic(cleanup_policy="compact", min_compaction_lag_ms="60000"),
        broker.topic(),
    )

    with edge.cluster() as cluster:
        found = cluster.topic_configs([given, plain], ["cleanup.policy", "min.compaction.lag.ms"])
        with pytest.raises(BrokerError, match="look up topic settings"):
            cluster.topic_configs([f"missing-{uuid.uuid4().hex[:8]}"], ["cleanup.policy"])

    assert found == {
        given: {"cleanup.policy": "compact", "min.compaction.lag.ms": "60000"},
        plain: {"cleanup.policy": "delete", "min.compaction.lag.ms": "0"},
    }


def test_positions_by_earliest_and_latest(broker, edge):
    """Earliest and latest are the bounds of the view."""
    topic = broker.topic(2)
    broker.produce(topic, *numbered(5), partition=1)

    assert edge.positions(topic, "earliest-offset") == {0: 0, 1: 0}
    assert edge.positions(topic, "latest-offset") == {0: 0, 1: 5}


@pytest.mark.every_client
def test_positions_by_timestamp(broker, edge):
    """The first message at or after the time; where there is none, the end."""
    topic = broker.topic(2)
    producer = broker.producer()
    for ms in (1_000_000, 2_000_000, 3_000_000):
        producer.produce(topic, b"v", partition=0, timestamp=ms)
    producer.flush()

    def at(ms: int) -> dict[int, int]:
        return edge.positions(topic, "timestamp", timestamp_ms=ms)

    assert at(0) == {0: 0, 1: 0}
    assert at(2_000_000) == {0: 1, 1: 0}
    assert at(2_000_001) == {0: 2, 1: 0}
    assert at(3_000_001) == {0: 3, 1: 0}


def test_a_timestamp_is_not_beyond_an_open_transaction(broker, edge):
    """A message that may not be read yet is no position either."""
    topic = broker.topic()
    producer = transactional(broker)
    producer.begin_transaction()
    producer.produce(topic, b"open", timestamp=1_000_000)
    producer.flush()
    broker.produce(topic, *numbered(1))

    first = 0 if edge.has_transactions else 1  # read_uncommitted shows what is open
    assert edge.positions(topic, "timestamp", timestamp_ms=2_000_000) == {0: first}
    producer.abort_transaction()


def test_positions_named_by_the_user(broker, edge):
    """Specific offsets are taken as they are, for the partitions that are named."""
    topic = broker.topic(3)

    assert edge.positions(topic, "specific-offsets", offsets=((0, 42), (2, 300))) == {
        0: 42,
        2: 300,
    }
    with pytest.raises(OptionError, match=rf"partition 3 of topic '{topic}', which has .* 0 to 2"):
        edge.positions(topic, "specific-offsets", offsets=((3, 0),))


@pytest.mark.every_client
def test_positions_of_a_group(broker, edge):
    """What the group has committed; where it has not, the reset decides, or it is an error."""
    topic, group = broker.topic(2), uuid.uuid4().hex
    broker.produce(topic, *numbered(7), partition=0)
    broker.produce(topic, *numbered(9), partition=1)
    commit(broker, group, topic, 0, 5)
    edge = edge.given({"group.id": group})

    assert edge.positions(topic, "group-offsets", reset="earliest") == {0: 5, 1: 0}
    assert edge.positions(topic, "group-offsets", reset="latest") == {0: 5, 1: 9}
    with pytest.raises(OptionError, match=f"{group}.*partition 1.*auto.offset.reset"):
        edge.positions(topic, "group-offsets", reset="none")


def test_a_group_position_that_is_gone_is_told_as_it_is(broker, edge):
    """Whether a committed offset is still there is for the caller to see and to decide."""
    topic, group = broker.topic(), uuid.uuid4().hex
    broker.produce(topic, *numbered(7))
    commit(broker, group, topic, 0, 2)
    delete_before(broker, topic, 4)

    assert edge.given({"group.id": group}).positions(topic, "group-offsets") == {0: 2}


def commit(broker: Broker, group: str, topic: str, partition: int, offset: int) -> None:
    """Commits an offset to a group, by a plain client."""
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": group})
    consumer.commit(offsets=[ClientPartition(topic, partition, offset)], asynchronous=False)
    consumer.close()


def committed(broker: Broker, group: str, topic: str) -> int:
    """The offset that a group has committed for partition 0, as a plain client sees it."""
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": group})
    (found,) = consumer.committed([ClientPartition(topic, 0)], timeout=60)
    consumer.close()
    return int(found.offset)


@pytest.mark.every_client
def test_a_commit_shows_in_the_group(broker, edge):
    """Kafka's own tools see what was committed; nothing to commit is no error."""
    topic, group = broker.topic(), uuid.uuid4().hex
    with edge.given({"group.id": group}).cluster() as cluster:
        cluster.commit({})
        cluster.commit({TopicPartition(topic, 0): 5})
        assert eventually(lambda: committed(broker, group, topic) == 5)

        cluster.commit({TopicPartition(topic, 0): 6})
        assert eventually(lambda: committed(broker, group, topic) == 6)


def test_a_connection_may_be_closed_while_a_commit_is_under_way(broker, edge):
    """Nobody waits for the last commit of a query: it is made as it is, or not at all."""
    topic, groups = broker.topic(), [uuid.uuid4().hex for _ in range(20)]
    with edge.cluster() as cluster:
        assert eventually(lambda: cluster.existing([topic]))
    for group in groups:
        with edge.given({"group.id": group}).cluster() as cluster:
            cluster.commit({TopicPartition(topic, 0): 1})

    assert {committed(broker, group, topic) for group in groups} <= {1, OFFSET_INVALID}


def test_a_commit_that_fails_is_one_warning(broker, edge, caplog):
    """The query goes on, and the warning is not repeated."""
    topic, group = broker.topic(), uuid.uuid4().hex
    with edge.given({"group.id": group}).cluster() as cluster:
        for _ in range(3):
            cluster.commit({TopicPartition(topic, 77): 1})
        assert eventually(lambda: own_messages(caplog))
        cluster.commit({TopicPartition(topic, 0): 4})
        assert eventually(lambda: committed(broker, group, topic) == 4)

    (warning,) = own_messages(caplog)
    assert group in warning
    assert "unknowntopicorpartition" in warning.lower().replace(" ", "")


def test_a_commit_to_a_group_with_members_is_a_warning(broker, edge, caplog):
    """A group in which consumers share the partitions takes no commits from others."""
    topic, group = broker.topic(), uuid.uuid4().hex
    member = Consumer({"bootstrap.servers": broker.servers, "group.id": group})
    joined = threading.Event()
    member.subscribe([topic], on_assign=lambda *_: joined.set())
    assert eventually(lambda: member.poll(0.1) or joined.is_set())

    with edge.given({"group.id": group}).cluster() as cluster:
        cluster.commit({TopicPartition(topic, 0): 1})
        assert eventually(lambda: own_messages(caplog))

    member.close()
    assert group in caplog.text


@pytest.mark.alone("counts threads and descriptors")
def test_connections_do_not_leak(broker, edge):
    """However many connections were opened and closed: no thread and no file is left of them."""
    topic = broker.topic()

    def open_and_close() -> None:
        with edge.given({"group.id": "g"}).cluster() as cluster:
            edge.view(cluster, topic)

    open_and_close()
    before = open_things()
    for _ in range(30):
        open_and_close()

    assert eventually(lambda: no_more_than(before))


def test_all_brokers_are_listed(edge, broker):
    """By the addresses under which they tell that they are found."""
    with edge.cluster() as cluster:
        assert cluster.brokers() == [broker.servers]


def test_what_the_user_may_do(edge, broker):
    """All of it where nobody asks who the user is; kafka-python does not tell."""
    topic = broker.topic()
    with edge.cluster() as cluster:
        found = cluster.operations([topic])

    if edge.client == "librdkafka":
        assert {"READ", "WRITE", "DESCRIBE_CONFIGS"} <= found[topic]
    else:
        assert found is None
