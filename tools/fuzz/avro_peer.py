"""The values that fastavro reads from Avro messages, as numbers like those in our columns."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from functools import partial
from typing import Any

import fastavro
from pyspark.sql.types import ArrayType, DataType, DateType, DecimalType, MapType, StructType

from tools.fuzz.case import UNKNOWN, NoRow, Peer
from tools.fuzz.values import BITS, DAY, FIRST, LAST

_EXACT = Context(prec=80)


def fastavro_peer(schema: Any, columns: StructType) -> Peer:
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
