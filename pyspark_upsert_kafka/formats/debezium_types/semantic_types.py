"""All semantic types by their names: what each may be declared of, the column that it means, and how it is read.

Sources: the packages ``io.debezium.time``, ``io.debezium.data`` and ``org.apache.kafka.connect.data``, and the pages of
Debezium's connectors, "Data type mappings".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
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

from pyspark_upsert_kafka.formats.debezium_types.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.debezium_types.decimals import (
    MOST_DIGITS,
    read_decimal,
    read_variable_decimal,
    scale_of,
)
from pyspark_upsert_kafka.formats.debezium_types.reading import Reading
from pyspark_upsert_kafka.formats.debezium_types.time_texts import (
    as_bytes,
    read_text,
    read_utc_date,
    read_utc_timestamp,
    read_zoned_timestamp,
)
from pyspark_upsert_kafka.formats.debezium_types.times import (
    MICROSECONDS,
    MILLISECONDS,
    NANOSECONDS,
    read_days,
    read_duration,
    read_number,
    read_time,
    read_timestamp,
)
from pyspark_upsert_kafka.formats.debezium_types.values import (
    read_bits,
    read_geometry,
    read_json,
    read_set,
)


@dataclass(frozen=True)
class SemanticType:
    """What a name of a schema means.

    Args:
        declared_of: The types of Connect that it may be declared of; with another one the name means nothing here.
        column: The type that it means; None = what its parts mean.
        read: How it is read into a column; None = the column cannot hold it.
        fits: The types of columns that can hold it, for errors.
    """

    declared_of: frozenset[str]
    column: Callable[[ConnectSchema], DataType] | DataType | None
    read: Callable[[ConnectSchema, DataType], Reading | None]
    fits: str


def _decimal_column(schema: ConnectSchema) -> DataType:
    """As many digits as the database's column, where Debezium says how many these are, and 38 otherwise."""
    scale, digits = scale_of(schema), schema.parameters.get("connect.decimal.precision", "")
    if scale is None or not 0 <= scale <= MOST_DIGITS:
        return StringType()
    precision = int(digits) if digits.isdecimal() and len(digits) <= 2 else MOST_DIGITS
    return DecimalType(min(max(precision, scale, 1), MOST_DIGITS), scale)


_WHOLE = frozenset({"int8", "int16", "int32", "int64"})
_TEXT, _BYTES, _STRUCT = frozenset({"string"}), frozenset({"bytes"}), frozenset({"struct"})
_NUMBER_FITS = "TINYINT, SMALLINT, INT or BIGINT"
_TIME_FITS = f"STRING, INTERVAL DAY TO SECOND, {_NUMBER_FITS}"
_DURATION_FITS = f"INTERVAL DAY TO SECOND, {_NUMBER_FITS}"
_TIMESTAMP_FITS = f"TIMESTAMP_NTZ, TIMESTAMP, {_NUMBER_FITS}"
_INTERVAL = DayTimeIntervalType()

_TEXTS = SemanticType(_TEXT, StringType(), read_text, "STRING")
_DAYS = SemanticType(_WHOLE, DateType(), read_days, f"DATE, {_NUMBER_FITS}")
_GEOMETRY = SemanticType(_STRUCT, None, read_geometry, "STRUCT or BINARY")
_ISO_TEXT = as_bytes(read_zoned_timestamp)

