"""Dead letters written back, by the command, on a real broker."""

from __future__ import annotations

import time

import pytest

from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.connector.bad_messages import ADDED, PREFIX, BadMessage, DeadLetters
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.kafka.outgoing_messages import partition_of
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.conftest import Broker, options

BAD = b"{"

CLIENTS = {
    "librdkafka": [],
    # What kafka-python-ng cannot do must be given up in so many words.
    "kafka-python": [
        "kafka.client=kafka-python",
        "properties.isolation.level=read_uncommitted",
        "properties.enable.idempotence=false",
    ],
}
"""The options that choose a client."""


def bury(broker: Broker, topic: str, letters: str) -> None:
    """Sends each message whose value is `BAD` to the dead-letter topic, as a task does."""
    mode = {"error-handling.mode": "log", "error-handling.log.target": letters}
    given = read_options(options(broker, topic, **mode), format_options, stream=False)
    for each in broker.messages(topic):
        if each.value == BAD:
            batch = RawBatch(
                topic, each.partition, BytesColumn.of([each.key]), BytesColumn.of([each.value]), [each.offset],
                timestamps=[each.timestamp], headers=[each.headers],
            )  # fmt: skip
            DeadLetters(given).send(batch, [BadMessage(0, "value", "no JSON")])


def headers(topic: str, *numbers: int) -> list[tuple[str, bytes]]:
    """The headers of a letter from this partition, offset and time."""
    values = [topic, *map(str, numbers), "value", "no JSON"]
    return [(PREFIX + name, each.encode()) for name, each in zip(ADDED, values, strict=True)]


def replay(broker: Broker, letters: str, *more: str) -> int:
    """Runs the command; any topic of a test may be written, unless ``more`` names some."""
    to = () if any(each.startswith("--to") for each in more) else ("--to-pattern", ".*")
    where = ["--topic", letters, "--bootstrap-servers", broker.servers]
    return main(["replay", *where, *to, *more])


