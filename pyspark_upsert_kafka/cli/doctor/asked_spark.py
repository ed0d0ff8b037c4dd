"""A Spark that is asked: for its versions and settings, for the data source by its name, and for what its Python workers have."""

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
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import iter_modules

import pyspark
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from pyspark_upsert_kafka.cli.doctor import worker_facts
from pyspark_upsert_kafka.cli.doctor.findings import NotSeen
from pyspark_upsert_kafka.cli.local_spark import unusable_spark_home
from pyspark_upsert_kafka.cli.terminal import standard_error_to
from pyspark_upsert_kafka.version import current_version

_FORMAT = "upsert-kafka"
_PACKAGE = "pyspark_upsert_kafka"
_ANSWERS_WITHIN_S = 60
_MOST_TASKS = 64
_TASKS_OVER_CONNECT = 8
"""How many tasks ask the workers: a client of Spark Connect does not learn how many cores there are."""

_OF_A_LOG = re.compile(
    r"\s+at |\d\d/\d\d/\d\d |WARNING: |Using Spark's default|Setting default log|To adjust logging"
)
_NOISE = re.compile(r" SQLSTATE: \w+.*| *JVM stacktrace:.*", re.DOTALL)


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

    @property
    def is_not_found(self) -> bool:
        """Whether Spark knows no such format."""
        return "DATA_SOURCE_NOT_FOUND" in self.said


class AskedSpark:
    """A Spark that runs.

    Args:
        spark: Its session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.versions = _versions_of(spark)

    def java_version(self) -> str | NotSeen:
        """Which Java it runs."""
        try:
            row = self._spark.sql(
                "SELECT java_method('java.lang.System', 'getProperty', 'java.version')"
            ).first()
        except spark_errors() as error:
            return NotSeen(f"Spark does not say which Java it runs: {first_line(str(error))}")
        return str(row[0]) if row is not None else NotSeen("Spark does not say which Java it runs")

    def settings(self, defaults: Mapping[str, str]) -> Mapping[str, str | NotSeen]:
        """The values of some settings, by their names.

        Args:
            defaults: Spark's default for each of them.
        """
        found: dict[str, str | NotSeen] = {}
        for name, default in defaults.items():
            try:
                found[name] = self._spark.conf.get(name, default) or default
            except spark_errors() as error:
                found[name] = NotSeen(f"Spark does not show {name}: {first_line(str(error))}")
        return found

    def looked_up(self) -> LookedUp:
        """What it says when it is asked for the format by its name."""
        try:
            _ = self._spark.read.format(_FORMAT).load().schema
        except spark_errors() as error:
            said = str(error)
        else:
            said = ""
        seen = LookedUp(said)
        return replace(seen, broken=_broken_packages()) if seen.is_not_found else seen

    def workers(self) -> tuple[WorkerFacts, ...] | str:
        """What workers say of themselves; or why none can."""
        tasks = _TASKS_OVER_CONNECT
        if not self.versions.connect:
            tasks = min(_MOST_TASKS, self._spark.sparkContext.defaultParallelism)
        cloudpickle.register_pickle_by_value(worker_facts)  # type: ignore[no-untyped-call]
        try:
            # Not as Arrow: that would need pandas, which this package does not.
            ask = udf(worker_facts.worker_facts, "string", useArrow=False)
            rows = self._spark.range(0, tasks, 1, tasks).select(ask("id").alias("facts")).collect()
        except spark_errors() as error:
            return str(error)
        finally:
            cloudpickle.unregister_pickle_by_value(worker_facts)  # type: ignore[no-untyped-call]
        return tuple(
            WorkerFacts(**json.loads(text)) for text in sorted({row.facts for row in rows})
        )


@contextmanager
def asked_spark(given: argparse.Namespace) -> Iterator[AskedSpark]:
    """The Spark that the program has already (a notebook's), or else one for this command, which it ends.

    What Spark prints meanwhile goes to a file.

    Raises:
        OSError: Spark does not start, or its server does not answer; with the reason.
    """
    running = SparkSession.getActiveSession()
    if running is not None and given.remote is None and given.master is None:
        yield AskedSpark(running)
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        log = Path(folder, "spark.log")
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)  # py4j and gRPC log what they raise too
        stack.enter_context(standard_error_to(log))
        try:
            spark = _started(given)
        except spark_errors(OSError, ImportError) as error:
            launcher = _line_of_launcher(log) if "JAVA_GATEWAY_EXITED" in str(error) else ""
            raise OSError(f"{first_line(str(error))} {launcher}".strip()) from None
        stack.callback(spark.stop)
        yield AskedSpark(spark)


def _started(given: argparse.Namespace) -> SparkSession:
    remote = given.remote or (os.environ.get("SPARK_REMOTE") if given.master is None else None)
    if remote is not None and remote.startswith("sc://"):
        _wait_for_server(remote)
    elif (wrong := unusable_spark_home()) is not None:
        raise OSError(wrong)
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


def _versions_of(spark: SparkSession) -> VersionFacts:
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


def spark_errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What Spark's functions raise, in a classic program and in a client of Spark Connect, which may lack py4j."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    except ImportError:
        return (PySparkException, *more)
    return (PySparkException, Py4JError, *more)


def first_line(text: str) -> str:
    r"""What an error of Spark says, without its class names, its SQLSTATE and its stack.

    >>> first_line("An error occurred while calling o1.x.\n: org.apache.spark.SparkException: Job aborted. SQLSTATE: 1")
    'Job aborted.'
    """
    lines = [line.strip() for line in _NOISE.sub("", text).split("\n") if line.strip()]
    said = next((line for line in lines if not line.startswith("An error occurred while")), "")
    return re.sub(r"^(?:: )?(?:[a-z]\w*\.)+\w+: ", "", said)
