"""One topic of 1,000 partitions, and 1,000 topics of one: written, planned, and read, in a batch and in a stream."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyspark_upsert_kafka import LocalKafka
from scale.sessions import SCHEMA, options_of, rows, session
from scale.watch import Watch

MESSAGES = 200_000
_AT_ONCE = 100
_COMPACTED = {"cleanup.policy": "compact"}
_CHANGES = f"{SCHEMA}, _change_type STRING"


def measure(*, count: int) -> dict:
    """Measures both shapes, with this number of partitions or topics."""
    with LocalKafka() as kafka:
        servers, spark = kafka.bootstrap_servers, session()
        one, many = ["wide"], [f"many-{number:05}" for number in range(count)]
        found = {
            f"1 topic, {count:,} partitions": _Shape(spark, servers, one, count).steps(),
            f"{count:,} topics, 1 partition": _Shape(spark, servers, many, 1).steps(),
        }
        spark.stop()
    return {"messages": MESSAGES, "shapes": found}


class _Shape:
    """Some topics of some partitions each.

    Args:
        spark: The session.
        servers: The bootstrap servers.
        topics: The names of the topics, which are created.
        partitions: Partitions of each.
    """

    def __init__(
        self, spark: SparkSession, servers: str, topics: list[str], partitions: int
    ) -> None:
        self._spark, self._topics = spark, topics
        self._options = options_of(servers, ";".join(topics))
        create(servers, topics, partitions)

    def steps(self) -> dict[str, dict]:
        """What each step took, in turn."""
        return {
            "write": _watched(self._write),
            "plan": _watched(self._plan),
            "read, 8 tasks": _watched(lambda: self._count("8")),
            "read, a task each": _watched(lambda: self._count("")),
            "stream, 8 tasks": _watched(self._stream),
        }

    def _plan(self) -> int:
        return self._table().rdd.getNumPartitions()

    def _write(self) -> None:
        changes: DataFrame = rows(self._spark, MESSAGES, MESSAGES, 2)
        if len(self._topics) > 1:
            number = f.lpad((f.col("id") % len(self._topics)).cast("string"), 5, "0")
            changes = changes.withColumn("_topic", f.concat(f.lit("many-"), number))
        changes.write.format("upsert-kafka").mode("append").options(**self._options).save()

    def _table(self, tasks: str = "") -> DataFrame:
        limit = {"scan.parallelism": tasks} if tasks else {}
        reader = self._spark.read.format("upsert-kafka").schema(SCHEMA)
        return reader.options(**self._options, **limit).load()

    def _count(self, tasks: str) -> None:
        _check(self._table(tasks).count())

    def _stream(self) -> dict[str, float]:
        """One micro-batch over everything; returns how large its checkpoint is."""
        reader = self._spark.readStream.format("upsert-kafka").schema(_CHANGES)
        changes = reader.options(**self._options).option("scan.parallelism", "8").load()
        with tempfile.TemporaryDirectory() as folder:
            writer = changes.writeStream.format("noop").option("checkpointLocation", folder)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            _check(sum(batch["numInputRows"] for batch in query.recentProgress))
            offsets = Path(folder, "offsets", "0").stat().st_size
        return {"offset_bytes": offsets}


def create(servers: str, topics: list[str], partitions: int) -> None:
    """Creates topics, not too many at once."""
    admin = AdminClient({"bootstrap.servers": servers})
    for first in range(0, len(topics), _AT_ONCE):
        new = [
            NewTopic(name, partitions, 1, config=_COMPACTED)
            for name in topics[first : first + _AT_ONCE]
        ]
        for made in admin.create_topics(new, request_timeout=100).values():
            made.result()


def _check(count: int) -> None:
    if count != MESSAGES:
        raise RuntimeError(f"{count:,} rows of {MESSAGES:,}")


def _watched(step: Callable[[], object]) -> dict:
    with Watch() as watch:
        begin = time.monotonic()
        more = step()
        seconds = time.monotonic() - begin
    found = {"seconds": seconds, "most": watch.results()}
    print(f"scale: {found}", flush=True)
    return {**found, **(more if isinstance(more, dict) else {})}
