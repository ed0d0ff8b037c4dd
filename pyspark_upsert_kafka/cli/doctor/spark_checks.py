"""Whether the Spark of this Python, or a server of Spark Connect, can load the data source.

What it says when it is asked becomes findings.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from pyspark_upsert_kafka.cli.doctor.asked_spark import (
    LookedUp,
    VersionFacts,
    WorkerFacts,
    asked_spark,
    first_line,
    spark_errors,
)
from pyspark_upsert_kafka.cli.doctor.findings import Finding, Level, NotSeen, counted

_FORMAT = "upsert-kafka"
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
"""Bytes of addresses that a worker has reserved before it reads anything, as docs/cluster-settings.md has measured it."""

_WITH_SYSTEM_POOL = 1.0e9
"""The same with Arrow's pool of the system, with some room to read."""


def spark_findings(given: argparse.Namespace) -> Iterator[Finding]:
    """What is found of Spark; it is started for that, if none runs.

    Args:
        given: The arguments ``remote``, ``master`` and ``conf``.
    """
    with ExitStack() as stack:
        try:
            spark = stack.enter_context(asked_spark(given))
        except spark_errors(OSError, ImportError) as error:
            yield check_start(
                first_line(str(error)), given.remote or os.environ.get("SPARK_REMOTE")
            )
            return
        yield from check_versions(spark.versions)
        yield check_java(spark.java_version())
        yield check_source(spark.looked_up(), spark.versions)
        workers = spark.workers()
        if isinstance(workers, str):
            yield check_no_worker(workers, spark.versions)
        else:
            yield from check_workers(workers, spark.versions)
        yield from check_settings(spark.settings(_SETTINGS), workers, spark.versions)


_OUR_ERROR = re.compile(r"pyspark_upsert_kafka\.[\w.]+\.(?:Option|Schema)Error: ")
_LAST_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)


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
        advice = (
            "Spark needs Java 17 or newer, which JAVA_HOME names. SPARK_HOME, if it is set, must name a Spark of "
            "PySpark's version: unset it to use the one that PySpark brings"
        )
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
    if not seen.is_not_found:
        said = _LAST_PYTHON_ERROR.findall(seen.said)
        text = ": ".join(said[-1]) if said else first_line(seen.said) or "nothing"
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
    first = ": ".join(found[-1]) if found else first_line(said)
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
        Level.OK,
        "Workers are connected by TCP, as Spark does unless it is told otherwise. Each Python task begins about 36 ms earlier with "
        f"{UNIX_SOCKETS} = true, set before Spark starts",
    )
