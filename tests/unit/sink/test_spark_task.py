"""Which task runs, as Spark tells it."""

from __future__ import annotations

import pytest
from pyspark import TaskContext

from pyspark_upsert_kafka.sink.spark_task import TaskIdentity, current_task


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
