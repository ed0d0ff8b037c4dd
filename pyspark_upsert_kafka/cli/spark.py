"""A small local Spark session that keeps its log out of the person's sight."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",  # as many as cores; Spark's default is 200
}


@contextmanager
def local_spark(log: Path) -> Iterator[SparkSession]:
    """A session on two cores of this machine; it ends with the block.

    Args:
        log: File that gets what Spark and its workers print.
    """
    # The workers run here, so the Python that runs this has all they need, whatever is set.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # py4j prints a traceback of all that it raises anyway, Ctrl-C included.
    logging.getLogger().setLevel(logging.CRITICAL)
    logging.getLogger("pyspark_upsert_kafka").setLevel(logging.WARNING)
    builder = SparkSession.builder.master("local[2]").appName("pyspark_upsert_kafka")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    with _stderr_to(log):
        session = builder.getOrCreate()
    # Not Spark's, which asks the JVM in the middle of another question to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Processes started within the block print their errors to the file, for as long as they live.

    A setting of log4j would not do: the JVM and the launch script print before they read any.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
