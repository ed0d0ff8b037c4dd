"""A small local Spark session whose log goes to a file."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from pyspark_upsert_kafka.cli.terminal import interrupts, standard_error_to
from pyspark_upsert_kafka.connector.datasource import UpsertKafkaDataSource

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",  # as many as cores; Spark's default is 200
    "spark.python.unix.domain.socket.enabled": "true",  # tasks of Python start in a third of the time
}


@contextmanager
def local_spark(log: Path) -> Iterator[SparkSession]:
    """A session on two cores of this machine; it ends with the block.

    Args:
        log: File that gets what Spark and its workers print.
    """
    # The workers run on this machine: this Python has all that they need, whatever the environment says.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # With the address of a server of Spark Connect, Spark would refuse to start a session here.
    os.environ.pop("SPARK_REMOTE", None)
    # The name of this machine may be known to nobody, as without a network: Spark would not start.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if unusable_spark_home() is not None:
        del os.environ["SPARK_HOME"]
    # py4j logs a traceback of every exception that it also raises, Ctrl-C included.
    logging.getLogger().setLevel(logging.CRITICAL)
    logging.getLogger("pyspark_upsert_kafka").setLevel(logging.WARNING)
    builder = SparkSession.builder.master("local[2]").appName("pyspark_upsert_kafka")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    with standard_error_to(log), ThreadPool(1) as pool:
        # In the main thread Spark would handle Ctrl-C itself, by a call to the JVM, perhaps in the middle of another one.
        pool.apply(builder.getOrCreate)
        session = builder.getOrCreate()
        # By itself Spark looks for no data source with a Python whose path has a space.
        pool.apply(session.dataSource.register, (UpsertKafkaDataSource,))
    try:
        yield session
    finally:
        interrupts.settled()
        _stop(session)


def unusable_spark_home() -> str | None:
    """Why PySpark cannot start the Spark that SPARK_HOME names; None = it can, or the one that it brings is started.

    PySpark itself does not look: it fails with an error of Java or of the operating system.
    """
    home = os.environ.get("SPARK_HOME")
    if home is None:
        return None
    if not Path(home, "bin", "spark-submit").is_file():
        return f"SPARK_HOME is {home!r}, where there is no Spark"
    for jar in Path(home, "jars").glob("spark-core_*-*.jar"):
        version = jar.stem.split("-", maxsplit=2)[2]  # spark-core_2.13-4.3.0.jar
        if version.partition(".")[0] != pyspark.__version__.partition(".")[0]:
            return f"SPARK_HOME is {home!r}, which is Spark {version}, and PySpark here is {pyspark.__version__}"
    return None


def _stop(session: SparkSession) -> None:
    """Stops the session in another thread: Ctrl-C may have cut off a call to the JVM on this thread's connection."""
    with ThreadPool(1) as pool, warnings.catch_warnings():
        # Spark warns of a JVM that the signal has ended too.
        warnings.simplefilter("ignore", RuntimeWarning)
        with suppress(Py4JError, OSError):
            pool.apply(session.stop)
