"""What a check has found: one line of the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from pyspark_upsert_kafka.core.errors import UpsertKafkaError


class Level(Enum):
    """How bad it is; the values are those of ``--output json``."""

    OK = "ok"
    """It is well."""

    NOT_CHECKED = "not-checked"
    """It could not be looked at."""

    WARNING = "warning"
    """A job runs, and this will hurt it."""

    ERROR = "error"
    """A job fails, or gives wrong rows."""


@dataclass(frozen=True)
class Finding:
    """What a check has found.

    Args:
        check: The name of the check; it does not change from version to version.
        level: How bad it is.
        text: What was seen.
        advice: What to do; empty = nothing.
        topic: The topic that was looked at; None = it is not about one.
    """

    check: str
    level: Level
    text: str
    advice: str = ""
    topic: str | None = None


@dataclass(frozen=True)
class NotSeen:
    """Takes the place of facts that could not be looked at.

    Args:
        why: Why, as a sentence without its full stop.
        advice: What to do so that it can be looked at; empty = nothing helps.
    """

    why: str
    advice: str = ""

    def finding(self, check: str, topic: str | None = None) -> Finding:
        """What a check says that needs these facts."""
        return Finding(check, Level.NOT_CHECKED, self.why, self.advice, topic)


def error_finding(check: str, error: UpsertKafkaError, advice: str = "") -> Finding:
    """What a check has found that ended with an error."""
    return Finding(check, Level.ERROR, str(error).rstrip("."), advice)


def exit_code(levels: Iterable[Level]) -> int:
    """The exit code of the command.

    >>> exit_code([Level.OK, Level.NOT_CHECKED]), exit_code([Level.WARNING]), exit_code([Level.ERROR, Level.OK])
    (0, 1, 2)
    """
    found = set(levels)
    if Level.ERROR in found:
        return 2
    return 1 if Level.WARNING in found else 0
