"""The jobs of `make bench-quick`: the same work by this package and by a plain Python program."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import fastavro
import orjson
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from descriptors import descriptor_file
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)
from sides import sink_options
from topics import new_topic

from pyspark_upsert_kafka.connector.changelog.changelog_columns import change_columns
from pyspark_upsert_kafka.connector.changelog.row_images import kept_fields, normalized
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.batch_reader import ranges_of_batch
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder
from pyspark_upsert_kafka.connector.writing.keyed_buffer import NewestChanges
from pyspark_upsert_kafka.connector.writing.row_encoding import RowEncoder
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.metadata import ALL_DETAILS, Detail
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_read, table_to_write
from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client, load_sending_client
from tools.local_topics import producer

ROWS = 100_000

_BATCH = 10_000
_ROUNDS = 100
_FORMATS = ("json", "csv", "avro", "protobuf")
_COLUMNS = (
    StructType()
    .add("id", LongType())
    .add("name", StringType())
    .add("region", StringType())
    .add("score", DoubleType())
    .add("clicks", IntegerType())
    .add("active", BooleanType())
    .add("updated", TimestampType())
)
_CHANGES = (
    StructType(list(_COLUMNS))
    .add("_offset", LongType())
    .add("_partition", IntegerType())
    .add("_timestamp", TimestampType())
    .add("_change_type", StringType())
)
_BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)

Details = frozenset[Detail]


@dataclass(frozen=True)
class Job:
    """The same work, done in two ways."""

    name: str
    ours: Callable[[], object]
    plain: Callable[[], object]


@dataclass(frozen=True)
class Plain:
    """How a plain program reads and writes a message of a format; a row is a dict, or a list of texts."""

    decode: Callable[[bytes], Any]
    encode: Callable[[dict[str, Any]], bytes]


def jobs(servers: str, folder: Path) -> Iterator[Job]:
    """All jobs; a topic is filled when its jobs come."""
    rows = pa.Table.from_pylist([_row(number) for number in range(ROWS)], _rows_schema())
    for format_ in _FORMATS:
        topic = new_topic(servers, 1)
        more = descriptor_file(folder) if format_ == "protobuf" else {}
        options = sink_options(True, servers, topic, format_, **more)[1]
        plain = _plain(format_, more)
        yield _writing(format_, options, rows, plain)
        _fill(options, rows)
        yield _reading(format_, options, plain, frozenset({Detail.TIMESTAMP}))
        if format_ == "json":
            yield _reading("json with headers", options, plain, ALL_DETAILS)
    yield _normalizing(rows)
    yield _buffering(options, rows)


def _row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"user {number % 1000}",
        "region": f"region-{number % 10}",
        "score": number * 0.37,
        "clicks": number % 100,
        "active": number % 2 == 0,
        "updated": _BEGIN.fromtimestamp(1_767_225_600 + number / 1000, timezone.utc),
    }


def _rows_schema() -> pa.Schema:
    return arrow_schema(_COLUMNS)


def _encoder(options: dict[str, str]) -> RowEncoder:
    parsed = write_options(options, format_options)
    return RowEncoder(table_to_write(_COLUMNS, parsed), parsed, "UTC")


def _fill(options: dict[str, str], rows: pa.Table) -> None:
    encoder, parsed = _encoder(options), write_options(options, format_options)
    sender = load_sending_client(parsed.table.client, "writing").sender(
        parsed.table.properties, parsed.table.topics.names, parsed.guarantee, with_metadata=False
    )
    for batch in rows.to_batches(_BATCH):
        sender.send(encoder.encode(batch).messages)
    sender.flush()
    sender.close()


def _writing(format_: str, options: dict[str, str], rows: pa.Table, plain: Plain) -> Job:
    """Rows become messages with key and value, which are sent and confirmed."""

    def by_hand() -> None:
        sends = producer(options["properties.bootstrap.servers"], **{"linger.ms": 20})
        for batch in rows.to_batches(_BATCH):
            for row in batch.to_pylist():
                key = plain.encode({"id": row["id"]})
                sends.produce(written["topic"], plain.encode(row), key)
            sends.poll(0)
        sends.flush()

    written = {**options, "topic": new_topic(options["properties.bootstrap.servers"], 1)}
    return Job(f"write {format_}", lambda: _fill(written, rows), by_hand)


def _reading(name: str, options: dict[str, str], plain: Plain, details: Details) -> Job:
    """Messages become rows of key, value and metadata."""

    def ours() -> None:
        given = {**options, "read.mode": "changelog"}
        parsed = read_options(given, format_options, stream=False)
        schema = _CHANGES
        client = load_client(parsed.table.client)
        ranges = ranges_of_batch(client.cluster(parsed.table.properties, "driver"), parsed)
        reader = client.reader(ReadSettings.of(parsed, details))
        decoder = RowDecoder(table_to_read(schema, parsed), parsed, "UTC")
        batches = (decoder.decode(batch) for range_ in ranges for batch in reader.read(range_))
        _check(sum(map(len, batches)))

    def by_hand() -> None:
        consumer = Consumer({
            "bootstrap.servers": options["properties.bootstrap.servers"], "group.id": "quick",
            "enable.auto.commit": False,
        })  # fmt: skip
        consumer.assign([TopicPartition(options["topic"], 0, 0)])
        rows: list[Any] = []
        while len(rows) < ROWS:
            for message in consumer.consume(_BATCH, 1.0):
                place = (message.offset(), message.partition(), message.timestamp()[1])
                rows.append((plain.decode(message.key()), plain.decode(message.value()), place))
        consumer.close()
        _check(len(rows))

    return Job(f"read {name}", ours, by_hand)


def _normalizing(rows: pa.Table) -> Job:
    """Changes of known keys become rows before and after them."""
    columns = change_columns(_CHANGES, ["id"], "quick")

    def upserts(of: pa.Table) -> pa.Table:
        return (
            of.append_column("_offset", pa.array(range(ROWS), pa.int64()))
            .append_column("_partition", pa.array([0] * ROWS, pa.int32()))
            .append_column("_timestamp", rows["updated"])
            .append_column("_change_type", pa.array(["upsert"] * ROWS))
        )

    nothing = pa.schema([*rows.schema, *kept_fields(columns)]).empty_table()
    last_rows, _ = normalized(nothing, upserts(rows), columns)
    changes = upserts(
        rows.set_column(4, rows.schema.field("clicks"), pa.array([7] * ROWS, pa.int32()))
    )

    def by_hand() -> None:
        last = {row["id"]: row for row in rows.to_pylist()}
        found = []
        for row in changes.to_pylist():
            old = last.get(row["id"])
            if old != row:
                found.append((old, row))
            last[row["id"]] = row

    return Job(
        "rows before and after each change",
        lambda: normalized(last_rows, changes, columns),
        by_hand,
    )


def _buffering(options: dict[str, str], rows: pa.Table) -> Job:
    """The last message per key is kept, of a million over ten thousand keys: a run of fewer is over too soon to be measured."""
    encoder = _encoder(options)
    messages = [encoder.encode(batch).messages for batch in rows.slice(0, _BATCH).to_batches(1_000)]

    def ours() -> None:
        buffer = NewestChanges(ROWS)
        for _ in range(_ROUNDS):
            for each in messages:
                list(buffer.add(each))

    def by_hand() -> None:
        last: dict[Any, Any] = {}
        for _ in range(_ROUNDS):
            for each in messages:
                last.update((row[1], row) for row in each.rows())

    return Job("keep the last message per key", ours, by_hand)


def _plain(format_: str, protobuf: dict[str, str]) -> Plain:
    if format_ == "json":
        return Plain(orjson.loads, orjson.dumps)
    if format_ == "csv":
        return Plain(lambda text: next(csv.reader([text.decode()])), _csv_line)
    return _plain_avro() if format_ == "avro" else _plain_protobuf(protobuf)


def _csv_line(row: dict[str, Any]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow(row.values())
    return out.getvalue().encode()


def _plain_avro() -> Plain:
    columns = _COLUMNS
    required = frozenset({"id"})
    schemas = {
        size: fastavro.parse_schema(
            json.loads(
                json.dumps(
                    derived_schema(StructType(columns[:size]), required, legacy_timestamps=True)
                )
            )
        )
        for size in (1, len(columns))
    }

    def encode(row: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schemas[len(row)], row)
        return out.getvalue()

    def decode(message: bytes) -> Any:
        schema = schemas[1 if len(message) < 8 else len(columns)]
        return fastavro.schemaless_reader(io.BytesIO(message), schema, None)

    return Plain(decode, encode)


def _plain_protobuf(options: dict[str, str]) -> Plain:
    described = descriptor_pb2.FileDescriptorSet()
    described.ParseFromString(Path(options["key.protobuf.descriptor-file"]).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in described.file:
        pool.Add(file)
    key, row = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"bench.{name}"))
        for name in ("Key", "Row")
    )
    names = [field.name for field in row.DESCRIPTOR.fields]

    def encode(values: dict[str, Any]) -> bytes:
        made: Message = (key if len(values) == 1 else row)(**values)
        return made.SerializeToString()

    def decode(message: bytes) -> list[Any]:
        found = row.FromString(message)
        return [getattr(found, name) for name in names]

    return Plain(decode, encode)


def _check(found: int) -> None:
    if found != ROWS:
        raise SystemExit(f"Read {found:,} rows instead of {ROWS:,}.")
