"""Exactly once, over transactions in memory that fence and abort as Kafka's do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from pyspark_upsert_kafka.connector.writing.delivery import ExactlyOnceDelivery, prepare
from pyspark_upsert_kafka.connector.writing.keyed_buffer import KeyedBuffer
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    CheckpointError,
    DeliveryError,
    OptionError,
)
from pyspark_upsert_kafka.core.options.frozen_options import BufferFlush
from pyspark_upsert_kafka.core.receipts import Call, is_written
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, octets
from tests.unit.connector.writing.fake_transactions import FakeKafka

CALL = Call("sink", "query", 0, 5, 2, ("t",), "1f3b", "90ab")


def message(value: bytes) -> Messages:
    """A message with this value."""
    return Messages("t", octets([b"k"]), octets([value]))


def write(kafka: FakeKafka, *values: bytes, call: Call = CALL, task: int = 1) -> None:
    """Writes values, a message at a time, as a task does; its error is the caller's."""
    delivery = ExactlyOnceDelivery(call, task, kafka.open)
    try:
        for value in values:
            delivery.send(message(value))
        delivery.commit()
    except BaseException:
        delivery.abort()
        raise


def test_a_task_is_fenced_off_before_its_receipt_is_read():
    """The order: open, which fences off predecessors; read the receipt; write; receipt and messages in one."""
    kafka = FakeKafka()

    write(kafka, b"a", b"b")

    assert kafka.log == ["open 0-1", "look", "begin", "send", "send", "flush", "commit", "close"]
    assert kafka.values == [b"a", b"b"]
    assert kafka.receipts == {"sink-query-0-1": CALL.receipt}


def test_a_task_that_runs_again_writes_nothing():
    """Its receipt says that it is done: its rows are taken and dropped."""
    kafka = FakeKafka()
    for _ in range(3):
        write(kafka, b"a", b"b")

    assert kafka.values == [b"a", b"b"]
    assert kafka.log[-3:] == ["open 0-1", "look", "close"]


def test_the_next_batch_is_written():
    """The receipt of the batch before lets it pass."""
    kafka = FakeKafka()
    write(kafka, b"a")
    write(kafka, b"b", call=replace(CALL, batch=6))

    assert kafka.values == [b"a", b"b"]


def test_a_task_of_an_older_batch_is_refused():
    """Whoever comes late with an old batch writes nothing."""
    kafka = FakeKafka()
    write(kafka, b"b", call=replace(CALL, batch=6))

    with pytest.raises(CheckpointError):
        write(kafka, b"a")

    assert kafka.values == [b"b"]
    assert kafka.log[-1] == "close"


def test_a_task_without_rows_asks_for_nothing():
    """A shuffle makes many tasks without rows; a message that holds none begins nothing either."""
    kafka = FakeKafka()
    delivery = ExactlyOnceDelivery(CALL, 0, kafka.open)
    delivery.send(Messages("t", octets([]), octets([])))
    delivery.commit()

    assert kafka.log == []


@pytest.mark.parametrize("fails", ["look", "begin", "send", "flush", "commit"])
def test_what_fails_leaves_nothing_and_closes_the_sender(fails):
    """Closing aborts the transaction; the next attempt writes everything."""
    kafka = FakeKafka(fails=fails)
    with pytest.raises(DeliveryError):
        write(kafka, b"a")
    assert kafka.values == []
    assert kafka.log[-1] == "close"

    kafka.fails = ""
    write(kafka, b"a")

    assert kafka.values == [b"a"]


def test_an_unknown_outcome_fails_the_task_and_the_receipt_decides():
    """The commit took place, and its answer was lost: the task fails, and the next attempt writes nothing."""
    kafka = FakeKafka(fails="answer")
    with pytest.raises(BrokerError):
        write(kafka, b"a")

    kafka.fails = ""
    write(kafka, b"a")

    assert kafka.values == [b"a"]


def test_a_late_attempt_writes_nothing():
    """Of two attempts at the same time, the one that was opened last writes."""
    kafka = FakeKafka()
    late = ExactlyOnceDelivery(CALL, 1, kafka.open)
    late.send(message(b"late"))
    write(kafka, b"a")

    with pytest.raises(BrokerError, match="fenced"):
        late.commit()

    assert kafka.values == [b"a"]


