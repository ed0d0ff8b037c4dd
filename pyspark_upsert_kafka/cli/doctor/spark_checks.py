"""Whether the Spark of this Python, or a server of Spark Connect, can load the data source.

A running Spark is asked: for its versions and settings, for the format by its name, and for what its Python workers have.
Facts first, then the functions that make findings of them.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from pkgutil import iter_modules

import pyspark
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from pyspark_upsert_kafka.cli.doctor import worker_facts
from pyspark_upsert_kafka.cli.doctor.findings import Finding, Level, NotSeen, counted
from pyspark_upsert_kafka.cli.terminal import standard_error_to
from pyspark_upsert_kafka.version import current_version

_FORMAT = "upsert-kafka"
_PACKAGE = "pyspark_upsert_kafka"
_ANSWERS_WITHIN_S = 60
_MOST_TASKS = 64
_TASKS_OVER_CONNECT = 8
"""How many tasks ask the workers: a client of Spark Connect does not learn how many cores there are."""

UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
SPECULATION = "spark.speculation"
WORKER_REUSE = "spark.python.worker.reuse"
FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_SETTINGS = {
    UNIX_SOCKETS: "false",
    SPECULATION: "false",
    WORKER_REUSE: "true",
    FILTER_PUSHDOWN: "false",
    STATE_STORE: "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}
"""Settings that matter, with Spark's defaults."""

_READS_NOTHING_YET = 2.4e9
"""Bytes of addresses that a worker has reserved before it reads anything, as docs/cluster.md has measured it."""

_WITH_SYSTEM_POOL = 1.0e9
"""The same with Arrow's pool of the system, with some room to read."""


@dataclass(frozen=True)
class VersionFacts:
    """The program that asks, and the Spark that answers.

    Args:
        spark: Spark's version.
        pyspark: The version of PySpark in the program.
        python: The program's version of Python.
        executable: The program's Python.
        package: The version of this package in the program.
        connect: Whether it is asked over Spark Connect.
        master: Spark's master; empty = it is not told.
    """

    spark: str
    pyspark: str
    python: str
    executable: str
    package: str
    connect: bool
    master: str = ""


@dataclass(frozen=True)
class WorkerFacts:
    """What Python workers say of themselves, those that say the same once.

    Args:
        host: The machine.
        executable: Its Python.
        python: The version of that.
        pyspark: The version of PySpark that the worker runs.
        package: The version of this package; empty = there is none.
        import_errors: The modules that a task needs and that cannot be imported, with the reason.
        requirements: Installed packages of which this one needs a version: their name, that version, and the installed one.
        unix_sockets: Whether it is connected by a Unix socket.
        address_limit: How many bytes of addresses it may reserve; None = as many as it likes.
        arrow_pool: Which memory pool Arrow is told to use; empty = its default.
    """

    host: str
    executable: str
    python: str
    pyspark: str
    package: str
    import_errors: Mapping[str, str]
    requirements: Sequence[Sequence[str]]
    unix_sockets: bool
    address_limit: int | None
    arrow_pool: str


@dataclass(frozen=True)
class LookedUp:
    """What Spark said when the format was asked for without any option.

    Args:
        said: Its error: without options there is one in any case.
        broken: Other packages of this Python that Spark imports when it looks for data sources, and that cannot be imported.
    """

    said: str
    broken: tuple[str, ...] = ()


def spark_findings(given: argparse.Namespace) -> Iterator[Finding]:
    """What is found of Spark; it is started for that, if none runs.

    Args:
        given: The arguments ``remote``, ``master`` and ``conf``.
    """
    with ExitStack() as stack:
        try:
            spark = stack.enter_context(_asked_spark(given))
            versions = _version_facts(spark)
        except _spark_errors(OSError, ImportError) as error:
            yield check_start(
                _first_line(str(error)), given.remote or os.environ.get("SPARK_REMOTE")
            )
            return
        yield from check_versions(versions)
        yield check_java(_java_version(spark))
        yield check_source(_looked_up(spark), versions)
        workers = _workers(spark, versions)
        if isinstance(workers, str):
            yield check_no_worker(workers, versions)
        else:
            yield from check_workers(workers, versions)
        yield from check_settings(_settings(spark), workers, versions)


