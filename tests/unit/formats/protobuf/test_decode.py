"""Reading protobuf: what each field becomes, by both ways alike."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from google import protobuf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DayTimeIntervalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    TimestampType,
)

from tests.unit.formats.listed import good_rows
from tests.unit.formats.protobuf.codecs import Proto, columns, required, rows, seen
from tests.unit.formats.protobuf.corpus import EVERYTHING, LEAF, UINT64, WHOLE, varint

LONG, INT, STRING = LongType(), IntegerType(), StringType()
MANY = 130
"""So many equal messages take the vectorised path."""


def read(schema, message, syntax="proto3", **options: Any):
    """The row of a message, by the vectorised path and by the row path."""
    proto = EVERYTHING[syntax]
    data = message if isinstance(message, bytes) else proto.message(**message).SerializeToString()
    exact = proto.exactly(schema, **options).decode([data])
    whole = proto.decoder(schema, **options).decode([data] * MANY)
    assert seen(whole)[0] == seen(exact)[0] * MANY
    assert dict(whole.errors) == dict.fromkeys(range(MANY), exact.errors.get(0)) or not exact.errors
    return rows(exact)[0]


def why(schema, message, syntax="proto3", **options: Any):
    """Why a message is bad, as both ways have it."""
    proto = EVERYTHING[syntax]
    data = message if isinstance(message, bytes) else proto.message(**message).SerializeToString()
    good = proto.message().SerializeToString()
    decoded = proto.decoder(schema, **options).decode([good] * MANY + [data] + [good] * MANY)
    assert good_rows(decoded).num_rows == 2 * MANY
    (reason,) = proto.exactly(schema, **options).decode([data]).errors.values()
    assert decoded.errors == {MANY: reason}
    return reason


VALUES = [
    ("bool", BooleanType(), True, True),
    ("int32", INT, -1, -1),
    ("int32", ByteType(), -128, -128),
    ("sint32", LONG, -(2**31), -(2**31)),
    ("sfixed32", ShortType(), -(2**15), -(2**15)),
    ("uint32", LONG, 2**32 - 1, 2**32 - 1),
    ("uint32", INT, 2**31 - 1, 2**31 - 1),
    ("fixed32", LONG, 2**31, 2**31),
    ("int64", LONG, -(2**63), -(2**63)),
    ("sint64", LONG, 2**63 - 1, 2**63 - 1),
    ("sfixed64", INT, -5, -5),
    ("uint64", UINT64, 2**64 - 1, Decimal(2**64 - 1)),
    ("uint64", LONG, 2**63 - 1, 2**63 - 1),
    ("fixed64", UINT64, 2**63, Decimal(2**63)),
    ("float", FloatType(), 0.5, 0.5),
    ("double", DoubleType(), -0.1, -0.1),
    ("string", STRING, "é😀\0", "é😀\0"),
    ("bytes", BinaryType(), b"\xff\0", b"\xff\0"),
    ("color", STRING, "BLUE", "BLUE"),
    ("color", STRING, -3, "DARK"),
    ("color", INT, "BLUE", 5),
    ("color", ByteType(), "DARK", -3),
    ("leaf", LEAF, {"id": 3, "name": "x"}, {"id": 3, "name": "x", "maybe": None}),
    ("leaf", columns(name=STRING), {"id": 3, "name": "x"}, {"name": "x"}),
    ("leaf", columns(), {"id": 3}, {}),
    ("wrapped", columns(value=INT), {"value": 7}, {"value": 7}),
    ("packed", ArrayType(LONG), [1, -(2**63), 0], [1, -(2**63), 0]),
    ("loose", ArrayType(INT), [1, -1], [1, -1]),
    ("doubles", ArrayType(DoubleType()), [0.5, -0.0], [0.5, -0.0]),
    ("strings", ArrayType(STRING), ["a", "", "b"], ["a", "", "b"]),
    ("leaves", ArrayType(columns(id=LONG)), [{"id": 1}, {}], [{"id": 1}, {"id": 0}]),
    ("colors", ArrayType(STRING), ["GREEN", "RED"], ["GREEN", "RED"]),
    ("by_name", MapType(STRING, LONG), {"b": 1, "a": 2, "é": 0}, [("a", 2), ("b", 1), ("é", 0)]),
    ("by_truth", MapType(BooleanType(), STRING), {True: 1, False: 0}, [(False, "RED"), (True, "GREEN")]),
    ("at", columns(seconds=LONG, nanos=INT), {"seconds": -1, "nanos": 1}, {"seconds": -1, "nanos": 1}),
    ("at", TimestampType(), {"seconds": -1, "nanos": 1999}, datetime(1969, 12, 31, 23, 59, 59, 1, timezone.utc)),
    ("took", DayTimeIntervalType(), {"seconds": -1, "nanos": -1999}, timedelta(0, -1, -1)),
    ("took", DayTimeIntervalType(), {"nanos": 999}, timedelta(0)),
    ("timestamps", ArrayType(TimestampType()), [{"seconds": 1}], [datetime(1970, 1, 1, 0, 0, 1, 0, timezone.utc)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "given", "wanted"), VALUES, ids=str)
def test_values(name, kind, given, wanted):
    """A field's value as its column has it; the entries of a map in the order of their keys."""
    assert read(columns(**{name: kind}), {name: given}) == (wanted,)


