"""Which task of a sink runs, and what Spark tells it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext

from pyspark_upsert_kafka.core.options import WriteOptions
from pyspark_upsert_kafka.core.warning import speculation, warn_once


@dataclass(frozen=True)
class TaskIdentity:
    """A task, the same each time that it runs; only the attempt differs.

    Args:
        query: Id of the streaming query, which survives restarts; None in a batch job.
        batch: Number of the micro-batch; None in a batch job.
        task: Number of the task within the batch, from 0.
        attempt: How many times Spark has run it before.
    """

    query: str | None = None
    batch: int | None = None
    task: int = 0
    attempt: int = 0

    def __str__(self) -> str:
        """The task in a sentence.

        >>> str(TaskIdentity("7d0c", 12, 3))
        'task 3 (attempt 0) of batch 12 of query 7d0c'
        >>> str(TaskIdentity(task=3, attempt=1))
        'task 3 (attempt 1)'
        """
        task = f"task {self.task} (attempt {self.attempt})"
        return task if self.query is None else f"{task} of batch {self.batch} of query {self.query}"


QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
"""Local properties that Spark sets for the jobs of a micro-batch."""


def current_task() -> TaskIdentity:
    """The task that runs here."""
    context = TaskContext.get()
    if context is None:
        return TaskIdentity()
    batch = context.getLocalProperty(BATCH_ID)
    return TaskIdentity(
        query=context.getLocalProperty(QUERY_ID),
        batch=None if batch is None else int(batch),
        task=context.partitionId(),
        attempt=context.attemptNumber(),
    )


def warn_of_speculation(task: TaskIdentity, options: WriteOptions) -> None:
    """Warns in the first task of a job, since Spark shows its settings to tasks only.

    `upsert_sink` sees them itself and has warned already.
    """
    context = TaskContext.get()
    if context is not None and task.task == 0 and options.order is None:
        setting = context.getLocalProperty("spark.speculation")
        warn_once(*speculation(setting, str(options.table.topics)))
