"""Whatever fails, hangs and goes on, and in whatever order: each row of each batch is committed once."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pyspark_upsert_kafka.connector.writing.delivery import ExactlyOnceDelivery, prepare
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    CheckpointError,
    DeliveryError,
    OptionError,
)
from pyspark_upsert_kafka.core.receipts import Call
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, octets
from tests.laws import runs
from tests.unit.connector.writing.fake_transactions import FakeKafka

KEYS = 12
STEPS = ["look", "begin", "send", "flush", "commit", "close"]


@dataclass
class Attempt:
    """A task in the middle of its rows."""

    call: Call
    task: int
    delivery: ExactlyOnceDelivery


def rows_of(call: Call, task: int) -> list[bytes]:
    """The rows of a task: those of its keys, the same each time."""
    return [b"%d/%d" % (call.batch, key) for key in range(KEYS) if key % call.tasks == task]


class ExactlyOnce(RuleBasedStateMachine):
    """A query whose drivers and tasks die, hang and go on at any moment.

    A batch is done when an attempt of each of its tasks has come to its end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kafka = FakeKafka()
        self.call = Call("sink", "query", 0, 0, 0, ("t",), "1f3b", "narrow", "alone")
        self.attempts: list[Attempt] = []
        self.done: set[int] = set()
        self.calls: list[Call] = []

    @rule(tasks=st.integers(1, 4), columns=st.sampled_from(["narrow", "wide", "wider"]))
    def a_driver_plans_the_batch(self, tasks: int, columns: str = "") -> None:
        """A run of the query begins the batch, or begins it again; another number of tasks is refused, other columns in the first one."""
        begun = self.call
        call = replace(begun, tasks=tasks, sink=columns or begun.sink, finishes=False)
        try:
            self.call = prepare(call, self.kafka.open)
        except OptionError:
            assert begun.tasks != tasks or (not begun.batch and begun.sink != call.sink)
            return
        self.calls.append(self.call)
        self.done.clear()

    @precondition(lambda self: self.call.tasks)
    @rule(data=st.data(), step=st.sampled_from(STEPS), rival=st.booleans())
    def a_task_starts(self, data: st.DataObject, step: str, rival: bool) -> None:
        """Its first rows are sent; another attempt of it may run as a whole in the middle of that."""
        task = data.draw(st.integers(0, self.call.tasks - 1))
        if rival:
            self.kafka.meanwhile[step] = lambda: self._whole_attempt(self.call, task)
        self._start(self.call, task)
        self.kafka.meanwhile.clear()

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def a_task_of_an_earlier_run_starts(self, data: st.DataObject) -> None:
        """A driver that hung goes on with whatever it had planned."""
        call = data.draw(st.sampled_from(self.calls))
        self._start(call, data.draw(st.integers(0, call.tasks - 1)))

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def a_driver_of_an_earlier_run_goes_on(self, data: st.DataObject) -> None:
        """It plans an old batch again, or a batch with the number of tasks that it had."""
        with suppress(CheckpointError, OptionError):
            prepare(data.draw(st.sampled_from(self.calls)), self.kafka.open)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), fails=st.sampled_from(["", "", "flush", "commit", "answer"]))
    def a_task_ends(self, data: st.DataObject, fails: str) -> None:
        """It sends its last rows and commits; that may fail, or only its answer may be lost."""
        attempt = self.attempts.pop(data.draw(st.integers(0, len(self.attempts) - 1)))
        self.kafka.fails = fails
        self._end(attempt)
        self.kafka.fails = ""

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def a_task_is_killed(self, data: st.DataObject) -> None:
        """Nothing more is heard of it."""
        self.attempts.pop(data.draw(st.integers(0, len(self.attempts) - 1)))

    @precondition(lambda self: self.call.tasks and len(self.done) == self.call.tasks)
    @rule()
    def the_batch_is_done(self) -> None:
        """Everything of it is there, and the next one comes, whose number of tasks is free."""
        wanted = {b"%d/%d" % (self.call.batch, key) for key in range(KEYS)}
        assert wanted <= set(self.kafka.values)
        self.call = replace(self.call, batch=self.call.batch + 1, tasks=0)
        self.done.clear()

    @rule()
    def everything_goes_well_for_once(self) -> None:
        """A whole batch from its plan to its last task, so that many batches are seen."""
        for tasks in (self.call.tasks or 3, 1, 2, 3, 4):
            self.a_driver_plans_the_batch(tasks)
            if self.call.tasks:
                break
        for task in range(self.call.tasks):
            self._whole_attempt(self.call, task)
        self.the_batch_is_done()

    @invariant()
    def nothing_is_there_twice(self) -> None:
        """No row of any batch."""
        assert not [row for row, count in Counter(self.kafka.values).items() if count > 1]

    def _start(self, call: Call, task: int) -> None:
        attempt = Attempt(call, task, ExactlyOnceDelivery(call, task, self.kafka.open))
        try:
            self._send(attempt, rows_of(call, task)[:1])
        except OptionError:
            attempt.delivery.abort()
            # What a driver has planned can be done, whatever columns the tasks of the runs before had.
            if call == self.call:
                raise
        except (CheckpointError, BrokerError):
            attempt.delivery.abort()
        else:
            self.attempts.append(attempt)

    def _end(self, attempt: Attempt) -> None:
        try:
            self._send(attempt, rows_of(attempt.call, attempt.task)[1:])
            attempt.delivery.commit()
        except (BrokerError, DeliveryError):
            attempt.delivery.abort()
        else:
            if attempt.call == self.call:
                self.done.add(attempt.task)

    def _whole_attempt(self, call: Call, task: int) -> None:
        before = len(self.attempts)
        self._start(call, task)
        if len(self.attempts) > before:
            self._end(self.attempts.pop())

    def _send(self, attempt: Attempt, rows: list[bytes]) -> None:
        for row in rows:
            attempt.delivery.send(Messages("t", octets([b"k"]), octets([row])))


@pytest.mark.parametrize("step", ["", *STEPS])
@pytest.mark.parametrize("fails", ["", "flush", "commit", "answer"])
@pytest.mark.parametrize("tasks", [1, 3])
def test_a_story_of_all_that_happens(step: str, fails: str, tasks: int) -> None:
    """The law, where a rival comes in the middle of each step, the end fails in each way, and drivers and tasks of old runs go on."""
    law = ExactlyOnce()
    law.everything_goes_well_for_once()
    law.a_driver_plans_the_batch(tasks)
    planned = law.call
    law._start(planned, 0)
    law.a_driver_plans_the_batch(tasks)
    law.a_driver_plans_the_batch(tasks + 1)
    if step:
        law.kafka.meanwhile[step] = lambda: law._whole_attempt(law.call, 0)
    law._start(law.call, 0)
    law.kafka.meanwhile.clear()
    for task in range(tasks):
        law._start(law.call, task)
    law.kafka.fails = fails
    while law.attempts:
        law._end(law.attempts.pop(0))
        law.nothing_is_there_twice()
    law.kafka.fails = ""
    for old in (planned, law.calls[0]):
        with suppress(CheckpointError, OptionError):
            prepare(old, law.kafka.open)
        law._whole_attempt(old, 0)
        law.nothing_is_there_twice()
    law.everything_goes_well_for_once()
    law.nothing_is_there_twice()


TestExactlyOnce = ExactlyOnce.TestCase
TestExactlyOnce.__doc__ = "Each row is committed once, whatever fails in between."
TestExactlyOnce.settings = runs(40, steps=30)