def test_the_buffer_is_emptied_into_the_transaction():
    """What the keyed buffer holds is sent before the receipt; closing it closes the transaction."""
    kafka = FakeKafka()
    flush = BufferFlush(10, 3600.0)
    buffered: Callable[..., KeyedBuffer] = lambda sender: KeyedBuffer(sender, flush)  # noqa: E731
    delivery = ExactlyOnceDelivery(CALL, 1, kafka.open, buffered)
    for value in (b"a", b"b"):
        delivery.send(message(value))
    delivery.commit()

    assert kafka.values == [b"b"]
    assert kafka.log == ["open 0-1", "look", "begin", "send", "flush", "commit", "close"]


# The driver


def test_the_plan_is_committed_before_any_task():
    """A first batch, and the next one with as many tasks: the plan's receipt alone."""
    kafka = FakeKafka()
    prepare(replace(CALL, batch=0), kafka.open)
    prepare(replace(CALL, batch=1), kafka.open)

    assert list(kafka.receipts) == ["sink-query-0-plan"]
    assert is_written(replace(CALL, batch=1), kafka.receipts["sink-query-0-plan"])
    assert kafka.log == ["open 0-plan", "look", "begin", "commit", "close"] * 2


def test_a_batch_that_runs_again_has_its_plan_already():
    """It is read and stays as it is."""
    kafka = FakeKafka()
    for _ in range(2):
        prepare(CALL, kafka.open)

    assert kafka.log[-3:] == ["open 0-plan", "look", "close"]


def test_fewer_tasks_fence_the_others_off_before_the_plan_says_so():
    """Whoever is late under an id that the new batch does not use writes nothing any more."""
    kafka = FakeKafka()
    prepare(replace(CALL, tasks=4), kafka.open)
    late = ExactlyOnceDelivery(replace(CALL, tasks=4), 3, kafka.open)
    late.send(message(b"late"))
    kafka.log.clear()

    prepare(replace(CALL, batch=6), kafka.open)

    assert kafka.log[:2] == ["open 0-plan", "look"]
    assert kafka.log[2:-3] == ["open 0-2", "close", "open 0-3", "close"]
    assert kafka.log[-3:] == ["begin", "commit", "close"]
    with pytest.raises(BrokerError, match="fenced"):
        late.commit()


@pytest.mark.parametrize(
    ("other", "error"),
    [
        ({"tasks": 3}, OptionError),
        ({"batch": 4}, CheckpointError),
        ({"topics": ("u",)}, OptionError),
        ({"sink": "another", "tasks": 3}, OptionError),
    ],
)
def test_a_refused_batch_leaves_the_plan_as_it_was(other, error):
    """Another number of tasks for the same batch, an older batch, another topic: nothing is begun."""
    kafka = FakeKafka()
    prepare(CALL, kafka.open)
    before = dict(kafka.receipts)
    kafka.log.clear()

    with pytest.raises(error):
        prepare(replace(CALL, **other), kafka.open)

    assert kafka.receipts == before
    assert kafka.log == ["open 0-plan", "look", "close"]


def test_a_batch_of_which_nothing_was_written_is_begun_anew_with_other_columns():
    """As where its rows could not be read before the query had more columns; what the earlier tasks do late is fenced off."""
    kafka, wider = FakeKafka(), replace(CALL, sink="wider")
    prepare(CALL, kafka.open)
    late = ExactlyOnceDelivery(CALL, 1, kafka.open)
    late.send(message(b"late"))

    prepare(wider, kafka.open)
    with pytest.raises(BrokerError):
        late.commit()
    late.abort()
    write(kafka, b"a", call=wider)
    prepare(wider, kafka.open)
    write(kafka, b"a", call=wider)

    assert kafka.values == [b"a"]


