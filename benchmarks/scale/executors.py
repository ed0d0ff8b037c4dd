"""A cluster of four executors, of one core and 1 GB each, on this machine: a table is read and copied."""

from __future__ import annotations

import tempfile
import time

from pyspark.sql import SparkSession
from topics import new_topic

from pyspark_upsert_kafka import LocalKafka
from scale.sessions import SCHEMA, filled, options_of, session
from scale.watch import Watch

EXECUTORS = 4
KEYS = 2_000_000
PARTITIONS = 16
_OFFSETS_OF_A_BATCH = 500_000


def measure() -> dict:
    """Reads a table and copies it in micro-batches; both tables are the same in the end."""
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = kafka.bootstrap_servers
        spark = session(f"local-cluster[{EXECUTORS},1,1024]")
        _wait_for_executors(spark)
        source, target = (new_topic(servers, PARTITIONS) for _ in range(2))
        filled(spark, servers, source, KEYS, KEYS)
        found = {
            "read": _watched(spark, lambda: _count(spark, servers, source)),
            "copy": _watched(spark, lambda: _copy(spark, servers, source, target, folder)),
        }
        _check_equal(spark, servers, source, target)
        spark.stop()
    return {"executors": EXECUTORS, "keys": KEYS, "partitions": PARTITIONS, "jobs": found}


def _context(spark: SparkSession):
    """Spark's own context, in its JVM."""
    return spark.sparkContext._jsc.sc()  # noqa: SLF001


def _wait_for_executors(spark: SparkSession) -> None:
    while (
        _context(spark).getExecutorMemoryStatus().size() - 1 < EXECUTORS
    ):  # one of them is the driver
        time.sleep(0.2)


def _watched(spark: SparkSession, job) -> dict:
    before = _tasks(spark)
    with Watch() as watch:
        begin = time.monotonic()
        job()
        seconds = time.monotonic() - begin
    tasks = {name: count - before.get(name, 0) for name, count in _tasks(spark).items()}
    found = {"seconds": seconds, "tasks": tasks, "most": watch.results()}
    print(f"scale: {found}", flush=True)
    return found


def _tasks(spark: SparkSession) -> dict[str, int]:
    """How many tasks each executor has finished."""
    executors = _context(spark).statusStore().executorList(True).iterator()
    found = {}
    while executors.hasNext():
        executor = executors.next()
        if executor.id() != "driver":
            found[executor.id()] = executor.completedTasks()
    return found


def _table(spark: SparkSession, servers: str, topic: str):
    return (
        spark.read.format("upsert-kafka")
        .schema(SCHEMA)
        .options(**options_of(servers, topic))
        .load()
    )


def _count(spark: SparkSession, servers: str, topic: str) -> None:
    count = _table(spark, servers, topic).count()
    if count != KEYS:
        raise RuntimeError(f"{count:,} rows of {KEYS:,}")


def _copy(spark: SparkSession, servers: str, source: str, target: str, folder: str) -> None:
    reader = spark.readStream.format("upsert-kafka").schema(f"{SCHEMA}, _change_type STRING")
    limited = reader.option("maxOffsetsPerTrigger", _OFFSETS_OF_A_BATCH)
    changes = limited.options(**options_of(servers, source)).load()
    writer = changes.writeStream.format("upsert-kafka").options(**options_of(servers, target))
    writer.option("checkpointLocation", folder).trigger(
        availableNow=True
    ).start().awaitTermination()


def _check_equal(spark: SparkSession, servers: str, source: str, target: str) -> None:
    sums = [
        _table(spark, servers, topic)
        .selectExpr("count(*)", "sum(id)", "sum(score)", "sum(clicks)", "sum(hash(name, region))")
        .first()
        for topic in (source, target)
    ]
    if [tuple(map(str, each)) for each in sums[:1]] != [tuple(map(str, each)) for each in sums[1:]]:
        raise RuntimeError(f"the copy is another table: {sums}")
