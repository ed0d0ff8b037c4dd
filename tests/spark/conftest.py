"""One Spark session for all end-to-end tests."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryListener

from pyspark_upsert_kafka.kafka.local.jars import broker_jars
from tests.local_glue import CREDENTIALS

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.update(CREDENTIALS)  # Spark's workers sign with them what they ask `local_glue`

AVRO_LOCK = Path(__file__).with_name("spark-avro.lock")


CONNECT = os.environ.get("SPARK_REMOTE")
"""Where Spark Connect's server is, which Spark itself reads: ``local[2]`` = one that the session starts."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Over Spark Connect tests that need a classic session are skipped, with their reason."""
    for item in items if CONNECT else ():
        needs_classic = item.get_closest_marker("classic")
        if needs_classic is not None:
            item.add_marker(
                pytest.mark.skip(reason=f"classic sessions only: {needs_classic.args[0]}")
            )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with two cores, or one of Spark Connect; the format is found by Spark itself."""
    builder = (
        SparkSession.builder.appName("tests")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if CONNECT is None:
        builder = builder.master("local[2]")
    if CONNECT is None or CONNECT.startswith("local"):
        builder = with_settings_of_the_driver(builder, tmp_path_factory)
    with warnings.catch_warnings():
        # A client sends the settings of a server that it has started once more, and that server refuses them.
        warnings.filterwarnings("ignore", "Failed to set spark", UserWarning)
        session = builder.getOrCreate()
    if CONNECT is None:
        session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def with_settings_of_the_driver(
    builder: SparkSession.Builder, tmp_path_factory: pytest.TempPathFactory
) -> SparkSession.Builder:
    """What is set where Spark is started, and not by a client of Spark Connect."""
    return (
        builder.config("spark.ui.enabled", "false")
        # How long the two sides of a collected result wait for one another: a machine may have no time for one of them.
        .config("spark.python.authenticate.socketTimeout", "600s")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        # For the test that looks for secrets in it.
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", str(tmp_path_factory.mktemp("events")))
        .config("spark.jars", ",".join(peer_jars()))
        .config("spark.connect.grpc.binding.port", "0" if CONNECT is None else "15002")
    )


@pytest.fixture(scope="session")
def connect_server(spark: SparkSession) -> Iterator[str]:
    """The address of a Spark Connect server in the JVM that the tests have already."""
    with serving_connect(spark) as address:
        yield address


@contextmanager
def serving_connect(spark: SparkSession) -> Iterator[str]:
    """Starts a Spark Connect server in the JVM of a session; its address."""
    service_class = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    service = getattr(service_class, "MODULE$")  # the one that Spark's own plugin starts
    service.start(spark._jsc.sc())
    yield f"sc://localhost:{service.localPort()}"
    service.stop(getattr(service, "stop$default$1")(), getattr(service, "stop$default$2")())


@pytest.fixture
def namespace(spark: SparkSession) -> Iterator[dict[str, object]]:
    """Where the snippets of a page or a docstring run; what they leave running, defined or set is ended."""
    names: dict[str, object] = {"__name__": "__main__"}
    yield names
    for each in names.values():
        if isinstance(each, StreamingQueryListener):
            spark.streams.removeListener(each)
    for query in spark.streams.active:
        query.stop()
    for table in spark.catalog.listTables():
        spark.sql(f"DROP {'VIEW' if table.isTemporary else 'TABLE'} {table.name}")
    spark.conf.unset("spark.sql.streaming.stateStore.providerClass")
    spark.conf.unset("spark.sql.streaming.queryEvolution.enableSourceEvolution")
    spark.conf.unset("spark.sql.streaming.offsetLog.formatVersion")


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
    assert query.awaitTermination(900), "the query did not end"


def wait_for_events(spark: SparkSession) -> None:
    """Waits until Spark's status tracker has been told of all that has happened; jobs do not wait for it."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(600_000)


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    """The rows of a DataFrame as sorted tuples."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)
