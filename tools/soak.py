"""`make soak`: a table is copied for ten minutes while its broker restarts every minute.

A million changes of ten thousand keys go through readStream and writeStream. In the end Kafka's own Java client must find in both
topics the table that was sent, and no resource may have grown: the first third of the time is for warming up, and the peak of each
measure in the last third may exceed its peak in the second third by at most a tenth plus the slack in `SLACK`. The last line is the
verdict. The exit code is 0 only if the soak passed.

`make soak SECONDS=120 CHANGES=200000` is a short one.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import psutil
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import LocalKafka
from tools.faults import BrokenRuleError, Ends, peaks, produce, session
from tools.local_topics import create, producer, table
from tools.proof.java_reader import JavaReader, Message
from tools.verdict import Held, verdict

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
CHANGES = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
PARTITIONS = 4
RESTART_SECONDS = 60.0
CATCH_UP_SECONDS = 300.0
KEYS = 10_000

Rows = dict[bytes | None, object]
"""A table: what the last value of each key is."""

SLACK = {
    "largest worker, MB": 24.0,
    "all workers, MB": 96.0,
    "threads of workers": 16.0,
    "descriptors of workers": 32.0,
    "driver's process, MB": 48.0,
    "driver's heap after a collection, MB": 24.0,
}

Sample = dict[str, float]


def soak() -> Held:
    """The whole of it; returns what is said of a soak that passed."""
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as checkpoint:
        servers = kafka.bootstrap_servers
        create(servers, "source", "target", partitions=PARTITIONS)
        spark = spark_of_one_size()
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


def spark_of_one_size() -> SparkSession:
    """A session whose heap is as large from the start as it ever gets, so that its growth is no growth."""
    settings = {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": "-Xms768m -XX:+AlwaysPreTouch",
    }
    retained = (
        "ui.retainedJobs",
        "ui.retainedStages",
        "ui.retainedTasks",
        "sql.ui.retainedExecutions",
    )
    more = {f"spark.{name}": "50" for name in retained}
    return session("local[2]", {**settings, **more}, log="ERROR")


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
        produce(sender, "source", key=key, value=value)
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
            raise BrokenRuleError(f"the query ended: {query.exception()}")
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
    ends = {str(number): end for number, end in Ends(servers, "source", PARTITIONS).now().items()}
    deadline = time.monotonic() + CATCH_UP_SECONDS
    while time.monotonic() < deadline:
        if not query.isActive:
            raise BrokenRuleError(f"the query ended: {query.exception()}")
        if positions(query) == ends:
            return
        time.sleep(1.0)
    raise BrokenRuleError(
        f"{CATCH_UP_SECONDS:.0f} s after the last change: {positions(query)} of {ends}"
    )


def positions(query: StreamingQuery) -> dict[str, int]:
    """Where the last finished batch ended."""
    progress: Any = query.lastProgress
    end = progress["sources"][0]["endOffset"] if progress else None
    given = json.loads(end) if isinstance(end, str) else end
    return dict(given["topics"]["source"]["positions"]) if given else {}


def change(n: int) -> tuple[str, str | None]:
    """Key and value of a change; every 13th is a delete."""
    id_ = n * 7919 % KEYS
    value = None if n % 13 == 0 else f'{{"id":{id_},"n":{n},"text":"{"x" * (n % 100)}"}}'
    return f'{{"id":{id_}}}', value


def sent(count: int) -> Rows:
    """The table that so many changes lead to."""
    changes = map(change, range(count))
    return _rows((key.encode(), value.encode() if value else None) for key, value in changes)


def table_of(messages: Iterable[Message]) -> Rows:
    """The table in a topic."""
    return _rows((message.key, message.value) for message in messages)


def _rows(changes: Iterable[tuple[bytes | None, bytes | None]]) -> Rows:
    return {key: json.loads(value) for key, value in dict(changes).items() if value is not None}


def refuse_difference(topic: str, asked: Rows, found: Rows) -> None:
    """Refuses a table that is not the one that was asked for.

    Raises:
        BrokenRuleError: It is another one.
    """
    wrong = sum(asked.get(key) != found.get(key) for key in asked.keys() | found.keys())
    if wrong:
        raise BrokenRuleError(f"the table in {topic} differs in {wrong} of {len(asked)} rows")


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
    raise BrokenRuleError("the driver's process is gone")


def refuse_growth(samples: Sequence[Sample]) -> str:
    """What was measured, in a line.

    Raises:
        BrokenRuleError: Something has grown.
    """
    shown = []
    for name, slack in SLACK.items():
        before, after = peaks([each[name] for each in samples])
        shown.append(f"{name} {before:.0f} -> {after:.0f}")
        if after > before * 1.1 + slack:
            raise BrokenRuleError(
                f"{name}: from {before:.0f} in the second third to {after:.0f} in the last"
            )
    return ", ".join(shown)


if __name__ == "__main__":
    sys.exit(verdict("soak", soak))
