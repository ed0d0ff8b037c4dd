"""Which batch runs, and the numbers of the calls in it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_upsert_kafka.connector.writing.update_mode import (
    CallNumbers,
    Numbered,
    RunningBatch,
    SinkCall,
    running_batch,
)
from pyspark_upsert_kafka.core.errors import OptionError

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
    """By what the sink is; the same rows need not be distinguished, and receipts elsewhere are not seen."""
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


def java(name: str = "Object", **methods: Any) -> SimpleNamespace:
    """An object of a Java class."""
    class_ = SimpleNamespace(getSimpleName=lambda: name)
    return SimpleNamespace(getClass=lambda: class_, **methods)


class RunningFrame(FakeFrame):
    """As much of a DataFrame in a batch as is asked: what runs in the JVM."""

    def __init__(self, execution: Any) -> None:
        super().__init__(queryId="q", batchId="7")
        util = SimpleNamespace(UUID=SimpleNamespace(fromString=lambda text: ("id", text)))
        lang = SimpleNamespace(Thread=SimpleNamespace(currentThread=lambda: "this thread"))
        self._jvm = SimpleNamespace(java=SimpleNamespace(util=util, lang=lang))
        state = java(activeStreamingQueries=lambda: {("id", "q"): execution})
        self._jsparkSession = java(sharedState=lambda: state)


def execution(thread: str = "this thread", *, is_optional: bool = True) -> Any:
    """A streaming query whose batch 7 was planned at 77 ms."""
    metadata = java("OffsetSeqMetadata", batchTimestampMs=lambda: 77)
    second = java("Some", get=lambda: metadata) if is_optional else metadata
    planned = java(productElement=lambda at: ("offsets", second)[at], toString=lambda: "[7]")
    log = java(get={7: java(get=lambda: planned)}.__getitem__)
    return java(
        offsetLog=lambda: log,
        runId=lambda: java(toString=lambda: "run 1"),
        queryExecutionThread=lambda: java(equals=lambda other: other == thread),
    )


@pytest.mark.parametrize("is_optional", [True, False])
def test_what_the_checkpoint_says_of_a_batch(is_optional: bool) -> None:
    """The offsets, and when the batch was planned: by offsets alone two plans may be the same."""
    frame: Any = RunningFrame(execution(is_optional=is_optional))

    assert running_batch(frame, 7) == RunningBatch("q", "run 1", 7, "[7] 77")


@pytest.mark.parametrize("running", [None, execution("another thread")])
def test_only_the_thread_of_the_query_writes(running: Any) -> None:
    """The order of threads is random; and a query that has ended runs in none."""
    frame: Any = RunningFrame(running)

    with pytest.raises(OptionError, match="from another thread"):
        running_batch(frame, 7)
