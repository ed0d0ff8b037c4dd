"""Cases of Avro with a registry: messages of several writers' schemas, and a schema of the reader.

Half of the messages are fastavro's; the others are encoded in other ways that the specification allows: blocks with sizes, long numbers.
"""

from __future__ import annotations

import io
import json
import struct
from decimal import Context
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema
from pyspark_upsert_kafka.registry.framing import id_bytes
from tools.fuzz.avro_types import Kind, Writer, record
from tools.fuzz.case import Case, Table, share_of_bad, spoiled, written

_EXACT = Context(prec=80)


class _OtherWriter:
    """Writes data.

    Args:
        rng: Decides how arrays and maps are cut into blocks, and whether a block tells its size.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def write(self, schema: Any, value: Any) -> bytes:
        """A value; named types stand where they are used."""
        if isinstance(schema, list):
            at = next(at for at, branch in enumerate(schema) if _fits(branch, value))
            return long(at) + self.write(schema[at], value)
        kind = schema["type"] if isinstance(schema, dict) else schema
        match kind:
            case "record":
                return b"".join(self.write(f["type"], value[f["name"]]) for f in schema["fields"])
            case "array":
                return self._blocks([self.write(schema["items"], item) for item in value])
            case "map":
                entries = value.items()
                return self._blocks(
                    [sized(name.encode()) + self.write(schema["values"], v) for name, v in entries]
                )
            case "enum":
                return long(schema["symbols"].index(value))
            case "fixed":
                return bytes(value)
        return _simple(schema, kind, value)

    def _blocks(self, items: list[bytes]) -> bytes:
        written, at = b"", 0
        while at < len(items):
            some = items[at : at + self._rng.randint(1, len(items))]
            data = b"".join(some)
            head = (
                long(-len(some)) + long(len(data)) if self._rng.random() < 0.5 else long(len(some))
            )
            written, at = written + head + data, at + len(some)
        return written + b"\0"


def _simple(schema: Any, kind: str, value: Any) -> bytes:
    if kind == "null":
        return b""
    if kind == "boolean":
        return bytes([value])
    if kind in ("int", "long"):
        return long(value)
    if kind in ("float", "double"):
        return struct.pack("<" + kind[0], value)
    if isinstance(value, str):
        return sized(value.encode())
    if isinstance(schema, dict) and schema.get("logicalType") == "decimal":
        unscaled = int(value.scaleb(schema["scale"], _EXACT))
        return sized(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True))
    return sized(value)


def _fits(branch: Any, value: Any) -> bool:
    """Whether a value is one of a branch, of unions as the kinds here have them."""
    if branch == "null" or value is None:
        return branch == "null" and value is None
    return branch != "int" or not isinstance(value, int) or -(2**31) <= value < 2**31


def sized(data: bytes) -> bytes:
    """Bytes behind their length."""
    return long(len(data)) + data


def long(number: int) -> bytes:
    """A number of variable length in zigzag code."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


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
    messages, rows, ours = [], [], _OtherWriter(rng)
    for number, writer in writers.items():
        schema = fastavro.parse_schema(json.loads(json.dumps(writer.schema)))
        for _ in range(_POOL):
            value, expected = writer.value(rng)
            by_fastavro = rng.random() < 0.5
            data = _by_fastavro(schema, value) if by_fastavro else ours.write(writer.schema, value)
            messages.append(id_bytes(number) + data)
            rows.append(expected)
    target = arrow_schema(kind.column)
    struct = pa.array(rows, pa.struct(list(target)))
    return messages, pa.RecordBatch.from_arrays(struct.flatten(), schema=target)


def _by_fastavro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()
