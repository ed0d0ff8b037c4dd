"""Which checkpoints are in use: two queries that go on from one would spoil it, and Spark tells only when they have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.core.errors import CheckpointError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

OWNER = "run-sql-statement"
"""The file of a checkpoint that says whose it is."""

_LOCK = "run-sql-lock"


@dataclass(frozen=True)
class _Use:
    """Who uses a checkpoint.

    Args:
        query: The query.
        lock: The file that is locked meanwhile; None = the checkpoint is not on this machine.
    """

    query: StreamingQuery
    lock: IO[bytes] | None


_used: dict[str, _Use] = {}
"""The use of each checkpoint by this process."""


def refuse_used(folder: str, place: Place) -> None:
    """Refuses a checkpoint that is in use.

    Args:
        folder: The checkpoint.
        place: The place of the statement that wants it.

    Raises:
        CheckpointError: A query of this process uses it, or on this machine that of another one.
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
def taken(folder: str, place: Place) -> Iterator[Callable[[StreamingQuery], None]]:
    """Takes a checkpoint for a query that is started within; it is free again when none is.

    Args:
        folder: The checkpoint, whose owner is written already.
        place: The place of the query's statement.

    Yields:
        What is to be called with the query.

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
    """The lock of a folder; it ends when the file is closed, or with the process, however that ends."""
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
