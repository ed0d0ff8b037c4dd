"""`merge_sink`: Spark's settings while it merges, and commits of others that it meets."""

from __future__ import annotations

import logging

import pytest
from pyspark.sql.types import StringType, StructField

from pyspark_upsert_kafka.connector.lakehouse.merge_sink import (
    Attempts,
    _adaptive,
    _check_not_filled,
    conflict,
)
from pyspark_upsert_kafka.core.clock import Backoff
from pyspark_upsert_kafka.core.errors import SchemaError


class Session:
    """A session, of which only the settings are there."""

    def __init__(self, **settings: str) -> None:
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}

    @property
    def conf(self) -> Session:
        """The settings."""
        return self

    def get(self, name: str) -> str:
        """The value of a setting."""
        return self.settings[name]

    def set(self, name: str, value: str) -> None:
        """Changes a setting."""
        self.settings[name] = value


def test_settings_are_as_before_when_it_is_done() -> None:
    """Also when the merge fails: the next micro-batch of the stream must be planned as the stream needs it."""
    before = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    }
    session = Session(**before)

    def merge() -> None:
        with _adaptive(session):
            assert set(session.settings.values()) == {"true"}
            raise RuntimeError

    with pytest.raises(RuntimeError):
        merge()
    assert session.settings == before


class WithStackTraceError(Exception):
    """As PySpark's errors keep what the JVM says."""

    def __init__(self, text: str, trace: str) -> None:
        super().__init__(text)
        self._stackTrace = trace


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected.", True),
        ("io.delta.exceptions.X: org.apache.spark.sql.delta.ConcurrentDeleteReadException: y", True),
        ("[DELTA_METADATA_CHANGED] MetadataChangedException", True),
        ("Caused by: org.apache.iceberg.exceptions.ValidationException: Found conflicting files that can", True),
        ("Caused by: org.apache.iceberg.exceptions.ValidationException: Missing required files to delete", True),
        ("org.apache.iceberg.exceptions.CommitFailedException: Version 3 already exists", True),
        ("java.lang.IllegalStateException: the table has been concurrently modified.", True),
        ("org.apache.iceberg.exceptions.ValidationException: Cannot parse type", False),
        ("[DELTA_MERGE_UNRESOLVED_EXPRESSION] Cannot resolve city", False),
        ("Permission denied", False),
    ],
)  # fmt: skip
def test_what_is_a_conflict(text: str, is_one: bool) -> None:
    """Wherever it stands: in the text, in a stack trace, in an error behind."""
    behind = RuntimeError("wrapped")
    behind.__cause__ = ValueError(text)

    for error in (RuntimeError(text), WithStackTraceError("Writing job aborted", text), behind):
        assert (conflict(error) is not None) is is_one


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time, in seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Passes time."""
        self.now += seconds


def attempts(limit_s: float) -> tuple[Attempts, Clock]:
    """Attempts with pauses of 1, 2, 4, 4, ... seconds."""
    clock = Clock()
    backoff = Backoff(1.0, 4.0, random=lambda: 0.5)
    return Attempts(limit_s, backoff, clock, clock.sleep), clock


class Conflicting:
    """Meets a conflict so many times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.calls = 0

    def __call__(self) -> str:
        """Is refused, or done."""
        self.calls += 1
        if self.left:
            self.left -= 1
            raise RuntimeError("DELTA_CONCURRENT_WRITE")
        return "done"


def test_a_conflict_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """With pauses that grow, and a line in the log for each."""
    tries, clock = attempts(60)
    action = Conflicting(4)

    with caplog.at_level(logging.WARNING):
        assert tries.run(action, "The MERGE into 'users'") == "done"

    assert (action.calls, clock.now) == (5, 1 + 2 + 4 + 4)
    assert len(caplog.messages) == 4
    assert caplog.messages[0] == (
        "The MERGE into 'users' met a commit of somebody else (DELTA_CONCURRENT_WRITE). It is tried again in 1.0 seconds."
    )


def test_not_for_ever() -> None:
    """When the time is over, the engine's own error is raised."""
    tries, clock = attempts(10)
    action = Conflicting(1000)

    with pytest.raises(RuntimeError, match="DELTA_CONCURRENT_WRITE"):
        tries.run(action, "it")

    assert (action.calls, clock.now) == (4, 7)


def test_other_errors_are_raised_at_once() -> None:
    """Trying again would not help."""
    tries, clock = attempts(10)

    def action() -> None:
        raise KeyError("no such column")

    with pytest.raises(KeyError):
        tries.run(action, "it")
    assert clock.now == 0


@pytest.mark.parametrize(
    ("declared", "is_refused"), [("char(5)", True), ("varchar(5)", False), (None, False)]
)
def test_a_key_that_is_filled_with_blanks_is_refused(
    declared: str | None, is_refused: bool
) -> None:
    """CHAR(5) holds 'ab   ', which no 'ab' of a stream equals: each batch would insert it again."""
    metadata = {} if declared is None else {"__CHAR_VARCHAR_TYPE_STRING": declared}
    columns = [StructField("k", StringType(), metadata=metadata)]
    for kind in ("key", "sequence"):
        if is_refused:
            message = rf"{kind} column 'k' of the table 'lake.t' is CHAR\(5\)"
            with pytest.raises(SchemaError, match=message):
                _check_not_filled(columns, kind, "lake.t")
        else:
            _check_not_filled(columns, kind, "lake.t")
