"""Errors of this package as one sentence, also from within the tracebacks that Spark passes on."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from pyspark_upsert_kafka.core import errors

# What Spark appends: SQLSTATE, the plan, the JVM's stack.
_END = r"(?=\n+ ?SQLSTATE:|\n+\s+at |\n+JVM stacktrace|\n+=== |\n+== SQL|\Z)"
_RAISED_IN_A_WORKER = re.compile(
    rf"^(?:Caused by: )?{re.escape(errors.__name__)}\.\w+: (.+?){_END}", re.DOTALL | re.MULTILINE
)
_SPARKS_OWN = re.compile(r"\s*(?:\[[\w.]+\] )?(.+?)(?= SQLSTATE:|\n\n|\Z)", re.DOTALL)


def sentence(error: Exception) -> str | None:
    """What the user must know of an error; None = it is none that we or Spark raise on purpose."""
    if isinstance(error, errors.UpsertKafkaError):
        return str(error)
    if not isinstance(error, PySparkException):
        return None
    ours = _RAISED_IN_A_WORKER.search(str(error))
    if ours:
        return ours[1].strip()
    # Spark's words on a schema or an expression that it cannot read; a traceback is a bug, ours or its.
    sparks = _SPARKS_OWN.match(str(error))
    return None if "Traceback" in str(error) or sparks is None else sparks[1].strip()
