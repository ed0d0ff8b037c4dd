"""One Spark session for all end-to-end tests."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka.kafka.jars import broker_jars

os.environ["PYSPARK_PYTHON"] = sys.executable

AVRO_LOCK = Path(__file__).with_name("spark-avro.lock")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with two cores; the format is found by Spark itself."""
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        # For the test that looks for secrets in it.
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", str(tmp_path_factory.mktemp("events")))
        .config("spark.jars", ",".join(peer_jars()))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def peer_jars() -> list[str]:
    """Jars with Spark's functions for formats, where there are some for this Spark."""
    if pyspark.__version__.startswith("4.0."):
        return []
    return [str(jar) for jar in sorted(broker_jars(AVRO_LOCK).glob("*.jar"))]


def eventually(condition: Callable[[], bool], what: str, seconds: float = 600) -> None:
    """Waits until a condition holds; cores are shared, so the limit is generous."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} seconds: {what}"
        time.sleep(0.1)


def run_to_end(query: StreamingQuery) -> None:
    """Waits for an ``availableNow`` query and raises what it raised."""
    assert query.awaitTermination(300), "the query did not end"


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """The rows of a DataFrame as sorted tuples."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)
