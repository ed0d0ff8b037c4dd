"""Commits by others at the same time: the engine refuses the later one, and it is tried again."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from pyspark_upsert_kafka.core.backoff import Backoff

_log = logging.getLogger("pyspark_upsert_kafka")
_T = TypeVar("_T")

_PAUSES = Backoff(0.5, 30.0)

_CONFLICT = re.compile(
    # Delta Lake's names of errors
    r"DELTA_CONCURRENT_\w+|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    r"|sql\.delta\.Concurrent\w+Exception|sql\.delta\.(?:Metadata|Protocol)ChangedException"
    # Iceberg's, and how those of its errors begin that have other reasons too
    r"|iceberg\.exceptions\.Commit(?:Failed|StateUnknown)Exception"
    r"|iceberg\.exceptions\.ValidationException: (?:Found|Missing required|Cannot commit|Cannot determine history)[^\n]*"
    r"|the table has been concurrently modified"
    # Spark's, when a table has changed after a statement was analysed
    r"|INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS"
)


def conflict(error: BaseException) -> str | None:
    """What an engine says about a commit of somebody else; None = the error is another one."""
    for text in _texts(error):
        found = _CONFLICT.search(text)
        if found:
            return found[0]
    return None


def _texts(error: BaseException) -> Iterator[str]:
    """What an error says, and the errors behind it: Spark hides those of an engine in stack traces of the JVM."""
    seen: BaseException | None = error
    while seen is not None:
        yield str(seen)
        for name in ("_stackTrace", "_stacktrace"):  # of a classic session, of Spark Connect
            yield str(getattr(seen, name, None) or "")
        seen = seen.__cause__ or seen.__context__


@dataclass(frozen=True)
class Attempts:
    """How long, and how often, something is tried that may conflict with what others do.

    Args:
        limit_s: For how long it is tried again, in seconds.
        backoff: How long is waited in between.
        clock: Gives the time, in seconds.
        sleep: Waits so many seconds.
    """

    limit_s: float = 600.0
    backoff: Backoff = _PAUSES
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self, action: Callable[[], _T], what: str) -> _T:
        """Runs an action until it meets no conflict, and returns what it returns.

        Args:
            action: What is run.
            what: What it is, for the log.

        Raises:
            Exception: What the action raises, if it is no conflict, or still is one when the time is over.
        """
        started, failed = self.clock(), 0
        while True:
            try:
                return action()
            except Exception as error:
                said = conflict(error)
                pause_s = self.backoff.pause_s(failed)
                if said is None or self.clock() - started + pause_s > self.limit_s:
                    raise
                _log.warning(
                    "%s met a commit of somebody else (%s). It is tried again in %.1f seconds.",
                    what, said, pause_s,
                )  # fmt: skip
            failed += 1
            self.sleep(pause_s)
