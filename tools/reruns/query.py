"""A query over one or two files, each of which is a batch: how its function of ``foreachBatch`` calls one or two sinks, and fails."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Literal

import psutil
from pyspark import inheritable_thread_target
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka import upsert_sink
from pyspark_upsert_kafka.connector.writing.update_mode import UpsertSink
from tools.faults import kill_a_worker
from tools.local_topics import table

ROWS = 12
"""In each batch."""

_SCHEMA = "id INT, g INT, n INT, _change_type STRING"
_DDL = """CREATE TABLE t (id BIGINT, g INT, n INT, PRIMARY KEY ({key}) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}', 'key.format' = 'json', 'value.format' = 'json')"""

Kind = Literal["options", "columns", "nothing", "prefix", "alone"]
"""What tells the second sink from the first: but for ``prefix`` they have one; ``alone`` = there is none."""

Fault = Literal["", "row", "end", "worker"]
"""What goes wrong: a row that cannot be encoded, an error after all calls, a worker that is killed."""

FAULTS: dict[Fault, str] = {
    "row": "rows that cannot be encoded",
    "end": "errors after all calls",
    "worker": "workers to be killed",
}
"""What is said of them."""

KINDS: tuple[Kind, ...] = ("options", "columns", "nothing", "prefix", "alone")


@dataclass(frozen=True)
class Variant:
    """One way to call the sinks.

    Args:
        kind: What tells the second sink from the first.
        ddl: Whether a DDL declares the table, with keys in their widest types.
        order: Which sinks are called, and in which order.
        caller: From which thread.
        id_type: Type of the key column ``id``.
        key: The columns of ``primary-key``.
        tasks: ``sink.parallelism``.
        obeys: Whether the second sink has got a prefix of its own, as it is told to when nothing else tells it.
    """

    kind: Kind
    ddl: bool
    order: str = "AB"
    caller: Literal["here", "a thread", "threads"] = "here"
    id_type: str = "INT"
    key: str = "id,g"
    tasks: int = 3
    obeys: bool = False


def first_variant(random: Random) -> Variant:
    """How a query is written at first."""
    kind = random.choice(KINDS)
    return Variant(
        kind,
        ddl=random.random() < 0.5,
        order="A" if kind == "alone" else "AB",
        caller="here" if random.random() < 0.8 else random.choice(("a thread", "threads")),
        id_type=random.choice(("INT", "BIGINT")),
        tasks=random.choice((2, 3)),
    )


def changed(variant: Variant, random: Random) -> Variant:
    """The same with one thing changed that could distribute or name rows otherwise."""
    orders = {"AB": ["BA", "B", "BA"], "A": ["A"]}[variant.order]
    if variant.kind == "nothing":  # without the first, the second is the first
        orders = ["BA"]
    changes = (
        {"order": random.choice(orders)},
        {"caller": random.choice(("a thread", "threads"))},
        {"id_type": "BIGINT" if variant.id_type == "INT" else "INT"},
        {"key": "g,id"},
        {"tasks": variant.tasks + 1},
    )
    return replace(variant, **random.choice(changes))  # type: ignore[arg-type]


def fault(random: Random) -> Fault:
    """What goes wrong in a run."""
    faults: tuple[Fault, ...] = ("row", "row", "end", "worker", "")
    return random.choice(faults)


class Query:
    """It runs up to the last file and ends; started again, it goes on.

    Args:
        spark: The session.
        servers: The bootstrap servers.
        topic: Where all sinks write.
        folder: Where its files and its checkpoint are.
        batches: How many files there are.
    """

    def __init__(
        self, spark: SparkSession, servers: str, topic: str, folder: Path, batches: int
    ) -> None:
        self._spark, self._servers, self._topic = spark, servers, topic
        self._files, self._checkpoint = folder / "in", folder / "checkpoint"
        self._files.mkdir(parents=True)
        self.batches = batches
        for batch in range(batches):
            numbers = range(batch * ROWS, (batch + 1) * ROWS)
            rows = [{"id": n % 7, "g": n % 3, "n": n, "_change_type": "+I"} for n in numbers]
            path = self._files / f"{batch}.json"
            path.write_text("\n".join(map(json.dumps, rows)))
            os.utime(path, (1_700_000_000 + batch,) * 2)

    def run(self, variant: Variant, fault: Fault, random: Random) -> str | None:
        """Runs it to its end; returns what it failed with, or None when it is done."""
        bad = (
            random.choice((1, 2))
            if random.random() < 0.5
            else random.randrange(self.batches * ROWS)
        )

        def write(rows: DataFrame, batch: int) -> None:
            self._call_all(rows, batch, variant, bad if fault == "row" else None)
            if fault == "end":
                raise RuntimeError("after all calls")

        stream = self._spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1)
        writer = stream.json(str(self._files)).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        query = writer.trigger(availableNow=True).start()
        killer = threading.Timer(
            random.uniform(0.3, 2.5), kill_a_worker, (psutil.Process(), random)
        )
        if fault == "worker":
            killer.start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            return str(error)
        finally:
            killer.cancel()
        return None

    def forget_last(self) -> None:
        """As if the driver had died before it could say that the last batch is done."""
        number = self.batches - 1
        (self._checkpoint / "commits" / f"{number}").unlink()
        (self._checkpoint / "commits" / f".{number}.crc").unlink(missing_ok=True)

    def _call_all(self, rows: DataFrame, batch: int, variant: Variant, bad: int | None) -> None:
        def call(which: str) -> None:
            self._sink(variant, which)(_rows_of(rows, variant, which, bad), batch)

        in_thread: Any = inheritable_thread_target(rows.sparkSession)
        if variant.caller == "here":
            for which in variant.order:
                call(which)
            return
        with ThreadPoolExecutor(2) as pool:
            if variant.caller == "threads":
                futures = [pool.submit(in_thread(lambda it=it: call(it))) for it in variant.order]
                for future in futures:
                    future.result()
                return
            for which in variant.order:
                pool.submit(in_thread(lambda it=which: call(it))).result()

    def _sink(self, variant: Variant, which: str) -> UpsertSink:
        given: dict[str, object] = {
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": self._topic,
            "sink.parallelism": variant.tasks,
        }
        if which == "B" and variant.kind == "options":
            given["value.json.encode.ignore-null-fields"] = True
        if which == "B" and (variant.kind == "prefix" or variant.obeys):
            given["sink.transactional-id-prefix"] = f"{self._topic}-b"
        if variant.ddl:
            ddl = _DDL.format(topic=self._topic, servers=self._servers, key=variant.key)
            return upsert_sink(given, ddl=ddl)
        of_table = {**table(self._servers, self._topic), "primary-key": variant.key}
        return upsert_sink(of_table, **given)


def is_of(which: str, variant: Variant, n: int) -> bool:
    """Whether a sink writes the row of that number."""
    return variant.kind == "alone" or (n // 2) % 2 == (which == "B")


def _rows_of(rows: DataFrame, variant: Variant, which: str, bad: int | None) -> DataFrame:
    changes = "_change_type" if bad is None else f"IF(n = {bad}, 'bad', '+I') AS _change_type"
    columns = [f"CAST(id AS {variant.id_type}) AS id", "g", "n", changes]
    if which == "B" and variant.kind == "columns":
        columns[1], columns[2] = columns[2], columns[1]
    if variant.kind != "alone":
        rows = rows.filter(f"(n DIV 2) % 2 = {int(which == 'B')}")
    return rows.selectExpr(*columns)