def _spark_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What Spark's functions raise, in a classic program and in a client of Spark Connect, which may lack py4j."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    except ImportError:
        return (PySparkException, *more)
    return (PySparkException, Py4JError, *more)


@contextmanager
def _asked_spark(given: argparse.Namespace) -> Iterator[SparkSession]:
    """The Spark that the program has already (a notebook's), or else one for this command, which it ends.

    What Spark prints meanwhile goes to a file.

    Raises:
        OSError: Spark does not start, or its server does not answer; with the reason.
    """
    running = SparkSession.getActiveSession()
    if running is not None and given.remote is None and given.master is None:
        yield running
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        log = Path(folder, "spark.log")
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)  # py4j and gRPC log what they raise too
        stack.enter_context(standard_error_to(log))
        try:
            spark = _started(given)
        except _spark_errors(OSError, ImportError) as error:
            launcher = _line_of_launcher(log) if "JAVA_GATEWAY_EXITED" in str(error) else ""
            raise OSError(f"{_first_line(str(error))} {launcher}".strip()) from None
        stack.callback(spark.stop)
        yield spark


def _started(given: argparse.Namespace) -> SparkSession:
    remote = given.remote or (os.environ.get("SPARK_REMOTE") if given.master is None else None)
    if remote is not None and remote.startswith("sc://"):
        _wait_for_server(remote)
    builder = SparkSession.builder.appName("pyspark_upsert_kafka doctor")
    if given.remote is not None:
        builder = builder.remote(given.remote)
    if given.master is not None:
        os.environ.pop("SPARK_REMOTE", None)  # with both, Spark refuses to start
        builder = builder.master(given.master)
    for name, value in given.conf:
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _wait_for_server(remote: str) -> None:
    """Waits until a server of Spark Connect answers: Spark itself would try again for ten minutes.

    Raises:
        OSError: It does not.
    """
    from grpc import FutureTimeoutError, channel_ready_future  # type: ignore[import-untyped]
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with DefaultChannelBuilder(remote).toChannel() as channel:
        try:
            channel_ready_future(channel).result(timeout=_ANSWERS_WITHIN_S)
        except FutureTimeoutError:
            server = remote.partition(";")[0]  # a token may follow
            raise OSError(
                f"nothing has answered at {server} in {_ANSWERS_WITHIN_S} seconds"
            ) from None


