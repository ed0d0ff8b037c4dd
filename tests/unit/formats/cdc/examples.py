"""Values of each semantic type as messages have them, with what they mean: the values that Debezium documents, and odd ones.

Sources: the pages of Debezium's connectors ("Data type mappings"), and the examples in its own tests
(``JdbcValueConvertersTemporalPrecisionTest``, ``VerifyRecord``).
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from pyspark_upsert_kafka.formats.cdc.connect_schema import ConnectSchema

UTC = timezone.utc


@dataclass(frozen=True)
class Example:
    """A value of a semantic type.

    Args:
        name: The semantic type.
        type: Connect's type.
        sent: The value, as the plain decoder gives it.
        column: The column's type in Spark's DDL.
        meant: The value in the column.
        parameters: Those of the schema.
    """

    name: str
    type: str
    sent: Any
    column: str
    meant: Any
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> ConnectSchema:
        """The schema of the field."""
        return ConnectSchema(self.type, self.name, self.parameters)


def _time(name: str, type_: str, sent: Any, column: str, meant: Any) -> Example:
    return Example(f"io.debezium.time.{name}", type_, sent, column, meant)


def _data(name: str, type_: str, sent: Any, column: str, meant: Any, **parameters: str) -> Example:
    return Example(f"io.debezium.data.{name}", type_, sent, column, meant, parameters)


def _connect(name: str, type_: str, sent: Any, column: str, meant: Any, **given: str) -> Example:
    return Example(f"org.apache.kafka.connect.data.{name}", type_, sent, column, meant, given)


def _local(year: int, *more: int) -> datetime:
    return datetime(year, *more)  # noqa: DTZ001 - a TIMESTAMP_NTZ


EXAMPLES = [
    _time("Date", "int32", 16321, "date", date(2014, 9, 8)),
    _time("Date", "int32", -1, "date", date(1969, 12, 31)),
    _time("Date", "int32", 16321, "int", 16321),
    _time("Time", "int32", 49_020_123, "string", "13:37:00.123"),
    _time("Time", "int32", 0, "string", "00:00:00"),
    _time(
        "Time", "int32", 49_020_123, "interval day to second", timedelta(milliseconds=49_020_123)
    ),
    _time("Time", "int32", 49_020_123, "int", 49_020_123),
    _time("MicroTime", "int64", 37_801_000_000, "string", "10:30:01"),
    _time("MicroTime", "int64", 9_000_004_000, "string", "02:30:00.004"),
    _time("MicroTime", "int64", 86_399_999_999, "string", "23:59:59.999999"),
    # MySQL: TIME '-838:59:58.999999' and '838:59:58.000000'
    _time("MicroTime", "int64", -3_020_398_999_999, "string", "-838:59:58.999999"),
    _time("MicroTime", "int64", 3_020_398_000_000, "string", "838:59:58"),
    _time("MicroTime", "int64", -1, "interval day to second", timedelta(microseconds=-1)),
    _time("NanoTime", "int64", 9_000_004_000_005, "string", "02:30:00.004000005"),
    _time("NanoTime", "int64", 37_801_000_000_000, "string", "10:30:01"),
    _time("NanoTime", "int64", 1_999, "interval day to second", timedelta(microseconds=1)),
    _time(
        "Timestamp",
        "int64",
        1_529_507_596_945,
        "timestamp_ntz",
        _local(2018, 6, 20, 15, 13, 16, 945_000),
    ),
    _time("Timestamp", "int64", -1, "timestamp_ntz", _local(1969, 12, 31, 23, 59, 59, 999_000)),
    _time(
        "MicroTimestamp",
        "int64",
        1_529_507_596_945_104,
        "timestamp_ntz",
        _local(2018, 6, 20, 15, 13, 16, 945_104),
    ),
    _time(
        "MicroTimestamp",
        "int64",
        1_529_507_596_945_104,
        "timestamp",
        datetime(2018, 6, 20, 15, 13, 16, 945_104, UTC),
    ),
    _time("MicroTimestamp", "int64", 1_529_507_596_945_104, "bigint", 1_529_507_596_945_104),
    _time(
        "NanoTimestamp",
        "int64",
        1_529_507_596_945_104_999,
        "timestamp_ntz",
        _local(2018, 6, 20, 15, 13, 16, 945_104),
    ),
    _time("NanoTimestamp", "int64", -1, "timestamp_ntz", _local(1969, 12, 31, 23, 59, 59, 999_999)),
    _time(
        "ZonedTimestamp",
        "string",
        "2011-12-03T10:15:30.030431+01:00",
        "timestamp",
        datetime(2011, 12, 3, 9, 15, 30, 30_431, UTC),
    ),
    _time(
        "ZonedTimestamp",
        "string",
        "2011-12-03T10:15:30+01:00",
        "timestamp",
        datetime(2011, 12, 3, 9, 15, 30, 0, UTC),
    ),
    _time(
        "ZonedTimestamp",
        "string",
        "1970-01-01T00:00:00Z",
        "timestamp",
        datetime(1970, 1, 1, tzinfo=UTC),
    ),
    _time(
        "ZonedTimestamp",
        "string",
        "2011-12-03T10:15:30+01:00",
        "string",
        "2011-12-03T10:15:30+01:00",
    ),
    _time("ZonedTime", "string", "10:15:30+01:00", "string", "10:15:30+01:00"),
    _time("IsoDate", "string", "2005-05-12Z", "date", date(2005, 5, 12)),
    _time("IsoDate", "string", "1970-01-01Z", "date", date(1970, 1, 1)),
    _time("IsoDate", "string", "2005-05-12Z", "string", "2005-05-12Z"),
    _time("IsoTime", "string", "10:30:45.123456789Z", "string", "10:30:45.123456789Z"),
    _time(
        "IsoTimestamp",
        "string",
        "2011-01-11T16:40:30.123456789Z",
        "timestamp_ntz",
        _local(2011, 1, 11, 16, 40, 30, 123_456),
    ),
    _time(
        "IsoTimestamp",
        "string",
        "2024-11-20T15:44:43Z",
        "timestamp",
        datetime(2024, 11, 20, 15, 44, 43, 0, UTC),
    ),
    _time("Interval", "string", "P1Y2M3DT4H5M6.78S", "string", "P1Y2M3DT4H5M6.78S"),
    _time(
        "MicroDuration",
        "int64",
        93_784_005_006,
        "interval day to second",
        timedelta(microseconds=93_784_005_006),
    ),
    _time("MicroDuration", "int64", -1, "bigint", -1),
    _time(
        "NanoDuration",
        "int64",
        93_784_005_006_999,
        "interval day to second",
        timedelta(microseconds=93_784_005_006),
    ),
    _time("Year", "int32", 2018, "int", 2018),
    _data("Bits", "bytes", b"\x05", "binary", b"\x05", length="3"),
    _data("Bits", "bytes", b"\x05", "string", "101", length="3"),
    _data("Bits", "bytes", b"\x01\x02", "string", "0000001000000001", length="16"),
    _data("Bits", "bytes", b"\x05", "string", "000000000101", length="12"),
    _data("Bits", "bytes", b"", "string", "0000", length="4"),
    _data("Bits", "bytes", b"\x05", "string", "101", length="2147483647"),
    _data("Bits", "bytes", b"\x01\x02", "bigint", 513, length="16"),
    _data("Bits", "bytes", b"", "bigint", 0, length="16"),
    _data("Enum", "string", "active", "string", "active", allowed="new,active"),
    _data("EnumSet", "string", "a,c", "string", "a,c", allowed="a,b,c"),
    _data("EnumSet", "string", "a,c", "array<string>", ["a", "c"], allowed="a,b,c"),
    _data("EnumSet", "string", "", "array<string>", [], allowed="a,b,c"),
    _data("Json", "string", '{"key" : "val"}', "string", '{"key" : "val"}'),
    _data(
        "Uuid",
        "string",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "string",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    _data("Xml", "string", "<foo>1</foo>", "string", "<foo>1</foo>"),
    _data("Ltree", "string", "Top.Science", "string", "Top.Science"),
    _data("TsVector", "string", "'a':1", "string", "'a':1"),
    _data("IsoTime", "bytes", b"10:15:30+01:00", "string", "10:15:30+01:00"),
    _data(
        "IsoTimestamp",
        "bytes",
        b"2011-12-03T10:15:30+01:00",
        "timestamp",
        datetime(2011, 12, 3, 9, 15, 30, 0, UTC),
    ),
    _data(
        "VariableScaleDecimal",
        "struct",
        {"scale": 2, "value": b"\x04\xd2"},
        "decimal(38,18)",
        Decimal("12.34"),
    ),
    _data(
        "VariableScaleDecimal",
        "struct",
        {"scale": 0, "value": b"\xff"},
        "decimal(38,18)",
        Decimal(-1),
    ),
    _data(
        "VariableScaleDecimal",
        "struct",
        {"scale": -2, "value": b"\x0c"},
        "decimal(10,0)",
        Decimal(1200),
    ),
    _data("VariableScaleDecimal", "struct", {"scale": 3, "value": b"\x04\xd2"}, "string", "1.234"),
    _data(
        "VariableScaleDecimal", "struct", {"scale": 9, "value": b"\x01"}, "string", "0.000000001"
    ),
    _data("geometry.Point", "struct", {"wkb": b"\x01\x02"}, "binary", b"\x01\x02"),
    _data("geometry.Geometry", "struct", {"wkb": b"\x01\x02"}, "binary", b"\x01\x02"),
    _data("geometry.Geography", "struct", {"wkb": None}, "binary", None),
    _connect("Date", "int32", 16321, "date", date(2014, 9, 8)),
    _connect("Time", "int32", 49_020_123, "string", "13:37:00.123"),
    _connect(
        "Timestamp",
        "int64",
        1_529_507_596_945,
        "timestamp",
        datetime(2018, 6, 20, 15, 13, 16, 945_000, UTC),
    ),
    _connect(
        "Timestamp",
        "int64",
        1_529_507_596_945,
        "timestamp_ntz",
        _local(2018, 6, 20, 15, 13, 16, 945_000),
    ),
    _connect("Decimal", "bytes", b"\x04\xd2", "decimal(10,2)", Decimal("12.34"), scale="2"),
    _connect("Decimal", "bytes", b"\xfb\x2e", "decimal(10,2)", Decimal("-12.34"), scale="2"),
    _connect("Decimal", "bytes", b64decode("AN4="), "decimal(10,2)", Decimal("2.22"), scale="2"),
    _connect(
        "Decimal", "bytes", b"\x00" * 30 + b"\x01", "decimal(10,2)", Decimal("0.01"), scale="2"
    ),
    _connect("Decimal", "bytes", b"\xff" * 30, "decimal(10,2)", Decimal("-0.01"), scale="2"),
    _connect("Decimal", "bytes", b"\x04\xd2", "decimal(10,4)", Decimal("12.3400"), scale="2"),
    _connect("Decimal", "bytes", b"\x04\xd3", "decimal(10,1)", Decimal("12.4"), scale="2"),
    _connect("Decimal", "bytes", b"\xfb\x2d", "decimal(10,1)", Decimal("-12.4"), scale="2"),
    _connect(
        "Decimal",
        "bytes",
        (10**38 - 1).to_bytes(16, "big"),
        "decimal(38,0)",
        Decimal(10**38 - 1),
        scale="0",
    ),
    _connect("Decimal", "bytes", (10**40).to_bytes(18, "big"), "string", "1" + "0" * 40, scale="0"),
    _connect("Decimal", "bytes", b"\x04\xd2", "string", "12.34", scale="2"),
    _connect("Decimal", "bytes", b"\x04\xd2", "string", "123400", scale="-2"),
    _connect("Decimal", "bytes", b"\x04\xd2", "binary", b"\x04\xd2", scale="2"),
]

INFINITIES = [
    # Postgres: TIMESTAMP 'infinity' and '-infinity', in microseconds
    _time("ZonedTimestamp", "string", "infinity", "timestamp", 9_223_372_036_825_200_000),
    _time("ZonedTimestamp", "string", "-infinity", "timestamp", -9_223_372_036_832_400_000),
    _time(
        "IsoTimestamp",
        "string",
        "+294247-01-10T04:00:25.2Z",
        "timestamp_ntz",
        9_223_372_036_825_200_000,
    ),
    _time(
        "IsoTimestamp",
        "string",
        "-290308-12-21T19:59:27.6Z",
        "timestamp_ntz",
        -9_223_372_036_832_400_000,
    ),
    _time(
        "MicroTimestamp",
        "int64",
        9_223_372_036_825_200_000,
        "timestamp_ntz",
        9_223_372_036_825_200_000,
    ),
    _time(
        "MicroTimestamp",
        "int64",
        -9_223_372_036_832_400_000,
        "timestamp",
        -9_223_372_036_832_400_000,
    ),
    _time(
        "ZonedTimestamp",
        "string",
        "+294247-01-10T04:00:25.200Z",
        "timestamp",
        9_223_372_036_825_200_000,
    ),
    _time("ZonedTimestamp", "string", "-0001-03-01T00:00:00Z", "timestamp", -62193657600000000),
    _time("IsoDate", "string", "+10000-01-01Z", "date", 2_932_897),
]
"""Moments outside of the years that Python's dates have, as the number that a column holds of each."""