def test_a_map_of_messages():
    """Its values follow the rules of a message's fields."""
    message = EVERYTHING["proto3"].message()
    message.by_number[2].id = 1
    message.by_number[-1].SetInParent()
    schema = columns(by_number=MapType(INT, columns(id=LONG, maybe=INT)))
    wanted = [(-1, {"id": 0, "maybe": None}), (2, {"id": 1, "maybe": None})]
    assert read(schema, message.SerializeToString()) == (wanted,)


ABSENT = [
    ("int64", LONG, "proto3", 0, 0),
    ("string", STRING, "proto3", "", ""),
    ("color", STRING, "proto3", "RED", "RED"),
    ("maybe_int", INT, "proto3", None, 0),
    ("maybe_color", STRING, "proto3", None, "RED"),
    ("leaf", columns(id=LONG, maybe=INT), "proto3", None, {"id": 0, "maybe": 0}),
    ("at", TimestampType(), "proto3", None, datetime(1970, 1, 1, tzinfo=timezone.utc)),
    ("loose", ArrayType(INT), "proto3", None, []),
    ("by_name", MapType(STRING, LONG), "proto3", None, []),
    ("a", INT, "proto3", None, 0),
    ("int64", LONG, "proto2", None, 0),
    ("string", STRING, "proto2", None, ""),
    ("color", STRING, "proto2", None, "RED"),
    ("loose", ArrayType(INT), "proto2", None, []),
]


@pytest.mark.parametrize(("name", "kind", "syntax", "null", "default"), ABSENT, ids=str)
def test_absent_fields(name, kind, syntax, null, default):
    """NULL where absence shows, else the default; always the default with read-default-values.

    A zero-byte message is such a row and no error.
    """
    schema = columns(**{name: kind})
    assert read(schema, b"", syntax) == (null,)
    assert read(schema, b"", syntax, read_default_values=True) == (default,)


DEFAULTS = Proto(
    'syntax = "proto2"; enum E { A = 2; B = 3; } message M { optional int32 i = 1 [default = 300];'
    ' optional string s = 2 [default = "x"]; optional E e = 3 [default = B]; optional E f = 4;'
    " optional bool b = 5 [default = true]; optional double d = 6 [default = inf]; optional bytes z = 7"
    ' [default = "\\377"]; optional uint64 u = 8 [default = 18446744073709551615]; }',
    "M",
)


def test_declared_defaults():
    """proto2 may declare defaults, and an enum need not begin with 0."""
    schema = columns(
        i=INT, s=STRING, e=STRING, f=INT, b=BooleanType(), d=DoubleType(), z=BinaryType(), u=UINT64
    )
    wanted = (300, "x", "B", 2, True, float("inf"), b"\xff", Decimal(2**64 - 1))
    given = DEFAULTS.message(i=1, s="", e="A", f="B", b=False, d=0, z=b"", u=0)
    many = [b"", given.SerializeToString()] * MANY
    set_to = (1, "", "A", 3, False, 0.0, b"", Decimal(0))
    assert (
        rows(DEFAULTS.decoder(schema, read_default_values=True).decode(many))
        == [wanted, set_to] * MANY
    )
    assert rows(DEFAULTS.decoder(schema).decode(many)) == [(None,) * 8, set_to] * MANY
    assert rows(DEFAULTS.exactly(schema, read_default_values=True).decode(many[:2])) == [
        wanted,
        set_to,
    ]


