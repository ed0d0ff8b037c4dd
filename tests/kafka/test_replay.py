"""Dead letters written back, by the command, on a real broker."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.core.options import read_options
from pyspark_upsert_kafka.format_catalog import format_options
from pyspark_upsert_kafka.kafka.interfaces import RawBatch
from pyspark_upsert_kafka.source.bad_message import BadMessage
from pyspark_upsert_kafka.source.dead_letters import DeadLetters
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
                topic, each.partition, [each.key], [each.value], [each.offset],
                timestamps=[each.timestamp], headers=[each.headers],
            )  # fmt: skip
            DeadLetters(given).send(batch, [BadMessage(0, "value", "no JSON")])


def replay(broker: Broker, letters: str, *more: str) -> int:
    """Runs the command."""
    return main(["replay", "--topic", letters, "--bootstrap-servers", broker.servers, *more])


@pytest.mark.parametrize("client", CLIENTS)
def test_letters_go_back_once(
    broker: Broker, client: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Key, value and headers as they were; no newer message is undone; a second run finds its own messages newer."""
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


def test_what_cannot_be_replayed(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    """No letters is said; a topic that is gone is an error that names it, before anything is written."""
    topic, letters = broker.topic(), broker.topic()
    assert replay(broker, letters) == 0
    assert capsys.readouterr().out == f"Topic {letters!r} holds no dead letter.\n"
    broker.produce(topic, ("a", BAD))
    bury(broker, topic, letters)
    broker.delete(topic)

    assert replay(broker, letters) == 1
    assert topic in capsys.readouterr().err
    assert replay(broker, letters, "--option", "properties.bootstrap.server=x") == 1
    assert "bootstrap.server" in capsys.readouterr().err
