"""Streams of the tests: how they are read, and a sink that remembers each batch."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from tests.conftest import Broker, options

KNOWS_LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None

needs_limits = pytest.mark.skipif(not KNOWS_LIMITS, reason="limits need PySpark 4.2")

SCHEMA = "id BIGINT, name STRING, _change_type STRING"


def message(id_: int, name: str | None = "x") -> tuple[str, str | None]:
    """Key and value of a row; no name = a tombstone."""
    key = f'{{"id":{id_}}}'
    return key, None if name is None else f'{{"id":{id_},"name":"{name}"}}'


def read(
    spark: SparkSession,
    broker: Broker,
    topic: str | list[str],
    schema: str = SCHEMA,
    **more: object,
) -> DataFrame:
    """A streaming read; option names as in `tests.conftest.options`, dotted ones in a dict."""
    given = options(broker, topic, **more)
    return spark.readStream.format("upsert-kafka").schema(schema).options(**given).load()


def named(frame: DataFrame, name: str) -> DataFrame:
    """Where a row of a union comes from, and what it holds."""
    return frame.select(f.lit(name), "id")


def failing_once(
    sink: Callable[[DataFrame, int], None], mark: Path, column: str
) -> Callable[[DataFrame, int], None]:
    """A function for foreachBatch that fails once, after it has written a batch with a column.

    Args:
        sink: Writes a batch.
        mark: A file to be made when it fails; another process may run it the next time.
        column: The column.
    """

    def write(batch: DataFrame, number: int) -> None:
        sink(batch, number)
        if column in batch.columns and not mark.exists():
            mark.touch()
            raise RuntimeError("the driver dies here")

    return write


@contextmanager
def running(query: StreamingQuery) -> Iterator[StreamingQuery]:
    """Stops a query in the end, whatever happens."""
    try:
        yield query
    finally:
        query.stop()


@dataclass
class Batches:
    """A sink that remembers the rows of each batch; one whose number is in ``fails`` fails once.

    It remembers in files beside the checkpoint: Spark Connect calls a copy of it, in a process of the server.
    """

    checkpoint: Path
    fails: set[int] = field(default_factory=set)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Takes a batch; its rows end with the number of their Spark partition."""
        self._folder.mkdir(exist_ok=True)
        failed = self._folder / f"{batch_id}.failed"
        if batch_id in self.fails and not failed.exists():
            failed.touch()
            raise RuntimeError("the sink fails as it was told to")
        found = batch.withColumn("spark_partition", f.spark_partition_id()).collect()
        part = self._folder / f"{batch_id}.part"
        part.write_bytes(pickle.dumps([tuple(row) for row in found]))
        part.replace(self._folder / f"{batch_id}.rows")

    @property
    def _folder(self) -> Path:
        return self.checkpoint.with_name(f"{self.checkpoint.name}-batches")

    @property
    def rows(self) -> dict[int, list[tuple[Any, ...]]]:
        """The rows of each batch so far."""
        files = {int(file.stem): file for file in self._folder.glob("*.rows")}
        return {number: pickle.loads(files[number].read_bytes()) for number in sorted(files)}

    def start(self, frame: DataFrame, **trigger: Any) -> StreamingQuery:
        """Starts a query into this sink; by default ``availableNow``."""
        writer = frame.writeStream.option("checkpointLocation", str(self.checkpoint))
        return writer.trigger(**(trigger or {"availableNow": True})).foreachBatch(self).start()

    def all(self) -> list[tuple[Any, ...]]:
        """The rows of all batches, sorted, without the number of the Spark partition."""
        return sorted((row[:-1] for rows in self.rows.values() for row in rows), key=repr)
