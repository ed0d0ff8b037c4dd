"""Many tables at once: a query each under one driver, and the same tables in turn, a few at a time.

Each query merges a topic's changes into a table of Iceberg or Delta Lake, if the PySpark here is one that either is made for; else it
writes to Spark's `noop` sink, and what merging costs is not in the numbers.
"""

from __future__ import annotations

import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_upsert_kafka import LocalKafka, merge_sink, why_it_ended
from scale.sessions import options_of, session
from scale.watch import processes
from scale.wide import create

SCHEMA = "id BIGINT, name STRING, _partition INT, _offset BIGINT, _change_type STRING"
KEYS, CHANGES = 100, 100
"""Rows of each table, and changes of each in a further micro-batch."""

_AT_A_TIME = 4
_ROUNDS = 3


def measure(*, count: int) -> dict:
    """Measures one query, this many at once, and this many in turn."""
    topics = [f"table-{number:03}" for number in range(count)]
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        spark, sink_of = _lake(Path(folder))
        create(kafka.bootstrap_servers, topics, 1)
        tables = _Tables(spark, kafka.bootstrap_servers, Path(folder), sink_of)
        found = {"no query": _held()}
        for shape, measured in {
            "1 query": lambda: tables.at_once(topics[:1], "one"),
            f"{count} queries": lambda: tables.at_once(topics, "all"),
            f"{count} tables in turn, {_AT_A_TIME} at a time": lambda: tables.in_turn(
                topics, "turn"
            ),
        }.items():
            found[shape] = measured()
            print(f"scale: {shape}: {found[shape]}", flush=True)
        spark.stop()
    merges, load = sink_of is not None, os.getloadavg()[2]
    return {
        "tables": count,
        "changes": CHANGES,
        "merges": merges,
        "load": load,
        "shapes": found,
    }


Sink = Callable[[DataFrame, int], None]


def _lake(folder: Path) -> tuple[SparkSession, Callable[[str], Sink] | None]:
    """The session, and what makes the sink of a table; None = there is no engine."""
    from tests.lakehouse.engines import engine_here

    engine = engine_here()
    if engine is None:
        return session(), None
    spark = engine.session(folder, **{"spark.driver.memory": "4g"})
    return spark, lambda name: merge_sink(f"{engine.catalog}{name}", primary_key="id")


