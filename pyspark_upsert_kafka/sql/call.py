"""``run_sql``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_upsert_kafka.core.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pyspark_upsert_kafka.sql.plans import Mode

_MODES = ("streaming", "batch")


def run_sql(
    spark: SparkSession, script: str, *, mode: Mode | None = None, timeout: float | None = None
) -> list[StreamingQuery]:
    """Runs a script of Flink's SQL as it stands.

    The whole script is read and checked before any of it runs: after an error, nothing has happened. Its tables and views
    belong to the call. What a script may hold, and what Spark cannot do right in a stream, is in docs/sql.md.

    Args:
        spark: The session.
        script: ``CREATE TABLE``, ``CREATE VIEW``, ``INSERT INTO``, ``SELECT``, statement sets, ``SET`` and ``DROP``.
        mode: ``streaming`` or ``batch``; it wins over ``SET 'execution.runtime-mode'``. Flink's default is streaming.
        timeout: So many seconds the streaming queries may run: it waits for them that long and then stops them. Without it,
            they go on after the call.

    Returns:
        The streaming queries that were started; batch statements are done.

    Raises:
        OptionError: A statement is not understood, or cannot be done right; it names line and column.
        SchemaError: A format cannot carry a column of a table.
        CheckpointError: A checkpoint belongs to another statement, or to a query that is running.
        BrokerError: A broker or a topic is not there.

    Example::

        queries = run_sql(spark, Path("page_views.sql").read_text())
        for query in queries:
            query.awaitTermination()
    """
    from pyspark_upsert_kafka.sql.planning import plan
    from pyspark_upsert_kafka.sql.running import run, stop, wait

    if mode is not None and mode not in _MODES:
        raise OptionError(f"'mode' is {mode!r}: expected one of {', '.join(map(repr, _MODES))}.")
    queries = run(spark, plan(script, mode=mode))
    if timeout is not None and not wait(queries, timeout):
        stop(queries)
    return queries
