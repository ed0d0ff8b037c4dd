"""What it costs a task to read Avro whose schema is named in another way; `make bench-schema-ids` runs it.

The same rows are in three topics: with Confluent's ids in payloads, with these in headers, and with versions of AWS Glue. Each topic is
read and decoded in this process, in turn; payload ids also by a client that is not asked for headers. A line for each way: the least CPU
time of all runs, the broker's not counted, and the median of its ratios to payload ids in the same turn.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from uuid import UUID

import pyarrow as pa
from confluent_kafka import Producer
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.batch_reader import ranges_of_batch
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder
from pyspark_upsert_kafka.connector.reading.task_reading import wanted_details
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.formats import avro_confluent
from pyspark_upsert_kafka.formats.codec import CodecSpec
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client
from pyspark_upsert_kafka.registry.framing import id_bytes
from pyspark_upsert_kafka.registry.glue_framing import header_of
from tests.local_glue import CREDENTIALS
from tests.unit.registry import fake_glue, fake_registry

MESSAGES = 300_000
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
VERSION = UUID(int=7 << 100 | 7)
COLUMNS = StructType(
    [
        StructField("id", LongType(), False),
        StructField("name", StringType()),
        StructField("amount", DoubleType()),
        StructField("n", IntegerType()),
    ]
)

Headers = list[tuple[str, bytes]]


def encoded() -> tuple[list[bytes], str]:
    """What stands behind ids, and its schema."""
    format_ = avro_confluent.FORMAT
    options = {option.name: option.default for option in format_.options}
    writing = format_.encoder(CodecSpec(COLUMNS, "value", options, ("t",), frozenset({"id"})), None)
    rows = [
        {"id": number, "name": f"name {number}", "amount": number / 7, "n": number % 9}
        for number in range(MESSAGES)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(COLUMNS))
    return writing.with_prefix(b"").encode(batch).to_pylist(), writing.schema


def write(servers: str, topic: str, bare: list[bytes], prefix: bytes, headers: Headers) -> None:
    """Writes each message behind a prefix, and with headers."""
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": MESSAGES})
    for message in bare:
        producer.produce(topic, prefix + message, headers=headers or None)
    assert producer.flush(120) == 0


def reading(options: dict[str, str], *, asks: bool = True) -> Callable[[], None]:
    """Reads and decodes a topic."""
    parsed = read_options(options, format_options, stream=False)
    table = table_to_read(COLUMNS, parsed)
    details = wanted_details(table, parsed) if asks else frozenset()
    client = load_client(parsed.table.client)
    ranges = ranges_of_batch(client.cluster(parsed.table.properties, "driver"), parsed)
    decoder = RowDecoder(table, parsed, "UTC")

    def read() -> None:
        reader = client.reader(ReadSettings.of(parsed, details))
        found = sum(len(decoder.decode(b)) for range_ in ranges for b in reader.read(range_))
        assert found == MESSAGES

    return read


def main() -> None:
    """Prints the table."""
    os.environ |= {**CREDENTIALS, "no_proxy": "*"}
    bare, schema = encoded()
    with LocalKafka() as kafka, fake_registry.serving() as registry, fake_glue.serving() as glue:
        registry.schema(7, json.loads(schema))
        glue.schema(VERSION, "AVRO", schema)
        servers = kafka.bootstrap_servers
        confluent = {"value.format": "avro-confluent", "value.avro-confluent.url": registry.url}
        amazon = {"value.format": "avro-glue", "value.avro-glue.endpoint": glue.url}
        write(servers, "payload", bare, id_bytes(7), [])
        write(servers, "header", bare, b"", [("__value_schema_id", id_bytes(7))])
        write(servers, "glue", bare, header_of(VERSION), [])

        def of(topic: str, format_: dict[str, str], *, asks: bool = True) -> Callable[[], None]:
            table = {"topic": topic, "properties.bootstrap.servers": servers, **format_}
            return reading({**table, "read.mode": "append"}, asks=asks)

        ways = {
            "ids in payloads": of("payload", confluent),
            "the same, headers are not asked for": of("payload", confluent, asks=False),
            "ids in headers": of("header", confluent),
            "versions of AWS Glue": of("glue", amazon),
        }
        spent: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(RUNS):
            for way, read in ways.items():
                began = time.process_time()
                read()
                spent[way].append((time.process_time() - began) * 1e9 / MESSAGES)
    first = next(iter(spent.values()))
    for way, times in spent.items():
        ratio = median(each / one for each, one in zip(times, first, strict=True))
        print(f"{way:<36} {min(times):>6.0f} ns a message   {ratio:.3f}")


if __name__ == "__main__":
    main()
