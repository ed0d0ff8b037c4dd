"""Rows to Avro messages: the bytes of each type, and what cannot be written."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from math import inf, nan

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
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
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from pyspark_upsert_kafka.core.errors import EncodeError, SchemaError
from tests.unit.formats.avro.codecs import datum_encoder
from tests.unit.formats.avro.writing import (
    by_fastavro,
    column,
    decimal,
    field,
    logical,
    record,
    written,
)
from tests.unit.formats.json.codecs import batch, columns

INT, LONG, TEXT = IntegerType(), LongType(), StringType()
COLORS = {"type": "enum", "name": "color", "symbols": ["RED", "GREEN"]}
UUID = {"type": "fixed", "name": "f", "size": 16, "logicalType": "uuid"}
UTC = dt.timezone.utc
EARLY = dt.datetime(1, 1, 1, tzinfo=UTC)
BEFORE_1970 = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
LATE = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)

BYTES = [
    ("boolean", BooleanType(), True, "01"),
    ("boolean", BooleanType(), False, "00"),
    ("int", INT, 0, "00"),
    ("int", INT, -1, "01"),
    ("int", INT, 63, "7e"),
    ("int", INT, 64, "8001"),
    ("int", INT, -64, "7f"),
    ("int", INT, -65, "8101"),
    ("int", INT, -(2**31), "ffffffff0f"),
    ("long", LONG, 2**63 - 1, "feffffffffffffffff01"),
    ("long", LONG, -(2**63), "ffffffffffffffffff01"),
    ("float", FloatType(), 1.5, "0000c03f"),
    ("double", DoubleType(), 1.5, "000000000000f83f"),
    ("double", DoubleType(), -0.0, "0000000000000080"),
    ("double", DoubleType(), -inf, "000000000000f0ff"),
    ("double", DoubleType(), nan, "000000000000f87f"),
    ("float", FloatType(), nan, "0000c07f"),
    ("string", TEXT, "", "00"),
    ("string", TEXT, "é😀", "0cc3a9f09f9880"),
    ("string", TEXT, "a" * 64, "8001" + "61" * 64),
    ("bytes", BinaryType(), b"\x00\xff", "0400ff"),
    ({"type": "fixed", "name": "f", "size": 2}, BinaryType(), b"\x00\xff", "00ff"),
    ({"type": "fixed", "name": "f", "size": 0}, BinaryType(), b"", ""),
    (UUID, TEXT, "00112233-4455-6677-8899-AAbbCCddEEff", "00112233445566778899aabbccddeeff"),
    (UUID, BinaryType(), b"\x01" * 16, "01" * 16),
    (COLORS, TEXT, "GREEN", "02"),
    (decimal(5, 2), DecimalType(5, 2), Decimal("0.00"), "0200"),
    (decimal(5, 2), DecimalType(5, 2), Decimal("1.27"), "027f"),
    (decimal(5, 2), DecimalType(5, 2), Decimal("1.28"), "040080"),
    (decimal(5, 2), DecimalType(5, 2), Decimal("-1.28"), "0280"),
    (decimal(5, 2), DecimalType(5, 2), Decimal("-1.29"), "04ff7f"),
    (decimal(38, 0), DecimalType(38, 0), Decimal(2**64), "12010000000000000000"),
    (decimal(38, 0), DecimalType(38, 0), Decimal(2**63), "12008000000000000000"),
    (decimal(38, 0), DecimalType(38, 0), Decimal(-1), "02ff"),
    (decimal(50, 0), DecimalType(5, 0), Decimal(-129), "04ff7f"),
    (decimal(4, 1, "fixed", name="f", size=2), DecimalType(4, 1), Decimal("-0.1"), "ffff"),
    (decimal(4, 1, "fixed", name="f", size=9), DecimalType(4, 1), Decimal(-1), "ff" * 8 + "f6"),
    (decimal(4, 1, "fixed", name="f", size=9), DecimalType(4, 1), Decimal(1), "00" * 8 + "0a"),
    (logical("int", "date"), DateType(), dt.date(1969, 12, 31), "01"),
    (["null", "int"], INT, None, "00"),
    (["null", "int"], INT, 1, "0202"),
    (["int", "null"], INT, None, "02"),
    (["int", "null"], INT, 1, "0002"),
    (["int"], INT, 1, "0002"),
    ({"type": "array", "items": "int"}, ArrayType(INT), [], "00"),
    ({"type": "array", "items": "int"}, ArrayType(INT), [1, 2], "04020400"),
    ({"type": "array", "items": ["null", "int"]}, ArrayType(INT), [1, None], "0402020000"),
    ({"type": "map", "values": "int"}, MapType(TEXT, INT), {}, "00"),
    ({"type": "map", "values": "int"}, MapType(TEXT, INT), {"b": 1, "a": 2}, "0402620202610400"),
    (record(name="none"), columns(), {}, ""),
]
"""Written by hand from the specification: an Avro type, a Spark type, a value, its bytes."""

PEERS = [
    ("long", ByteType(), -128),
    ("int", ShortType(), -(2**15)),
    (["null", "string"], TEXT, "x"),
    (logical("int", "date"), DateType(), dt.date(1, 1, 1)),
    (logical("int", "date"), DateType(), dt.date(9999, 12, 31)),
    (logical("long", "timestamp-micros"), TimestampType(), BEFORE_1970),
    (logical("long", "timestamp-micros"), TimestampType(), EARLY),
    (logical("long", "timestamp-micros"), TimestampType(), LATE),
    (logical("long", "local-timestamp-micros"), TimestampNTZType(), EARLY.replace(tzinfo=None)),
    (logical("long", "local-timestamp-micros"), TimestampNTZType(), LATE.replace(tzinfo=None)),
    (decimal(38, 18), DecimalType(38, 18), Decimal("-12345678901234567890.123456789012345678")),
    (decimal(38, 38), DecimalType(38, 38), Decimal("0." + "9" * 38)),
    (decimal(18, 0), DecimalType(18, 0), Decimal(-(10**18) + 1)),
    (
        decimal(38, 0, "fixed", name="f", size=20),
        DecimalType(38, 0),
        Decimal(-(10**38) + 1),
    ),
    (
        {"type": "array", "items": {"type": "array", "items": ["null", "string"]}},
        ArrayType(ArrayType(TEXT)),
        [["a", None], [], ["bc"]],
    ),
    (
        {"type": "map", "values": ["null", {"type": "array", "items": "double"}]},
        MapType(TEXT, ArrayType(DoubleType())),
        {"x": [0.5, nan], "": None, "é": []},
    ),
    (
        ["null", record(field("a", ["null", "int"]), field("b", "string"), name="inner")],
        columns(a=INT, b=TEXT),
        {"a": None, "b": "x"},
    ),
    ({"type": "array", "items": {"type": "fixed", "name": "f", "size": 1}},
     ArrayType(BinaryType()), [b"a", b"b"]),
]  # fmt: skip


@pytest.mark.parametrize(("avro", "kind", "value", "expected"), BYTES)
def test_bytes(avro, kind, value, expected):
    """Every type has the bytes that the specification gives it."""
    assert column(avro, kind, value) == [bytes.fromhex(expected)]


@pytest.mark.parametrize(("avro", "kind", "value"), PEERS)
def test_bytes_as_fastavro_writes_them(avro, kind, value):
    """Another writer gives the same bytes."""
    assert column(avro, kind, value) == by_fastavro(record(field("c", avro)), {"c": value})


@pytest.mark.parametrize(("avro", "kind", "value", "expected"), BYTES)
def test_a_value_has_its_bytes_in_any_company(avro, kind, value, expected):
    """Before and after others, absent ones among them, a value is written as if alone."""
    schema = record(field("c", ["null", record(field("d", avro), name="s")]))
    here, absent = b"\x02" + bytes.fromhex(expected), b"\0"
    row = ({"d": value},)

    messages = written(schema, columns(c=columns(d=kind)), row, (None,), row, row, (None,))

    assert messages == [here, absent, here, here, absent]


def test_all_nulls():
    """A column of nothing but NULL is written."""
    assert column(["null", "string"], TEXT, None, None) == [b"\0", b"\0"]


def test_no_rows():
    """A batch without rows gives no messages."""
    assert column(["null", "string"], TEXT) == []


def test_no_columns():
    """A record without fields has no bytes, once for each row."""
    assert written(record(), columns(), (), ()) == [b"", b""]


def test_the_prefix():
    """Every message begins with the prefix."""
    assert column("int", INT, 1, 2, prefix=b"\0\xff") == [b"\0\xff\x02", b"\0\xff\x04"]


def test_one_nan():
    """Every NaN has the same bytes, since NaN equals NaN in Spark."""
    odd = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
    rare = struct.unpack("<f", bytes.fromhex("0100c0ff"))[0]

    assert len(set(column("double", DoubleType(), odd, nan))) == 1
    assert len(set(column("float", FloatType(), rare, nan))) == 1


PROMOTED = [
    ("long", INT, 2**31 - 1),
    ("float", INT, 3),
    ("double", INT, -3),
    ("float", LONG, 2**24),
    ("double", LONG, 2**53),
    ("double", FloatType(), 0.5),
    ("bytes", TEXT, "é"),
    (logical("string", "uuid"), TEXT, "x"),
    (logical("int", "date"), INT, 19_000),
    (logical("int", "time-millis"), INT, 1),
    (logical("long", "time-micros"), LONG, 1),
    (logical("long", "timestamp-millis"), LONG, 1_700_000_000_000),
]


@pytest.mark.parametrize(("avro", "kind", "value"), PROMOTED)
def test_wider_types(avro, kind, value):
    """A column goes into a type that Avro promotes its own to, or whose number it is."""
    plain = avro["type"] if isinstance(avro, dict) else avro
    expected = by_fastavro(plain, value.encode() if plain == "bytes" else value)

    assert column(avro, kind, value) == expected


AT = dt.datetime(1969, 12, 31, 23, 59, 59, 998_999, UTC)


@pytest.mark.parametrize("local", ["", "local-"])
@pytest.mark.parametrize(
    ("unit", "number"), [("millis", -2), ("micros", -1001), ("nanos", -1_001_000)]
)
@pytest.mark.parametrize("kind", [TimestampType(), TimestampNTZType()])
def test_units_of_timestamps(local, unit, number, kind):
    """Either kind goes into either; milliseconds are rounded down, before 1970 too."""
    avro = logical("long", f"{local}timestamp-{unit}")
    value = AT if isinstance(kind, TimestampType) else AT.replace(tzinfo=None)

    assert column(avro, kind, value) == by_fastavro("long", number)


@pytest.mark.parametrize("kind", [TimestampType(), TimestampNTZType()])
def test_a_bare_long_is_milliseconds(kind):
    """As Spark and Flink write a timestamp into a long without a logical type."""
    value = AT if isinstance(kind, TimestampType) else AT.replace(tzinfo=None)

    for legacy in (True, False):
        assert column("long", kind, value, legacy_timestamps=legacy) == by_fastavro("long", -2)


@pytest.mark.parametrize(
    ("kind", "avro"), [(TimestampType(), "local-timestamp-micros"),
                       (TimestampNTZType(), "timestamp-micros")],
)  # fmt: skip
def test_kinds_of_timestamps_kept_apart(kind, avro):
    """Without the legacy mapping a local timestamp is no zoned one."""
    with pytest.raises(SchemaError, match="cannot be written as Avro's"):
        column(logical("long", avro), kind, legacy_timestamps=False)


def test_intervals_are_microseconds():
    """A day-time interval is a long of microseconds, as Spark's own writer has it."""
    value = dt.timedelta(days=-1, microseconds=1)

    assert column("long", DayTimeIntervalType(), value) == by_fastavro("long", -86_399_999_999)


