"""`make soak`: a table is copied for ten minutes while its broker restarts every minute.

A million changes of ten thousand keys go through readStream and writeStream. In the end Kafka's own Java client must find in both
topics the table that was sent, and no resource may have grown: the first third of the time is for warming up, and the peak of each
measure in the last third may exceed its peak in the second third by at most a tenth plus the slack in `growth.py`. The last line is the
verdict. The exit code is 0 only if the soak passed.

`make soak SECONDS=120 CHANGES=200000` is a short one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import LocalKafka
from tools.local_topics import create, producer, table
from tools.proof.java_reader import JavaReader
from tools.soak.changes import KEYS, SoakError, change, refuse_difference, sent, table_of
from tools.soak.growth import Sample, refuse_growth, sample
from tools.verdict import Held, verdict

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
CHANGES = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
PARTITIONS = 4
RESTART_SECONDS = 60.0
CATCH_UP_SECONDS = 300.0


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
    """Sends the changes at a steady pace over four fifths of the time."""
    sender = producer(servers, **{"message.timeout.ms": 600_000})
    begin, pace = time.monotonic(), CHANGES / (SECONDS * 0.8)
    for n in range(CHANGES):
        key, value = change(n)
        while True:
            try:
                sender.produce("source", key=key, value=value)
                break
            except BufferError:
                sender.poll(0.1)
        if n % 1000 == 0:
            sender.poll(0)
            if stopped.wait(max(0.0, begin + n / pace - time.monotonic())):
                return
    sender.flush()


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
    found = {tp: end_of(consumer, tp) for tp in partitions}
    consumer.close()
    return found


def end_of(consumer: Consumer, tp: TopicPartition) -> int:
    """The end of a partition. A broker that has just started again may not lead it yet."""
    deadline = time.monotonic() + 60.0
    while True:
        try:
            return int(consumer.get_watermark_offsets(tp, timeout=60)[1])
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def soak() -> Held:
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
        asked = sent(CHANGES)
        with JavaReader(servers) as reader:
            for topic in ("source", "target"):
                refuse_difference(topic, asked, table_of(reader.messages(topic, f"soak-{topic}")))
        batches = query.lastProgress["batchId"] + 1  # type: ignore[index]
        said = (
            f"{CHANGES} changes over {KEYS} keys in {SECONDS:.0f} s and {batches} batches, {restarts} "
            f"restarts of the broker; both topics hold the {len(asked)} rows that were sent; {refuse_growth(samples)}"
        )
        return Held(said, {"restarts of the broker": restarts})


if __name__ == "__main__":
    sys.exit(verdict("soak", soak))
