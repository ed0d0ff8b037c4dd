"""Avro messages to rows: what is refused, in which words, and what the format allows beside the plain."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tests.unit.formats.avro.codecs import datum_decoder
from tests.unit.formats.avro.corpus import long, written

ENOUGH = 64  # messages that make a batch take the vectorised path
LONG, TEXT = LongType(), StringType()


def record(*types, **named):
    """A record of one field ``c``, or of fields by their names."""
    fields = dict.fromkeys("c", *types) if types else named
    declared = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "R", "fields": declared}


def logical(kind, name, **more):
    """A type with a logical type."""
    return {"type": kind, "logicalType": name, **more}


def required(kind):
    """A single NOT NULL column ``c``."""
    return StructType([StructField("c", kind, nullable=False)])


def column(kind):
    """A single nullable column ``c``."""
    return StructType([StructField("c", kind)])


def outcome(decoder, message):
    """The only row, or the error, by both paths; fails when they differ."""
    one, many = decoder.decode([message]), decoder.decode([message] * ENOUGH)
    if one.errors:
        assert many.errors == dict.fromkeys(range(ENOUGH), one.errors[0])
        return one.errors[0]
    assert many.errors == {}
    assert many.rows.equals(
        type(many.rows).from_pylist(one.rows.to_pylist() * ENOUGH, one.rows.schema)
    )
    return one.rows.to_pylist()[0]


def read(avro, kind, message, **options):
    """The value of a single field ``c``, or the error."""
    seen = outcome(datum_decoder(record(avro), column(kind), **options), message)
    return seen if isinstance(seen, str) else seen["c"]


ARRAY, MAP = {"type": "array", "items": "int"}, {"type": "map", "values": "int"}
ENUM = {"type": "enum", "name": "E", "symbols": ["RED", "GREEN"]}
DECIMAL = logical("bytes", "decimal", precision=5, scale=2)
FIXED = {"type": "fixed", "name": "F", "size": 3}

BAD = [
    ("int", IntegerType(), b"", "the message is empty"),
    ("int", IntegerType(), b"\x02\x00", "1 byte is left after the datum"),
    ("int", IntegerType(), b"\x02" + b"x" * 12, "12 bytes are left after the datum"),
    ("int", IntegerType(), b"\x80", "field 'c': the message ends within a number"),
    ("long", LONG, b"\xff" * 9 + b"\x02", "field 'c': a number is longer than 64 bits"),
    ("long", LONG, b"\x80" * 10 + b"\x00", "field 'c': a number is longer than 64 bits"),
    ("int", LONG, long(1 << 31), "field 'c': 2147483648 is out of range of Avro's int"),
    ("int", ByteType(), long(128), "field 'c': 128 is out of range of TINYINT"),
    ("boolean", BooleanType(), b"\x02", "field 'c': expected a boolean, 0 or 1, got 2"),
    ("string", TEXT, long(10) + b"abc", "field 'c': the text ends after 3 of 10 bytes"),
    ("string", TEXT, long(-5) + b"abcde", "field 'c': the text has -5 bytes"),
    ("string", TEXT, long(2**62), "field 'c': the text ends after 0 of 4611686018427387904 bytes"),
    ("string", TEXT, long(2) + b"\xc3(", "field 'c': not UTF-8: invalid continuation byte at byte 0"),
    ("bytes", BinaryType(), long(-(2**63)), "field 'c': the value has -9223372036854775808 bytes"),
    (FIXED, BinaryType(), b"ab", "field 'c': the value ends after 2 of 3 bytes"),
    (ENUM, TEXT, long(2), "field 'c': there is no symbol 2 in an enum of 2"),
    (ENUM, TEXT, long(-1), "field 'c': there is no symbol -1 in an enum of 2"),
    (["null", "int"], LONG, long(2), "field 'c': there is no branch 2 in a union of 2"),
    (["null", "int"], LONG, long(-1), "field 'c': there is no branch -1 in a union of 2"),
    (["int", "string"], LONG, long(1) + b"\x00", "field 'c' is BIGINT, which cannot hold Avro's string"),
    (DECIMAL, DecimalType(5, 2), b"\x00", "field 'c': a decimal of no bytes"),
    (DECIMAL, DecimalType(5, 2), b"\x06\x01\x86\xa0", "field 'c': a number of more digits than DECIMAL(5,2)"),
    (DECIMAL, DecimalType(5, 2), b"\x06\xfe\x79\x60", "field 'c': a number of more digits than DECIMAL(5,2)"),
    (ARRAY, ArrayType(LONG), long(3) + b"\x02", "field 'c': there are 3 items in 1 byte"),
    (ARRAY, ArrayType(LONG), long(2) + b"\x02\x80", "field 'c[]': the message ends within a number"),
    (ARRAY, ArrayType(LONG), long(1) + b"\x02", "field 'c': the message ends within a number"),
    (ARRAY, ArrayType(LONG), long(-(2**63)) + b"\x00", "field 'c': there are 9223372036854775808 items in 0 bytes"),
    (MAP, MapType(TEXT, LONG), long(1) + b"\x08k", "field 'c{}': the text ends after 1 of 4 bytes"),
    (
        {"type": "array", "items": "null"},
        ArrayType(LONG),
        long(2**40) + b"\x00",
        "field 'c': there are more than 10000 items that take no bytes",
    ),
    (
        logical("long", "timestamp-millis"),
        TimestampType(),
        long(2**62),
        "field 'c': 4611686018427387904 is out of range of TIMESTAMP",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("avro", "kind", "message", "why"), BAD, ids=lambda case: str(case)[:40])
def test_what_cannot_be_read_is_blamed(avro, kind, message, why):
    """A bad message is an error that says which field, and what was seen."""
    assert read(avro, kind, message) == why


GOOD = [
    ("long", LONG, b"\x80" * 9 + b"\x00", 0),
    ("long", LONG, b"\xff" * 9 + b"\x01", -(2**63)),
    ("long", LONG, b"\xfe" + b"\xff" * 8 + b"\x01", 2**63 - 1),
    ("long", LONG, b"\xff" * 8 + b"\x7f", -(2**62)),
    (DECIMAL, DecimalType(5, 2), b"\x02\xff", Decimal("-0.01")),
    (DECIMAL, DecimalType(5, 2), long(20) + b"\xff" * 19 + b"\x9c", Decimal("-1.00")),
    (DECIMAL, DecimalType(7, 2), b"\x06\x01\x86\x9f", Decimal("999.99")),
    (DECIMAL, DecimalType(5, 2), b"\x06\xfe\x79\x61", Decimal("-999.99")),
    (DECIMAL, BinaryType(), b"\x04\x01\x02", b"\x01\x02"),
    ("long", TimestampType(), long(-1), dt.datetime(1969, 12, 31, 23, 59, 59, 999000, dt.timezone.utc)),
    (
        logical("long", "timestamp-nanos"),
        TimestampType(),
        long(-1),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.timezone.utc),
    ),
    (logical("long", "local-timestamp-nanos"), TimestampNTZType(), long(1999), dt.datetime.fromisoformat("1970-01-01 00:00:00.000001")),
    ("long", DayTimeIntervalType(), long(-1), dt.timedelta(microseconds=-1)),
    (logical("int", "time-millis"), IntegerType(), long(5), 5),
    (logical("long", "timestamp-millis"), LONG, long(5), 5),
    (
        {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"},
        TEXT,
        bytes.fromhex("00112233445566778899aabbccddeeff"),
        "00112233-4455-6677-8899-aabbccddeeff",
    ),
    (ARRAY, ArrayType(LONG), long(-2) + long(2) + b"\x02\x04" + long(1) + b"\x06\x00", [1, 2, 3]),
    (ARRAY, ArrayType(LONG), long(-1) + long(99) + b"\x02\x00", [1]),
    (MAP, MapType(TEXT, LONG), b"\x06\x02a\x02\x02b\x04\x02a\x06\x00", [("a", 3), ("b", 2)]),
    ({"type": "array", "items": "null"}, ArrayType(LONG), long(3) + b"\x00", [None] * 3),
    (["int", "long"], LONG, long(1) + long(2**40), 2**40),
    (["string"], TEXT, long(0) + b"\x02x", "x"),
    (
        ["null", "int", "string"],
        StructType([StructField("member0", IntegerType()), StructField("member1", TEXT)]),
        long(2) + b"\x02x",
        {"member0": None, "member1": "x"},
    ),
    (["null", "int", "string"], StructType([StructField("member0", IntegerType()), StructField("member1", TEXT)]), b"\x00", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("avro", "kind", "message", "value"), GOOD, ids=lambda case: str(case)[:40]
)
def test_what_the_specification_allows_is_read(avro, kind, message, value):
    """Numbers longer than they need to be, blocks with sizes, repeated keys, unions of any kind."""
    assert read(avro, kind, message) == value


NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "id", "type": "long"}, {"name": "next", "type": ["null", "Node"]}],
}
CHAIN = StructType([StructField("id", LONG), StructField("next", column(LONG))])


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(0, {"id": 7}), (100, {"id": 7}), (101, "Node stands within itself more than 100 times")],
)
def test_a_record_within_itself_is_passed_over(depth, expected):
    """Whatever no column wants is skipped, however often it nests, up to a limit."""
    ids = StructType([StructField("id", LONG)])
    message = b"\x0e\x02" * depth + b"\x0e\x00"
    assert outcome(datum_decoder(NODE, ids), message) == expected


def test_a_record_within_itself_is_read_as_deep_as_the_columns():
    """Columns end somewhere; what nests deeper is skipped."""
    inner = StructType([StructField("id", LONG)])
    two = StructType([StructField("id", LONG), StructField("next", inner)])
    assert outcome(datum_decoder(NODE, two), b"\x02\x02\x04\x02\x06\x00") == {
        "id": 1,
        "next": {"id": 2},
    }


SKIPPED = record(
    a={"type": "array", "items": "string"},
    m={"type": "map", "values": ["null", "double"]},
    e=ENUM,
    f=FIXED,
    u=["null", {"type": "record", "name": "I", "fields": [{"name": "x", "type": "float"}]}],
    c="long",
)


@pytest.mark.parametrize(
    "start",
    [
        written(SKIPPED, {"a": [], "m": {}, "e": "RED", "f": b"abc", "u": None, "c": 0})[:-1],
        written(SKIPPED, {"a": ["x", ""], "m": {"k": 1.5}, "e": "RED", "f": b"abc", "u": {"x": 1}, "c": 0})[:-1],
        long(-2) + long(3) + b"any" + b"\x00" + long(-1) + long(0) + b"\x00" + b"\x00abc\x00",
        b"\x00" + (long(-1) + long(0)) * 30 + b"\x00" + b"\x00abc\x00",
    ],
)  # fmt: skip
def test_fields_without_a_column_are_passed_over(start):
    """A block with its size in bytes is skipped without a look into it."""
    decoder = datum_decoder(SKIPPED, column(LONG))
    assert outcome(decoder, start + long(7)) == {"c": 7}


@pytest.mark.parametrize(
    ("start", "why"),
    [
        (b"\x00\x00\x04", "field 'e': there is no symbol 2 in an enum of 2"),
        (long(-1) + long(50), "field 'a': the block ends after 3 of 50 bytes"),
        (long(-1) + long(-1), "field 'a': the block has -1 bytes"),
    ],
)
def test_what_is_passed_over_must_be_sound(start, why):
    """A field that no column wants can still make a message unreadable."""
    decoder = datum_decoder(SKIPPED, column(LONG))
    assert outcome(decoder, start + b"\x02\x04\x06") == why


def test_null_where_no_null_may_be():
    """A NOT NULL column refuses a message with null, at any depth."""
    assert outcome(datum_decoder(record(["null", "long"]), required(LONG)), b"\x00") == (
        "field 'c' is NOT NULL, but Avro's null is written"
    )
    nullable = record({"type": "array", "items": ["null", "long"]})
    inside = column(ArrayType(LONG, containsNull=False))
    assert outcome(datum_decoder(nullable, inside), b"\x04\x02\x02\x00\x00") == (
        "field 'c[]' is NOT NULL, but Avro's null is written"
    )
    assert outcome(datum_decoder(nullable, inside), b"\x02\x02\x02\x00") == {"c": [1]}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"\x00abcd\x0e", {"c": 7}),
        (b"", "the message is empty"),
        (b"\x00ab", "the message ends within the 5 bytes before the datum"),
        (b"\x00abcd", "field 'c': the message ends within a number"),
    ],
)
def test_bytes_before_the_datum_are_skipped(message, expected):
    """A registry's header stands before the datum."""
    assert (
        outcome(datum_decoder(record("long"), column(LONG), prefix_length=5), message) == expected
    )


