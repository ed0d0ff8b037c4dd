"""A program on a cluster of two executor processes: ``python -m tests.spark.on_a_cluster ...``.

It reads a table, copies it and counts its changes. In the middle of the read and of the copy it kills an
executor, in the middle of the count the Python workers. Its last line is the table that it read, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

os.environ["PYSPARK_PYTHON"] = sys.executable

import psutil
from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamWriter

from pyspark_upsert_kafka import upsert_sink
from tests.spark.conftest import eventually
from tests.spark.pipelines import SLOWLY, table

SCHEMA = "id BIGINT, name STRING"


def running(command: str, parent: str) -> list[psutil.Process]:
    """The processes below this one with a command, and a parent with a command, that hold these words."""

    def says(process: psutil.Process | None, words: str) -> bool:
        try:
            return process is not None and words in " ".join(process.cmdline())
        except psutil.Error:  # it has just ended
            return False

    found = [each for each in psutil.Process().children(recursive=True) if says(each, command)]
    return [each for each in found if says(psutil.Process(each.ppid()), parent)]


def executors() -> list[psutil.Process]:
    """The executors."""
    return running("CoarseGrainedExecutorBackend", "java")


def workers() -> list[psutil.Process]:
    """The Python workers of the executors, which a daemon has forked."""
    return running("daemon pyspark.worker", "daemon pyspark.worker")


@contextmanager
def killed_when(
    condition: Callable[[], bool], victims: Callable[[], list[psutil.Process]]
) -> Iterator[None]:
    """Kills processes, once, as soon as the condition holds while what is inside runs."""
    killed: list[psutil.Process] = []

    def kill() -> None:
        eventually(condition, "work to be disturbed", 300)
        for victim in victims():
            victim.kill()
            killed.append(victim)

    killer = threading.Thread(target=kill)
    killer.start()
    yield
    killer.join()
    assert killed, "nothing was killed"


def main(servers: str, source: str, copied: str, counted: str, checkpoints: str) -> None:
    """Reads, copies and counts."""
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        # So that a task is seen as soon as it runs, and not only a tenth of a second after another.
        .config("spark.ui.liveUpdate.period", "0")
        # So that the sink gets the first rows long before the last ones.
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
        .config("spark.executor.extraJavaOptions", os.environ["SPARK_SUBMIT_OPTS"])
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    tracker = spark.sparkContext.statusTracker()
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "looks"})

    def both_executors() -> bool:
        registered = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver
        return registered == len(executors()) == 2

    def reads() -> bool:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(stage and stage.numActiveTasks == 2 for stage in stages)

    def written(topic: str) -> bool:
        both = (TopicPartition(topic, partition) for partition in (0, 1))
        try:
            return sum(consumer.get_watermark_offsets(each, timeout=60)[1] for each in both) > 0
        except KafkaException:  # the topic is so new that its leader is not known
            return False

    def run(writer: DataStreamWriter, name: str) -> None:
        writer = writer.option("checkpointLocation", f"{checkpoints}/{name}")
        writer.trigger(availableNow=True).start().awaitTermination()

    reader = spark.read.format("upsert-kafka").schema(SCHEMA).options(**table(servers, source))
    eventually(both_executors, "both executors")
    with killed_when(reads, lambda: executors()[:1]):
        rows = reader.load().where(SLOWLY).collect()

    changes: DataFrame = (
        spark.readStream.format("upsert-kafka")
        .schema(f"{SCHEMA}, _change_type STRING")
        .options(**table(servers, source))
        .load()
    )
    eventually(both_executors, "another executor")
    with killed_when(lambda: written(copied), lambda: executors()[:1]):
        copy = changes.where(SLOWLY).writeStream.format("upsert-kafka")
        run(copy.options(**table(servers, copied)), "copy")

    counts = changes.groupBy("id").agg(f.count("*").alias("changes")).where(SLOWLY)
    with killed_when(lambda: written(counted), workers):
        sink = upsert_sink(table(servers, counted))
        run(counts.writeStream.outputMode("update").foreachBatch(sink), "count")
    print(json.dumps(sorted([row.id, row.name] for row in rows)))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
