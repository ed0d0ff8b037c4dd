"""All semantic types by their names: what each may be declared of, the column that it means, and how it is read.

Decimals are in a module of their own. Times are numbers, which count days, milliseconds, microseconds or nanoseconds, or texts
in the spellings of Java's ``ISO_OFFSET_DATE_TIME`` and its like; Java writes a year that has not four digits with a sign.

Sources: the packages ``io.debezium.time``, ``io.debezium.data`` and ``org.apache.kafka.connect.data``, and the pages of
Debezium's connectors, "Data type mappings".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
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
    VariantType,
)

from pyspark_upsert_kafka.formats.cdc.connect_schema import (
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
from pyspark_upsert_kafka.formats.cdc.semantic_decimals import DECIMALS
from pyspark_upsert_kafka.formats.json.json_document import parse, variant
from pyspark_upsert_kafka.formats.timestamp_text import TimestampText, dates, days

_ISO = TimestampText("ISO-8601", zoned=True)
_SIGNED_YEAR = re.compile(r"([+-][0-9]{4,9})(-[0-9]{2}-[0-9]{2})(.*)")
# The Gregorian calendar repeats itself.
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_DAY_MICROS = 86_400_000_000
_INFINITIES = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}
"""Postgres' infinity of a TIMESTAMPTZ, which Debezium sends by name, as the number that it sends for that of a TIMESTAMP."""


