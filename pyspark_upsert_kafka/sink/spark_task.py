"""What Spark tells a running task of a sink."""

from __future__ import annotations

from pyspark import TaskContext

from pyspark_upsert_kafka.core.options import WriteOptions
from pyspark_upsert_kafka.core.task_identity import TaskIdentity
from pyspark_upsert_kafka.core.warning import speculation, warn_once

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
