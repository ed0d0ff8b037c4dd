"""LocalKafka: it starts, it resumes, and nothing of it outlives the program."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.kafka.local import LocalKafka, ports
from pyspark_upsert_kafka.kafka.local.broker import find_java
from tests.kafka.conftest import eventually


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    """One broker for the tests that need any."""
    with LocalKafka() as kafka:
        yield kafka


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which brokers of this test keep theirs; its name is not an easy one, in a locale without such letters."""
    place = tmp_path / "a folder, with ümlaut"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setenv("LC_ALL", "C")
    return place


def brokers_in(folder: Path) -> list[psutil.Process]:
    """The processes, Java or guard, that work below the folder."""
    processes = psutil.process_iter(["cwd"])
    return [p for p in processes if p.info["cwd"] and Path(p.info["cwd"]).is_relative_to(folder)]


def produce(kafka: LocalKafka, topic: str, *values: bytes) -> None:
    """Write the values and wait until they are there."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60.0) == 0


def consume(kafka: LocalKafka, topic: str, count: int) -> list[bytes]:
    """The first values of the topic, as a consumer group reads them."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": f"readers-of-{topic}",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes] = []

    def has_all() -> bool:
        values.extend(m.value() for m in consumer.consume(count, 1.0) if not m.error())
        return len(values) >= count

    eventually(has_all)
    consumer.close()
    return values


@pytest.mark.long("starts a broker of its own")
def test_it_is_a_kafka_that_takes_and_gives_messages(kafka):
    """What is produced to its address is consumed from there, by a consumer group."""
    produce(kafka, "greetings", b"hello", b"world")

    assert consume(kafka, "greetings", 2) == [b"hello", b"world"]


@pytest.mark.long("starts a broker of its own")
def test_start_of_a_broker_that_runs_changes_nothing(kafka):
    """Starting twice is starting once."""
    address = kafka.bootstrap_servers

    kafka.start()

    assert kafka.bootstrap_servers == address


@pytest.mark.long("starts a broker of its own")
def test_flags_of_the_jvm_are_taken_from_the_environment(monkeypatch):
    """They follow LocalKafka's own, as the flags of Kafka's scripts do; which these are is no matter here."""
    monkeypatch.setenv("LOCAL_KAFKA_OPTS", "-Xmx256m '-XX:NoSuchFlag=1 2'")

    with pytest.raises(BrokerError, match=re.escape("NoSuchFlag=1 2")), LocalKafka():
        pass


@pytest.mark.long("starts a broker of its own")
def test_stop_and_start_keep_the_port_and_the_data():
    """After stop nobody answers; after start the same messages are at the same address."""
    with LocalKafka() as kafka:
        address = kafka.bootstrap_servers
        produce(kafka, "kept", b"before")
        kafka.stop()
        host, port = address.split(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))
        kafka.start()
        produce(kafka, "kept", b"after")

        assert kafka.bootstrap_servers == address
        assert consume(kafka, "kept", 2) == [b"before", b"after"]


@pytest.mark.long("waits until a broker has deleted messages")
def test_messages_of_any_time_are_kept(stoppable_broker):
    """A message of 1970 stays, while a topic that sets a retention loses its own, twice: the broker has looked at all topics between."""
    kept = stoppable_broker.topic()
    producer = stoppable_broker.producer()
    producer.produce(kept, b"old", timestamp=1_000_000)
    for short in (stoppable_broker.topic(retention_ms="1000") for _ in range(2)):
        producer.produce(short, b"old", timestamp=1_000_000)
        producer.flush()
        assert eventually(lambda short=short: not stoppable_broker.messages(short))

    assert [message.value for message in stoppable_broker.messages(kept)] == [b"old"]


@pytest.mark.long("starts a broker of its own")
def test_close_leaves_neither_process_nor_folder(folders):
    """The end of the with block is the end of the broker and its data; a second close is none."""
    with LocalKafka() as kafka:
        assert len(brokers_in(folders)) == 2
        assert len(list(folders.iterdir())) == 1

    assert brokers_in(folders) == []
    assert list(folders.iterdir()) == []
    kafka.close()


@pytest.mark.long("starts a broker of its own")
def test_an_explicit_port_and_settings_are_used(folders, monkeypatch):
    """The broker listens on the given port, with the given settings, whatever JVMs are told."""
    monkeypatch.setenv("KAFKA_OPTS", "-Dno=good -XX:NoSuchFlag")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:NoSuchFlag")
    port = ports.free_port()

    with LocalKafka(port=port, config={"num.partitions": "3"}) as kafka:
        assert kafka.bootstrap_servers == f"127.0.0.1:{port}"
        produce(kafka, "created", b"by its first message")
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        assert len(admin.list_topics(timeout=60).topics["created"].partitions) == 3


@pytest.mark.long("starts a broker of its own")
def test_more_listeners_can_be_added():
    """Listeners in the settings come on top of the plain one, for tests of TLS and SASL."""
    port = ports.free_port()
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required\n user_me="a\\\\ü";'
    config = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
    }
    client = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "a\\ü",
    }
    with LocalKafka(config=config):
        assert list(AdminClient(client).list_topics(timeout=60).brokers) == [1]


