"""The delivery of a task: it begins with the first message and ends once, done or given up."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.spark_task import TaskIdentity
from pyspark_upsert_kafka.connector.writing import delivery
from pyspark_upsert_kafka.connector.writing.delivery import SentMessages, delivering, open_sender
from pyspark_upsert_kafka.connector.writing.keyed_buffer import KeyedBuffer
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import DeliveryError
from pyspark_upsert_kafka.core.options.frozen_options import WriteOptions
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.positions.progress import Written
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, octets
from tests.table_options import table_options

MESSAGES = Messages("t", octets([b"k"]), octets([b"v"]))
TASK = TaskIdentity("query", 7, 3, 1)
REFUSED = DeliveryError("t", 0, b"k", "refused")


@dataclass
class FakeSender:
    """Notes what is asked of it; one of its methods fails when told to."""

    fails: str = ""
    log: list[str] = field(default_factory=list)

    def _do(self, name: str) -> None:
        self.log.append(name)
        if name == self.fails:
            raise REFUSED

    def send(self, messages: Messages) -> None:
        """Takes note."""
        self._do("send")

    def flush(self) -> None:
        """Takes note."""
        self._do("flush")

    def close(self) -> None:
        """Takes note."""
        self._do("close")


@dataclass
class FakeClient:
    """Opens this sender, and notes for which guarantee."""

    sender_: FakeSender
    opened: list[tuple[object, ...]] = field(default_factory=list)

    def sender(self, *given: object, with_metadata: bool = True) -> FakeSender:
        """The sender."""
        self.opened.append((*given, with_metadata))
        return self.sender_


def options(**given: str) -> WriteOptions:
    """Options of a write."""
    return write_options(table_options(**given), format_options)


@pytest.fixture
def deliver(monkeypatch: pytest.MonkeyPatch):
    """Delivers as a task does, over a sender that fails where it is told to; gives what that did."""

    def delivered(*steps: str, fails: str = "") -> list[str]:
        sender = FakeSender(fails)
        monkeypatch.setattr(delivery, "open_sender", lambda *_, **__: sender)
        try:
            with delivering(TASK, options(), SentMessages(), with_metadata=True) as task:
                for step in steps:
                    if step == "fail":
                        raise REFUSED
                    task.send(MESSAGES)
        except DeliveryError as error:
            sender.log.append(f"raised {error.reason}")
        return sender.log

    return delivered


@pytest.mark.parametrize(
    ("steps", "fails", "log"),
    [
        ([], "", []),
        (["send", "send"], "", ["send", "send", "flush", "close"]),
        (["fail"], "", ["raised refused"]),
        (["send", "fail"], "", ["send", "close", "raised refused"]),
        (["send"], "send", ["send", "close", "raised refused"]),
        (["send"], "flush", ["send", "flush", "close", "raised refused"]),
        (["send"], "close", ["send", "flush", "close", "raised refused"]),
    ],
)
def test_a_delivery_ends_once(deliver, steps, fails, log):
    """Committed when all is well, else aborted; its sender is opened by a message and closed once."""
    assert deliver(*steps, fails=fails) == log


def test_what_goes_wrong_while_aborting_is_logged_with_the_task(caplog, monkeypatch):
    """It must not take the place of the task's own error, and the log says whose it was."""
    monkeypatch.setattr(delivery, "open_sender", lambda *_, **__: FakeSender(fails="close"))

    def fail() -> None:
        with delivering(TASK, options(), SentMessages(), with_metadata=True) as task:
            task.send(MESSAGES)
            raise RuntimeError("the task's own")

    with pytest.raises(RuntimeError, match="the task's own"):
        fail()

    (record,) = caplog.records
    assert "task 3 (attempt 1) of batch 7 of query query" in record.getMessage()
    assert record.exc_info[1] is REFUSED


@pytest.mark.parametrize("guarantee", ["none", "at-least-once"])
def test_the_sender_is_opened_for_the_guarantee(monkeypatch, guarantee):
    """What the sink promises reaches the client as it was given; what is sent is counted."""
    client = FakeClient(FakeSender())
    monkeypatch.setattr(delivery, "load_sending_client", lambda *_: client)
    given = options(**{"sink.delivery-guarantee": guarantee})

    sent = SentMessages()
    sender = open_sender(given, sent, with_metadata=False)
    for step in (lambda: sender.send(MESSAGES), sender.flush, sender.close):
        step()

    assert client.sender_.log == ["send", "flush", "close"]
    assert sent.total == Written(1, 0, 2)
    assert client.opened == [(given.table.properties, ("t",), DeliveryGuarantee(guarantee), False)]


def test_the_buffer_stands_before_the_sender(monkeypatch):
    """What is delivered, and counted, is the last change of each key, when there is a buffer."""
    client = FakeClient(FakeSender())
    monkeypatch.setattr(delivery, "load_sending_client", lambda *_: client)
    given = options(**{"sink.buffer-flush.max-rows": "10", "sink.buffer-flush.interval": "1h"})

    sent = SentMessages()
    sender = open_sender(given, sent, with_metadata=True)
    sender.send(MESSAGES)
    sender.send(MESSAGES)
    sender.flush()
    sender.close()

    assert isinstance(sender, KeyedBuffer)
    assert client.sender_.log == ["send", "flush", "close"]
    assert sent.total == Written(1, 0, 2)
