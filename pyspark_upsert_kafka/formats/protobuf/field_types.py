"""Which column stands for which field, and which type it may have; and the columns that a message means.

Columns match fields by name when a codec is compiled. A column that is not a field is refused; a field that is not a column is
checked when read, as the runtime does, and left out when written.

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

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    INT32,
    INT64,
    INTEGERS,
    UINT32,
    UINT64,
    FieldKind,
    enum_names,
    is_map,
    is_repeated,
)

TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
"""Messages that are also a type of their own in Spark."""

ADDED = "_added_column_"
"""What the name of a field begins with that stands for a column which the message's writer did not know."""


@dataclass(frozen=True)
class Column:
    """A column, or one inside it, and the field that it stands for.

    Args:
        field: The field's ``FieldDescriptor``.
        type: The Spark type.
        path: Where it stands, for people: ``order.lines[].price``.
        nullable: Whether it may be NULL.
        fills: Whether it is the field's default where a message lacks the field.
        parts: Of a STRUCT its columns, of an ARRAY its element, of a MAP key and value.
    """

    field: Any
    type: DataType
    path: str
    nullable: bool = True
    fills: bool = True
    parts: tuple[Column, ...] = ()

    @property
    def name(self) -> str:
        """The field's name: the column's, but for a field that was added."""
        return str(self.field.name)

    @property
    def default(self) -> Any:
        """The default of a field with presence, as a value of the column; None = nothing, zero or empty."""
        value = self.field.default_value
        if self.field.containing_type.GetOptions().map_entry:
            value = type(value)()  # of an enum too: to the runtime it is 0, and not the first value
        if self.field.type == FieldKind.ENUM and isinstance(self.type, StringType):
            return enum_names(self.field.enum_type)[value]
        return value or None


def columns_of(
    descriptor: Any, schema: StructType, path: str = "", *, defaults: bool
) -> tuple[Column, ...]:
    """The columns of a message.

    Args:
        descriptor: The message's descriptor.
        schema: The columns.
        path: Where the message stands, with a point behind it.
        defaults: Whether an absent field is its default and not NULL.

    Raises:
        SchemaError: A column is no field, or its type does not fit the field's.
    """
    for name, times in Counter(schema.names).items():
        if times > 1:
            raise SchemaError(f"Field {path + name!r} occurs {times} times.")
        if _field_of(descriptor, name) is None:
            raise SchemaError(
                f"Column {path + name!r} does not exist in the definition of protobuf message "
                f"'{descriptor.full_name}'. Its fields: {', '.join(descriptor.fields_by_name)}."
            )
    return tuple(
        _column(
            _field_of(descriptor, each.name),
            each.dataType,
            path + each.name,
            nullable=each.nullable,
            defaults=defaults,
        )
        for each in schema.fields
    )


def _field_of(descriptor: Any, name: str) -> Any:
    fields = descriptor.fields_by_name
    return fields.get(name) or fields.get(ADDED + name)


def _column(field: Any, kind: DataType, path: str, *, nullable: bool, defaults: bool) -> Column:
    if is_map(field) and isinstance(kind, MapType):
        parts = _map_parts(field, kind, path, defaults=defaults)
        return Column(field, kind, path, nullable, defaults or not nullable, parts)
    if is_repeated(field):
        if is_map(field) or not isinstance(kind, ArrayType):
            raise _mismatch(field, kind, path)
        element = _one(field, kind.elementType, f"{path}[]", defaults=defaults)
        return Column(field, kind, path, nullable, defaults or not nullable, (element,))
    one = _one(field, kind, path, defaults=defaults)
    return Column(field, kind, path, nullable, defaults or not field.has_presence, one.parts)


def _map_parts(field: Any, kind: MapType, path: str, *, defaults: bool) -> tuple[Column, Column]:
    """An entry that lacks its key or value has the default of it, in every syntax."""
    key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    return (
        _one(key, kind.keyType, f"{path}{{key}}", defaults=defaults),
        _one(value, kind.valueType, f"{path}{{}}", defaults=defaults),
    )


def _one(field: Any, kind: DataType, path: str, *, defaults: bool) -> Column:
    """One value of a field."""
    if field.type == FieldKind.MESSAGE and isinstance(kind, StructType):
        parts = columns_of(field.message_type, kind, f"{path}.", defaults=defaults)
        return Column(field, kind, path, parts=parts)
    if not _fits(field, kind):
        raise _mismatch(field, kind, path)
    return Column(field, kind, path)


_SIMPLE: dict[int, DataType] = {
    **dict.fromkeys(INT32, IntegerType()),
    **dict.fromkeys(INT64 | UINT32, LongType()),
    **dict.fromkeys(UINT64, DecimalType(20, 0)),
    FieldKind.BOOL: BooleanType(),
    FieldKind.BYTES: BinaryType(),
    FieldKind.DOUBLE: DoubleType(),
    FieldKind.ENUM: StringType(),
    FieldKind.FLOAT: FloatType(),
    FieldKind.STRING: StringType(),
}
_MESSAGES: dict[str, DataType] = {DURATION: DayTimeIntervalType(), TIMESTAMP: TimestampType()}


def _fits(field: Any, kind: DataType) -> bool:
    """Whether a column of that type holds one value of a field; of messages only those that are timestamps."""
    if field.type == FieldKind.MESSAGE:
        return type(kind) is type(_MESSAGES.get(field.message_type.full_name))
    if field.type == FieldKind.ENUM:
        return type(kind) in BITS or type(kind) is StringType
    if field.type in INTEGERS:
        return type(kind) in BITS or kind == _SIMPLE[field.type]
    return type(kind) is type(_SIMPLE.get(field.type))