def test_a_default_that_its_column_has_no_room_for_is_a_bad_message():
    """300 in a TINYINT."""
    decoder = DEFAULTS.decoder(columns(i=ByteType()), read_default_values=True)
    decoded = decoder.decode([b"", b"\x08\x07"] * MANY)
    assert rows_of(decoded) == [{"i": 7}] * MANY
    assert decoded.errors[0] == "field 'i': 300 does not fit into TINYINT"


def rows_of(decoded):
    """The rows of the good messages."""
    return good_rows(decoded).to_pylist()


NOT_NULL = [
    ("leaf", columns(id=LONG), "field 'leaf' is NOT NULL, but is missing"),
    ("maybe_int", INT, "field 'maybe_int' is NOT NULL, but is missing"),
]


@pytest.mark.parametrize(("name", "kind", "said"), NOT_NULL, ids=str)
def test_not_null(name, kind, said):
    """An absent field is a bad message where the column is NOT NULL."""
    proto = EVERYTHING["proto3"]
    decoded = proto.decoder(required(**{name: kind})).decode([b""] * MANY)
    assert decoded.errors == dict.fromkeys(range(MANY), said)


def test_not_null_arrays_and_maps_are_empty():
    """They cannot be absent; only where NULL is possible it stands for an empty one, as in Flink."""
    schema = required(loose=ArrayType(INT), by_name=MapType(STRING, LONG))
    assert read(schema, b"") == ([], [])


def test_not_null_inside_an_absent_struct():
    """There is no such field in that row."""
    inside = columns(leaf=required(maybe=INT))
    assert read(inside, b"") == (None,)
    bad = EVERYTHING["proto3"].message(leaf={"id": 1}).SerializeToString()
    assert why(inside, bad) == "field 'leaf.maybe' is NOT NULL, but is missing"


BAD = [
    ({"int32": 128}, columns(int32=ByteType()), "field 'int32': 128 does not fit into TINYINT"),
    ({"int32": -129}, columns(int32=ByteType()), "field 'int32': -129 does not fit into TINYINT"),
    (b"\x38" + b"\xff" * 10 + b"\x38\x01", columns(int64=LONG), "Error parsing message"),
    ({"uint32": 2**31}, columns(uint32=INT), "field 'uint32': 2147483648 does not fit into INT"),
    ({"uint64": 2**63}, columns(uint64=LONG), "9223372036854775808 does not fit into BIGINT"),
    ({"packed": [1, 128]}, columns(packed=ArrayType(ByteType())), "field 'packed[]': 128 does not fit"),
    ({"at": {"nanos": -1}}, columns(at=TimestampType()), "field 'at': 0 seconds and -1 nanoseconds"),
    ({"at": {"seconds": 253402300800}}, columns(at=TimestampType()), "a year from 0001 to 9999"),
    ({"took": {"seconds": 1, "nanos": -1}}, columns(took=DayTimeIntervalType()), "are not valid"),
    (b"\x72\x01\xff", columns(string=STRING), "Error parsing message"),
    (b"\x72\x01\xff", columns(), "Error parsing message"),
    (b"\x72\x02a", columns(), "Error parsing message"),
    (b"\x08", columns(), "Error parsing message"),
    (b"\x0c", columns(), "Error parsing message"),
    (b"\x00\x01", columns(), "Error parsing message"),
    (b"\x8a\x01\x02\x08\x80", columns(), "Error parsing message"),
    (b"\xb2\x01\x01\x80", columns(), "Error parsing message"),
    (b"\xb2\x01\x02\x01\x80", columns(packed=ArrayType(LONG)), "Error parsing message"),
    (b"\xb2\x01\x0b" + b"\xff" * 10 + b"\x01", columns(packed=ArrayType(LONG)), "Error parsing"),
    (b"\xca\x01\x05\x01\x02\x03\x04\x05", columns(fixeds=ArrayType(LONG)), "Error parsing message"),
    (b"\xca\x01\x03\x01\x02\x03", columns(), "Error parsing message"),
    (b"x", columns(), "Error parsing message"),
    (b"\xb8\x80\x80\x80\x80\x00\x07", columns(), "Error parsing message"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "schema", "said"), BAD, ids=str)
def test_bad_messages(message, schema, said):
    """A bad message is told with the reason; those beside it are read. What is no column counts too."""
    assert said in why(schema, message)