@pytest.mark.parametrize(
    "later", [False, True], ids=["a task has written", "a later call was begun"]
)
def test_a_batch_that_is_begun_is_not_begun_anew_by_another_sink(later):
    """What is written may be rows of the other one; where calls change places, rows of this one may be in a later call."""
    kafka = FakeKafka()
    prepare(CALL, kafka.open)
    if later:
        prepare(replace(CALL, number=1), kafka.open)
    else:
        write(kafka, b"a")
    before = dict(kafka.receipts)

    with pytest.raises(OptionError, match="by a sink with other options or other columns"):
        prepare(replace(CALL, sink="another"), kafka.open)

    assert kafka.receipts == before


@pytest.mark.parametrize("columns", [("wide", "wider", "widest"), ("wide", "wide", "90ab"), ("90ab", "wide", "90ab")])  # fmt: skip
def test_a_batch_that_is_half_written_is_finished_with_other_columns(columns):
    """As where a driver was killed after some tasks had written, and columns came, or went, until the query started again, and once more."""
    kafka, narrow = FakeKafka(), replace(CALL, options="alone")
    prepare(narrow, kafka.open)
    write(kafka, b"a", call=narrow, task=0)
    for sink, failing in zip(columns, ("send", "answer", ""), strict=True):
        call = prepare(replace(narrow, sink=sink), kafka.open)
        write(kafka, b"a", call=call, task=0)
        kafka.fails = failing
        try:
            write(kafka, b"b", call=call, task=1)
        except (BrokerError, DeliveryError):
            kafka.fails = ""
    last = prepare(replace(narrow, sink="widest", batch=6), kafka.open)
    write(kafka, b"c", call=last)

    assert kafka.values == [b"a", b"b", b"c"]


def test_a_batch_of_a_prefix_with_two_sinks_is_not_finished_with_other_columns():
    """A call that any batch before had says that the other sink may have begun it, where sinks change places."""
    kafka, narrow = FakeKafka(), replace(CALL, options="alone")
    prepare(replace(narrow, batch=4, number=1, sink="wide"), kafka.open)
    prepare(narrow, kafka.open)
    write(kafka, b"a", call=narrow)

    with pytest.raises(OptionError, match="by a sink with other options or other columns"):
        prepare(replace(narrow, sink="wide"), kafka.open)


def test_a_query_without_receipts_is_told_of(caplog, monkeypatch):
    """One warning, when a later batch finds none."""
    monkeypatch.setattr(errors, "_warned", set())
    prepare(CALL, FakeKafka().open)
    prepare(replace(CALL, batch=0), FakeKafka().open)

    (told,) = [record.getMessage() for record in caplog.records]
    assert "no receipt of an earlier batch" in told


def test_a_batch_that_was_begun_long_ago_is_told_of(caplog, monkeypatch):
    """One warning, when it runs again and the brokers may have forgotten what some tasks have written."""
    monkeypatch.setattr(errors, "_warned", set())
    kafka = FakeKafka(retention_s=100 * 3600.0)
    prepare(CALL, kafka.open)
    prepare(CALL, kafka.open)
    assert not [record for record in caplog.records if "runs again" in record.getMessage()]
    kafka.receipts[CALL.driver_id] = CALL.driver_receipt(time.time() - 97.1 * 3600)

    prepare(CALL, kafka.open)

    told = [record.getMessage() for record in caplog.records]
    assert "was begun 4 days, 1:" in told[-1]
    assert "for 4 days, 4:00:00" in told[-1]


def test_a_new_query_with_the_prefix_of_another_one_is_told_of(caplog, monkeypatch):
    """One warning for a first batch, if another query has written to the same topic; a later run of it says nothing."""
    monkeypatch.setattr(errors, "_warned", set())
    kafka, (one, other) = FakeKafka(), (f"{n}d0cf6a1-0000-4000-8000-000000000000" for n in (7, 8))
    first = replace(CALL, query=one, batch=0)
    prepare(first, kafka.open)
    prepare(replace(first, query=other, topics=("another",)), kafka.open)
    assert not caplog.records

    begun_anew = replace(first, query=other.replace("8", "9", 1))
    prepare(begun_anew, kafka.open)

    (told,) = [record.getMessage() for record in caplog.records]
    assert f"query {one} has written to topic 't' before" in told
    assert "with a new checkpoint" in told
    caplog.clear()
    errors._warned.clear()
    prepare(begun_anew, kafka.open)
    assert not caplog.records
