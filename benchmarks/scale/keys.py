"""Tables of many keys: a model from three small topics, and three larger ones that it must predict.

The largest has 50 million keys in 200 partitions, which no worker could hold at once: each of its tasks holds 250,000 keys.
"""

from __future__ import annotations

import statistics
import time

from pyspark.sql import SparkSession
from topics import drop_topic, new_topic

from pyspark_upsert_kafka import LocalKafka
from scale.model import Read, Size, as_dict
from scale.sessions import SCHEMA, filled, options_of, session
from scale.watch import Watch

CALIBRATION = (
    Size(1_000_000, 1_000_000, 4),
    Size(1_000_000, 1_000_000, 100),
    Size(4_000_000, 2_000_000, 4),
)
CHECKS = (
    Size(6_000_000, 2_000_000, 8),
    Size(10_000_000, 10_000_000, 20),
    Size(50_000_000, 50_000_000, 200),
)


def measure(*, largest: int, runs: int) -> dict:
    """Measures all sizes up to a number of messages.

    Args:
        largest: Sizes with more messages are left out.
        runs: How often each small topic is read; the median counts. Large ones are read once.
    """
    sizes = [size for size in CHECKS if size.messages <= largest]
    with LocalKafka() as kafka:
        spark = session()
        reads = [_of(spark, kafka.bootstrap_servers, size, runs) for size in CALIBRATION]
        checks = [_of(spark, kafka.bootstrap_servers, size, 1) for size in sizes]
        spark.stop()
    return {
        "calibration": [as_dict(read) for read in reads],
        "checks": [as_dict(read) for read in checks],
    }


def _of(spark: SparkSession, servers: str, size: Size, runs: int) -> Read:
    """Writes a topic of a size, reads it, and deletes it."""
    topic = new_topic(servers, size.tasks)
    filled(spark, servers, topic, size.messages, size.keys)
    if runs > 1:
        snapshot(spark, servers, topic, size)  # the first read of a session takes longer
    reads = [snapshot(spark, servers, topic, size) for _ in range(runs)]
    drop_topic(servers, topic)
    seconds, core_s = (
        statistics.median(getattr(read, name) for read in reads) for name in ("seconds", "core_s")
    )
    return Read(size, seconds, core_s, max(read.worker_mb for read in reads))


def snapshot(spark: SparkSession, servers: str, topic: str, size: Size) -> Read:
    """Reads the table once, and counts its rows."""
    with Watch() as watch:
        begin = time.monotonic()
        table = (
            spark.read.format("upsert-kafka").schema(SCHEMA).options(**options_of(servers, topic))
        )
        count = table.load().count()
        seconds = time.monotonic() - begin
    if count != size.keys:
        raise RuntimeError(f"{count:,} rows of {size.keys:,}")
    most = watch.most
    core_s = most["worker"].core_s + most["JVM"].core_s
    read = Read(size, seconds, core_s, most["worker"].memory_mb)
    print(f"scale: {read}", flush=True)
    return read