def test_a_length_in_too_many_bytes_is_what_the_runtime_takes_it_for():
    """Before 7.34 it is read, and that by both ways."""
    message = b"\x72\x81\x80\x80\x80\x80\x00a"
    if tuple(map(int, protobuf.__version__.split(".")[:2])) < (7, 34):
        assert read(columns(string=STRING), message) == ("a",)
    else:
        assert "Error parsing message" in why(columns(), message)


def test_a_string_of_proto2_that_is_not_utf8_is_bad_where_it_is_a_column():
    """The runtime lets proto2 pass; a STRING cannot hold it."""
    message = b"\x72\x01\xff\x38\x07"
    assert "field 'string' is a string, but not UTF-8" in why(
        columns(string=STRING), message, "proto2"
    )
    assert read(columns(int64=LONG), message, "proto2") == (7,)


ODD = [
    (b"\x38\x01\x38\x02", columns(int64=LONG), (2,)),
    (b"\x72\x01a\x72\x01b", columns(string=STRING), ("b",)),
    (b"\x8a\x01\x02\x08\x07\x8a\x01\x03\x12\x01x", columns(leaf=columns(id=LONG, name=STRING)), ({"id": 7, "name": "x"},)),
    (b"\xb0\x02\x01\xba\x02\x01x", columns(a=INT, b=STRING), (None, "x")),
    (b"\xb0\x02\x01\xba\x02\x01x", columns(a=INT), (None,)),
    (b"\xf2\x01\x05\x0a\x01a\x10\x01\xf2\x01\x05\x0a\x01a\x10\x02", columns(by_name=MapType(STRING, LONG)), ([("a", 2)],)),
    (b"\xf2\x01\x00", columns(by_name=MapType(STRING, LONG)), ([("", 0)],)),
    (b"\xb0\x01\x02\xb2\x01\x02\x04\x06\xb0\x01\x08", columns(packed=ArrayType(LONG)), ([1, 2, 3, 4],)),
    (b"\xba\x01\x02\x01\x02\xb8\x01\x03", columns(loose=ArrayType(INT)), ([1, 2, 3],)),
    (b"\xb2\x01\x00", columns(packed=ArrayType(LONG)), (None,)),
    (b"\x98\x06\x01\xa2\x06\x01x\xa9\x06" + b"x" * 8 + b"\xb5\x06xxxx\x38\x07", columns(int64=LONG), (7,)),
    (b"\x9b\x06\x08\x01\x9c\x06\x38\x07", columns(int64=LONG), (7,)),
    (b"\x39" + b"x" * 8, columns(int64=LONG), (0,)),
    (b"\xb8\x80\x80\x80\x00\x87\x80\x80\x00", columns(int64=LONG), (7,)),
    (b"\x80\x01\x07", columns(color=STRING), ("7",)),
    (b"\x80\x01\x07", columns(color=INT), (7,)),
]  # fmt: skip


@pytest.mark.parametrize(("message", "schema", "wanted"), ODD, ids=str)
def test_odd_messages(message, schema, wanted):
    """What the wire format allows: values again, merged messages, packed or not, unknown fields."""
    assert read(schema, message) == wanted


def test_a_closed_enum_has_no_other_numbers():
    """In proto2 an unknown number is an unknown field."""
    assert read(columns(color=STRING), b"\x80\x01\x07", "proto2") == (None,)


def test_a_message_may_nest_to_the_limit_of_the_runtime_only():
    """A bad message and no crash, whether the field is a column or not."""
    nested = b""
    for _ in range(5000):
        nested = b"\x92\x01" + varint(len(nested)) + nested
    schema = columns(inner=columns(inner=columns(int32=INT)))
    assert "Error parsing message" in why(schema, nested)
    assert "Error parsing message" in why(columns(), nested)


def test_a_message_in_one_of_its_own_kind_that_is_no_column():
    """It could go on for ever, so it is left to the row path."""
    proto = EVERYTHING["proto3"]
    many = [proto.message(inner={"int32": 1}, int64=7).SerializeToString(), b"\x38\x07"]
    assert proto.vectorised(columns(int64=LONG), many)[1] == [0]
    assert read(columns(int64=LONG), many[0]) == (7,)


def test_long_repeated_fields_of_a_few_messages():
    """A message with far more elements than the others does not hold them up: it is walked through by itself."""
    proto, schema = EVERYTHING["proto3"], columns(loose=ArrayType(INT))
    many = [proto.message(loose=[n]).SerializeToString() for n in range(MANY)]
    many[5] = proto.message(loose=range(5000)).SerializeToString()
    wanted = [([n],) for n in range(MANY)]
    wanted[5] = (list(range(5000)),)
    assert rows(proto.decoder(schema).decode(many)) == wanted
    assert proto.vectorised(schema, many)[1] == []