def _line_of_launcher(log: Path) -> str:
    """The first line that Spark's launcher has printed, and not its log, which says why there is no JVM."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    said = [line.strip() for line in lines if line.strip() and not _OF_A_LOG.match(line)]
    return said[0] if said else ""


def _version_facts(spark: SparkSession) -> VersionFacts:
    connect = not hasattr(spark, "_jsparkSession")
    return VersionFacts(
        spark=spark.version,
        pyspark=pyspark.__version__,
        python=platform.python_version(),
        executable=sys.executable,
        package=current_version(),
        connect=connect,
        master="" if connect else str(spark.sparkContext.master),
    )


def _java_version(spark: SparkSession) -> str | NotSeen:
    try:
        row = spark.sql(
            "SELECT java_method('java.lang.System', 'getProperty', 'java.version')"
        ).first()
    except _spark_errors() as error:
        return NotSeen(f"Spark does not say which Java it runs: {_first_line(str(error))}")
    return str(row[0]) if row is not None else NotSeen("Spark does not say which Java it runs")


def _settings(spark: SparkSession) -> Mapping[str, str | NotSeen]:
    found: dict[str, str | NotSeen] = {}
    for name, default in _SETTINGS.items():
        try:
            found[name] = spark.conf.get(name, default) or default
        except _spark_errors() as error:
            found[name] = NotSeen(f"Spark does not show {name}: {_first_line(str(error))}")
    return found


def _looked_up(spark: SparkSession) -> LookedUp:
    try:
        _ = spark.read.format(_FORMAT).load().schema
    except _spark_errors() as error:
        said = str(error)
    else:
        said = ""
    return LookedUp(said, _broken_packages() if _NOT_FOUND in said else ())


def _broken_packages() -> tuple[str, ...]:
    """Packages that Spark imports when it looks for data sources, and which end that search for all if they fail."""
    names = [each.name for each in iter_modules() if each.name.startswith("pyspark_")]
    return tuple(
        name
        for name in sorted(names)
        if name != _PACKAGE
        and subprocess.run(
            [sys.executable, "-c", f"import {name}"], capture_output=True, check=False
        ).returncode
    )


def _workers(spark: SparkSession, versions: VersionFacts) -> tuple[WorkerFacts, ...] | str:
    """What workers say of themselves; or why none can."""
    tasks = _TASKS_OVER_CONNECT
    if not versions.connect:
        tasks = min(_MOST_TASKS, spark.sparkContext.defaultParallelism)
    cloudpickle.register_pickle_by_value(worker_facts)  # type: ignore[no-untyped-call]
    try:
        # Not as Arrow: that would need pandas, which this package does not.
        ask = udf(worker_facts.worker_facts, "string", useArrow=False)
        rows = spark.range(0, tasks, 1, tasks).select(ask("id").alias("facts")).collect()
    except _spark_errors() as error:
        return str(error)
    finally:
        cloudpickle.unregister_pickle_by_value(worker_facts)  # type: ignore[no-untyped-call]
    return tuple(WorkerFacts(**json.loads(text)) for text in sorted({row.facts for row in rows}))


# What is found in the facts.

_NOT_FOUND = "DATA_SOURCE_NOT_FOUND"
_OF_A_LOG = re.compile(
    r"\s+at |\d\d/\d\d/\d\d |WARNING: |Using Spark's default|Setting default log|To adjust logging"
)
_OUR_ERROR = re.compile(rf"{_PACKAGE}\.[\w.]+\.(?:Option|Schema)Error: ")
_NOISE = re.compile(r" SQLSTATE: \w+.*| *JVM stacktrace:.*", re.DOTALL)
_LAST_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)


def _first_line(text: str) -> str:
    r"""What an error of Spark says, without its class names, its SQLSTATE and its stack.

    >>> _first_line("An error occurred while calling o1.x.\n: org.apache.spark.SparkException: Job aborted. SQLSTATE: 1")
    'Job aborted.'
    """
    lines = [line.strip() for line in _NOISE.sub("", text).split("\n") if line.strip()]
    said = next((line for line in lines if not line.startswith("An error occurred while")), "")
    return re.sub(r"^(?:: )?(?:[a-z]\w*\.)+\w+: ", "", said)


def _version(text: str) -> tuple[int, ...]:
    """The numbers at the beginning of a version.

    >>> _version("4.1.0.dev3"), _version("26.0"), _version("17.0.15+6") < _version("17.1")
    ((4, 1, 0), (26, 0), True)
    """
    begin = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in begin[0].split(".")) if begin else ()


def check_start(said: str, remote: str | None) -> Finding:
    """Spark does not start, or its server does not answer.

    Args:
        said: The reason.
        remote: The address of the server; None = Spark was to start on this machine.
    """
    if remote is None:
        advice = "Spark needs Java 17 or newer, which JAVA_HOME names"
    else:
        advice = (
            "Start a server of Spark Connect there, or give its address: --remote sc://HOST:15002"
        )
    return Finding("session", Level.ERROR, f"Spark does not start: {said}".rstrip("."), advice)


def check_versions(facts: VersionFacts) -> Iterator[Finding]:
    """Whether Spark is new enough, and fits the PySpark of this program."""
    kind = "Spark Connect" if facts.connect else f"a classic Spark at {facts.master}"
    yield Finding(
        "session",
        Level.OK,
        f"{kind}, asked with Python {facts.python} ({facts.executable}), PySpark {facts.pyspark} and "
        f"pyspark-upsert-kafka {facts.package}",
    )
    spark, program = _version(facts.spark)[:2], _version(facts.pyspark)[:2]
    if spark < (4, 0):
        text = f"Spark {facts.spark} is older than 4.0, which has no data sources in Python that use Arrow"
        yield Finding("versions", Level.ERROR, text, "Use Spark 4.0 or newer")
    elif spark != program and not (facts.connect and program < spark):
        yield Finding(
            "versions",
            Level.WARNING,
            f"This program has PySpark {facts.pyspark}, and Spark itself is {facts.spark}",
            f"pip install pyspark=={'.'.join(map(str, spark))}.*",
        )
    elif spark < (4, 2):
        yield Finding(
            "versions",
            Level.OK,
            f"Spark {facts.spark}: a stream reads all that is there in one micro-batch, since limits such as "
            "maxOffsetsPerTrigger need Spark 4.2",
        )
    else:
        yield Finding("versions", Level.OK, f"Spark {facts.spark}")


def check_java(version: str | NotSeen) -> Finding:
    """Which Java it is, and whether it is new enough."""
    if isinstance(version, NotSeen):
        return version.finding("java")
    old = _version(version) < (17,)
    return Finding(
        "java",
        Level.ERROR if old else Level.OK,
        f"Java {version}" + (" is older than 17, which Spark 4 needs" if old else ""),
        "Install Java 17 or newer, and set JAVA_HOME" if old else "",
    )


def check_source(seen: LookedUp, facts: VersionFacts) -> Finding:
    """Whether Spark finds the format by its name; asked without options, the source says what is missing."""
    if _OUR_ERROR.search(seen.said):
        return Finding("data-source", Level.OK, f"Spark finds the format {_FORMAT!r} by its name")
    if _NOT_FOUND not in seen.said:
        said = _LAST_PYTHON_ERROR.findall(seen.said)
        text = ": ".join(said[-1]) if said else _first_line(seen.said) or "nothing"
        return Finding(
            "data-source",
            Level.ERROR,
            f"Asked for the format {_FORMAT!r}, Spark says: {text}",
            "Install this package with all that it needs in the Python that PYSPARK_PYTHON names, on the driver's machine",
        )
    if facts.connect:
        advice = (
            "Install this package in the Python of the server (PYSPARK_PYTHON of the server's environment, or else the first "
            "python3 on its PATH), and start the server again"
        )
    elif seen.broken:
        advice = (
            f"Spark imports every package pyspark_*, and gives up with the first that fails: repair or remove "
            f"{', '.join(seen.broken)}; or call spark.dataSource.register(pyspark_upsert_kafka.UpsertKafkaDataSource)"
        )
    else:
        advice = (
            f"Set PYSPARK_PYTHON to a Python that has this package ({facts.executable} has it) before Spark starts; in a "
            "notebook that has a Spark already, call spark.dataSource.register(pyspark_upsert_kafka.UpsertKafkaDataSource)"
        )
    text = f"Spark does not find the format {_FORMAT!r} (DATA_SOURCE_NOT_FOUND)"
    return Finding("data-source", Level.ERROR, text, advice)


_OTHER_PYTHON = re.compile(
    r"different version: (?P<worker>[\d.]+) than that in driver:? (?P<driver>[\d.]+)"
)


_NO_PROGRAM = "Cannot run program"


def check_no_worker(said: str, facts: VersionFacts) -> Finding:
    """No worker could be asked: none starts, or not with this program's Python."""
    other = _OTHER_PYTHON.search(" ".join(said.split()))
    if other is not None:
        text = f"Spark's workers run Python {other['worker']}, and this program Python {other['driver']}"
        if facts.connect:
            text += (
                ": reading and writing work; functions of this program that run there do not (upsert_sink, merge_sink, "
                "normalize_changelog)"
            )
        return Finding(
            "workers",
            Level.WARNING if facts.connect else Level.ERROR,
            text,
            f"Run the program with Python {other['worker']}, or the workers with {other['driver']} (PYSPARK_PYTHON)",
        )
    found = _LAST_PYTHON_ERROR.findall(said)
    first = ": ".join(found[-1]) if found else _first_line(said)
    causes = [
        line.partition(": ")[2]
        for line in said.split("\n")
        if line.startswith("Caused by: ") and ": " in line
    ]
    no_program = [each for each in causes if _NO_PROGRAM in each]
    reason = (no_program or causes or [first])[-1]
    if no_program:
        advice = "Set PYSPARK_PYTHON to a Python that is on every machine under this path"
    elif "exited unexpectedly" in said and "memory" not in reason:
        advice = (
            "Look into the log of the executor. With spark.executor.pyspark.memory, raise it: it limits the addresses that a "
            "worker reserves, and not what it uses"
        )
    else:
        advice = (
            "Run this package's Python on the executors (PYSPARK_PYTHON), and look into their log"
        )
    return Finding("workers", Level.ERROR, f"No Python worker could be asked: {reason}", advice)


