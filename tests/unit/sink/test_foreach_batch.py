"""Which batch runs, and the numbers of the calls in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sink.foreach_batch import CallNumbers, RunningBatch, running_batch

BATCH = RunningBatch("query", "run", 7, "[7]")


def test_calls_are_numbered_within_a_batch():
    """Each prefix, query and batch counts from 0."""
    numbers = CallNumbers()

    assert [numbers.next("p", BATCH, 1) for _ in range(3)] == [0, 1, 2]
    assert numbers.next("q", BATCH, 1) == 0
    assert numbers.next("p", replace(BATCH, query="other"), 1) == 0
    assert numbers.next("p", BATCH, 1) == 3
    assert numbers.next("p", replace(BATCH, batch=8), 1) == 0


def test_a_batch_that_runs_again_counts_anew():
    """A query that is started again is another run of it, in another thread."""
    numbers = CallNumbers()
    numbers.next("p", BATCH, 1)
    again = replace(BATCH, run="another")

    assert [numbers.next("p", again, 2) for _ in range(2)] == [0, 1]


def test_calls_in_two_threads_are_refused():
    """Which of them is the first would be chance, and a batch that runs again could swap them."""
    numbers = CallNumbers()
    numbers.next("p", BATCH, 1)

    with pytest.raises(OptionError, match=r"two threads for batch 7 .* prefix of its own"):
        numbers.next("p", BATCH, 2)
    assert numbers.next("p", BATCH, 1) == 1
    assert numbers.next("other", BATCH, 2) == 0


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
        (FakeFrame(), "no query was found"),
        (FakeFrame(queryId="q"), "no query was found"),
        (FakeFrame(queryId="q", batchId="8"), "called with batch 7 while batch 8 runs"),
    ],
)
def test_without_a_query_that_is_known_nothing_is_written(frame: Any, part: str):
    """No query, another batch, Spark Connect: refused, since markers would be those of something else."""
    with pytest.raises(OptionError, match=part):
        running_batch(frame, 7)
