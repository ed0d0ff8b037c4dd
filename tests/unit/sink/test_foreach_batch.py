"""Which batch runs, and the numbers of the calls in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sink.update_mode import (
    CallNumbers,
    Numbered,
    RunningBatch,
    SinkCall,
    running_batch,
)

BATCH = RunningBatch("query", "run", 7, "[7]")
CALL = SinkCall("p", "users as JSON", "localhost:9092", rows_hash=1)


def numbered(numbers: CallNumbers, call: SinkCall, batch: RunningBatch = BATCH) -> Numbered:
    """A call that does well."""
    with numbers.numbered(call, batch) as found:
        return found


def test_calls_are_numbered_within_a_batch():
    """Each prefix, query and batch counts from 0; a query that is started again is another run of it."""
    numbers = CallNumbers()

    assert [numbered(numbers, CALL).number for _ in range(3)] == [0, 1, 2]
    assert numbered(numbers, replace(CALL, prefix="q")).number == 0
    assert numbered(numbers, CALL, replace(BATCH, query="other")).number == 0
    assert numbered(numbers, CALL).number == 3
    assert numbered(numbers, CALL, replace(BATCH, batch=8)).number == 0
    assert numbered(numbers, CALL, replace(BATCH, run="another")).number == 0


@pytest.mark.parametrize(
    ("second", "is_known_by_it"),
    [
        (CALL, False),
        (replace(CALL, rows_hash=2), True),
        (replace(CALL, sink="users as CSV", rows_hash=2), False),
        (replace(CALL, prefix="q", rows_hash=2), False),
        (replace(CALL, sink="users as CSV", servers="elsewhere:9092"), True),
    ],
)
def test_a_call_is_told_from_those_before_it(second, is_known_by_it):
    """By what the sink is; the same rows need not be told apart, and receipts elsewhere are not seen."""
    numbers = CallNumbers()
    numbered(numbers, CALL)
    numbered(numbers, replace(CALL, sink="anything else"))

    assert numbered(numbers, second).is_known_by_it is is_known_by_it
    assert not numbered(numbers, second, replace(BATCH, batch=8)).is_known_by_it


def test_no_call_follows_one_that_failed():
    """It would have the next number, and write what finished tasks of the first one have written."""
    numbers = CallNumbers()
    with pytest.raises(ZeroDivisionError), numbers.numbered(CALL, BATCH):
        raise ZeroDivisionError

    with pytest.raises(OptionError, match=r"has failed in batch 7 .* Let its error end the batch"):
        numbered(numbers, CALL)
    assert numbered(numbers, replace(CALL, prefix="q")).number == 0
    assert numbered(numbers, CALL, replace(BATCH, run="another")).number == 0


class FakeFrame:
    """As much of a classic DataFrame as is asked: the local properties of its thread."""

    _jdf = "in the JVM"

    def __init__(self, **properties: str) -> None:
        self._properties = properties
        self.sparkSession = self.sparkContext = self

    def getLocalProperty(self, name: str) -> str | None:
        """What Spark has set for the thread."""
        return self._properties.get(name.rpartition(".")[2])


@pytest.mark.parametrize(
    ("frame", "part"),
    [
        (object(), "does not work over Spark Connect"),
        (FakeFrame(), "this thread runs no streaming query"),
        (FakeFrame(queryId="q"), "this thread runs no streaming query"),
        (FakeFrame(queryId="q", batchId="8"), "called with batch 7 while batch 8 runs"),
    ],
)
def test_without_a_query_that_is_known_nothing_is_written(frame: Any, part: str):
    """No query, another batch, Spark Connect: refused, since receipts would be those of something else."""
    with pytest.raises(OptionError, match=part):
        running_batch(frame, 7)