def check_workers(workers: Sequence[WorkerFacts], facts: VersionFacts) -> Iterator[Finding]:
    """Whether workers can import this package and what it needs, in the versions that it needs."""
    hosts = sorted({each.host for each in workers})
    failed = next((each for each in workers if each.import_errors), None)
    if failed is not None:
        module, error = next(iter(failed.import_errors.items()))
        yield Finding(
            "workers",
            Level.ERROR,
            f"A worker on {failed.host} cannot import {module}: {error}",
            f"{failed.executable} -m pip install pyspark-upsert-kafka=={facts.package}, on every machine",
        )
        return
    pythons = sorted({f"Python {each.python} ({each.executable})" for each in workers})
    machines = hosts[0] if len(hosts) == 1 else counted(len(hosts), "machine")
    yield Finding(
        "workers",
        Level.OK,
        f"Workers on {machines} start, and import this package: {', '.join(pythons)}",
    )
    yield _check_packages(workers, facts)
    yield _check_memory(workers)


def _check_packages(workers: Sequence[WorkerFacts], facts: VersionFacts) -> Finding:
    for worker in workers:
        where = f"{worker.executable} on {worker.host}"
        for name, needed, installed in worker.requirements:
            if _version(installed) < _version(needed):
                return Finding(
                    "worker-packages",
                    Level.ERROR,
                    f"{where} has {name} {installed}, and this package needs {needed} or newer",
                    f"pip install '{name}>={needed}' there, before Spark starts",
                )
        if worker.package != facts.package:
            return Finding(
                "worker-packages",
                Level.WARNING,
                f"{where} has pyspark-upsert-kafka {worker.package}, and this program {facts.package}",
                "Install the same version everywhere",
            )
        if worker.pyspark and _version(worker.pyspark)[:2] != _version(facts.spark)[:2]:
            return Finding(
                "worker-packages",
                Level.WARNING,
                f"{where} runs PySpark {worker.pyspark}, and Spark itself is {facts.spark}",
                "Install the PySpark of that version there, or none",
            )
    arrow = sorted(
        {each[2] for worker in workers for each in worker.requirements if each[0] == "pyarrow"}
    )
    return Finding(
        "worker-packages",
        Level.OK,
        f"pyspark-upsert-kafka {facts.package}"
        + (f", PyArrow {', '.join(arrow)}" if arrow else ""),
    )


