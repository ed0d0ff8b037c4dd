"""`make soak`: a table is copied for ten minutes while its broker restarts every minute.

A million changes of ten thousand keys go through readStream and writeStream. In the end both tables must be equal, and no
resource may have grown: the first third of the time is for warming up, and the peak of each measure in the last third
may exceed its peak in the second third by at most a tenth plus the slack in `SLACK`. The last line is the verdict. The exit code
is 0 only if the soak passed.

`make soak SECONDS=120 CHANGES=200000` is a short one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

import psutil
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import LocalKafka
from tools.local_topics import create, producer, table
from tools.verdict import verdict

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
CHANGES = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
KEYS = 10_000
PARTITIONS = 4
RESTART_SECONDS = 60.0
CATCH_UP_SECONDS = 300.0

SLACK = {
    "largest worker, MB": 24.0,
    "all workers, MB": 96.0,
    "threads of workers": 16.0,
    "descriptors of workers": 32.0,
    "driver's process, MB": 48.0,
    "driver's heap after a collection, MB": 24.0,
}

Sample = dict[str, float]


class SoakError(Exception):
    """Why the soak failed."""


def session() -> SparkSession:
    """A session whose heap is as large from the start as it ever gets, so that its growth is no growth."""
    retained = (
        "ui.retainedJobs",
        "ui.retainedStages",
        "ui.retainedTasks",
        "sql.ui.retainedExecutions",
    )
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.driver.memory", "768m")
        .config("spark.driver.extraJavaOptions", "-Xms768m -XX:+AlwaysPreTouch")
    )
    for name in retained:
        builder = builder.config(f"spark.{name}", "50")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def start_copy(spark: SparkSession, servers: str, checkpoint: str) -> StreamingQuery:
    """The query that copies the table, deletes included."""
    changes = (
        spark.readStream.format("upsert-kafka")
        .schema("id BIGINT, n BIGINT, text STRING, _change_type STRING")
        .options(**table(servers, "source"))
        .load()
    )
    writer = changes.writeStream.format("upsert-kafka").options(**table(servers, "target"))
    return writer.option("checkpointLocation", checkpoint).start()


def send_changes(servers: str, stopped: threading.Event) -> None:
    """Sends the changes at a steady pace over four fifths of the time; every 13th is a delete."""
    sender = producer(servers, **{"message.timeout.ms": 600_000})
    begin, pace = time.monotonic(), CHANGES / (SECONDS * 0.8)
    for n in range(CHANGES):
        id_ = n * 7919 % KEYS
        value = None if n % 13 == 0 else f'{{"id":{id_},"n":{n},"text":"{"x" * (n % 100)}"}}'
        while True:
            try:
                sender.produce("source", key=f'{{"id":{id_}}}', value=value)
                break
            except BufferError:
                sender.poll(0.1)
        if n % 1000 == 0:
            sender.poll(0)
            if stopped.wait(max(0.0, begin + n / pace - time.monotonic())):
                return
    sender.flush()


def sample(spark: SparkSession) -> Sample:
    """What the driver and its Python processes hold now."""
    heap = spark.sparkContext._jvm.java  # type: ignore[union-attr]  # noqa: SLF001
    heap.lang.System.gc()
    used = heap.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    mine = psutil.Process()
    workers = []
    for process in mine.children(recursive=True):
        try:
            # By its program: what the JVM has just forked still has the JVM's memory.
            if "pyspark" in " ".join(process.cmdline()) and "java" not in process.exe():
                memory = process.memory_info().rss / 2**20
                workers.append((memory, process.num_threads(), process.num_fds()))
        except psutil.Error:  # it ended while it was looked at
            continue
    memory, threads, descriptors = zip(*workers, strict=True) if workers else ((0,), (0,), (0,))
    return {
        "largest worker, MB": max(memory),
        "all workers, MB": sum(memory),
        "threads of workers": float(sum(threads)),
        "descriptors of workers": float(sum(descriptors)),
        "driver's process, MB": jvm(mine).memory_info().rss / 2**20,
        "driver's heap after a collection, MB": used / 2**20,
    }


def jvm(mine: psutil.Process) -> psutil.Process:
    """The process of Spark's driver."""
    for child in mine.children():
        if "org.apache.spark.deploy.SparkSubmit" in child.cmdline():
            return child
    raise SoakError("the driver's process is gone")


