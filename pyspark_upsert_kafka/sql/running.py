"""Runs a compiled script: everything is checked first, then done in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any

from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import printable
from pyspark_upsert_kafka.core.options import TableOptions
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.sink.update_mode import upsert_sink
from pyspark_upsert_kafka.sql.checkpoints import (
    check_owner,
    folders_of,
    names_of,
    release,
    reserved,
    write_owner,
)
from pyspark_upsert_kafka.sql.frames import frame_of
from pyspark_upsert_kafka.sql.jobs import CompiledScript, Job
from pyspark_upsert_kafka.sql.stream_rows import ORDER
from pyspark_upsert_kafka.sql.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


logger = logging.getLogger("pyspark_upsert_kafka")

_ROWS_SHOWN = 1000


_POLL_S = 0.2
"""How often the state of streams is checked."""


@dataclass(frozen=True)
class Ready:
    """A statement that is checked.

    Args:
        job: The statement.
        rows: Its rows.
        name: The name of its query, if it is a stream.
        folder: The checkpoint of its query; None = a temporary one.
        is_new: Whether the checkpoint is to be made.
    """

    job: Job
    rows: DataFrame
    name: str = ""
    folder: str | None = None
    is_new: bool = False


def run(spark: SparkSession, script: CompiledScript) -> list[StreamingQuery]:
    """Runs a script.

    Args:
        spark: The session.
        script: The script.

    Returns:
        The streaming queries that were started; batch statements are done.

    Raises:
        OptionError: Spark does not take a query, or the types of its columns; nothing has happened then.
        CheckpointError: A checkpoint belongs to another statement; nothing has happened then.
        BrokerError: A broker or a topic is not there; nothing has happened then.
    """
    for warning in script.warnings:
        logger.warning(warning)
    queries: list[StreamingQuery] = []
    with _settings(spark, script):
        ready = _checked(spark, script)
        try:
            for each in ready:
                query = _do(spark, each)
                if query is not None:
                    queries.append(query)
                    _wait_for_source(queries[0])
        except BaseException:
            stop(queries)
            raise
    return queries


@contextmanager
def _settings(spark: SparkSession, script: CompiledScript) -> Iterator[None]:
    """Spark's settings on which the meaning of a script depends; a query keeps those it was started with."""
    wanted = {"spark.sql.ansi.enabled": "true", "spark.sql.parser.escapedStringLiterals": "false"}
    if script.time_zone is not None:
        wanted["spark.sql.session.timeZone"] = script.time_zone
    before = {name: str(spark.conf.get(name)) for name in wanted}
    # Spark warns where a deprecated one is set, even to what it is.
    changed = [name for name in wanted if before[name] != wanted[name]]
    for name in changed:
        spark.conf.set(name, wanted[name])
    try:
        yield
    finally:
        for name in changed:
            spark.conf.set(name, before[name])


def _checked(spark: SparkSession, script: CompiledScript) -> list[Ready]:
    """The statements, if each of them can be done."""
    streams = [job for job in script.jobs if job.is_stream]
    folders = dict(zip(map(id, streams), folders_of(streams), strict=True))
    active = [query.name for query in spark.streams.active if query.name]
    names = dict(zip(map(id, streams), names_of(streams, active), strict=True))
    ready = []
    for job in script.jobs:
        folder = folders.get(id(job))
        is_new = folder is not None and not check_owner(spark, job, folder)
        ready.append(Ready(job, frame_of(spark, job), names.get(id(job), ""), folder, is_new))
    if (
        getattr(spark, "_jsparkSession", None) is not None
    ):  # a client of Spark Connect may see no broker
        _check_topics(script)
    return ready


def _check_topics(script: CompiledScript) -> None:
    """Asks the brokers for every topic that is read or written."""
    wanted: dict[TableOptions, None] = {}
    for job in script.jobs:
        tables = [table.check_read(batch=not job.is_stream) for table in job.query.tables.values()]
        wanted.update(dict.fromkeys(options.table for options in tables))
        if job.table is not None:
            wanted[job.table.check_written().table] = None
    for table in wanted:
        with closing(load_client(table.client).cluster(table.properties, "reader")) as cluster:
            cluster.topics(table.topics)


def _do(spark: SparkSession, ready: Ready) -> StreamingQuery | None:
    job = ready.job
    if not job.is_stream:
        if job.table is None:
            _show(ready.rows, 0)
        else:
            upsert_sink(job.table.options(batch=False))(ready.rows, 0)
        return None
    if ready.folder is not None and ready.is_new:
        write_owner(spark, job, ready.folder)
    return _started(ready)


def _started(ready: Ready) -> StreamingQuery:
    job = ready.job
    sink = _show if job.table is None else upsert_sink(_sink_options(job, job.table))
    writer = ready.rows.writeStream.outputMode("update").foreachBatch(sink).queryName(ready.name)
    if ready.folder is not None:
        writer = writer.option("checkpointLocation", ready.folder)
    if job.is_bounded:
        writer = writer.trigger(availableNow=True)
    elif job.settings.interval_s is not None:
        writer = writer.trigger(
            processingTime=f"{round(job.settings.interval_s * 1000)} milliseconds"
        )
    if ready.folder is None:
        return writer.start()
    with reserved(ready.folder, job.place) as remember:
        query = writer.start()
        remember(query)
    return query


def _wait_for_source(query: StreamingQuery) -> None:
    """Waits until a query has started its source, before another is started.

    Two that do so at once in a new session can break the map of settings that all queries of a data source share, for
    as long as the session lives: Spark's ``PythonStreamingSourceRunner.init`` changes it without a lock.
    """
    while query.isActive and query.status["message"].startswith("Initializing"):
        time.sleep(_POLL_S)


def _sink_options(job: Job, table: Table) -> dict[str, str]:
    """The options of a sink: where its rows show their order, changes of a key are put in it."""
    options = table.options(batch=False)
    in_order = job.query.rows is not None and job.query.rows.in_order
    if in_order and "sequence-by" not in {**table.statement.definition.options, **options}:
        options["sequence-by"] = ORDER
    return options


def _show(rows: DataFrame, _batch: int) -> None:
    """Prints rows as Spark does; of what may control a terminal, Spark escapes line breaks only."""
    frame: Any = rows
    text: str = frame._show_string(_ROWS_SHOWN, truncate=False)  # noqa: SLF001 - show() prints it as it is
    print(*map(printable, text.split("\n")), sep="\n")  # noqa: T201


def wait(queries: Sequence[StreamingQuery], timeout: float | None) -> bool:
    """Waits until all queries have ended, or until the timeout.

    Returns:
        Whether all have ended.

    Raises:
        StreamingQueryException: One has failed; the others are stopped then.
    """
    end = None if timeout is None else time.monotonic() + timeout
    try:
        while any(query.isActive for query in queries):
            _raise_failure(queries)
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(_POLL_S)
        _raise_failure(queries)
    except BaseException:
        stop(queries)
        raise
    release(queries)
    return True


def stop(queries: Sequence[StreamingQuery]) -> None:
    """Stops those of the queries that run.

    Other threads do it, since each has a connection to the JVM of its own: on this thread's, Ctrl-C may have left an answer
    that is not read.
    """
    with ThreadPool(1) as pool:
        pool.map(lambda query: query.stop(), queries)
    release(queries)


def _raise_failure(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        error = query.exception()
        if error is not None:
            raise error
