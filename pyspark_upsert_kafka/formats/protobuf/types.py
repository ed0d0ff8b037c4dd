"""Which type a column may have for each field; said once, when a codec is compiled.

| protobuf | Spark | |
|---|---|---|
| bool | BOOLEAN | |
| int32, sint32, sfixed32 | INT; any integer type | each value must fit the column and the field |
| uint32, fixed32 | BIGINT; any integer type | likewise: an INT does not wrap, as Flink's would |
| int64, sint64, sfixed64 | BIGINT; any integer type | likewise |
| uint64, fixed64 | DECIMAL(20,0); any integer type | likewise |
| float, double | FLOAT, DOUBLE | |
| string, bytes | STRING, BINARY | |
| enum | STRING; any integer type | the name, or the number as text when it has none; the number |
| message | STRUCT | wrappers (Int32Value, ...) too: STRUCT<value> |
| repeated | ARRAY | |
| map | MAP | entries are in the order of their keys, read and written |
| google.protobuf.Timestamp | TIMESTAMP, or STRUCT<seconds, nanos> | microseconds; finer is cut off |
| google.protobuf.Duration | INTERVAL DAY TO SECOND, or STRUCT<seconds, nanos> | likewise |

Anything else is refused: TIMESTAMP_NTZ, DATE, other decimals, year-month intervals, variants, groups.
Source: Flink's ``PbSchemaValidationUtils``, and for what Flink lacks ``SchemaConverters`` of Spark's
``from_protobuf``.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    StringType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.protobuf.descriptors import is_map, is_repeated
from pyspark_upsert_kafka.formats.protobuf.kinds import INTEGERS, UINT64, Kind
from pyspark_upsert_kafka.formats.simple_types import BITS

TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
"""Messages that are also a type of their own in Spark."""

_UINT64 = DecimalType(20, 0)

_SIMPLE: dict[int, type[DataType]] = {
    Kind.BOOL: BooleanType,
    Kind.BYTES: BinaryType,
    Kind.DOUBLE: DoubleType,
    Kind.FLOAT: FloatType,
    Kind.STRING: StringType,
}


def fits(field: Any, kind: DataType) -> bool:
    """Whether a column of that type holds one value of a field; of messages only those that are timestamps."""
    if field.type == Kind.MESSAGE:
        name = field.message_type.full_name
        return (name == TIMESTAMP and type(kind) is TimestampType) or (
            name == DURATION and type(kind) is DayTimeIntervalType
        )
    if field.type == Kind.ENUM:
        return type(kind) in BITS or type(kind) is StringType
    if field.type in INTEGERS:
        return type(kind) in BITS or (field.type in UINT64 and kind == _UINT64)
    return type(kind) is _SIMPLE.get(field.type)


def mismatch(field: Any, kind: DataType, path: str) -> SchemaError:
    """What is said of a column whose type does not fit; the wording follows Flink's."""
    shown = Kind(field.type).name.lower()
    if is_map(field):
        shown = "map"
    elif is_repeated(field):
        shown = f"repeated {shown}"
    return SchemaError(
        f"Protobuf field type does not match column type: column {path!r} is {kind.simpleString()}, "
        f"but field '{field.full_name}' is {shown}, which needs {_wanted(field)}."
    )


def _wanted(field: Any) -> str:
    if is_map(field):
        return "MAP"
    if field.type == Kind.GROUP:
        return "another definition: groups are not read"
    wanted = _wanted_value(field)
    return f"ARRAY<{wanted}>" if is_repeated(field) else wanted


def _wanted_value(field: Any) -> str:
    if field.type == Kind.MESSAGE:
        name = field.message_type.full_name
        special = {TIMESTAMP: "TIMESTAMP or ", DURATION: "INTERVAL DAY TO SECOND or "}
        return f"{special.get(name, '')}STRUCT"
    if field.type == Kind.ENUM:
        return "STRING or an integer type"
    if field.type in INTEGERS:
        return "DECIMAL(20,0) or an integer type" if field.type in UINT64 else "an integer type"
    return _SIMPLE[field.type].typeName().upper()
