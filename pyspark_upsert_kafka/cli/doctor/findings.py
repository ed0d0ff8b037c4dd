"""What a check has found, one line of the report, and how it is worded: durations, sizes, and the commands that are advised."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyspark_upsert_kafka.core.errors import UpsertKafkaError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions


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


_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


def duration(ms: int) -> str:
    """A duration in its largest whole unit, rounded down.

    >>> duration(604_800_000), duration(86_400_000), duration(3_600_000), duration(90_000), duration(20)
    ('7 days', '24 hours', '1 hour', '90 seconds', '20 ms')
    """
    for unit, name in _UNITS:
        if ms >= 2 * unit or (ms == unit and unit < _UNITS[0][0]):
            return counted(ms // unit, name)
    return f"{ms} ms"


def counted(count: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "key"), counted(2_000, "key")
    ('1 key', '2,000 keys')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def grant(operation: str, servers: str, *names: str, resource: str = "topic") -> str:
    """The command that gives a user a right on topics, or on another kind of resource, as the command names it."""
    named = " ".join(f"--{resource} {name}" for name in names)
    return f"kafka-acls.sh --bootstrap-server {servers} --add --allow-principal User:NAME --operation {operation} {named}"


def configure(config: str, topic: str, servers: str) -> str:
    """The command that sets a config of a topic, such as ``retention.ms=-1``."""
    return (
        f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {topic} "
        f"--add-config {config}"
    )


def servers_of(options: ReadOptions) -> str:
    """The bootstrap servers, as commands take them."""
    return options.table.properties.resolved()["bootstrap.servers"]


RETENTION, RETENTION_BYTES, TOMBSTONES = "retention.ms", "retention.bytes", "delete.retention.ms"
"""Configs of topics that checks look at, and advise to set."""
