"""Avro schemas with the columns they are read into, the data a peer writes, and what becomes of bytes."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)


@dataclass(frozen=True)
class Kind:
    """An Avro type, a column for it, data for the peer to write, and what the column then holds."""

    schema: Any
    column: DataType
    values: st.SearchStrategy[Any]
    expected: Callable[[Any], Any] = lambda value: value


def written(schema: Any, value: Any) -> bytes:
    """A datum as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def long(value: int) -> bytes:
    """A number as Avro writes it."""
    return written("long", value)


def _bits(bits: int) -> st.SearchStrategy[int]:
    half = 1 << (bits - 1)
    edges = st.sampled_from([-half, half - 1, 0, -1, 1, 63, 64, -64, -65])
    return st.integers(-half, half - 1) | edges


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    bound = 10**precision - 1
    unscaled = st.integers(-bound, bound) | st.sampled_from([-bound, bound, 0, -1])
    return unscaled.map(lambda number: Decimal(number).scaleb(-scale, fastavro_context))


fastavro_context = __import__("decimal").Context(prec=60)


def _logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def _enum(name: str) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": ["RED", "GREEN", "BLUE"]}


def _fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": f"F{size}", "size": size, **more}


UTC = dt.timezone.utc
FIRST, LAST = dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)  # noqa: DTZ001 - local ones
MOMENTS = st.datetimes(FIRST, LAST)
ZONED = MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))
FLOATS = st.floats(width=32, allow_nan=False)
LOCAL_OF_ZONED = Kind(
    _logical("long", "timestamp-micros"),
    TimestampNTZType(),
    ZONED,
    lambda moment: moment.replace(tzinfo=None),
)


def _in_millis(moment: dt.datetime) -> dt.datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _single(value: float) -> float:
    import numpy as np

    return float(np.int64(value).astype(np.float32))


def _uuid(data: bytes) -> str:
    return str(UUID(bytes=data))


def _micros(time: dt.time) -> int:
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return seconds * 1_000_000 + time.microsecond