def test_messages_too_large_for_one_column_take_the_row_path(monkeypatch):
    """Arrow counts bytes in 31 bits."""
    monkeypatch.setattr("pyspark_upsert_kafka.formats.protobuf.vectorised_path.MOST", 1)
    assert read(columns(int64=LONG), {"int64": 7}) == (7,)


REQUIRED = Proto(
    'syntax = "proto2"; message M { message P { required int64 id = 1; } required int64 id = 1;'
    " optional P part = 2; optional int64 n = 3; }",
    "M",
)


@pytest.mark.parametrize(
    ("message", "said"),
    [(b"\x18\x07", "id"), (b"\x08\x01\x12\x00\x18\x07", "part.id"), (b"\x12\x00", "id, part.id")],
)
def test_a_required_field_must_be_there(message, said):
    """As Java's parser has it, whether it is a column or not."""
    good = REQUIRED.message(id=1, n=7).SerializeToString()
    decoded = REQUIRED.decoder(columns(n=LONG)).decode([good] * MANY + [message])
    assert decoded.errors == {MANY: f"required fields are missing: {said}"}
    assert rows_of(decoded) == [{"n": 7}] * MANY


def test_ignore_parse_errors_passes_over_a_bad_message():
    """As a whole: Flink's PbRowDataDeserializationSchema gives no row for it."""
    good = EVERYTHING["proto3"].message(int64=7).SerializeToString()
    decoder = EVERYTHING["proto3"].decoder(columns(int64=LONG), ignore_parse_errors=True)
    decoded = decoder.decode([good, b"x"] * MANY)
    assert decoded.skipped == frozenset(range(1, 2 * MANY, 2))
    assert rows(decoded) == [(7,)] * MANY


EXTENDED = Proto(
    'syntax = "proto2"; message M { optional int64 id = 1; extensions 100 to 200; }'
    " extend M { optional M more = 100; }",
    "M",
)


def test_extensions_are_no_columns():
    """But the runtime reads those that it knows, so a bad one is a bad message."""
    good, bad = b"\x08\x07\xa2\x06\x02\x08\x01", b"\x08\x07\xa2\x06\x01\x08"
    decoded = EXTENDED.decoder(columns(id=LONG)).decode([good, bad] * MANY)
    assert rows_of(decoded) == [{"id": 7}] * MANY
    assert list(decoded.errors) == list(range(1, 2 * MANY, 2))


def test_a_map_key_of_proto2_that_is_not_utf8():
    """The runtime lets it pass as it does a string; it is a bad message and no crash."""
    message = b"\xf2\x01\x05\x0a\x01\xff\x10\x01"
    schema = columns(by_name=MapType(STRING, LONG))
    assert "field 'by_name' has a string that is not UTF-8" in why(schema, message, "proto2")


def test_an_entry_of_a_map_with_an_unknown_field():
    """To the runtime the whole entry is unknown then; both ways agree."""
    message = b"\xf2\x01\x07\x0a\x01a\x10\x01\x18\x05\xf2\x01\x05\x0a\x01b\x10\x02"
    assert read(columns(by_name=MapType(STRING, LONG)), message) == ([("b", 2)],)


TWICE = [
    b"\x72\x01\xff\x72\x01a",  # 14: a string
    b"\x8a\x01\x06\x12\x01\xff\x12\x01a",  # 17: a message with one
    b"\xda\x01\x06\x12\x01\xff\x12\x01a",  # 27: the same, repeated
    b"\xf2\x01\x08\x0a\x01\xff\x0a\x01a\x10\x01",  # 30: the key of a map
    b"\xba\x02\x01\xff\xba\x02\x01a",  # 39: in a oneof
]


@pytest.mark.parametrize("message", TWICE, ids=["string", "message", "repeated", "key", "oneof"])
@pytest.mark.parametrize(
    "schema", [WHOLE, columns(), columns(leaf=columns(id=LONG))], ids=["all", "none", "part"]
)
def test_a_string_that_occurs_twice(message, schema):
    """The last one counts; but proto3 wants UTF-8 of each, proto2 of what is read."""
    assert "Error parsing message" in why(schema, message, "proto3")
    if schema is not WHOLE:
        read(schema, message, "proto2")
