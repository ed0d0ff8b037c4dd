"""Cases of Avro: without a header, and with a registry whose ids are known, unknown, not schemas, or do not fit."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from functools import partial
from random import Random
from typing import Any

import fastavro
from pyspark.sql.types import ArrayType, DataType, DateType, DecimalType, MapType, StructType

from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema
from pyspark_upsert_kafka.registry.framing import id_bytes
from tools.fuzz.case import UNKNOWN, Case, NoRow, Peer, Table, share_of_bad, spoiled, written
from tools.fuzz.codecs import encoder_of
from tools.fuzz.reading import writable
from tools.fuzz.values import BITS, DAY, FIRST, INTERVAL, LAST, SIMPLE, Values, columns

_EXACT = Context(prec=80)


def derived_case(rng: Random, count: int) -> Case:
    """Messages of random columns, spoiled or not."""
    given = rng.random() < 0.5
    schema = columns(
        rng,
        (*SIMPLE, INTERVAL),
        depth=rng.choice([0, 1, 2, 3]),
        plain_names=True,
        nullable=not given,
    )
    side = rng.choice(["key", "value"])
    required = frozenset(name for name in schema.names if side == "key" and rng.random() < 0.5)
    legacy = rng.random() < 0.5
    avro = derived_schema(schema, required, legacy_timestamps=legacy)
    options = {"timestamp_mapping.legacy": str(legacy).lower()}
    if given:
        options["schema"] = json.dumps(avro)
    table = Table("avro", schema, side, options, required=required)
    # Within arrays and maps there are milliseconds by either mapping.
    values = Values(rng, whole_millis=True, nulls=rng.choice([0.0, 0.1, 0.5]))
    rows = values.batch(schema, count, required)
    rows, messages = writable(encoder_of(table), rows)
    messages, kept = spoiled(rng, messages, share_of_bad(rng))
    return written(table, messages, rows, kept, peer=_fastavro_peer(avro, schema))


OTHER_SCHEMAS = {
    2: '"string"',
    3: "no schema",
    4: '{"type": "record", "name": "R", "fields": []}',
    5: '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}, {"name": "zz", "type": "string"}]}',
    6: '{"type": "array", "items": "long"}',
}


def confluent_case(rng: Random, count: int) -> Case:
    """Messages of the derived schema under two ids, and some under those of other schemas."""
    schema = columns(
        rng, (*SIMPLE, INTERVAL), depth=rng.choice([0, 1, 2]), plain_names=True, nullable=True
    )
    side = rng.choice(["key", "value"])
    required = frozenset(name for name in schema.names if side == "key" and rng.random() < 0.5)
    own = json.dumps(derived_schema(schema, required, legacy_timestamps=True))
    table = Table(
        "avro-confluent", schema, side, schemas={0: own, 1: own, **OTHER_SCHEMAS}, required=required
    )
    values = Values(rng, whole_millis=True, nulls=rng.choice([0.0, 0.1, 0.5]))
    rows, messages = writable(encoder_of(table), values.batch(schema, count, required))
    messages = [id_bytes(rng.randrange(2)) + message[5:] for message in messages]
    messages, kept = spoiled(rng, messages, share_of_bad(rng), other_prefix)
    return written(table, messages, rows, kept)


def other_prefix(rng: Random, message: bytes) -> bytes:
    """A message with another prefix, or cut within it."""
    if rng.random() < 0.2:
        return message[: rng.randrange(7)]
    other = rng.choice([rng.randrange(8), 2**31 - 1, 2**24])
    return (
        rng.choice([id_bytes(other), id_bytes(other), b"\0\xff\0\0\1", b"\1\0\0\0\1", b"{", b""])
        + message[5:]
    )


def _fastavro_peer(schema: Any, columns: StructType) -> Peer:
    """The peer of data of this schema."""
    plain = fastavro.parse_schema(_without_logical_types(schema))
    return partial(_read_all, plain, _converter(schema, columns))


def _read_all(plain: Any, convert: Callable[[Any], Any], messages: Sequence[bytes]) -> list[Any]:
    return [_read(plain, convert, message) for message in messages]


def _read(plain: Any, convert: Callable[[Any], Any], message: bytes) -> Any:
    """It is more lenient than we are; but what it writes itself again, byte for byte, everyone must read."""
    source = io.BytesIO(message)
    try:
        value = fastavro.schemaless_reader(source, plain)
    except MemoryError:
        return UNKNOWN
    except Exception as why:  # noqa: BLE001 - whatever it raises, it cannot read the message
        return NoRow(f"{type(why).__name__} {why}")
    if source.tell() != len(message):
        return NoRow("bytes behind the datum")
    return convert(value) if _by_fastavro(plain, value) == message else UNKNOWN


def _by_fastavro(plain: Any, value: Any) -> bytes | None:
    out = io.BytesIO()
    try:
        fastavro.schemaless_writer(out, plain, value)
    except Exception:  # noqa: BLE001 - a value of none of the branches, for one
        return None
    return out.getvalue()


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {
        key: _without_logical_types(schema[key])
        for key in ("items", "values", "type")
        if key in schema
    }
    if "fields" in schema:
        parts["fields"] = [_without_logical_types(field) for field in schema["fields"]]
    return {key: value for key, value in schema.items() if key != "logicalType"} | parts


def _converter(schema: Any, kind: DataType) -> Callable[[Any], Any]:
    """From a value without its logical type to that of a column; UNKNOWN = it may be out of range."""
    if isinstance(schema, list):
        one = _converter(next(branch for branch in schema if branch != "null"), kind)
        return lambda value: None if value is None else one(value)
    if isinstance(kind, StructType):
        types = {field["name"]: field["type"] for field in schema["fields"]}
        fields = {
            field.name: _converter(types[field.name], field.dataType) for field in kind.fields
        }
        return lambda value: {name: convert(value[name]) for name, convert in fields.items()}
    if isinstance(kind, ArrayType):
        item = _converter(schema["items"], kind.elementType)
        return lambda values: [item(value) for value in values]
    if isinstance(kind, MapType):
        entry = _converter(schema["values"], kind.valueType)
        return lambda values: [(name, entry(value)) for name, value in values.items()]
    return _leaf(schema, kind)


def _leaf(schema: Any, kind: DataType) -> Callable[[Any], Any]:
    logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
    if isinstance(kind, DecimalType):
        most = 10**kind.precision
        return lambda data: (
            _decimal(int.from_bytes(data, "big", signed=True), most, kind.scale)
            if data
            else UNKNOWN
        )
    if logical.endswith("-millis"):
        return lambda value: value * 1000 if FIRST <= value * 1000 <= LAST else UNKNOWN
    if isinstance(kind, DateType):
        return lambda value: value if FIRST // DAY <= value <= LAST // DAY else UNKNOWN
    if logical.endswith("-micros"):
        return lambda value: value if FIRST <= value <= LAST else UNKNOWN
    if schema == "int":  # fastavro takes more bits for one too
        half = 1 << (BITS[type(kind)] - 1)
        return lambda value: value if -half <= value < half else UNKNOWN
    return lambda value: value


def _decimal(number: int, most: int, scale: int) -> Any:
    return Decimal(number).scaleb(-scale, _EXACT) if -most < number < most else UNKNOWN
