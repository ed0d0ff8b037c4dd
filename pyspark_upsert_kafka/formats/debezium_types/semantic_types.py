"""All semantic types by their names: what each may be declared of, the column that it means, and how it is read.

Times and decimals are in modules of their own; what is neither is here: texts, bits, sets, JSON and geometries.

Sources: the packages ``io.debezium.time``, ``io.debezium.data`` and ``org.apache.kafka.connect.data``, and the pages of
Debezium's connectors, "Data type mappings".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.formats.debezium_types.connect_schema import (
    BYTES,
    PLAIN_TEXT,
    STRUCT,
    TEXT,
    ConnectSchema,
    ReadAs,
    SemanticType,
    fitting,
    read_text,
)
from pyspark_upsert_kafka.formats.debezium_types.semantic_decimals import DECIMALS
from pyspark_upsert_kafka.formats.debezium_types.semantic_times import TIMES
from pyspark_upsert_kafka.formats.json.json_document import parse, variant

_UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium sends in the place of a value that Postgres did not tell it, because it has not changed."""

_UNLIMITED_BITS = (1 << 31) - 1
"""The length that Debezium declares of a BIT VARYING without one."""

_MOST_BITS = 8192
"""Digits of a text: Debezium sends no bytes of zeros at the end, and a few bytes of a message must not fill the memory."""


def _read_bits(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """Bytes, the lowest first: as a number, or as a text of 0 and 1, as databases show it."""
    if isinstance(wanted, BinaryType):
        return ReadAs(wanted)
    if isinstance(wanted, LongType):
        return ReadAs(BinaryType(), None, _number)
    if isinstance(wanted, StringType):
        digits = _declared_digits(schema)
        return ReadAs(BinaryType(), None, lambda data: _bits(data, digits))
    return None


def _bits(data: bytes, digits: int) -> str:
    """As many digits as the column has in the database."""
    if digits > max(_MOST_BITS, 8 * len(data)):
        raise ValueError(f"{digits} bits are too many for STRING: read the column as BINARY")
    return f"{int.from_bytes(data, 'little'):0{digits}b}"


def _number(data: bytes) -> int:
    return fitting(int.from_bytes(data, "little"), "BIGINT")


def _declared_digits(schema: ConnectSchema) -> int:
    length = schema.parameters.get("length", "")
    digits = int(length) if length.isdecimal() and len(length) <= 10 else 1
    return 1 if digits >= _UNLIMITED_BITS else max(digits, 1)


def _read_set(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """A text of elements with commas between them, which none of them has itself."""
    if isinstance(wanted, ArrayType) and isinstance(wanted.elementType, StringType):
        return ReadAs(StringType(), _elements, lambda text: text.split(",") if text else [])
    return read_text(schema, wanted)


def _elements(array: pa.Array) -> pa.Array:
    """Raises ValueError for an empty set."""
    if pc.any(pc.equal(array, "")).as_py():
        raise ValueError("a set without elements")
    return pc.split_pattern(array, ",")


def _read_json(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """A text that holds a JSON value: the text, or the value as a VARIANT."""
    if isinstance(wanted, VariantType):
        return ReadAs(StringType(), None, _variant)
    return read_text(schema, wanted)


def _variant(text: str) -> dict[str, bytes]:
    return variant(text if text == _UNAVAILABLE else parse(text.encode()))


def _read_geometry(_schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """A struct, or the well-known binary in it."""
    if isinstance(wanted, StructType):
        return ReadAs(wanted)
    if isinstance(wanted, BinaryType):
        physical = StructType([StructField("wkb", BinaryType())])
        return ReadAs(physical, lambda array: pc.struct_field(array, "wkb"), _well_known_binary)
    return None


def _well_known_binary(geometry: Mapping[str, Any]) -> bytes | None:
    found: bytes | None = geometry["wkb"]
    return found


_GEOMETRY = SemanticType(STRUCT, None, _read_geometry, "STRUCT or BINARY")

SEMANTIC_TYPES: Mapping[str, SemanticType] = {
    **TIMES,
    **DECIMALS,
    "io.debezium.data.Bits": SemanticType(
        BYTES, BinaryType(), _read_bits, "BINARY, BIGINT or STRING"
    ),
    "io.debezium.data.Enum": PLAIN_TEXT,
    "io.debezium.data.EnumSet": SemanticType(
        TEXT, StringType(), _read_set, "STRING or ARRAY<STRING>"
    ),
    "io.debezium.data.Json": SemanticType(TEXT, StringType(), _read_json, "STRING or VARIANT"),
    "io.debezium.data.Uuid": PLAIN_TEXT,
    "io.debezium.data.Xml": PLAIN_TEXT,
    "io.debezium.data.Ltree": PLAIN_TEXT,
    "io.debezium.data.TsVector": PLAIN_TEXT,
    "io.debezium.data.geometry.Point": _GEOMETRY,
    "io.debezium.data.geometry.Geometry": _GEOMETRY,
    "io.debezium.data.geometry.Geography": _GEOMETRY,
}
"""Names that are missing mean nothing of their own: vectors are arrays, and a struct is a struct."""


_PLAIN: Mapping[str, DataType] = {
    "int8": ByteType(),
    "int16": ShortType(),
    "int32": IntegerType(),
    "int64": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "float32": FloatType(),
    "float64": DoubleType(),
    "boolean": BooleanType(),
    "string": StringType(),
    "bytes": BinaryType(),
}


def semantic_type(schema: ConnectSchema) -> SemanticType | None:
    """What the name of a schema means; None = nothing of its own."""
    known = SEMANTIC_TYPES.get(schema.name or "")
    return known if known and schema.type in known.declared_of else None


def default_type(schema: ConnectSchema) -> DataType:
    """The column that a schema means; STRING for what has no other."""
    known = semantic_type(schema)
    if known and known.column:
        return known.column if isinstance(known.column, DataType) else known.column(schema)
    if schema.type == "struct":
        return StructType(
            [
                StructField(name, default_type(each), each.optional)
                for name, each in schema.fields.items()
            ]
        )
    if schema.items is None:
        return _PLAIN.get(schema.type, StringType())
    items = default_type(schema.items)
    if schema.type == "array":
        return ArrayType(items, schema.items.optional)
    if schema.keys is None or schema.keys.type == "string":
        return MapType(StringType(), items, schema.items.optional)
    # Connect's JSON converter writes such a map as an array of its entries, each an array of two.
    return ArrayType(ArrayType(items))