class _Tables:
    """Runs the queries of some topics.

    Args:
        spark: The session.
        servers: The bootstrap servers.
        folder: For checkpoints.
        sink_of: Makes the sink of a table.
    """

    def __init__(
        self,
        spark: SparkSession,
        servers: str,
        folder: Path,
        sink_of: Callable[[str], Sink] | None,
    ) -> None:
        self._spark, self._servers, self._folder, self._sink_of = spark, servers, folder, sink_of

    def at_once(self, topics: list[str], run: str) -> dict:
        """Each topic has a query that waits for changes; what is held is looked at while all run."""
        self._produce(topics)
        began, queries = time.monotonic(), {}
        for topic in topics:
            queries[topic] = self._start(topic, run, processingTime="1 second")
            # Spark gives the process that plans a query ten seconds to start: many at once would take longer.
            self._wait(queries, run, [topic])
        found = {"first_s": time.monotonic() - began}
        seconds = []
        with _cores() as used:
            for _ in range(_ROUNDS):
                self._produce(topics)
                began = time.monotonic()
                self._wait(queries, run, topics)
                seconds.append(time.monotonic() - began)
        found |= {"batch_s": statistics.median(seconds), "core_s": used() / _ROUNDS / len(topics)}
        found |= {"held": _held()}
        began = time.monotonic()
        with _cores() as used:
            time.sleep(10)
        found["idle_cores"] = used() / (time.monotonic() - began)
        for query in queries.values():
            query.stop()
        return found

    def in_turn(self, topics: list[str], run: str) -> dict:
        """Each topic has a query that ends with what is there; the next one starts when one has ended."""
        seconds: list[float] = []
        most = dict.fromkeys(_held(), 0.0)
        for _ in range(2):
            self._produce(topics)
            left, running, began = list(topics), {}, time.monotonic()
            with _cores() as used:
                while left or running:
                    ended = [topic for topic, query in running.items() if not query.isActive]
                    left += [
                        each for each in ended if _may_be_started_again(each, running.pop(each))
                    ]
                    while left and len(running) < _AT_A_TIME:
                        topic = left.pop()
                        running[topic] = self._start(topic, run, availableNow=True)
                        _until_planned(running[topic])
                    most = {name: max(value, most[name]) for name, value in _held().items()}
                    time.sleep(0.2)
            seconds.append(time.monotonic() - began)
        return {
            "first_s": seconds[0],
            "batch_s": seconds[1],
            "core_s": used() / len(topics),
            "held": most,
        }

    def _produce(self, topics: list[str]) -> None:
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 50})
        for topic in topics:
            for id_ in range(CHANGES):
                value = b'{"id":%d,"name":"%d"}' % (id_ % KEYS, time.time_ns())
                producer.produce(topic, value, b'{"id":%d}' % (id_ % KEYS))
        producer.flush()

    def _start(self, topic: str, run: str, **trigger: object) -> StreamingQuery:
        reader = self._spark.readStream.format("upsert-kafka").schema(SCHEMA)
        changes = reader.options(**options_of(self._servers, topic)).load()
        writer = changes.writeStream.option("checkpointLocation", f"{self._folder}/{run}/{topic}")
        if self._sink_of is None:
            return writer.format("noop").trigger(**trigger).start()
        sink = self._sink_of(f"{run}_{topic.replace('-', '_')}")
        return writer.foreachBatch(sink).trigger(**trigger).start()

    def _wait(self, queries: dict[str, StreamingQuery], run: str, topics: list[str]) -> None:
        """Until these topics are read to their ends; a query that ends for a reason that may pass is started again."""
        for topic in topics:
            end = self._produced(topic)
            while True:
                if _may_be_started_again(topic, queries[topic]):
                    queries[topic] = self._start(topic, run, processingTime="1 second")
                progress = queries[topic].lastProgress
                ends = progress and progress["sources"][0]["endOffset"]
                if ends and _read(ends) >= end:
                    break
                time.sleep(0.05)

    def _produced(self, topic: str) -> int:
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": "scale"})
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, 0))[1]
        finally:
            consumer.close()


def _until_planned(query: StreamingQuery) -> None:
    """Waits until a query has planned its first batch, or has ended: its process has started then."""
    while query.isActive and not (query.status["isDataAvailable"] or query.lastProgress):
        time.sleep(0.05)


def _may_be_started_again(topic: str, query: StreamingQuery) -> bool:
    """Whether a query has ended for a reason that may pass."""
    error = query.exception()
    if error is None:
        return False
    if not why_it_ended(error).restart:
        raise RuntimeError(topic) from error
    print(f"scale: {topic} is started again: {why_it_ended(error)}", flush=True)
    return True


def _read(end_offset: object) -> int:
    """Where a query has read to in the only partition of its topic."""
    return max(map(int, re.findall(r"[\"']0[\"']: ?(\d+)", str(end_offset))), default=0)


def _held() -> dict[str, float]:
    """What all processes hold now: memory that no other one shares, in MB, and threads, of the JVM and of Python beside it."""
    held = {"JVM_mb": 0.0, "JVM_threads": 0.0, "python_mb": 0.0, "python_processes": 0.0}
    for kind, process in processes():
        try:
            memory, threads = process.memory_full_info().uss / 1e6, process.num_threads()
        except psutil.Error:
            continue
        if kind == "JVM":
            held["JVM_mb"] += memory
            held["JVM_threads"] += threads
        elif kind in ("planner", "worker"):
            held["python_mb"] += memory
            held["python_processes"] += 1
    own = psutil.Process()
    held["python_mb"] += own.memory_full_info().uss / 1e6
    held["python_processes"] += 1
    return held


@contextmanager
def _cores() -> Iterator[Callable[[], float]]:
    """Core-seconds that this process and those that it has started use while the context lasts, the broker left out."""

    def used() -> dict[int, float]:
        found = {0: sum(psutil.Process().cpu_times()[:2])}
        for kind, process in processes():
            if kind != "broker":
                try:
                    found[process.pid] = sum(process.cpu_times()[:2])
                except psutil.Error:
                    continue
        return found

    before = used()
    after: dict[int, float] = {}

    def since() -> float:
        now = after or used()
        return sum(now[pid] - before.get(pid, 0.0) for pid in now)

    yield since
    after |= used()