def _check_memory(workers: Sequence[WorkerFacts]) -> Finding:
    limits = [each for each in workers if each.address_limit is not None]
    if not limits:
        return Finding("worker-memory", Level.OK, "Nothing limits the addresses of a worker")
    least = min(limits, key=lambda each: each.address_limit or 0)
    limit = least.address_limit or 0
    needed = _WITH_SYSTEM_POOL if least.arrow_pool == "system" else _READS_NOTHING_YET
    text = f"A worker may reserve {limit / 1e6:,.0f} MB of addresses (spark.executor.pyspark.memory, for each core)"
    if limit >= needed:
        return Finding("worker-memory", Level.OK, text)
    return Finding(
        "worker-memory",
        Level.WARNING,
        f"{text}, and may need {needed / 1e6:,.0f} MB before it reads anything",
        "Raise it, or set ARROW_DEFAULT_MEMORY_POOL=system, MALLOC_ARENA_MAX=2 and POLARS_MAX_THREADS=2 for the executors "
        "(spark.executorEnv.*)",
    )


_ON_OR_OFF = {
    SPECULATION: (
        "speculation",
        "true",
        "Spark runs slow tasks twice: a sink then writes rows a second time, perhaps late",
        "No task is run twice at the same time",
    ),
    WORKER_REUSE: (
        "worker-reuse",
        "false",
        "Each task starts a Python of its own, which opens its own connections",
        "Python workers are kept from task to task, and with them their connections",
    ),
}
"""For each setting its check, the value that hurts, and what is said of that and of the other."""