UNIONS = [
    (["null", "int", "string"], TEXT, "a", 2),
    (["null", "int", "string"], INT, 7, 1),
    (["double", "long", "null", "int"], INT, 7, 3),
    (["double", "long", "null", "int"], LONG, 7, 1),
    (["double", "null", "long"], INT, 7, 2),
    (["bytes", "null", "string"], TEXT, "a", 2),
    (["bytes", COLORS], TEXT, "RED", 0),
    (["int", COLORS], TEXT, "RED", 1),
    (["int", record(field("a", "int"), name="x"), record(field("b", "int"), name="y")],
     columns(b=INT), {"b": 1}, 2),
]  # fmt: skip


@pytest.mark.parametrize(("union", "kind", "value", "branch"), UNIONS)
def test_the_branch_nearest_to_the_column(union, kind, value, branch):
    """Among several branches a value goes into that of its column's type, else the next wider one."""
    (message,) = column(union, kind, value)

    assert message[:1] == by_fastavro("long", branch)[0]
    assert message[1:] == column(union[branch], kind, value)[0]


FIELDS = record(
    field("B", "int"),
    field("d", ["null", "string"], default="x"),
    field("a", "int"),
)


def test_the_order_of_the_schema():
    """Fields stand in the schema's order; names match in any case; a default fills a gap."""
    assert written(FIELDS, columns(a=INT, b=INT), (1, 2)) == [b"\x04" + b"\x02\x02x" + b"\x02"]


