"""Cases of Avro with a registry: messages with schemas of several writers, and a schema of the reader."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.table.arrow import arrow_schema
from pyspark_upsert_kafka.formats.avro.derive import derived_schema
from pyspark_upsert_kafka.registry.framing import prefix_of
from tools.fuzz.avro_kinds import record
from tools.fuzz.avro_leaves import Kind, Writer
from tools.fuzz.avro_writer import Writer as SpecWriter
from tools.fuzz.case import Case, Table, written
from tools.fuzz.mutations import share_of_bad, spoiled

_POOL = 150
"""So many values are made of each writer's schema; messages repeat them."""


def case(rng: Random, count: int) -> Case:
    """Messages by fastavro and a second writer, of one to three writers' schemas."""
    given = rng.random() < 0.7
    kind = record(rng, rng.choice([0, 1, 2]), given=given)
    assert isinstance(kind.column, StructType)
    writers = {number: kind.writer(rng) for number in range(1, rng.choice([2, 2, 4]))}
    schemas = {number: json.dumps(writer.schema) for number, writer in writers.items()}
    own = kind.schema if given else derived_schema(kind.column, frozenset(), legacy_timestamps=True)
    schemas[0] = json.dumps(own)
    options = {"schema": schemas[0]} if given else {}
    side = rng.choice(["key", "value"])
    table = Table("avro-confluent", kind.column, side, options, schemas=schemas)
    messages, rows = _pool(rng, kind, writers)
    chosen = rng.choices(range(len(messages)), k=count)
    taken = rows.take(pa.array(chosen))
    many, kept = spoiled(rng, [messages[at] for at in chosen], share_of_bad(rng))
    return written(table, many, taken, kept)


def _pool(
    rng: Random, kind: Kind, writers: dict[int, Writer]
) -> tuple[list[bytes], pa.RecordBatch]:
    messages, rows, ours = [], [], SpecWriter(rng)
    for number, writer in writers.items():
        schema = fastavro.parse_schema(json.loads(json.dumps(writer.schema)))
        for _ in range(_POOL):
            value, expected = writer.value(rng)
            by_fastavro = rng.random() < 0.5
            data = _by_fastavro(schema, value) if by_fastavro else ours.write(writer.schema, value)
            messages.append(prefix_of(number) + data)
            rows.append(expected)
    target = arrow_schema(kind.column)
    struct = pa.array(rows, pa.struct(list(target)))
    return messages, pa.RecordBatch.from_arrays(struct.flatten(), schema=target)


def _by_fastavro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()