LEAVES = [
    Kind("boolean", BooleanType(), st.booleans()),
    Kind("int", IntegerType(), _bits(32)),
    Kind("int", ByteType(), _bits(8)),
    Kind("int", ShortType(), _bits(16)),
    Kind("int", LongType(), _bits(32)),
    Kind("int", FloatType(), _bits(32), _single),
    Kind("int", DoubleType(), _bits(32), float),
    Kind("long", LongType(), _bits(64)),
    Kind("long", FloatType(), _bits(64), _single),
    Kind("long", DoubleType(), _bits(64), float),
    Kind("float", FloatType(), FLOATS),
    Kind("float", DoubleType(), FLOATS),
    Kind("double", DoubleType(), st.floats(allow_nan=False)),
    Kind("string", StringType(), st.text()),
    Kind("string", BinaryType(), st.text(), str.encode),
    Kind("bytes", BinaryType(), st.binary(max_size=200)),
    Kind("bytes", StringType(), st.text().map(str.encode), bytes.decode),
    Kind(_fixed(3), BinaryType(), st.binary(min_size=3, max_size=3)),
    Kind(_enum("E"), StringType(), st.sampled_from(["RED", "GREEN", "BLUE"])),
    Kind(_logical("bytes", "decimal", precision=10, scale=2), DecimalType(10, 2), _decimals(10, 2)),
    Kind(_logical("bytes", "decimal", precision=38, scale=10), DecimalType(38, 10), _decimals(38, 10)),
    Kind(_fixed(8, logicalType="decimal", precision=18), DecimalType(20, 0), _decimals(18, 0)),
    Kind(_fixed(16, logicalType="decimal", precision=38), DecimalType(38, 0), _decimals(38, 0)),
    Kind(_fixed(20, logicalType="decimal", precision=38), DecimalType(38, 0), _decimals(38, 0)),
    Kind(_logical("string", "uuid"), StringType(), st.uuids(), str),
    Kind(_fixed(16, logicalType="uuid"), StringType(), st.binary(min_size=16, max_size=16), _uuid),
    Kind(_logical("int", "time-millis"), IntegerType(), st.times(), lambda time: _micros(time) // 1000),
    Kind(_logical("long", "time-micros"), LongType(), st.times(), _micros),
    Kind(_logical("long", "timestamp-nanos"), LongType(), _bits(64)),
    Kind(_logical("long", "local-timestamp-nanos"), LongType(), _bits(64)),
    Kind(_fixed(16), BinaryType(), st.binary(min_size=16, max_size=16)),
    Kind(_logical("int", "date"), DateType(), st.dates()),
    Kind(_logical("long", "timestamp-micros"), TimestampType(), ZONED),
    Kind(_logical("long", "timestamp-millis"), TimestampType(), ZONED, _in_millis),
    Kind(_logical("long", "local-timestamp-micros"), TimestampNTZType(), MOMENTS),
    Kind(_logical("long", "local-timestamp-millis"), TimestampNTZType(), MOMENTS, _in_millis),
    LOCAL_OF_ZONED,
]  # fmt: skip


def nullable(kind: Kind, *, first: bool) -> Kind:
    """A type or null."""
    branches = ["null", kind.schema] if first else [kind.schema, "null"]
    if kind.schema == "null" or isinstance(kind.schema, list):
        return kind
    return Kind(
        branches,
        kind.column,
        st.none() | kind.values,
        lambda value: None if value is None else kind.expected(value),
    )


def array_of(kind: Kind) -> Kind:
    """Arrays of a type."""
    return Kind(
        {"type": "array", "items": kind.schema},
        ArrayType(kind.column),
        st.lists(kind.values, max_size=4),
        lambda values: [kind.expected(value) for value in values],
    )


def map_of(kind: Kind) -> Kind:
    """Maps of a type."""
    return Kind(
        {"type": "map", "values": kind.schema},
        MapType(StringType(), kind.column),
        st.dictionaries(st.text(max_size=3), kind.values, max_size=3),
        lambda values: [(key, kind.expected(value)) for key, value in values.items()],
    )


NAMES = ("a", "b", "c", "d")


def record(kinds: list[Kind], wanted: list[str]) -> Kind:
    """A record of fields ``a``, ``b``, ..., of which columns are made in the order wanted."""
    fields = dict(zip(NAMES, kinds, strict=False))
    columns = [name for name in wanted if name in fields]
    return Kind(
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": name, "type": kind.schema} for name, kind in fields.items()],
        },
        StructType([StructField(name, fields[name].column) for name in columns]),
        st.fixed_dictionaries({name: kind.values for name, kind in fields.items()}),
        lambda values: {name: fields[name].expected(values[name]) for name in columns},
    )


def _records(inner: st.SearchStrategy[Kind], most: int = 3) -> st.SearchStrategy[Kind]:
    wanted = st.lists(st.sampled_from(NAMES), unique=True, min_size=1)
    return st.builds(record, st.lists(inner, min_size=1, max_size=most), wanted)