def test_the_same_name_goes_first():
    """Where two fields differ in case only, columns find those of their very names."""
    schema = record(field("A", "int"), field("a", "int"))

    assert written(schema, columns(a=INT, A=INT), (1, 2)) == [b"\x04\x02"]


DEFAULTS = [
    ("int", -1),
    ("boolean", True),
    ("string", "é"),
    ("null", None),
    ("double", 1),
    (["int", "null"], 1),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "int"}, {"a": 1}),
    (COLORS, "GREEN"),
    (record(field("x", "int"), field("y", "int", default=2), name="inner"), {"x": 1}),
]


@pytest.mark.parametrize(("avro", "default"), DEFAULTS)
def test_defaults(avro, default):
    """A field that no column gives is written with its default, in every row."""
    schema = record(field("a", "int"), field("c", avro, default=default))

    messages = written(schema, columns(a=INT), (1,), (2,))

    value = {"x": 1, "y": 2} if isinstance(default, dict) and "x" in default else default
    assert messages == by_fastavro(schema, {"a": 1, "c": value}, {"a": 2, "c": value})


def test_a_record_within_itself():
    """A recursive schema is written as deep as the column goes."""
    schema = record(field("v", "int"), field("next", ["null", "r"], default=None))
    kinds = columns(v=INT, next=columns(v=INT))

    assert written(schema, kinds, (1, {"v": 2}), (3, None)) == [b"\x02\x02\x04\x00", b"\x06\x00"]


