"""Scripts of Flink's SQL, run by Spark.

The whole script is parsed and checked before any statement runs. A part that may mean something else in Spark is
rejected with its line and column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_upsert_kafka.core.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pyspark_upsert_kafka.sql.script_compiler import Mode

_MODES = ("streaming", "batch")


def run_sql(
    spark: SparkSession, script: str, *, mode: Mode | None = None, timeout: float | None = None
) -> list[StreamingQuery]:
    """Runs a script of Flink's SQL without changes to it.

    The whole script is parsed and checked before any statement runs. So if a statement is rejected, nothing has run. The
    tables and views of the script exist only during the call. Which statements a script may contain, and what Spark cannot
    do correctly in a stream, is in https://github.com/pyspark-upsert-kafka/pyspark-upsert-kafka/tree/main/docs/sql.md.

    Args:
        spark: The session.
        script: ``CREATE TABLE``, ``CREATE VIEW``, ``INSERT INTO``, ``SELECT``, statement sets, ``SET`` and ``DROP``.
        mode: ``streaming`` or ``batch``; it replaces ``SET 'execution.runtime-mode'``. The default is streaming, as in Flink.
        timeout: How long the streaming queries may run, in seconds: the call waits for them that long, and then stops
            them. Without it, they continue after the call.

    Returns:
        The streaming queries that were started. Batch statements are finished.

    Raises:
        OptionError: A statement is not understood, or cannot be executed correctly; the text gives line and column.
        SchemaError: A format does not support a column of a table.
        CheckpointError: A checkpoint belongs to another statement, or to a running query.
        BrokerError: A broker does not answer, or a topic does not exist.

    Example::

        from pyspark_upsert_kafka import run_sql

        script = '''
            CREATE TABLE users (user_id BIGINT, region STRING, PRIMARY KEY (user_id) NOT ENFORCED)
            WITH ('connector' = 'upsert-kafka', 'topic' = 'users', 'key.format' = 'json', 'value.format' = 'json',
                  'properties.bootstrap.servers' = 'localhost:9092');
            CREATE TABLE users_per_region (region STRING, users BIGINT, PRIMARY KEY (region) NOT ENFORCED)
            WITH ('connector' = 'upsert-kafka', 'topic' = 'users_per_region', 'key.format' = 'json', 'value.format' = 'json',
                  'properties.bootstrap.servers' = 'localhost:9092');
            INSERT INTO users VALUES (1, 'Asia'), (2, 'Europe'), (3, 'Asia');
            INSERT INTO users_per_region SELECT region, COUNT(*) FROM users GROUP BY region;
        '''
        run_sql(spark, script, mode="batch")
    """
    from pyspark_upsert_kafka.sql.script_compiler import compile_script
    from pyspark_upsert_kafka.sql.script_running import run, stop, wait

    if mode is not None and mode not in _MODES:
        raise OptionError(f"'mode' is {mode!r}: expected one of {', '.join(map(repr, _MODES))}.")
    queries = run(spark, compile_script(script, mode=mode))
    if timeout is not None and not wait(queries, timeout):
        stop(queries)
    return queries
