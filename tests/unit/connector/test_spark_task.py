"""Which task runs, as Spark tells it, and what it takes out of the search for garbage."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from pyspark import TaskContext

from pyspark_upsert_kafka.connector.spark_task import TaskIdentity, current_task, freeze_modules


@pytest.mark.parametrize(
    ("properties", "task"),
    [
        ({}, TaskIdentity(task=3, attempt=2)),
        (
            {"sql.streaming.queryId": "7d0c", "streaming.sql.batchId": "12"},
            TaskIdentity("7d0c", 12, 3, 2),
        ),
    ],
)
def test_a_task_is_known_by_query_batch_and_number(monkeypatch, properties, task):
    """In a micro-batch Spark gives the query's id and the batch's number; a batch job has neither."""
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    context = TaskContext._getOrCreate()
    context._partitionId, context._attemptNumber = 3, 2
    context._localProperties = properties

    assert current_task() == task


def test_outside_of_spark_there_is_one_task(monkeypatch):
    """What runs in no task is the first one of a batch job."""
    monkeypatch.setattr(TaskContext, "_taskContext", None)

    assert current_task() == TaskIdentity()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """The objects of the test process are frozen, as tests/conftest.py has it."""
    yield
    gc.freeze()


def test_modules_are_searched_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there when modules had come is frozen; what came after it is not, until there are more modules."""
    monkeypatch.setitem(sys.modules, "tests.first", ModuleType("tests.first"))
    freeze_modules()
    assert not gc.get_objects(generation=2)

    kept = [[] for _ in range(1_000)]
    freeze_modules()
    gc.collect()
    assert any(each is kept for each in gc.get_objects())

    monkeypatch.setitem(sys.modules, "tests.second", ModuleType("tests.second"))
    freeze_modules()
    assert not any(each is kept for each in gc.get_objects())