def test_a_lone_value():
    """A schema that is no record is for an only column."""
    assert written("string", columns(c=TEXT), ("a",)) == [b"\x02a"]
    assert written(["null", "string"], columns(c=TEXT), (None,)) == [b"\0"]
    with pytest.raises(SchemaError, match="only one column can be written as it, not 2"):
        written("string", columns(c=TEXT, d=TEXT))


def test_a_row_in_a_union():
    """A record may stand in a union at the top too."""
    schema = ["null", record(field("a", "int"))]

    assert written(schema, columns(a=INT), (1,)) == [b"\x02\x02"]


NO_VALUES = [
    ("int", INT, None, "NULL, but the Avro schema has no union with null there"),
    (["int", "string"], INT, None, "NULL, but"),
    (COLORS, TEXT, "BLUE", "'BLUE' is no symbol of the enum 'color': RED, GREEN"),
    ({"type": "fixed", "name": "f", "size": 2}, BinaryType(), b"abc", "a value of 3 bytes; "),
    (UUID, TEXT, "00112233445566778899aabbccddeeff", "'00112233445566778899aabbccddeeff' is no"),
    (decimal(2, 0), DecimalType(5, 0), Decimal(100), "precision 2"),
    (logical("long", "timestamp-nanos"), TimestampType(), LATE, "from the year 1677 to 2262"),
    (logical("long", "timestamp-nanos"), TimestampType(), EARLY, "from the year 1677 to 2262"),
]


@pytest.mark.parametrize(("avro", "kind", "value", "reason"), NO_VALUES)
def test_values_that_cannot_be_written(avro, kind, value, reason):
    """A value that does not fit is an error that names the column."""
    with pytest.raises(EncodeError) as error:
        column(avro, kind, value)
    assert error.value.column == "c"
    assert reason in error.value.reason


@pytest.mark.parametrize(
    ("avro", "kind", "value", "path"),
    [
        ({"type": "array", "items": "int"}, ArrayType(INT), [None], "c[]"),
        ({"type": "map", "values": COLORS}, MapType(TEXT, TEXT), {"a": "b"}, "c{}"),
        (record(field("d", "int"), name="s"), columns(d=INT), {"d": None}, "c.d"),
    ],
)
def test_the_place_within_a_column(avro, kind, value, path):
    """An error names the place within a column."""
    with pytest.raises(EncodeError) as error:
        column(avro, kind, value)
    assert error.value.column == path


def test_nothing_is_said_of_what_is_not_there():
    """A field under a NULL struct is not NULL itself."""
    avro = ["null", record(field("d", "int"), name="s")]

    assert column(avro, columns(d=INT), None, {"d": 1}) == [b"\0", b"\x02\x02"]


