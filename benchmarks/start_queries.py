"""A new query over a few rows in a session of its own, step by step: what `start.py` runs in a process of its own."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROWS = 20
SCHEMA = "id BIGINT, name STRING"

Steps = Iterator[tuple[str, Callable[[], object]]]


class _Query:
    """The steps of a query that all have in common."""

    def __init__(self, servers: str, topic: str, folder: Path) -> None:
        self.options = {
            "properties.bootstrap.servers": servers,
            "topic": topic,
            "primary-key": "id",
            "key.format": "json",
            "value.format": "json",
        }
        self.checkpoint = str(folder / uuid.uuid4().hex)
        self.files = str(folder / uuid.uuid4().hex)
        self.spark: Any = None
        self.frame: Any = None
        self.query: Any = None

    def start_session(self) -> None:
        from pyspark.sql import SparkSession

        self.spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )

    def import_spark(self) -> None:
        import pyspark.sql  # noqa: F401

    def load_stream(self) -> None:
        reader = self.spark.readStream.format("upsert-kafka").schema(
            f"{SCHEMA}, _change_type STRING"
        )
        self.frame = reader.options(**self.options).load()

    def start_stream(self) -> None:
        writer = self.frame.writeStream.format("noop")
        self.query = writer.option("checkpointLocation", self.checkpoint).start()

    def first_batch(self) -> None:
        while not self.query.recentProgress:
            time.sleep(0.005)
            if not self.query.isActive:
                sys.exit(f"The query has ended: {self.query.exception()}")

    def stop(self) -> None:
        self.query.stop()

    def rows_in_a_file(self) -> None:
        folder = Path(self.files)
        folder.mkdir()
        (folder / "rows.json").write_text('{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n')

    def load_file_stream(self) -> None:
        self.rows_in_a_file()
        self.frame = self.spark.readStream.schema(SCHEMA).json(self.files)

    def write_stream(self) -> None:
        writer = self.frame.writeStream.format("upsert-kafka").options(**self.options)
        self.query = writer.option("checkpointLocation", self.checkpoint).start()

    def load_file(self) -> None:
        self.rows_in_a_file()
        self.frame = self.spark.read.schema(SCHEMA).json(self.files)

    def write(self) -> None:
        self.frame.write.format("upsert-kafka").options(**self.options).mode("append").save()

    def load_table(self) -> None:
        reader = self.spark.read.format("upsert-kafka").schema(SCHEMA)
        self.frame = reader.options(**self.options).load()

    def collect(self) -> None:
        if len(self.frame.collect()) != ROWS:
            sys.exit("The table has not all its rows.")


def _session(query: _Query) -> Steps:
    yield "import pyspark.sql", query.import_spark
    yield "the session (its JVM)", query.start_session


def _read_stream(*where: Any) -> Steps:
    query = _Query(*where)
    yield from _session(query)
    yield "load()", query.load_stream
    yield "start()", query.start_stream
    yield "to the end of the first batch", query.first_batch
    yield "stop()", query.stop


def _write_stream(*where: Any) -> Steps:
    query = _Query(*where)
    yield from _session(query)
    yield "a stream of files", query.load_file_stream
    yield "start()", query.write_stream
    yield "to the end of the first batch", query.first_batch
    yield "stop()", query.stop


def _read(*where: Any) -> Steps:
    query = _Query(*where)
    yield from _session(query)
    yield "load()", query.load_table
    yield "collect()", query.collect
    yield "collect() again", query.collect


def _write(*where: Any) -> Steps:
    query = _Query(*where)
    yield from _session(query)
    yield "a DataFrame of a file", query.load_file
    yield "save()", query.write
    yield "save() again", query.write


QUERIES: dict[str, Callable[..., Steps]] = {
    "readStream": _read_stream,
    "read": _read,
    "writeStream": _write_stream,
    "write": _write,
}


def main() -> int:
    """Runs a query, and notes each step."""
    import sitecustomize as trace  # that of `traced`, which is there in a process of its own only

    query, servers, topic, folder = sys.argv[1:]
    for name, step in QUERIES[query](servers, topic, Path(folder)):
        begin = time.time()
        step()
        trace.write("step", begin, name)
    trace.write("cpu", time.time(), "", of=_cpu_of_all())
    return 0


def _cpu_of_all() -> dict[str, float]:
    """CPU seconds of this process and the JVM; those of Python workers are in their own lines."""
    import psutil

    used = {"JVM": 0.0}
    for process in psutil.Process().children(recursive=True):
        times = process.cpu_times()
        kind = "Python" if process.name().startswith("python") else "JVM"
        used[kind] = used.get(kind, 0.0) + times.user + times.system
    return used


if __name__ == "__main__":
    sys.exit(main())
