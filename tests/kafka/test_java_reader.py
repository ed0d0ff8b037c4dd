"""The reader of `make proof`: what Kafka's own Java client reads of a topic."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.conftest import Broker
from tools.proof.java_reader import HistoryError, JavaReader, Message

pytestmark = [
    pytest.mark.long("compiles and starts Java"),
    pytest.mark.skipif(
        shutil.which("javac") is None, reason="Java compiles the reader: a JDK is needed"
    ),
]


def test_committed_messages_are_read_and_kept(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its place; those of an aborted transaction are not there. Several topics are read by one process."""
    monkeypatch.setenv("PROOF_FOLDER", str(tmp_path))
    topic, other = broker.topic(), broker.topic(partitions=3)
    broker.produce(topic, ("a", "1"), ("a", None), (None, ""))
    aborted(broker, topic)
    broker.produce(topic, ("b", "3"))
    broker.produce(other, *[(str(number), "x") for number in range(30)])

    with JavaReader(broker.servers) as reader:
        found = reader.read(topic, "copy")
        keys = {message.key for message in reader.read(other)}

    assert found == [
        Message(0, 0, b"a", b"1"),
        Message(0, 1, b"a", None),
        Message(0, 2, None, b""),
        Message(0, 5, b"b", b"3"),
    ]
    assert keys == {str(number).encode() for number in range(30)}
    with gzip.open(tmp_path / "histories" / "copy.tsv.gz", "rt") as kept:
        assert len(kept.readlines()) == 4
    assert [file.name for file in (tmp_path / "histories").iterdir()] == ["copy.tsv.gz"]


def test_a_key_in_another_partition_than_javas(broker: Broker) -> None:
    """It would be two keys for whoever reads one partition; the error says where it is."""
    topic = broker.topic(partitions=2)
    broker.produce(topic, ("a", "1"), partition=0)
    broker.produce(topic, ("a", "1"), partition=1)

    with (
        JavaReader(broker.servers) as reader,
        pytest.raises(HistoryError, match="the key of offset 0 is in partition"),
    ):
        reader.read(topic)


def test_a_topic_that_is_not_there(broker: Broker) -> None:
    """The process ends; what it said is in the error."""
    with JavaReader(broker.servers) as reader, pytest.raises(HistoryError, match="has ended"):
        reader.read("a topic with spaces")


def aborted(broker: Broker, topic: str) -> None:
    """A message of a transaction that is aborted, and its marker."""
    producer = Producer({"bootstrap.servers": broker.servers, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, key="a", value="2")
    producer.flush()
    producer.abort_transaction()
    broker.wait_for_transactions(topic)