def test_a_datum_of_no_bytes():
    """It can stand behind a header; but the empty message is never a row."""
    nothing = record("null")
    assert outcome(datum_decoder(nothing, column(LONG), prefix_length=5), b"\x00abcd") == {
        "c": None
    }
    assert outcome(datum_decoder(nothing, column(LONG)), b"") == "the message is empty"


def test_a_single_value_is_the_only_column():
    """A key is often written as a plain string or long, without a record around it."""
    assert outcome(datum_decoder('"string"', column(TEXT)), b"\x04ab") == {"c": "ab"}
    assert outcome(datum_decoder(["null", "long"], column(LONG)), b"\x00") == {"c": None}


def test_a_signalling_nan_is_a_nan():
    """Also where a float is read as a double; numpy would warn of it."""
    decode = datum_decoder(record("float"), column(DoubleType())).decode
    decoded = decode([b"\x00\x00\x81\x7f"] * 100)
    assert repr(decoded.rows.column(0).to_pylist()) == repr([float("nan")] * 100)


def test_no_messages_are_no_rows():
    """An empty batch has the columns all the same."""
    decoded = datum_decoder(record("long"), column(LONG)).decode([])
    assert (decoded.rows.num_rows, decoded.rows.schema.names) == (0, ["c"])


def test_long_arrays_beside_short_ones():
    """Few long arrays among many short ones take the row path, and read the same."""
    decode = datum_decoder(record(ARRAY), column(ArrayType(LONG))).decode
    lengths = [3, 0, 2000, 1, 70, 2] + [1] * 100
    messages = [written(record(ARRAY), {"c": list(range(length))}) for length in lengths]
    rows = decode(messages).rows.to_pylist()
    assert [row["c"] for row in rows] == [list(range(length)) for length in lengths]
