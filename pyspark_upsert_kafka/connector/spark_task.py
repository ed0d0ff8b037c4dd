"""A task in one of Spark's Python workers: which one it is, what it knows of the session, and what it does first."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass

from pyspark import TaskContext

QUERY_ID = "sql.streaming.queryId"

BATCH_ID = "streaming.sql.batchId"
"""Local properties that Spark sets for the jobs of a micro-batch."""

_JOB_GROUP = "spark.jobGroup.id"
"""The job group of a streaming query is the id of its run."""

KEPT_CODECS = 8
"""A Python worker keeps the compiled decoders and encoders of at most this many tables, for its next tasks."""


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


def current_run() -> str | None:
    """The id of the run of the streaming query whose task runs here; None = it is none, or Spark does not tell."""
    context = TaskContext.get()
    if context is None or context.getLocalProperty(QUERY_ID) is None:
        return None
    return context.getLocalProperty(_JOB_GROUP)


def session_time_zone() -> str:
    """The time zone of the session, as a task knows it."""
    context = TaskContext.get()
    zone = context.getLocalProperty("spark.sql.session.timeZone") if context else None
    return zone or "UTC"


class _Frozen:
    """How many modules there were when objects were frozen."""

    modules = 0


def freeze_modules() -> None:
    """Takes all objects out of the garbage collector's search, if modules were imported since the last call.

    After each task Spark has its Python worker look for garbage (``gc.collect()`` in ``pyspark/daemon.py``). Most of what
    it looks through are modules, which stay: 20 to 45 ms of CPU time, where a small task takes less. So each task calls
    this first, and so does the code that plans a query in such a worker. It costs nothing (``gc.freeze()``).

    Example::

        freeze_modules()
    """
    if len(sys.modules) > _Frozen.modules:
        gc.freeze()
        _Frozen.modules = len(sys.modules)
