"""The message that a user sees of an error, also when Spark passes it on inside a traceback."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from pyspark_upsert_kafka.core import errors

# What Spark appends: SQLSTATE, the plan, the JVM's stack.
_END = r"(?=\n+ ?SQLSTATE:|\n+\s+at |\n+JVM stacktrace|\n+=== |\n+== SQL|\Z)"
_FROM_WORKER = re.compile(
    rf"^(?:Caused by: )?{re.escape(errors.__name__)}\.\w+: (.+?){_END}", re.DOTALL | re.MULTILINE
)
_FROM_SPARK = re.compile(r"\s*(?:\[[\w.]+\] )?(.+?)(?= SQLSTATE:|\n\n|\Z)", re.DOTALL)


def user_message(error: Exception) -> str | None:
    """The message of an error that this package or Spark raises on purpose; None for a bug."""
    if isinstance(error, errors.UpsertKafkaError):
        return str(error)
    if not isinstance(error, PySparkException):
        return None
    from_worker = _FROM_WORKER.search(str(error))
    if from_worker:
        return from_worker[1].strip()
    # Spark's own message, such as on a schema that it cannot parse; with a traceback it is a bug.
    from_spark = _FROM_SPARK.match(str(error))
    return None if "Traceback" in str(error) or from_spark is None else from_spark[1].strip()