def run(spark: SparkSession, kafka: LocalKafka, query: StreamingQuery) -> tuple[int, list[Sample]]:
    """Restarts the broker and looks at memory until the time is over."""
    begin = time.monotonic()
    restarts, samples, told = 0, [], begin
    while time.monotonic() < begin + SECONDS:
        time.sleep(2.0)
        samples.append(sample(spark))
        if not query.isActive:
            raise SoakError(f"the query ended: {query.exception()}")
        if time.monotonic() - begin > (restarts + 1) * RESTART_SECONDS:
            kafka.stop()
            kafka.start()
            restarts += 1
        if time.monotonic() - told > 30.0:
            told = time.monotonic()
            shown = ", ".join(f"{name} {value:.0f}" for name, value in samples[-1].items())
            print(f"soak: {told - begin:4.0f} s, {restarts} restarts, {shown}", flush=True)
    return restarts, samples


def wait_until_all_is_copied(servers: str, query: StreamingQuery) -> None:
    """Waits until the query's position is the end of the source."""
    ends = {str(tp.partition): high for tp, high in watermarks(servers, "source").items()}
    deadline = time.monotonic() + CATCH_UP_SECONDS
    while time.monotonic() < deadline:
        if not query.isActive:
            raise SoakError(f"the query ended: {query.exception()}")
        if positions(query) == ends:
            return
        time.sleep(1.0)
    raise SoakError(f"{CATCH_UP_SECONDS:.0f} s after the last change: {positions(query)} of {ends}")


def positions(query: StreamingQuery) -> dict[str, int]:
    """Where the last finished batch ended."""
    progress: Any = query.lastProgress
    end = progress["sources"][0]["endOffset"] if progress else None
    given = json.loads(end) if isinstance(end, str) else end
    return dict(given["topics"]["source"]["positions"]) if given else {}


def watermarks(servers: str, topic: str) -> dict[TopicPartition, int]:
    """The end of each partition."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "soak"})
    partitions = [TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
    found = {tp: consumer.get_watermark_offsets(tp, timeout=60)[1] for tp in partitions}
    consumer.close()
    return found


def last_values(servers: str, topic: str) -> dict[bytes, object]:
    """The table in a topic, by a plain client."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "soak", "enable.partition.eof": True}
    )
    ends = watermarks(servers, topic)
    consumer.assign(list(ends))
    rows: dict[bytes, object] = {}
    missing = len(ends)
    while missing:
        for message in consumer.consume(10_000, timeout=10.0):
            if message.error() is not None:
                missing -= 1
            elif message.value() is None:
                rows.pop(message.key(), None)
            else:
                rows[message.key()] = json.loads(message.value())
    consumer.close()
    return rows


def refuse_growth(samples: Sequence[Sample]) -> str:
    """What was measured, in a line.

    Raises:
        SoakError: Something has grown.
    """
    third = len(samples) // 3
    shown = []
    for name, slack in SLACK.items():
        before = max(each[name] for each in samples[third : 2 * third])
        after = max(each[name] for each in samples[2 * third :])
        shown.append(f"{name} {before:.0f} -> {after:.0f}")
        if after > before * 1.1 + slack:
            raise SoakError(
                f"{name}: from {before:.0f} in the second third to {after:.0f} in the last"
            )
    return ", ".join(shown)


def soak() -> str:
    """The whole of it; returns what is said of a soak that passed."""
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as checkpoint:
        servers = kafka.bootstrap_servers
        create(servers, "source", "target", partitions=PARTITIONS)
        spark = session()
        query = start_copy(spark, servers, checkpoint)
        stopped = threading.Event()
        sending = threading.Thread(target=send_changes, args=(servers, stopped))
        sending.start()
        try:
            restarts, samples = run(spark, kafka, query)
            sending.join()
            wait_until_all_is_copied(servers, query)
        finally:
            stopped.set()
            sending.join()
            query.stop()
        source, target = last_values(servers, "source"), last_values(servers, "target")
        if source != target:
            wrong = sum(source.get(key) != target.get(key) for key in source.keys() | target.keys())
            raise SoakError(f"the tables differ in {wrong} of {len(source)} rows")
        batches = query.lastProgress["batchId"] + 1  # type: ignore[index]
        return (
            f"{CHANGES} changes over {KEYS} keys in {SECONDS:.0f} s and {batches} batches, {restarts} "
            f"restarts of the broker; both tables have {len(source)} equal rows; {refuse_growth(samples)}"
        )


if __name__ == "__main__":
    sys.exit(verdict("soak", soak))