@pytest.mark.long("starts a broker of its own")
def test_a_busy_port_is_said(folders):
    """A port that someone else has is named, and nothing is left behind."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        with pytest.raises(BrokerError, match=rf"Port {port} on 127\.0\.0\.1 cannot be used"):
            LocalKafka(port=port).start()

    assert brokers_in(folders) == []
    assert list(folders.iterdir()) == []


@pytest.mark.long("starts a broker of its own")
def test_a_free_port_that_was_taken_meanwhile_is_replaced(monkeypatch):
    """Between choosing a port and listening on it someone may come first: another is tried."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = [other.getsockname()[1]]
        free_ports = ports.free_ports

        def first_a_taken_one(count: int, unlike: int | None = None) -> list[int]:
            return [*free_ports(count - 1), taken.pop()] if taken else free_ports(count, unlike)

        monkeypatch.setattr(ports, "free_ports", first_a_taken_one)

        with LocalKafka() as kafka:
            assert kafka.bootstrap_servers != f"127.0.0.1:{other.getsockname()[1]}"


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_is_from_1_to_65535(port):
    """What cannot be a port is refused at once."""
    with pytest.raises(OptionError, match=rf"from 1 to 65535, but is {port}\."):
        LocalKafka(port=port)


@pytest.mark.long("starts a broker of its own")
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"num.partitions": "many"}, "Invalid value many for configuration num.partitions"),
        (
            {"listeners": "SASL_PLAINTEXT://127.0.0.1:9", "sasl.enabled.mechanisms": "PLAIN"},
            "'sasl_plaintext.KafkaServer' entry in the JAAS configuration",
        ),
    ],
)
def test_settings_that_kafka_refuses_are_said_in_its_words(folders, config, said):
    """The error holds what Kafka's log says, and nothing is left behind."""
    with pytest.raises(BrokerError, match=re.escape(said)):
        LocalKafka(config=config).start()

    assert brokers_in(folders) == []
    assert list(folders.iterdir()) == []


def test_there_is_no_address_before_the_start():
    """Asking for it says how to start."""
    with pytest.raises(BrokerError, match="use it in a with statement"):
        _ = LocalKafka(port=9092).bootstrap_servers


PROGRAM = """
import os, subprocess, sys, time
from pyspark_upsert_kafka.kafka.local import LocalKafka
kafka = LocalKafka()
kafka.start()
{then}
print(kafka.bootstrap_servers, flush=True)
time.sleep(3600)
"""


def program(then: str = "") -> subprocess.Popen[str]:
    """Another program that starts a broker, prints its address and sleeps."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(then=then)], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.long("starts a broker of its own")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_broker_outlives_its_program(folders, how):
    """However the program ends, soon after there is neither a broker nor a folder."""
    with program() as running:
        assert running.stdout.readline().startswith("127.0.0.1:")
        assert len(brokers_in(folders)) == 2
        running.send_signal(how)

    assert eventually(lambda: not brokers_in(folders) and not list(folders.iterdir()))


@pytest.mark.long("starts a broker of its own")
def test_no_data_outlives_its_program_while_the_broker_is_stopped(folders):
    """Data that is kept for the next start is kept for this program only."""
    with program(then="kafka.stop()") as running:
        assert running.stdout.readline().startswith("127.0.0.1:")
        assert len(list(folders.iterdir())) == 1
        running.kill()

    assert eventually(lambda: not brokers_in(folders) and not list(folders.iterdir()))


@pytest.mark.long("starts a broker of its own")
def test_no_broker_outlives_its_program_that_has_forked(folders):
    """A forked child holds all that its parent had open, and yet the broker ends."""
    fork = "child = os.fork()\nif not child: time.sleep(3600)\nprint(child)"
    with program(then=fork) as running:
        child = int(running.stdout.readline())
        try:
            assert running.stdout.readline().startswith("127.0.0.1:")
            running.kill()
            assert eventually(lambda: not brokers_in(folders) and not list(folders.iterdir()))
        finally:
            os.kill(child, signal.SIGKILL)


def fake_java(folder: Path, script: str) -> Path:
    """A java that does what the shell script says."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "is Java 11"),
        ("echo 'java version \"1.8.0_292\"' >&2", "is Java 8"),
        ("echo 'Unable to locate a Java Runtime.' >&2; exit 1", "Unable to locate a Java Runtime"),
    ],
)
def test_an_old_or_broken_java_is_said(tmp_path, monkeypatch, script, said):
    """The sentence names the Java that was found, what it is, and what is needed."""
    java = fake_java(tmp_path / "a java", script)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))

    with pytest.raises(BrokerError, match="needs Java 17 or newer") as error:
        LocalKafka().start()

    assert str(java) in str(error.value)
    assert said in str(error.value)


def test_no_java_is_said(tmp_path, monkeypatch):
    """Without JAVA_HOME and java on PATH, and with a JAVA_HOME that holds none, likewise."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(BrokerError, match=r"there is no java on PATH\. Install one"):
        LocalKafka().start()

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BrokerError, match=r"bin/java cannot be run \(No such file or directory\)"):
        LocalKafka().start()


@pytest.mark.parametrize("version", ['"17.0.15" 2025-04-15', '"21" 2023-09-19', '"25-ea"'])
def test_java_17_and_newer_will_do(tmp_path, monkeypatch, version):
    """The version is read in every form in which a Java prints it."""
    java = fake_java(tmp_path, f"echo 'openjdk version {version}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert find_java() == str(java)


@pytest.mark.long("starts a broker of its own")
def test_the_start_is_logged(kafka, caplog):
    """The address of a broker that came up stands in the log of the package."""
    with caplog.at_level(logging.INFO, logger="pyspark_upsert_kafka"):
        kafka.stop()
        kafka.start()

    assert f"Apache Kafka is up at {kafka.bootstrap_servers}" in caplog.messages
