"""The Spark columns that a Protobuf message means."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.protobuf.columns import DURATION, TIMESTAMP
from pyspark_upsert_kafka.formats.protobuf.descriptors import is_map, is_repeated
from pyspark_upsert_kafka.formats.protobuf.wire import INT32, INT64, UINT32, UINT64, Kind

_SIMPLE: dict[int, DataType] = {
    **dict.fromkeys(INT32, IntegerType()),
    **dict.fromkeys(INT64 | UINT32, LongType()),
    **dict.fromkeys(UINT64, DecimalType(20, 0)),
    Kind.BOOL: BooleanType(),
    Kind.BYTES: BinaryType(),
    Kind.DOUBLE: DoubleType(),
    Kind.ENUM: StringType(),
    Kind.FLOAT: FloatType(),
    Kind.STRING: StringType(),
}
_MESSAGES: dict[str, DataType] = {DURATION: DayTimeIntervalType(), TIMESTAMP: TimestampType()}

_DEEPEST = 90

MOST_COLUMNS = 100_000
"""The number of fields that a schema may have in all, a message counted each time it occurs: messages within messages multiply."""


def columns_of(descriptor: Any) -> StructType:
    """The columns of a message: one for each field, nullable where a message may lack it.

    Args:
        descriptor: The message's descriptor.

    Raises:
        SchemaError: A message holds itself, a field is a group, or there are more than MOST_COLUMNS.
    """
    if _count(descriptor, {}, ()) > MOST_COLUMNS:
        raise _refused(
            descriptor.full_name,
            f"has more than {MOST_COLUMNS:,} fields in all, those of messages within messages counted each time",
        )
    return _columns(descriptor, ())


def _count(descriptor: Any, known: dict[str, int], above: tuple[Any, ...]) -> int:
    """How many fields there are within a message; each message is counted once and kept."""
    within = _within(descriptor, above)
    if descriptor.full_name not in known:
        messages = [field.message_type for field in descriptor.fields]
        inner = (_count(each, known, within) for each in messages if each is not None)
        known[descriptor.full_name] = len(messages) + sum(inner)
    return known[descriptor.full_name]


def _within(descriptor: Any, above: tuple[Any, ...]) -> tuple[Any, ...]:
    """A message and those that it stands in."""
    within = (*above, descriptor)
    if descriptor in above or len(within) > _DEEPEST:
        raise _refused(descriptor.full_name, "holds itself, which no column can")
    return within


def _columns(descriptor: Any, above: tuple[Any, ...]) -> StructType:
    within = _within(descriptor, above)
    return StructType(
        [
            StructField(field.name, _type(field, within), is_repeated(field) or field.has_presence)
            for field in descriptor.fields
        ]
    )


def _type(field: Any, within: tuple[Any, ...]) -> DataType:
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return MapType(_one(key, within), _one(value, within))
    one = _one(field, within)
    return ArrayType(one) if is_repeated(field) else one


def _one(field: Any, within: tuple[Any, ...]) -> DataType:
    """The type of one value."""
    if field.type == Kind.GROUP:
        raise _refused(field.full_name, "is a group, which is not read")
    if field.type != Kind.MESSAGE:
        return _SIMPLE[field.type]
    message = field.message_type
    return _MESSAGES.get(message.full_name) or _columns(message, within)


def _refused(name: str, why: str) -> SchemaError:
    return SchemaError(f"Protobuf's '{name}' {why}. Give the columns by .schema(...).")