def _mismatch(field: Any, kind: DataType, path: str) -> SchemaError:
    """What is said of a column whose type does not fit; the wording follows Flink's."""
    shown = FieldKind(field.type).name.lower()
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
    if field.type == FieldKind.GROUP:
        return "another definition: groups are not read"
    wanted = _wanted_value(field)
    return f"ARRAY<{wanted}>" if is_repeated(field) else wanted


def _wanted_value(field: Any) -> str:
    if field.type == FieldKind.MESSAGE:
        name = field.message_type.full_name
        special = {TIMESTAMP: "TIMESTAMP or ", DURATION: "INTERVAL DAY TO SECOND or "}
        return f"{special.get(name, '')}STRUCT"
    if field.type == FieldKind.ENUM:
        return "STRING or an integer type"
    if field.type in INTEGERS:
        return "DECIMAL(20,0) or an integer type" if field.type in UINT64 else "an integer type"
    return _SIMPLE[field.type].typeName().upper()


_DEEPEST = 90

MOST_COLUMNS = 100_000
"""The number of fields that a schema may have in all, a message counted each time it occurs: messages within messages multiply."""


def columns_of_message(descriptor: Any) -> StructType:
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
    return _inferred(descriptor, ())


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


def _inferred(descriptor: Any, above: tuple[Any, ...]) -> StructType:
    within = _within(descriptor, above)
    return StructType(
        [
            StructField(
                field.name, _inferred_type(field, within), is_repeated(field) or field.has_presence
            )
            for field in descriptor.fields
        ]
    )


def _inferred_type(field: Any, within: tuple[Any, ...]) -> DataType:
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return MapType(_inferred_one(key, within), _inferred_one(value, within))
    one = _inferred_one(field, within)
    return ArrayType(one) if is_repeated(field) else one


def _inferred_one(field: Any, within: tuple[Any, ...]) -> DataType:
    """The type of one value."""
    if field.type == FieldKind.GROUP:
        raise _refused(field.full_name, "is a group, which is not read")
    if field.type != FieldKind.MESSAGE:
        return _SIMPLE[field.type]
    message = field.message_type
    return _MESSAGES.get(message.full_name) or _inferred(message, within)


def _refused(name: str, why: str) -> SchemaError:
    return SchemaError(f"Protobuf's '{name}' {why}. Give the columns by .schema(...).")


_MICROS = 1_000_000
_NANOS = 1_000_000_000


@dataclass(frozen=True)
class SecondsAndNanos:
    """What seconds and nanoseconds stand for, in the ranges of timestamp.proto and duration.proto.

    Spark has microseconds; finer is cut off, as its ``from_protobuf`` does.

    Args:
        first: The smallest number of seconds.
        last: The largest.
        signed: Whether nanoseconds have the sign of the seconds; else they count upwards.
        expected: The range in words.
    """

    first: int
    last: int
    signed: bool
    expected: str

    def micros(self, seconds: np.ndarray, nanos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Microseconds, and where seconds and nanoseconds are in range; elsewhere they are 0."""
        lowest = -_NANOS + 1 if self.signed else 0
        good = (seconds >= self.first) & (seconds <= self.last) & (nanos >= lowest)
        good &= nanos < _NANOS
        if self.signed:
            good &= (np.sign(seconds) * np.sign(nanos)) >= 0
        whole = np.where(good, seconds, 0) * _MICROS
        return whole + np.where(good, np.sign(nanos) * (np.abs(nanos) // 1000), 0), good

    def micros_of(self, seconds: int, nanos: int) -> int | None:
        """Microseconds of one moment; None where seconds or nanoseconds are out of range."""
        lowest = -_NANOS + 1 if self.signed else 0
        if not (self.first <= seconds <= self.last and lowest <= nanos < _NANOS):
            return None
        if self.signed and seconds * nanos < 0:
            return None
        micros = abs(nanos) // 1000
        return seconds * _MICROS + (micros if nanos >= 0 else -micros)

    def split(self, micros: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Seconds, nanoseconds, and where they are in range."""
        if self.signed:
            seconds = np.sign(micros) * (np.abs(micros) // _MICROS)
        else:
            seconds = micros // _MICROS
        nanos = (micros - seconds * _MICROS) * 1000
        return seconds, nanos, (seconds >= self.first) & (seconds <= self.last)


TIMESTAMPS = SecondsAndNanos(
    -62_135_596_800, 253_402_300_799, signed=False, expected="a year from 0001 to 9999"
)
DURATIONS = SecondsAndNanos(
    -315_576_000_000, 315_576_000_000, signed=True, expected="at most 10,000 years"
)


def moments_of(column: Column) -> SecondsAndNanos:
    """What the messages of a column stand for that is TIMESTAMP or INTERVAL DAY TO SECOND."""
    return TIMESTAMPS if column.field.message_type.full_name == TIMESTAMP else DURATIONS


def key_order(rows: np.ndarray, keys: pa.Array) -> pa.Array:
    """The order of a map's entries: by row, and in a row by key."""
    sortable = keys.cast(pa.uint8()) if pa.types.is_boolean(keys.type) else keys
    table = pa.table({"row": rows, "key": sortable})
    return pc.sort_indices(table, [("row", "ascending"), ("key", "ascending")])
