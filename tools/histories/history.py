"""One history: a table that is changed and compacted all the time, snapshots of it, and the rules for each snapshot."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from pyspark.sql import SparkSession

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.batch_reader import ranges_of_batch
from pyspark_upsert_kafka.connector.reading.task_reading import ChangeReader, shown_rows
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.table import Table, table_to_read
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.cluster import Cluster
from tools.faults import BrokenRuleError
from tools.histories.writer import Model, Writer
from tools.local_topics import create, table

T = TypeVar("T")

CLEANER = {
    "log.cleaner.backoff.ms": "5",
    "log.cleaner.threads": "2",
    "log.segment.delete.delay.ms": "60000",
}
"""How a broker compacts all the time."""

ALL_THE_TIME = {"segment.ms": "20", "min.cleanable.dirty.ratio": "0.001"}

COLUMNS = "id BIGINT, n BIGINT, _partition INT"


@dataclass
class Counts:
    """What was seen of histories.

    Args:
        snapshots: Snapshots that were read.
        rows: Rows in all that was read.
        found_late: Of the rows of snapshots those that only the part past the planned end held.
        first_batches: First batches of streams that begin with the table.
        left_out: Keys that compaction took from these, since they had a newer change.
    """

    snapshots: int = 0
    rows: int = 0
    found_late: int = 0
    first_batches: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class Found:
    """A snapshot.

    Args:
        rows: (partition, key, number of its row).
        begins: Per partition: the end when it was planned, or one from before.
        ends: Per partition: the end when all was read, or one after.
    """

    rows: list[tuple[int, int, int]]
    begins: dict[int, int]
    ends: dict[int, int]


def create_topic(servers: str, partitions: int) -> str:
    """A topic that is compacted all the time."""
    name = f"h-{uuid.uuid4().hex[:12]}"
    create(servers, name, partitions=partitions, config=ALL_THE_TIME)
    return name


def in_process(given: dict[str, str], random: Random) -> Iterator[Found]:
    """A snapshot as tasks read it, without Spark."""
    options = read_options(given, format_options, stream=False)
    columns = table_to_read(spark_columns(COLUMNS), options)
    return snapshots(options, columns, random)


def with_spark(spark: SparkSession, given: dict[str, str], random: Random) -> Iterator[Found]:
    """A DataFrame whose rows are collected twice, with a pause between."""
    options = read_options(given, format_options, stream=False)
    client = load_client(options.table.client)
    frame = spark.read.format("upsert-kafka").schema(COLUMNS).options(**given).load()
    with closing(client.cluster(options.table.properties, "driver")) as cluster:
        begins = ends(cluster, options)
        for _ in range(2):
            rows = [(row["_partition"], row["id"], row["n"]) for row in frame.collect()]
            yield Found(rows, begins, ends(cluster, options))
            time.sleep(random.random())


def history(
    servers: str,
    random: Random,
    counts: Counts,
    read_by: Callable[[dict[str, str], Random], Iterable[Found]] = in_process,
) -> None:
    """A topic, its writer, and two or three snapshots of it, of which some are read twice.

    Args:
        servers: The bootstrap servers.
        random: Where all choices come from.
        counts: What is seen is added to these.
        read_by: Reads a snapshot of the table with these options, once or twice.

    Raises:
        BrokenRuleError: A snapshot is wrong.
    """
    partitions = random.choice([1, 2, 3])
    topic = create_topic(servers, partitions)
    keys = random.choice([50, 500, 3000])
    transactional = random.random() < 0.4
    writer = Writer(servers, topic, keys, random, transactional=transactional)
    writer.fill()
    writer.start()
    found = []
    try:
        for _ in range(random.choice([2, 3])):
            given = snapshot_options(servers, topic, random, committed=transactional)
            found += read_by(given, random)
    finally:
        model = writer.stop()
    for each in found:
        check(model, each, counts)


def snapshot_options(
    servers: str, topic: str, random: Random, *, committed: bool
) -> dict[str, str]:
    """How a snapshot is read: by either client, by one task for a partition or more."""
    client = random.choice(["librdkafka", "librdkafka", "kafka-python"])
    if committed:
        client = "librdkafka"
    level = "read_committed" if committed else "read_uncommitted"
    given = {**table(servers, topic), "kafka.client": client, "properties.isolation.level": level}
    if random.random() < 0.5:
        given["properties.max.partition.fetch.bytes"] = "10000"
    if random.random() < 0.5:
        given["minPartitions"] = str(random.choice([4, 7]))
    return given


def snapshots(options: ReadOptions, columns: Table, random: Random) -> Iterator[Found]:
    """A snapshot that is planned once and read once or twice, slowly now and then."""
    client = load_client(options.table.client)
    with closing(client.cluster(options.table.properties, "driver")) as cluster:
        ranges = ranges_of_batch(cluster, options)
        for _ in range(random.choice([1, 1, 2])):
            rows = []
            for range_ in ranges:
                time.sleep(random.choice([0.0, 0.0, 0.3]))
                rows += read(range_, options, columns, random)
            begins = {range_.partition: range_.end for range_ in ranges}
            yield Found(rows, begins, ends(cluster, options))


def ends(cluster: Cluster, options: ReadOptions) -> dict[int, int]:
    """Where each partition ends now."""
    topics = cluster.topics(options.table.topics)
    latest = cluster.view(topics, read_committed=options.read_committed).latest
    return {place.partition: end for place, end in latest.items()}


def read(
    range_: Range, options: ReadOptions, columns: Table, random: Random
) -> list[tuple[int, int, int]]:
    """The rows of a range, as a task reads them."""
    reader = ChangeReader(columns, options)
    changes = slowly(reader.read(range_), random)
    batches = [rows.columns for rows in shown_rows(changes, range_, reader)]
    return [
        (partition.as_py(), id_.as_py(), number.as_py())
        for id_s, numbers, partitions in batches
        for id_, number, partition in zip(id_s, numbers, partitions, strict=True)
    ]


def slowly(each: Iterable[T], random: Random) -> Iterator[T]:
    """The same, sometimes with pauses in which much is written and compacted."""
    pause = random.choice([0.0, 0.0, 0.05, 0.2])
    for one in each:
        yield one
        time.sleep(pause * random.random())


def check(model: Model, found: Found, counts: Counts) -> None:
    """Whether a snapshot lacks no key that lived all the time, and each row was its key's since it was planned.

    Raises:
        BrokenRuleError: It does.
    """
    if len({(partition, key) for partition, key, _ in found.rows}) < len(found.rows):
        raise BrokenRuleError("A key is there twice.")
    counts.snapshots += 1
    counts.rows += len(found.rows)
    for partition, begin in found.begins.items():
        rows = {key: number for place, key, number in found.rows if place == partition}
        before = model.at(partition, begin)
        since = model.between(partition, begin, found.ends[partition])
        deleted = {change.key for change in since if change.number is None}
        lived = {key for key, number in before.items() if number is not None} - deleted
        if lived - rows.keys():
            missing = sorted(lived - rows.keys())
            raise BrokenRuleError(
                f"{len(missing)} of {len(lived)} keys of partition {partition} are missing, the first is {missing[0]}."
            )
        later = {(change.key, change.number) for change in since}
        ever = {(change.key, change.number) for change in model.between(partition, 0, begin)}
        for row in rows.items():
            if row not in later and row not in ever:
                raise BrokenRuleError(f"Partition {partition} never had the row {row}.")
            counts.found_late += row in later
            if row not in later and before[row[0]] != row[1]:
                raise BrokenRuleError(
                    f"The row {row} of partition {partition} was overwritten before the snapshot was planned."
                )
