"""A cluster of processes, some of which are killed; and, while that takes its time, an idle query."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.conftest import Broker, options
from tests.spark.conftest import eventually
from tests.spark.on_a_cluster import workers
from tests.spark.streams import message, read, running
from tests.spark.test_recovery_kill import ROOT, last_values

pytestmark = [
    pytest.mark.classic("starts a driver of its own, and looks for its workers"),
    pytest.mark.long("a cluster of processes, some of which are killed"),
]

IdleQuery = tuple[StreamingQuery, str, str, list[psutil.Process]]
"""A query, its source, its target, and the Python workers of its first batch."""


@pytest.fixture(scope="module")
def idle(
    spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IdleQuery]:
    """A query that has copied a message and waits for the next."""
    source, target = broker.topic(), broker.topic()
    broker.produce(source, message(1))
    writer = read(spark, broker, source).writeStream.format("upsert-kafka")
    writer = writer.options(**options(broker, target))
    folder = tmp_path_factory.mktemp("idle")
    with running(writer.option("checkpointLocation", str(folder)).start()) as query:
        eventually(lambda: len(broker.pairs(target)) == 1, "the first message")
        yield query, source, target, workers()


@pytest.mark.usefixtures("idle")
def test_executors_of_a_cluster_may_be_killed(broker: Broker, tmp_path: Path) -> None:
    """Reading, streaming and update mode are right, though executors and workers die in the middle."""
    source, copied, counted = (broker.topic(2) for _ in range(3))
    broker.produce(
        source, *(message(n % 600, None if n % 7 == 0 else f"v{n}") for n in range(2000))
    )
    topics = (broker.servers, source, copied, counted)
    environment = {
        **os.environ,
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.on_a_cluster", *topics, str(tmp_path / "checkpoints")],
        cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[max(0, done.stderr.find("Traceback")) :][:5000]
    table = last_values(broker, source)
    counts = Counter(json.loads(key or b"")["id"] for key, _ in broker.pairs(source))

    assert json.loads(done.stdout.splitlines()[-1]) == sorted(
        [row["id"], row["name"]] for row in table.values() if isinstance(row, dict)
    )
    assert last_values(broker, copied) == table
    assert last_values(broker, counted) == {
        b'{"id":%d}' % id_: {"id": id_, "changes": count} for id_, count in counts.items()
    }


def test_a_query_may_be_idle_for_more_than_a_minute(broker: Broker, idle: IdleQuery) -> None:
    """Then Spark has ended the workers, and with them all connections: the next message comes all the same."""
    query, source, target, first_workers = idle
    eventually(lambda: not any(map(psutil.Process.is_running, first_workers)), "workers end")
    broker.produce(source, message(2))
    eventually(lambda: len(broker.pairs(target)) == 2 or not query.isActive, "another message")

    assert first_workers
    assert query.isActive, query.exception()
