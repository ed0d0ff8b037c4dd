"""Bits, sets, JSON and geometries: what neither a number, nor a time, nor a decimal is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.formats.debezium_types.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.debezium_types.reading import Reading, fitting, plain
from pyspark_upsert_kafka.formats.debezium_types.time_texts import read_text
from pyspark_upsert_kafka.formats.json.document import parse
from pyspark_upsert_kafka.formats.json.variants import variant

UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium sends in the place of a value that Postgres did not tell it, because it has not changed."""

_UNLIMITED_BITS = (1 << 31) - 1
"""The length that Debezium declares of a BIT VARYING without one."""


def read_bits(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """Bytes, the lowest first: as a number, or as a text of 0 and 1, as databases show it."""
    if isinstance(wanted, BinaryType):
        return plain(wanted)
    if isinstance(wanted, LongType):
        return Reading(BinaryType(), None, _number)
    if isinstance(wanted, StringType):
        digits = _declared_digits(schema)
        return Reading(BinaryType(), None, lambda data: _bits(data, digits))
    return None


def _bits(data: bytes, digits: int) -> str:
    """The bits as digits; never more than were sent, whatever a schema declares."""
    return f"{int.from_bytes(data, 'little'):0{max(1, min(digits, 8 * len(data)))}b}"


def _number(data: bytes) -> int:
    return fitting(int.from_bytes(data, "little"), "BIGINT")


def _declared_digits(schema: ConnectSchema) -> int:
    length = schema.parameters.get("length", "")
    digits = int(length) if length.isdecimal() and len(length) <= 10 else 1
    return 1 if digits >= _UNLIMITED_BITS else max(digits, 1)


def read_set(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """A text of elements with commas between them, which none of them has itself."""
    if isinstance(wanted, ArrayType) and isinstance(wanted.elementType, StringType):
        return Reading(StringType(), _elements, lambda text: text.split(",") if text else [])
    return read_text(schema, wanted)


def _elements(array: pa.Array) -> pa.Array:
    """Raises ValueError for an empty set."""
    if pc.any(pc.equal(array, "")).as_py():
        raise ValueError("a set without elements")
    return pc.split_pattern(array, ",")


def read_json(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """A text that holds a JSON value: the text, or the value as a VARIANT."""
    if isinstance(wanted, VariantType):
        return Reading(StringType(), None, _variant)
    return read_text(schema, wanted)


def _variant(text: str) -> dict[str, bytes]:
    return variant(text if text == UNAVAILABLE else parse(text.encode()))


def read_geometry(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """A struct, or the well-known binary in it."""
    del schema
    if isinstance(wanted, StructType):
        return plain(wanted)
    if isinstance(wanted, BinaryType):
        physical = StructType([StructField("wkb", BinaryType())])
        return Reading(physical, lambda array: pc.struct_field(array, "wkb"), _well_known_binary)
    return None


def _well_known_binary(geometry: Mapping[str, Any]) -> bytes | None:
    found: bytes | None = geometry["wkb"]
    return found
