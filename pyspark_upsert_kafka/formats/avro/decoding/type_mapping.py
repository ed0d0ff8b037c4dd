"""Which of Avro's simple types fits which column, and what makes the one the other.

As in Spark's ``AvroDeserializer``, with Avro's own promotions. A number that may be out of a narrower
column's range is looked at message by message.
"""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    BytesNode,
    EnumNode,
    Node,
    NullNode,
    NumberNode,
    Scale,
)
from pyspark_upsert_kafka.formats.avro.decoding.unions import unqualified
from pyspark_upsert_kafka.formats.avro.errors import field_label, mismatch, type_label, unresolved
from pyspark_upsert_kafka.formats.avro.model import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
)

_T = TypeVar("_T", Array, Map, Record)

Simple: TypeAlias = "Primitive | Fixed | Enum"

_PROMOTED = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}
_FLOATS = {"float": "float32", "double": "float64"}
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1
_IN_MICROS = {
    "millis": Scale(low=-(-_LOWEST // 1000), high=_HIGHEST // 1000, times=1000),
    "micros": Scale(),
    "nanos": Scale(over=1000),
}


def leaf_node(
    writer: Simple, reader: AvroType | None, column: pa.DataType, path: str, *, strict_zones: bool
) -> Node:
    """How a simple type is read into a column.

    Args:
        writer: The type as it is written.
        reader: The type that the reader's schema makes of it, when there is one.
        column: Type of the column.
        path: The field, for errors.
        strict_zones: Refuse a local timestamp for a TIMESTAMP, and the reverse.

    Raises:
        SchemaError: They do not fit.
    """
    seen = writer if reader is None else _promoted(writer, reader, path)
    node: Node | None
    if isinstance(writer, Enum):
        node = _enum_symbol(writer, seen, column, path)
    elif isinstance(writer, Fixed) or writer.kind in ("bytes", "string"):
        node = _sized(writer, seen, column, path)
    elif pa.types.is_floating(column):
        node = _floating(writer, seen, column, path)
    else:
        node = _whole(writer, seen, column, path, strict_zones=strict_zones)
    if node is None:
        raise mismatch(path, column, type_label(seen))
    return node


def null_node(column: pa.Field, path: str) -> NullNode:
    """How a null is read; the column must be one that may be NULL."""
    if column.nullable:
        return NullNode(column.type)
    raise SchemaError(f"{field_label(path)} is NOT NULL, but Avro's null is written")


def alike(writer: _T, reader: AvroType | None, path: str) -> _T | None:
    """The reader's type, which must be of the writer's kind."""
    if reader is None or type(reader) is type(writer):
        return reader
    raise unresolved(path, writer, reader)


def _promoted(writer: Simple, reader: AvroType, path: str) -> Simple:
    if isinstance(writer, Primitive) and isinstance(reader, Primitive):
        fits = reader.kind in _PROMOTED.get(writer.kind, (writer.kind,))
    elif isinstance(writer, Enum) and isinstance(reader, Enum):
        fits = _same_name(writer, reader)
    elif isinstance(writer, Fixed) and isinstance(reader, Fixed):
        fits = _same_name(writer, reader) and writer.size == reader.size
    else:
        fits = False
    if not fits or not isinstance(reader, Primitive | Enum | Fixed):
        raise unresolved(path, writer, reader)
    return reader


def _same_name(writer: Enum | Fixed, reader: Enum | Fixed) -> bool:
    """Unqualified names are compared, as the specification has it."""
    return unqualified(writer.name) in map(unqualified, (reader.name, *reader.aliases))


def _enum_symbol(writer: Enum, seen: Simple, column: pa.DataType, path: str) -> EnumNode | None:
    if not pa.types.is_string(column):
        return None
    symbols: tuple[str | None, ...] = writer.symbols
    if isinstance(seen, Enum) and seen is not writer:
        symbols = tuple(s if s in seen.symbols else seen.default for s in writer.symbols)
    return EnumNode(path, symbols, column)


def _sized(
    writer: Primitive | Fixed, seen: Simple, column: pa.DataType, path: str
) -> BytesNode | None:
    size = writer.size if isinstance(writer, Fixed) else None
    logical = _logical(writer, seen)
    if pa.types.is_binary(column):
        return BytesNode(path, size, column, "bytes")
    if pa.types.is_decimal(column) and logical is not None and logical.name == "decimal":
        return BytesNode(path, size, column, "decimal") if logical.scale == column.scale else None
    if not pa.types.is_string(column) or (logical is not None and logical.name == "decimal"):
        return None
    if size is None:
        return BytesNode(path, size, column, "text")
    return BytesNode(path, size, column, "uuid") if logical is not None else None


def _floating(writer: Simple, seen: Simple, column: pa.DataType, path: str) -> NumberNode | None:
    if not isinstance(writer, Primitive) or not isinstance(seen, Primitive):
        return None
    if writer.kind not in ("int", "long", "float", "double"):
        return None
    wanted = "float32" if pa.types.is_float32(column) else "float64"
    between = _FLOATS.get(seen.kind)
    if between == "float64" and wanted == "float32":
        return None
    return NumberNode(path, writer.kind, column, through=tuple(filter(None, [between, wanted])))


def _whole(
    writer: Simple, seen: Simple, column: pa.DataType, path: str, *, strict_zones: bool
) -> NumberNode | None:
    if not isinstance(writer, Primitive) or not isinstance(seen, Primitive):
        return None
    logical = _logical(writer, seen)
    name = "" if logical is None else logical.name
    scale: Scale | None = None
    if pa.types.is_boolean(column) and seen.kind == "boolean":
        scale = Scale()
    elif pa.types.is_integer(column) and (seen.kind == "int" or column == pa.int64()):
        half = 1 << (column.bit_width - 1)
        scale = Scale(-half, half - 1) if seen.kind in ("int", "long") else None
    elif pa.types.is_date32(column) and seen.kind == "int" and name in ("date", ""):
        scale = Scale()
    elif pa.types.is_timestamp(column) and seen.kind == "long":
        scale = _micros(name, zoned=column.tz is not None, strict_zones=strict_zones)
    elif pa.types.is_duration(column) and seen.kind == "long" and not name:
        scale = Scale()
    return None if scale is None else NumberNode(path, writer.kind, column, scale)


def _micros(logical: str, *, zoned: bool, strict_zones: bool) -> Scale | None:
    """A bare long is milliseconds, as for Spark and for Flink."""
    if not logical:
        return _IN_MICROS["millis"]
    kind, _, unit = logical.rpartition("-")
    if kind not in ("timestamp", "local-timestamp"):
        return None
    if strict_zones and zoned != (kind == "timestamp"):
        return None
    return _IN_MICROS[unit]


def _logical(writer: Simple, seen: Simple) -> Logical | None:
    """The writer knew what it wrote; the reader's schema may say it of a plain type."""
    if isinstance(writer, Enum) or isinstance(seen, Enum):
        return None
    return writer.logical or seen.logical