SEMANTIC_TYPES: Mapping[str, SemanticType] = {
    "io.debezium.time.Date": _DAYS,
    "io.debezium.time.Time": SemanticType(
        _WHOLE, StringType(), read_time(MILLISECONDS), _TIME_FITS
    ),
    "io.debezium.time.MicroTime": SemanticType(
        _WHOLE, StringType(), read_time(MICROSECONDS), _TIME_FITS
    ),
    "io.debezium.time.NanoTime": SemanticType(
        _WHOLE, StringType(), read_time(NANOSECONDS), _TIME_FITS
    ),
    "io.debezium.time.Timestamp": SemanticType(
        _WHOLE, TimestampNTZType(), read_timestamp(MILLISECONDS), _TIMESTAMP_FITS
    ),
    "io.debezium.time.MicroTimestamp": SemanticType(
        _WHOLE, TimestampNTZType(), read_timestamp(MICROSECONDS), _TIMESTAMP_FITS
    ),
    "io.debezium.time.NanoTimestamp": SemanticType(
        _WHOLE, TimestampNTZType(), read_timestamp(NANOSECONDS), _TIMESTAMP_FITS
    ),
    "io.debezium.time.ZonedTimestamp": SemanticType(
        _TEXT, TimestampType(), read_zoned_timestamp, "TIMESTAMP or STRING"
    ),
    "io.debezium.time.ZonedTime": _TEXTS,
    "io.debezium.time.IsoDate": SemanticType(_TEXT, DateType(), read_utc_date, "DATE or STRING"),
    "io.debezium.time.IsoTime": _TEXTS,
    "io.debezium.time.IsoTimestamp": SemanticType(
        _TEXT, TimestampNTZType(), read_utc_timestamp, "TIMESTAMP_NTZ, TIMESTAMP or STRING"
    ),
    "io.debezium.time.Interval": _TEXTS,
    "io.debezium.time.MicroDuration": SemanticType(
        _WHOLE, _INTERVAL, read_duration(MICROSECONDS), _DURATION_FITS
    ),
    "io.debezium.time.NanoDuration": SemanticType(
        _WHOLE, _INTERVAL, read_duration(NANOSECONDS), _DURATION_FITS
    ),
    "io.debezium.time.Year": SemanticType(_WHOLE, IntegerType(), read_number, _NUMBER_FITS),
    "io.debezium.data.Bits": SemanticType(
        _BYTES, BinaryType(), read_bits, "BINARY, BIGINT or STRING"
    ),
    "io.debezium.data.Enum": _TEXTS,
    "io.debezium.data.EnumSet": SemanticType(
        _TEXT, StringType(), read_set, "STRING or ARRAY<STRING>"
    ),
    "io.debezium.data.Json": SemanticType(_TEXT, StringType(), read_json, "STRING or VARIANT"),
    "io.debezium.data.Uuid": _TEXTS,
    "io.debezium.data.Xml": _TEXTS,
    "io.debezium.data.Ltree": _TEXTS,
    "io.debezium.data.TsVector": _TEXTS,
    "io.debezium.data.VariableScaleDecimal": SemanticType(
        _STRUCT,
        DecimalType(MOST_DIGITS, 18),
        read_variable_decimal,
        "DECIMAL, STRING or STRUCT<scale: INT, value: BINARY>",
    ),
    "io.debezium.data.IsoTime": SemanticType(
        _BYTES, StringType(), as_bytes(read_text), "STRING or BINARY"
    ),
    "io.debezium.data.IsoTimestamp": SemanticType(
        _BYTES, TimestampType(), _ISO_TEXT, "TIMESTAMP, STRING or BINARY"
    ),
    "io.debezium.data.geometry.Point": _GEOMETRY,
    "io.debezium.data.geometry.Geometry": _GEOMETRY,
    "io.debezium.data.geometry.Geography": _GEOMETRY,
    "org.apache.kafka.connect.data.Date": _DAYS,
    "org.apache.kafka.connect.data.Time": SemanticType(
        _WHOLE, StringType(), read_time(MILLISECONDS), _TIME_FITS
    ),
    "org.apache.kafka.connect.data.Timestamp": SemanticType(
        _WHOLE, TimestampType(), read_timestamp(MILLISECONDS), _TIMESTAMP_FITS
    ),
    "org.apache.kafka.connect.data.Decimal": SemanticType(
        _BYTES, _decimal_column, read_decimal, "DECIMAL, STRING or BINARY"
    ),
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
