"""Where the time goes: the steps of reading and writing, each measured together with the steps before it.

All steps but the last run in this process, on the work of one core, without Spark. The last step is Spark alone: Arrow from a
Python source into the JVM, and from the JVM into a Python sink.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from data import SCHEMA
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.batch_reader import ranges_of_batch
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder
from pyspark_upsert_kafka.connector.writing.row_encoding import RowEncoder
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_read, table_to_write
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client, load_sending_client


def reading(options: dict[str, str], schema: StructType) -> Iterator[tuple[str, float, int]]:
    """(step, seconds of CPU, messages) for the client alone and for the client and decoding."""
    parsed = read_options(options, format_options, stream=False)
    table = table_to_read(schema, parsed)
    client = load_client(parsed.table.client)
    ranges = ranges_of_batch(client.cluster(parsed.table.properties, "driver"), parsed)
    reader = client.reader(ReadSettings.of(parsed, frozenset()))
    decoder = RowDecoder(table, parsed, "UTC")

    def fetch(batch: Any) -> int:
        return len(batch.values)

    def fetch_and_decode(batch: Any) -> int:
        return len(decoder.decode(batch))

    for step, work in (("reading: client", fetch), ("reading: client + decode", fetch_and_decode)):
        begin, count = time.process_time(), 0
        for range_ in ranges:
            for batch in reader.read(range_):
                count += work(batch)
        yield step, time.process_time() - begin, count


def writing(rows: DataFrame, options: dict[str, str]) -> Iterator[tuple[str, float, int]]:
    """(step, seconds of CPU, rows) for encoding alone and for encoding and sending."""
    parsed = write_options(options, format_options)
    table = table_to_write(rows.schema, parsed)
    encoder = RowEncoder(table, parsed, "UTC")
    batches = rows.toArrow().to_batches(10_000)
    begin = time.process_time()
    encoded = [encoder.encode(batch).messages for batch in batches]
    count = sum(map(len, encoded))
    yield "writing: encode", time.process_time() - begin, count
    sender = load_sending_client(parsed.table.client, "writing").sender(
        parsed.table.properties, parsed.table.topics.names, parsed.guarantee, with_metadata=False
    )
    begin = time.process_time()
    for messages in encoded:
        sender.send(messages)
    sender.flush()
    yield "writing: client", time.process_time() - begin, count


class _Reader(DataSourceReader):
    def __init__(self, count: int) -> None:
        self._count = count

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa

        from pyspark_upsert_kafka.core.arrow import arrow_schema

        size = 20_000
        columns = [
            list(range(size)), ["user 123"] * size, ["region-1"] * size, [0.37] * size, [1] * size,
            [True] * size, [1_767_225_600_000_000] * size,
        ]  # fmt: skip
        schema = arrow_schema(self._schema)
        batch = pa.RecordBatch.from_arrays(
            [pa.array(c).cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
        )
        for _ in range(self._count // size):
            yield batch


class _Writer(DataSourceArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class BareArrow(DataSource):
    """A source that makes rows of nothing and a sink that drops them: Arrow and Spark alone."""

    @classmethod
    def name(cls) -> str:
        """Its format name."""
        return "bare-arrow"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Rows out of nothing."""
        reader = _Reader(int(self.options["rows"]))
        reader._schema = schema  # noqa: SLF001
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Rows into nothing."""
        return _Writer()


def arrow(spark: SparkSession, rows: DataFrame, count: int) -> Iterator[tuple[str, float, int]]:
    """(step, seconds, rows) for Arrow into the JVM and out of it."""
    spark.dataSource.register(BareArrow)
    source = spark.read.format("bare-arrow").schema(SCHEMA).option("rows", count)
    yield "Arrow into the JVM", _timed(lambda: noop(source.load())), count
    sink = rows.write.format("bare-arrow").mode("append")
    yield "Arrow out of the JVM", _timed(sink.save), count


def noop(frame: DataFrame) -> None:
    """Computes every row and keeps none."""
    frame.write.format("noop").mode("overwrite").save()


def _timed(job: Callable[[], object]) -> float:
    begin = time.monotonic()
    job()
    return time.monotonic() - begin