def check_settings(
    settings: Mapping[str, str | NotSeen], workers: Sequence[WorkerFacts] | str, facts: VersionFacts
) -> Iterator[Finding]:
    """Which settings slow a job down, or write rows twice."""
    yield _check_sockets(settings[UNIX_SOCKETS], workers, _version(facts.spark))
    for name, (check, bad, hurts, well) in _ON_OR_OFF.items():
        setting = settings[name]
        if isinstance(setting, NotSeen):
            yield setting.finding(check)
        elif setting == bad:
            advice = f"{name} = {_SETTINGS[name]}, before Spark starts"
            yield Finding(check, Level.WARNING, hurts, advice)
        else:
            yield Finding(check, Level.OK, well)
    pushdown, store = settings[FILTER_PUSHDOWN], settings[STATE_STORE]
    if _version(facts.spark) >= (4, 1) and not isinstance(pushdown, NotSeen):
        text = (
            "Filters of a batch query choose what is read, where scan.filter-pushdown is true"
            if pushdown == "true"
            else f"Filters of a query do not choose what is read; batches can have it with {FILTER_PUSHDOWN} = true and the "
            "option scan.filter-pushdown"
        )
        yield Finding("filter-pushdown", Level.OK, text)
    if not isinstance(store, NotSeen):
        text = (
            "State is kept in RocksDB"
            if "RocksDB" in store
            else f"State is kept in memory. normalize_changelog of a stream needs {STATE_STORE} = {_ROCKSDB}"
        )
        yield Finding("state-store", Level.OK, text)


def _check_sockets(
    setting: str | NotSeen, workers: Sequence[WorkerFacts] | str, spark: tuple[int, ...]
) -> Finding:
    if spark < (4, 1):
        return Finding("unix-sockets", Level.OK, "Spark has Unix sockets since 4.1")
    if isinstance(workers, str):
        if isinstance(setting, NotSeen):
            return setting.finding("unix-sockets")
        used = setting == "true"
    else:
        used = all(each.unix_sockets for each in workers)
    if used:
        return Finding("unix-sockets", Level.OK, "Workers are connected by Unix sockets")
    return Finding(
        "unix-sockets",
        Level.WARNING,
        "Workers are connected by TCP: each Python task begins about 36 ms later than with Unix sockets",
        f"{UNIX_SOCKETS} = true, before Spark starts",
    )
