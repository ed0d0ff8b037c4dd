"""What an idle stream costs: `.venv/bin/python benchmarks/idle.py [partitions] [topics]`.

Prints the share of a core that Spark's JVM, the source's Python process on the driver and the broker use while no
messages arrive: for one topic with this number of partitions, or for this number of topics with one partition.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time

import psutil
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import LocalKafka

_AT_ONCE = 100
_WARM_UP_S, _SECONDS = 20.0, 60.0


def create(servers: str, topics: list[str], partitions: int) -> None:
    """Creates topics, not too many at once."""
    admin = AdminClient({"bootstrap.servers": servers})
    for first in range(0, len(topics), _AT_ONCE):
        new = [NewTopic(name, partitions, 1) for name in topics[first : first + _AT_ONCE]]
        for made in admin.create_topics(new, request_timeout=100).values():
            made.result()


def idle(spark: SparkSession, servers: str, pattern: str) -> dict[str, float]:
    """The shares of a core that an idle stream over these topics takes."""
    stream = (
        spark.readStream.format("upsert-kafka")
        .schema("id BIGINT, _change_type STRING")
        .option("topic-pattern", pattern)
        .option("properties.bootstrap.servers", servers)
        .option("primary-key", "id")
        .option("key.format", "json")
        .option("value.format", "json")
        .load()
    )
    writer = stream.writeStream.format("noop").option("checkpointLocation", tempfile.mkdtemp())
    query = writer.start()
    try:
        time.sleep(_WARM_UP_S)
        before = _cpu_seconds()
        time.sleep(_SECONDS)
        after = _cpu_seconds()
    finally:
        query.stop()
    return {name: (after[name] - before[name]) / _SECONDS for name in after}


def _cpu_seconds() -> dict[str, float]:
    found = {"source": 0.0, "broker": 0.0, "JVM": 0.0}
    for process in psutil.Process().children(recursive=True):
        command = " ".join(process.cmdline())
        if "streaming_source_runner" in command:
            name = "source"
        elif process.name() == "java":
            name = "broker" if "kafka.Kafka" in command else "JVM"
        else:
            continue
        found[name] += sum(process.cpu_times()[:2])
    return found


def main(partitions: int = 1000, topics: int = 1000) -> None:
    """Measures both and prints them."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("LOCAL_KAFKA_OPTS", "-XX:TieredStopAtLevel=4")  # as brokers run
    with LocalKafka() as kafka:
        servers = kafka.bootstrap_servers
        create(servers, ["one-topic"], partitions)
        create(servers, [f"many-{number:05}" for number in range(topics)], 1)
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = spark.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        for what, pattern in (
            (f"one topic of {partitions} partitions", "one-.*"),
            (f"{topics} topics of one partition", "many-.*"),
        ):
            shares = idle(session, servers, pattern)
            print(
                what,
                ", ".join(f"{name} {share:.1%}" for name, share in shares.items()),
                flush=True,
            )
        session.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