@pytest.mark.parametrize("client", CLIENTS)
def test_letters_go_back_once(
    broker: Broker, client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Key, value, headers and partition as they were; no newer message is undone; a second run finds its own messages newer."""
    topic, letters = broker.topic(partitions=3), broker.topic()
    chosen = [f"--option={each}" for each in CLIENTS[client]]
    broker.produce(
        topic,
        ("bad", BAD, [("trace", b"1"), ("trace", b"2")]),
        ("bad", BAD, [("trace", b"3")]),
        ("repaired", BAD),
        ("repaired", '{"id": 1}'),
        (None, BAD),
        partition=2,
    )
    bury(broker, topic, letters)
    bury(broker, topic, letters)  # a task that ran again
    broker.produce(letters, ("k", "not a letter"))
    before = broker.messages(topic)
    left_out = (
        "2 left out: their keys have newer messages, 1 left out: no key, so no row of a table"
    )

    assert replay(broker, letters, "--dry-run", *chosen) == 0
    assert capsys.readouterr().out == f"{topic}: 1 would be written, {left_out}\n"
    assert broker.messages(topic) == before
    assert replay(broker, letters, *chosen) == 0
    assert capsys.readouterr().out == f"{topic}: 1 written, {left_out}\n"
    (new,) = set(broker.messages(topic)) - set(before)
    assert (new.key, new.value, new.headers) == (b"bad", BAD, (("trace", b"3"),))
    assert new.partition == 2 != partition_of(b"bad", 3)
    assert replay(broker, letters, *chosen) == 0
    assert "written" not in capsys.readouterr().out
    assert len(broker.messages(topic)) == len(before) + 1


def test_letters_of_append_topics(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    """There each message counts, so all go back, in their order, and in each run again."""
    topic, letters = broker.topic(), broker.topic()
    broker.produce(topic, ("a", BAD), (None, BAD), ("a", "fine"))
    bury(broker, topic, letters)

    for run in (1, 2):
        assert replay(broker, letters, "--append") == 0
        assert capsys.readouterr().out == f"{topic}: 2 written\n"
        assert broker.pairs(topic)[3:] == [(b"a", BAD), (None, BAD)] * run


def test_a_letter_from_ahead_of_the_clock(broker: Broker) -> None:
    """Once, also when the original lies in a partition of another partitioner and no time tells which is newer."""
    topic = broker.topic(partitions=2, message_timestamp_after_max_ms=str(10**12))
    letters, place = broker.topic(), 1 - partition_of(b"k", 2)
    tomorrow = int(time.time() * 1000) + 86_400_000
    producer = broker.producer()
    producer.produce(topic, key="k", value=BAD, partition=place, timestamp=tomorrow)
    assert producer.flush(60) == 0
    broker.produce(letters, ("k", BAD, headers(topic, place, 0, tomorrow)))

    for _ in range(2):
        assert replay(broker, letters) == 0
        assert broker.pairs(topic) == [(b"k", BAD)] * 2


def test_a_topic_that_was_created_again(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    """Offsets of the old topic say nothing of the new one: a newer message of the key with a smaller one is not undone."""
    topic, letters = broker.topic(), broker.topic()
    broker.produce(topic, *[("other", "fine")] * 3, ("repaired", BAD), ("bad", BAD))
    bury(broker, topic, letters)
    broker.delete(topic)
    broker.create(topic)
    broker.produce(topic, ("repaired", '{"id": 1}'))

    for written in ("1 written, 1", "2"):
        assert replay(broker, letters) == 0
        left_out = "left out: their keys have newer messages"
        assert capsys.readouterr().out == f"{topic}: {written} {left_out}\n"
        assert broker.pairs(topic) == [(b"repaired", b'{"id": 1}'), (b"bad", BAD)]


def test_what_cannot_be_replayed(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    """No letters is said; those of a topic that is gone are an error that names it, when all others are written."""
    topic, gone, letters = broker.topic(), broker.topic(), broker.topic()
    assert replay(broker, letters) == 0
    assert capsys.readouterr().out == f"Topic {letters!r} holds no dead letter.\n"
    for each in (topic, gone):
        broker.produce(each, ("a", BAD))
        bury(broker, each, letters)
    broker.produce(letters, ("a", BAD, headers("\x1b[2J", 0, 0, 1)))
    broker.delete(gone)

    for more in ([], ["--append"], ["--append", "--dry-run"]):
        assert replay(broker, letters, *more) == 1
        printed = capsys.readouterr()
        assert f"{gone}: 1 left out: the topic does not exist\n" in printed.out
        assert f"{topic}: 1 w" in printed.out
        assert f"do not exist: 1 of topic {gone!r}. " in printed.err
    assert broker.pairs(topic) == [(b"a", BAD)] * 3
    assert replay(broker, letters, "--option", "properties.bootstrap.server=x") == 1
    assert "bootstrap.server" in capsys.readouterr().err


def test_only_topics_that_are_named_are_written(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever may write dead letters can put any topic into a header; Kafka's own are never written."""
    topic, other, letters = broker.topic(), broker.topic(), broker.topic()
    internal = "__consumer_offsets"
    for each in (topic, other, internal):
        broker.produce(letters, ("a", BAD, headers(each, 0, 0, 1)))
    where = ["replay", "--topic", letters, "--bootstrap-servers", broker.servers]

    assert main(where) == 1
    assert "add --to TOPIC for each" in capsys.readouterr().err
    assert main([*where, "--to", internal]) == 1
    assert "are Kafka's own, and are not written" in capsys.readouterr().err
    assert main([*where, "--to-pattern", "("]) == 1
    assert "is no regular expression" in capsys.readouterr().err
    assert main([*where, "--dry-run"]) == 0
    would = f"{topic}: 1 would be written\n"
    assert would in capsys.readouterr().out

    assert replay(broker, letters, "--to", topic) == 0
    expected = [
        f"{topic}: 1 written",
        f"{other}: 1 left out: not named by --to",
        f"{internal}: 1 left out: a topic of Kafka's own",
    ]
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(expected)
    assert (broker.pairs(topic), broker.pairs(other)) == ([(b"a", BAD)], [])
    assert replay(broker, letters, "--to-pattern", f"{other}|__.*") == 0
    assert broker.pairs(other) == [(b"a", BAD)]