BAD = [
    (
        _time("Timestamp", "int64", 1 << 62, "timestamp", None),
        "out of range of milliseconds since 1970",
    ),
    (
        _time("Time", "int64", 1 << 62, "interval day to second", None),
        "out of range of milliseconds",
    ),
    (
        _time("ZonedTimestamp", "string", "yesterday", "timestamp", None),
        "expected a TIMESTAMP like",
    ),
    (_time("ZonedTimestamp", "string", "2011-12-03T10:15:30", "timestamp", None), "with a zone"),
    (
        _time("ZonedTimestamp", "string", "+999999999-01-01T00:00:00Z", "timestamp", None),
        "out of range of TIMESTAMP",
    ),
    (_time("IsoDate", "string", "2005-02-30Z", "date", None), "expected a DATE that exists"),
    (_time("IsoDate", "string", "2005-02-03+02:00", "date", None), "expected a DATE like"),
    (_data("Bits", "bytes", b"\xff" * 9, "bigint", None), "out of range of BIGINT"),
    (_data("Json", "string", "{", "variant", None), "not JSON"),
    (_data("IsoTime", "bytes", b"\xff", "string", None), "expected a text in UTF-8"),
    (
        _data("VariableScaleDecimal", "struct", {"scale": None, "value": b"\x01"}, "string", None),
        "expected 'scale' and 'value'",
    ),
    (
        _data(
            "VariableScaleDecimal", "struct", {"scale": 2**31 - 1, "value": b"\x01"}, "string", None
        ),
        "larger than those of any database",
    ),
    (
        _data("VariableScaleDecimal", "struct", {"scale": 0, "value": b""}, "string", None),
        "a decimal of no bytes",
    ),
    (
        _connect("Decimal", "bytes", b"\x04\xd2", "decimal(3,2)", None, scale="2"),
        "expected a DECIMAL(3,2)",
    ),
    (
        _connect("Decimal", "bytes", b"\x03\xe7", "decimal(2,1)", None, scale="2"),
        "expected a DECIMAL(2,1)",
    ),
    (_connect("Decimal", "bytes", b"", "decimal(3,2)", None, scale="2"), "a decimal of no bytes"),
    (
        _connect("Decimal", "bytes", b"\x01" * 70_000, "string", None, scale="2"),
        "larger than those of any database",
    ),
]
"""Values that are bad, and a part of what is said of each."""
