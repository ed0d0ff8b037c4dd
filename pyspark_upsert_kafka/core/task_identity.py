"""Which task of which micro-batch runs: what names a transaction and the record of its completion."""

from __future__ import annotations

from dataclasses import dataclass


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
