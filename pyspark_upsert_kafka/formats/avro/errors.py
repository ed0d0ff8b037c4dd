"""How errors name fields and types."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.model import AvroType, Fixed, Primitive
from pyspark_upsert_kafka.formats.decoding import UnreadableError


def field_label(path: str) -> str:
    """A field; the empty path is the whole datum."""
    return f"field {path!r}" if path else "the datum"


def sql_type(column: pa.DataType) -> str:
    """A column's type in the words of SQL."""
    return str(from_arrow_type(column).simpleString()).upper()


def type_label(avro: AvroType) -> str:
    """A type in the words of its schema: ``long``, ``long (timestamp-micros)``, ``record``."""
    if not isinstance(avro, Primitive | Fixed):
        return type(avro).__name__.lower()
    plain = avro.type if isinstance(avro, Primitive) else f"fixed({avro.size})"
    if avro.logical is None:
        return plain
    if avro.logical.name != "decimal":
        return f"{plain} ({avro.logical.name})"
    return f"{plain} (decimal({avro.logical.precision},{avro.logical.scale}))"


def mismatch(path: str, column: pa.DataType, avro: AvroType) -> SchemaError:
    """The error of a field whose column cannot hold what is written."""
    return SchemaError(
        f"{field_label(path)} is {sql_type(column)}, which cannot hold Avro's {type_label(avro)}"
    )


def unresolved(path: str, writer: AvroType, reader: AvroType) -> SchemaError:
    """The error of a field that the writer's schema and the reader's disagree about."""
    return SchemaError(
        f"{field_label(path)} is written as Avro's {type_label(writer)}, which the reader's schema cannot "
        f"take as {type_label(reader)}"
    )


def unreadable(path: str, what: str) -> UnreadableError:
    """The error of a message."""
    return UnreadableError(f"{field_label(path)}: {what}")


def byte_count(count: int) -> str:
    """A number of bytes."""
    return "1 byte" if count == 1 else f"{count} bytes"
