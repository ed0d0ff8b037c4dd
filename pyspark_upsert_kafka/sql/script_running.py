"""Runs a compiled script: everything is checked first, then done in order.

A stream's checkpoint has a folder of its own, which says whose it is, and is locked while a query uses it.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from pyspark_upsert_kafka.connector.writing.update_mode import upsert_sink
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.core.errors import CheckpointError, printable
from pyspark_upsert_kafka.core.options.frozen_options import TableOptions
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.sql.script_compiler import CompiledScript, Job
from pyspark_upsert_kafka.sql.script_frames import frame_of
from pyspark_upsert_kafka.sql.script_tables import Table
from pyspark_upsert_kafka.sql.stream_rows import ORDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


logger = logging.getLogger("pyspark_upsert_kafka")

_ROWS_SHOWN = 1000

_POLL_S = 0.2
"""How often the state of streams is checked."""

_UNUSUAL = re.compile(r"[^\w.-]|^\.+$")
"""What the name of a folder does not have; dots alone would be the folder around it, or the one above that."""

_OWNER = "run-sql-statement"
"""The file of a checkpoint that says whose it is."""

_LOCK = "run-sql-lock"


@dataclass(frozen=True)
class _Ready:
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


def _checked(spark: SparkSession, script: CompiledScript) -> list[_Ready]:
    """The statements, if each of them can be done."""
    streams = [job for job in script.jobs if job.is_stream]
    folders = dict(zip(map(id, streams), folders_of(streams), strict=True))
    active = [query.name for query in spark.streams.active if query.name]
    names = dict(zip(map(id, streams), names_of(streams, active), strict=True))
    ready = []
    for job in script.jobs:
        folder = folders.get(id(job))
        is_new = folder is not None and not _check_owner(spark, job, folder)
        ready.append(_Ready(job, frame_of(spark, job), names.get(id(job), ""), folder, is_new))
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


def _do(spark: SparkSession, ready: _Ready) -> StreamingQuery | None:
    job = ready.job
    if not job.is_stream:
        if job.table is None:
            _show(ready.rows, 0)
        else:
            upsert_sink(job.table.options(batch=False))(ready.rows, 0)
        return None
    if ready.folder is not None and ready.is_new:
        _write_owner(spark, job, ready.folder)
    return _started(ready)


def _started(ready: _Ready) -> StreamingQuery:
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
    with _reserved(ready.folder, job.place) as remember:
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
    _release_ended(queries)
    return True


def stop(queries: Sequence[StreamingQuery]) -> None:
    """Stops those of the queries that run.

    Other threads do it, since each has a connection to the JVM of its own: on this thread's, Ctrl-C may have left an answer
    that is not read.
    """
    with ThreadPool(1) as pool:
        pool.map(lambda query: query.stop(), queries)
    _release_ended(queries)


def _raise_failure(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        error = query.exception()
        if error is not None:
            raise error


def names_of(jobs: Sequence[Job], taken: Sequence[str]) -> list[str]:
    """A name for each stream: its ``pipeline.name`` or its table, with a number if that name is used already.

    Args:
        jobs: The streams.
        taken: Names of queries that run already.

    Returns:
        The names, in the order of the streams.
    """
    found: list[str] = []
    used, numbers = set(taken), Counter[str]()
    for job in jobs:
        wanted = name = job.settings.name or (job.table.name if job.table else "select")
        while name in used:
            # From the last one on, or as many names were tried as there are statements, for each of them.
            numbers[wanted] += 1
            name = f"{wanted}-{numbers[wanted] + 1}"
        used.add(name)
        found.append(name)
    return found


def folders_of(jobs: Sequence[Job]) -> list[str | None]:
    """The checkpoint of each stream; None = a temporary one.

    Raises:
        CheckpointError: A query uses it already, or another of the streams.
    """
    found: list[str | None] = []
    used: set[str] = set()
    for job, name in zip(jobs, names_of(jobs, ()), strict=True):
        folder = None
        if job.settings.checkpoints is not None:
            folder = f"{job.settings.checkpoints.rstrip('/')}/{_UNUSUAL.sub('_', name)}"
            if folder in used:
                raise CheckpointError(
                    f"{job.place}: the queries {name!r} and another of this script have one checkpoint, {folder!r}: SET "
                    "'pipeline.name' to a name of letters and digits before one of them."
                )
            used.add(folder)
            _check_unused(folder, job.place)
        found.append(folder)
    return found


def _check_owner(spark: SparkSession, job: Job, folder: str) -> bool:
    """Whether a checkpoint is there already, made by the same statement; one that another has made is refused."""
    try:
        rows = spark.read.text(f"{folder}/{_OWNER}", wholetext=True).collect()
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        return False
    if [row[0].strip() for row in rows] != [_identity(job)]:
        raise CheckpointError(
            f"{job.place}: the checkpoint {folder!r} belongs to another statement, whose state it holds. Give this script a "
            "folder of its own, or delete that one to begin anew."
        )
    return True


def _write_owner(spark: SparkSession, job: Job, folder: str) -> None:
    """Writes into a new checkpoint which statement it belongs to."""
    text = spark.createDataFrame([(_identity(job),)], "value STRING")
    text.coalesce(1).write.text(f"{folder}/{_OWNER}")


def _identity(job: Job) -> str:
    """The parts of a statement that may not change from one run to the next. Options may change."""
    return json.dumps(
        {
            "query": job.query.sql,
            "reads": {name: table.name for name, table in job.query.tables.items()},
            "writes": job.table.name if job.table else None,
            "columns": [f"{c.name} {c.dataType.simpleString()}" for c in job.columns],
        }
    )


@dataclass(frozen=True)
class _Use:
    """The query that uses a checkpoint.

    Args:
        query: The query.
        lock: The file that is locked while the query runs; None = the checkpoint is not on this machine.
    """

    query: StreamingQuery
    lock: IO[bytes] | None


_used: dict[str, _Use] = {}
"""The use of each checkpoint by this process."""


def _check_unused(folder: str, place: Place) -> None:
    """Rejects a checkpoint that a query of this process uses, or one of another process on this machine."""
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
def _reserved(folder: str, place: Place) -> Iterator[Callable[[StreamingQuery], None]]:
    """Reserves a checkpoint, whose owner is written already; what it gives must be called with the started query.

    It is free again when none is started.
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


def _release_ended(queries: Sequence[StreamingQuery]) -> None:
    """Frees the checkpoints of queries that have ended."""
    for folder in [folder for folder, use in _used.items() if use.query in queries]:
        _release(folder)


def _release(folder: str) -> None:
    use = _used.pop(folder, None)
    if use is not None and use.lock is not None:
        use.lock.close()


def _locked(folder: str, place: Place) -> IO[bytes] | None:
    """The lock of a folder. It is released when the file is closed, or when the process ends in any way."""
    path = Path(re.sub("^file:(?://)?", "", folder))
    if not (path / _OWNER).exists():  # it is new, or not on this machine
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