NO_COLUMNS = [
    ("int", LONG, "Column 'c' is BIGINT, which cannot be written as Avro's int."),
    ("float", DoubleType(), "'c' is DOUBLE"),
    ("string", INT, "'c' is INT"),
    ("string", BinaryType(), "'c' is BINARY"),
    (decimal(10, 2), BinaryType(), "'c' is BINARY, which cannot be written as Avro's bytes (dec"),
    (decimal(10, 2), DecimalType(10, 3), "'c' is DECIMAL(10,3)"),
    ("bytes", DecimalType(10, 2), "'c' is DECIMAL(10,2), which cannot be written as Avro's bytes."),
    (decimal(10, 2, "fixed", name="f", size=8), BinaryType(), "fixed"),
    ({"type": "fixed", "name": "f", "size": 8}, TEXT, "fixed"),
    (logical("long", "timestamp-micros"), DateType(), "'c' is DATE"),
    (logical("int", "date"), TimestampType(), "'c' is TIMESTAMP"),
    (logical("long", "timestamp-micros"), DayTimeIntervalType(), "'c' is INTERVAL DAY TO SECOND"),
    ("string", VariantType(), "'c' is VARIANT"),
    ("int", ArrayType(INT), "'c' is ARRAY<INT>"),
    ({"type": "map", "values": "int"}, MapType(INT, INT), "'c' is MAP<INT,INT>"),
    ({"type": "array", "items": "string"}, ArrayType(INT), "'c[]' is INT"),
    (COLORS, INT, "enum"),
    (["null"], INT, "none of Avro's null"),
    (["null", "string", "boolean"], INT, "none of Avro's null, string, boolean"),
    (record(field("d", "int"), name="s"), columns(e=INT), "no field for column 'c.e'; its fields"),
    (record(field("d", "int"), name="s"), columns(), "No column gives the field 'c.d'"),
]


@pytest.mark.parametrize(("avro", "kind", "message"), NO_COLUMNS)
def test_columns_that_do_not_fit(avro, kind, message):
    """A column that no value of could be written, or not without loss, is refused when planned."""
    with pytest.raises(SchemaError) as error:
        column(avro, kind)
    assert message in str(error.value)


NO_NAMES = [
    (["a"], ["b"], "The Avro schema has no field for column 'b'; its fields there: a."),
    (["A", "AA"], ["aa", "Aa"], "Columns 'aa' and 'Aa' both give the field 'AA'"),
    (["Ab", "aB"], ["ab"], "Column 'ab' may be any of the fields Ab, aB"),
    (["a", "b"], ["a"], "No column gives the field 'b' of the Avro schema, and it has no default."),
]


@pytest.mark.parametrize(("names", "given", "message"), NO_NAMES)
def test_names_that_do_not_match(names, given, message):
    """Every column has one field, and every field one column or a default."""
    schema = record(*(field(name, "int") for name in names))

    with pytest.raises(SchemaError) as error:
        written(schema, columns(**dict.fromkeys(given, INT)))
    assert message in str(error.value)


def test_a_default_of_another_type():
    """A default is checked when the query is planned, if it is needed."""
    with pytest.raises(
        SchemaError, match="The default of the field 'b' of the Avro schema is wrong"
    ):
        written(record(field("a", "int"), field("b", "int", default="x")), columns(a=INT))


def test_a_part_of_a_batch():
    """A slice of a batch gives the messages of its rows."""
    kinds = columns(a=INT, b=TEXT, c=ArrayType(TEXT), d=columns(e=TEXT), f=DecimalType(9, 0))
    schema = record(
        field("a", ["null", "int"]),
        field("b", ["null", "string"]),
        field("c", ["null", {"type": "array", "items": "string"}]),
        field("d", ["null", record(field("e", "string"), name="d")]),
        field("f", ["null", decimal(9, 0)]),
    )
    rows = [
        (i, str(i), [str(i)] * i, {"e": str(i)}, Decimal(i)) if i % 3 else (None,) * 5
        for i in range(9)
    ]
    encode, whole = datum_encoder(schema, kinds).encode, batch(kinds, *rows)

    assert encode(whole.slice(2, 5)) == encode(whole)[2:7]


def test_a_fine_timestamp_after_the_year_9999_is_an_error_like_any_other():
    """Spark has such years, Python's datetime has none."""
    array = pa.array([2**60 + 1], pa.timestamp("us", "UTC"))
    rows = pa.RecordBatch.from_arrays([array], ["c"])
    encoder = datum_encoder(
        record(field("c", logical("long", "timestamp-millis"))),
        columns(c=TimestampType()),
        remedy="cut it",
    )
    with pytest.raises(EncodeError, match=r"38504-\S+ \S+ is finer than milliseconds; cut it"):
        encoder.encode(rows)