@dataclass(frozen=True)
class _Unit:
    """What a number counts.

    Args:
        name: Its name in an error.
        in_second: How many of it are a second.
    """

    name: str
    in_second: int

    def micros(self, number: int, kind: str) -> int:
        """Whole microseconds. Raises ValueError when they have no room in 64 bits."""
        if self.in_second > 1_000_000:
            return number // 1000
        return fitting(number * (1_000_000 // self.in_second), kind)

    def column_of_micros(self, array: pa.Array, kind: pa.DataType) -> pa.Array:
        """The same of a column. Raises ValueError."""
        wide = array.cast(pa.int64())
        if self.in_second > 1_000_000:
            numbers = wide.fill_null(0).to_numpy(zero_copy_only=False) // 1000
            nulls = wide.is_null().to_numpy(zero_copy_only=False)
            return pa.array(numbers, mask=nulls if nulls.any() else None).cast(kind)
        return pc.multiply_checked(wide, 1_000_000 // self.in_second).cast(kind)


_MILLISECONDS = _Unit("milliseconds", 1000)
_MICROSECONDS = _Unit("microseconds", 1_000_000)
_NANOSECONDS = _Unit("nanoseconds", 1_000_000_000)

_ARROW_TIMES = {1000: pa.time32("ms"), 1_000_000: pa.time64("us"), 1_000_000_000: pa.time64("ns")}


def _read_number(_schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """A whole number, as it is."""
    is_whole = isinstance(wanted, ByteType | ShortType | IntegerType | LongType)
    return ReadAs(wanted) if is_whole else None


def _read_days(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """Days since 1970."""
    if isinstance(wanted, DateType):
        return ReadAs(IntegerType(), lambda array: array.cast(pa.date32()), lambda value: value)
    return _read_number(schema, wanted)


def _read_timestamp(unit: _Unit) -> Callable[[ConnectSchema, DataType], ReadAs | None]:
    """A number of units since 1970; it says nothing of a zone, and is the time in UTC in a TIMESTAMP."""

    def read(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
        if not isinstance(wanted, TimestampType | TimestampNTZType):
            return _read_number(schema, wanted)
        kind = pa.timestamp("us", "UTC" if isinstance(wanted, TimestampType) else None)
        return ReadAs(
            LongType(),
            partial(unit.column_of_micros, kind=kind),
            partial(unit.micros, kind=f"{unit.name} since 1970"),
        )

    return read


def _read_duration(unit: _Unit) -> Callable[[ConnectSchema, DataType], ReadAs | None]:
    """A number of units."""

    def read(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
        if not isinstance(wanted, DayTimeIntervalType):
            return _read_number(schema, wanted)
        return ReadAs(
            LongType(),
            partial(unit.column_of_micros, kind=pa.duration("us")),
            partial(unit.micros, kind=unit.name),
        )

    return read


def _read_time(unit: _Unit) -> Callable[[ConnectSchema, DataType], ReadAs | None]:
    """A number of units since midnight; MySQL's may be negative, and more than a day."""

    def read(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
        if isinstance(wanted, StringType):
            return ReadAs(LongType(), partial(_time_texts, unit), partial(_time_text, unit))
        return _read_duration(unit)(schema, wanted)

    return read


def _time_texts(unit: _Unit, array: pa.Array) -> pa.Array:
    """Raises ValueError for a number that is no time of the day."""
    bounds = pc.min_max(array).as_py()
    if (
        bounds["min"] is not None
        and not 0 <= bounds["min"] <= bounds["max"] < 86_400 * unit.in_second
    ):
        raise ValueError("not a time of the day")
    kind = _ARROW_TIMES[unit.in_second]
    narrow = array.cast(pa.int32()) if pa.types.is_time32(kind) else array
    return pc.ascii_rtrim(pc.ascii_rtrim(narrow.cast(kind).cast(pa.string()), "0"), ".")


def _time_text(unit: _Unit, number: int) -> str:
    seconds, fraction = divmod(abs(number), unit.in_second)
    digits = f".{fraction:0{len(str(unit.in_second)) - 1}}".rstrip("0").rstrip(".")
    sign = "-" if number < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{digits}"


def _read_zoned_timestamp(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """A text such as ``2011-12-03T10:15:30.030431+01:00``, into a TIMESTAMP."""
    if isinstance(wanted, TimestampType):
        return ReadAs(StringType(), _ISO.column, _micros)
    return read_text(schema, wanted)


def _read_utc_timestamp(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """A timestamp without a zone that is written as one in UTC."""
    if isinstance(wanted, TimestampNTZType):
        return ReadAs(
            StringType(), lambda array: _ISO.column(array).cast(pa.timestamp("us")), _micros
        )
    return _read_zoned_timestamp(schema, wanted)


def _read_utc_date(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """A date with the zone UTC: ``2005-05-12Z``."""
    if isinstance(wanted, DateType):
        return ReadAs(StringType(), _dates, _days)
    return read_text(schema, wanted)


def _as_bytes(
    read: Callable[[ConnectSchema, DataType], ReadAs | None],
) -> Callable[[ConnectSchema, DataType], ReadAs | None]:
    """The same text, sent as its bytes in UTF-8."""

    def read_bytes(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
        if isinstance(wanted, BinaryType):
            return ReadAs(wanted)
        of_text = read(schema, wanted)
        if of_text is None:
            return None
        column, value = of_text.column, of_text.value
        return ReadAs(
            BinaryType(),
            lambda array: (
                array.cast(pa.string()) if column is None else column(array.cast(pa.string()))
            ),
            lambda data: _decoded(data) if value is None else value(_decoded(data)),
        )

    return read_bytes


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("expected a text in UTF-8") from None


def _micros(text: str) -> int:
    """Microseconds since 1970 of a text, in any year."""
    years = _SIGNED_YEAR.fullmatch(text)
    if text in _INFINITIES:
        return _INFINITIES[text]
    if not years:
        return _ISO.micros(text)
    near, cycles = _near_year(int(years[1]))
    micros = _ISO.micros(f"{near}{years[2]}{years[3]}")
    return fitting(micros + cycles * _CYCLE_DAYS * _DAY_MICROS, "TIMESTAMP")


def _days(text: str) -> int:
    """Days since 1970 of a text, in any year."""
    digits = text.removesuffix("Z")
    years = _SIGNED_YEAR.fullmatch(digits)
    if not years:
        return days(digits)
    near, cycles = _near_year(int(years[1]))
    return fitting(days(f"{near}{years[2]}{years[3]}") + cycles * _CYCLE_DAYS, "DATE", 32)


def _near_year(year: int) -> tuple[int, int]:
    """A year with the same calendar that Python's dates know, and how many cycles it is away."""
    near = year % _CYCLE_YEARS + 5 * _CYCLE_YEARS
    return near, (year - near) // _CYCLE_YEARS


def _dates(array: pa.Array) -> pa.Array:
    """Raises ValueError for a text that is no plain date in UTC."""
    if pc.all(pc.ends_with(array, "Z")).as_py() is False:
        raise ValueError("expected dates in UTC")
    return dates(pc.utf8_slice_codeunits(array, 0, -1))


_WHOLE = frozenset({"int8", "int16", "int32", "int64"})
_NUMBER_FITS = "TINYINT, SMALLINT, INT or BIGINT"
_DAYS_AS_DATE = SemanticType(_WHOLE, DateType(), _read_days, f"DATE, {_NUMBER_FITS}")


def _time(unit: _Unit) -> SemanticType:
    fits = f"STRING, INTERVAL DAY TO SECOND, {_NUMBER_FITS}"
    return SemanticType(_WHOLE, StringType(), _read_time(unit), fits)


def _timestamp(unit: _Unit, column: DataType) -> SemanticType:
    fits = f"TIMESTAMP_NTZ, TIMESTAMP, {_NUMBER_FITS}"
    return SemanticType(_WHOLE, column, _read_timestamp(unit), fits)


def _duration(unit: _Unit) -> SemanticType:
    fits = f"INTERVAL DAY TO SECOND, {_NUMBER_FITS}"
    return SemanticType(_WHOLE, DayTimeIntervalType(), _read_duration(unit), fits)


TIMES: Mapping[str, SemanticType] = {
    "io.debezium.time.Date": _DAYS_AS_DATE,
    "io.debezium.time.Time": _time(_MILLISECONDS),
    "io.debezium.time.MicroTime": _time(_MICROSECONDS),
    "io.debezium.time.NanoTime": _time(_NANOSECONDS),
    "io.debezium.time.Timestamp": _timestamp(_MILLISECONDS, TimestampNTZType()),
    "io.debezium.time.MicroTimestamp": _timestamp(_MICROSECONDS, TimestampNTZType()),
    "io.debezium.time.NanoTimestamp": _timestamp(_NANOSECONDS, TimestampNTZType()),
    "io.debezium.time.ZonedTimestamp": SemanticType(
        TEXT, TimestampType(), _read_zoned_timestamp, "TIMESTAMP or STRING"
    ),
    "io.debezium.time.ZonedTime": PLAIN_TEXT,
    "io.debezium.time.IsoDate": SemanticType(TEXT, DateType(), _read_utc_date, "DATE or STRING"),
    "io.debezium.time.IsoTime": PLAIN_TEXT,
    "io.debezium.time.IsoTimestamp": SemanticType(
        TEXT, TimestampNTZType(), _read_utc_timestamp, "TIMESTAMP_NTZ, TIMESTAMP or STRING"
    ),
    "io.debezium.time.Interval": PLAIN_TEXT,
    "io.debezium.time.MicroDuration": _duration(_MICROSECONDS),
    "io.debezium.time.NanoDuration": _duration(_NANOSECONDS),
    "io.debezium.time.Year": SemanticType(_WHOLE, IntegerType(), _read_number, _NUMBER_FITS),
    "io.debezium.data.IsoTime": SemanticType(
        BYTES, StringType(), _as_bytes(read_text), "STRING or BINARY"
    ),
    "io.debezium.data.IsoTimestamp": SemanticType(
        BYTES, TimestampType(), _as_bytes(_read_zoned_timestamp), "TIMESTAMP, STRING or BINARY"
    ),
    "org.apache.kafka.connect.data.Date": _DAYS_AS_DATE,
    "org.apache.kafka.connect.data.Time": _time(_MILLISECONDS),
    "org.apache.kafka.connect.data.Timestamp": _timestamp(_MILLISECONDS, TimestampType()),
}
"""All of them by their names; ``io.debezium.data.IsoTime`` and its like are texts that are sent as their bytes."""


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