def _nested(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    return (
        st.builds(nullable, inner, first=st.booleans())
        | inner.map(array_of)
        | inner.map(map_of)
        | _records(inner)
    )


def records() -> st.SearchStrategy[Kind]:
    """Records of anything, nested at will; every name in them is another one."""
    anything = st.recursive(st.sampled_from(LEAVES), _nested, max_leaves=6)
    return _records(anything, most=4).map(_with_own_names)


def _with_own_names(kind: Kind) -> Kind:
    names = iter(range(1000))

    def renamed(schema: Any) -> Any:
        if isinstance(schema, list):
            return [renamed(branch) for branch in schema]
        if not isinstance(schema, dict):
            return schema
        parts = {key: renamed(schema[key]) for key in ("items", "values") if key in schema}
        if "fields" in schema:
            parts["fields"] = [f | {"type": renamed(f["type"])} for f in schema["fields"]]
        if "name" in schema:
            parts["name"] = f"{schema['name']}_{next(names)}"
        return schema | parts

    return Kind(renamed(kind.schema), kind.column, kind.values, kind.expected)


NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    63,
    64,
    -64,
    -65,
    127,
    128,
    2**31 - 1,
    -(2**31),
    2**31,
    2**63 - 1,
    -(2**63),
]
_TEXTS = [
    b"",
    b"a",
    b"\xc3\xa9",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\0",
    b"\x80",
    b"\xff" * 16,
    b"\x7f" + b"\xff" * 15,
    b"\0" * 20,
    b"x" * 64,
]
_TEXTS += [
    b"01234567-89ab-cdef-0123-456789abcdef",
    b"01234567-89AB-CDEF-0123-456789ABCDEF",
    b"01234567-89ab-cdef-0123-456789abcdeg",
]
PIECES = [
    *map(long, NUMBERS), *(long(len(text)) + text for text in _TEXTS), *_TEXTS,
    b"\x80\x00", b"\x82\x80\x00", b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x7f", b"\xff" * 10, b"\xff" * 10 + b"\x01", b"\x80" * 9,
    b"\0\0\xc0\x7f", b"\0" * 6 + b"\xf8\x7f", b"\0" * 6 + b"\xf0\xff", b"\0\0\0\x80", b"\0" * 7 + b"\x80", b"\xff" * 3,
]  # fmt: skip
"""Data of every type, good and bad."""


def odd_data(piece: bytes, place: str) -> list[bytes]:
    """Data with a piece in a place: a field, a union with null, an array, or a map; whole, cut, too long, or with odd counts."""
    end, one, two = long(0), long(1), long(2)
    if place == "field":
        return [piece, piece + b"\0", piece[:-1]]
    if place == "union":
        return [branch + piece for branch in (long(0), one, two, long(-1), long(2**40))] + [long(0)]
    if place == "array":
        size = long(len(piece))
        return [
            end, one + piece + end, two + piece + piece + end, one + piece + one + piece + end, one + piece, two + piece + end,
            long(-1) + size + piece + end, long(-1) + long(99) + piece + end, long(-1) + long(-1) + piece + end, long(2**40) + piece,
            long(-(2**63)) + size + piece + end, long(-2) + long(2 * len(piece)) + piece * 2 + long(-1) + size + piece + end,
        ]  # fmt: skip
    a, b, bad = b"\x02a", b"\x02b", b"\x02\xff"
    return [
        end, one + a + piece + end, two + a + piece + b + piece + end, two + a + piece + a + piece + end, one + bad + piece + end,
        one + a + piece + one + a + piece + end, one + b"\0" + piece + end, one + b"\x01" + piece + end,
    ]  # fmt: skip


SPOILT = st.sampled_from([0, 1, 2, 3, 4, 0x7F, 0x80, 0x81, 0xC3, 0xED, 0xFE, 0xFF])


@st.composite
def spoilt(draw: st.DrawFn, message: bytes) -> bytes:
    """A message cut, prolonged, or with other bytes in it."""
    data = bytearray(message)
    at = draw(st.integers(0, len(data)))
    match draw(st.sampled_from(["cut", "longer", "other", "more", "flip"])):
        case "cut":
            del data[at:]
        case "longer":
            data += bytes(draw(st.lists(SPOILT, min_size=1, max_size=12)))
        case "other":
            data[at : at + 1] = [draw(SPOILT)]
        case "more":
            data[at:at] = bytes(draw(st.lists(SPOILT, min_size=1, max_size=11)))
        case "flip" if at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(data)


ANYTHING = st.binary(max_size=12) | st.lists(SPOILT, max_size=16).map(bytes)
