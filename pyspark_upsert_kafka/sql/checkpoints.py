"""Checkpoints of the streams of a script: their folders, which statement each belongs to, and which query uses it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pyspark.errors import AnalysisException

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.sql.jobs import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


_UNUSUAL = re.compile(r"[^\w.-]")


OWNER = "run-sql-statement"
"""The file of a checkpoint that says whose it is."""

_LOCK = "run-sql-lock"


def names_of(jobs: Sequence[Job], taken: Sequence[str]) -> list[str]:
    """A name for each stream: its ``pipeline.name`` or its table, with a number if that name is used already.

    Args:
        jobs: The streams.
        taken: Names of queries that run already.

    Returns:
        The names, in the order of the streams.
    """
    found: list[str] = []
    for job in jobs:
        wanted = job.settings.name or (job.table.name if job.table else "select")
        name, number = wanted, 1
        while name in found or name in taken:
            number += 1
            name = f"{wanted}-{number}"
        found.append(name)
    return found


def folders_of(jobs: Sequence[Job]) -> list[str | None]:
    """The checkpoint of each stream; None = a temporary one.

    Raises:
        CheckpointError: A query uses it already, or another of the streams.
    """
    found: list[str | None] = []
    for job, name in zip(jobs, names_of(jobs, ()), strict=True):
        folder = None
        if job.settings.checkpoints is not None:
            folder = f"{job.settings.checkpoints.rstrip('/')}/{_UNUSUAL.sub('_', name)}"
            if folder in found:
                raise CheckpointError(
                    f"{job.place}: the queries {name!r} and another of this script have one checkpoint, {folder!r}: SET "
                    "'pipeline.name' to a name of letters and digits before one of them."
                )
            check_unused(folder, job.place)
        found.append(folder)
    return found


def check_owner(spark: SparkSession, job: Job, folder: str) -> bool:
    """Whether a checkpoint is there already, made by the same statement.

    Raises:
        CheckpointError: Another statement has made it.
    """
    try:
        rows = spark.read.text(f"{folder}/{OWNER}", wholetext=True).collect()
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        return False
    if [row[0].strip() for row in rows] != [_identity(job)]:
        raise CheckpointError(
            f"{job.place}: the checkpoint {folder!r} belongs to another statement, whose state it holds. Give this script a "
            "folder of its own, or delete that one to begin anew."
        )
    return True


def write_owner(spark: SparkSession, job: Job, folder: str) -> None:
    """Writes into a new checkpoint which statement it belongs to."""
    text = spark.createDataFrame([(_identity(job),)], "value STRING")
    text.coalesce(1).write.text(f"{folder}/{OWNER}")


def _identity(job: Job) -> str:
    """The parts of a statement that may not change from one run to the next. Options may change."""
    return json.dumps(
        {
            "query": job.query.sql,
            "reads": {name: table.name for name, table in job.query.tables.items()},
            "writes": job.table.name if job.table else None,
            "columns": [f"{c.name} {c.dataType.simpleString()}" for c in job.columns],
        }
    )


@dataclass(frozen=True)
class _Use:
    """The query that uses a checkpoint.

    Args:
        query: The query.
        lock: The file that is locked while the query runs; None = the checkpoint is not on this machine.
    """

    query: StreamingQuery
    lock: IO[bytes] | None


_used: dict[str, _Use] = {}
"""The use of each checkpoint by this process."""


def check_unused(folder: str, place: Place) -> None:
    """Rejects a checkpoint that is in use.

    Args:
        folder: The checkpoint.
        place: The place of the statement that wants it.

    Raises:
        CheckpointError: A query of this process uses it, or one of another process on this machine.
    """
    use = _used.get(folder)
    if use is not None and use.query.isActive:
        raise CheckpointError(
            f"{place}: the checkpoint {folder!r} belongs to a query that is running: stop that one, or give "
            "this script a folder of its own."
        )
    _release(folder)
    lock = _locked(folder, place)
    if lock is not None:
        lock.close()


@contextmanager
def reserved(folder: str, place: Place) -> Iterator[Callable[[StreamingQuery], None]]:
    """Reserves a checkpoint for a query that is started within; it is free again when none is started.

    Args:
        folder: The checkpoint, whose owner is written already.
        place: The place of the query's statement.

    Yields:
        A function that must be called with the started query.

    Raises:
        CheckpointError: Another process has just taken it.
    """
    lock = _locked(folder, place)

    def remember(query: StreamingQuery) -> None:
        _used[folder] = _Use(query, lock)

    try:
        yield remember
    except BaseException:
        if lock is not None:
            lock.close()
        raise


def release(queries: Sequence[StreamingQuery]) -> None:
    """Frees the checkpoints of queries that have ended."""
    for folder in [folder for folder, use in _used.items() if use.query in queries]:
        _release(folder)


def _release(folder: str) -> None:
    use = _used.pop(folder, None)
    if use is not None and use.lock is not None:
        use.lock.close()


def _locked(folder: str, place: Place) -> IO[bytes] | None:
    """The lock of a folder. It is released when the file is closed, or when the process ends in any way."""
    path = Path(re.sub("^file:(?://)?", "", folder))
    if not (path / OWNER).exists():  # it is new, or not on this machine
        return None
    import fcntl  # not where there are no such locks

    file = (path / _LOCK).open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise CheckpointError(
            f"{place}: the checkpoint {folder!r} belongs to a query of another process on this machine: end that one, or "
            "give this script a folder of its own."
        ) from None
    return file
