"""Writing protobuf: the bytes are those that the runtime writes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
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
    StringType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import EncodeError, SchemaError
from tests.unit.formats.protobuf.codecs import Proto, batch, columns
from tests.unit.formats.protobuf.corpus import EVERYTHING, LEAF, UINT64

LONG, INT, STRING = LongType(), IntegerType(), StringType()


def written(schema, *rows, syntax="proto3", **options):
    """The messages of some rows."""
    return EVERYTHING[syntax].encoder(schema, **options).encode(batch(schema, *rows))


def runtime(syntax="proto3", **fields):
    """What the runtime writes."""
    return EVERYTHING[syntax].message(**fields).SerializeToString(deterministic=True)


VALUES = [
    ("bool", BooleanType(), True, True),
    *(("int32", INT, value, value) for value in (0, 1, 127, 128, -1, 2**31 - 1, -(2**31))),
    ("int32", ByteType(), -128, -128),
    ("int32", LONG, -(2**31), -(2**31)),
    ("sint32", INT, -(2**31), -(2**31)),
    ("sfixed32", INT, -5, -5),
    ("uint32", LONG, 2**32 - 1, 2**32 - 1),
    ("fixed32", LONG, 2**32 - 1, 2**32 - 1),
    *(("int64", LONG, value, value) for value in (2**7, 2**14, 2**56, 2**63 - 1, -(2**63))),
    ("sint64", LONG, -(2**63), -(2**63)),
    ("sfixed64", LONG, -1, -1),
    ("uint64", UINT64, Decimal(2**64 - 1), 2**64 - 1),
    ("uint64", LONG, 2**63 - 1, 2**63 - 1),
    ("fixed64", UINT64, Decimal(2**63), 2**63),
    ("float", FloatType(), 0.1, 0.1),
    ("double", DoubleType(), -0.0, -0.0),
    ("double", DoubleType(), float("nan"), float("nan")),
    ("string", STRING, "é😀\0", "é😀\0"),
    ("string", STRING, "x" * 200, "x" * 200),
    ("bytes", BinaryType(), b"\xff\0", b"\xff\0"),
    ("color", STRING, "DARK", "DARK"),
    ("leaf", LEAF, {"id": 3, "name": "x", "maybe": None}, {"id": 3, "name": "x"}),
    ("leaf", LEAF, {"id": None, "name": None, "maybe": None}, {}),
    ("leaf", columns(), {}, {}),
    ("wrapped", columns(value=INT), {"value": 7}, {"value": 7}),
    ("inner", columns(inner=columns(int32=INT)), {"inner": {"int32": 1}}, {"inner": {"int32": 1}}),
    ("packed", ArrayType(LONG), [1, -(2**63), 0], [1, -(2**63), 0]),
    ("packed", ArrayType(LONG), [], []),
    ("loose", ArrayType(INT), [1, -1, 0], [1, -1, 0]),
    ("doubles", ArrayType(DoubleType()), [0.5, 0.0], [0.5, 0.0]),
    ("fixeds", ArrayType(LONG), [1, 2**32 - 1], [1, 2**32 - 1]),
    ("strings", ArrayType(STRING), ["a", "", "b"], ["a", "", "b"]),
    ("bools", ArrayType(BooleanType()), [True, False], [True, False]),
    ("leaves", ArrayType(LEAF), [{"id": 1, "name": None, "maybe": 0}], [{"id": 1, "maybe": 0}]),
    ("by_name", MapType(STRING, LONG), [("a", 0)], {"a": 0}),
    ("by_truth", MapType(BooleanType(), STRING), [(True, "RED")], {True: 0}),
    ("by_uint64", MapType(UINT64, BinaryType()), [(Decimal(2**64 - 1), b"x")], {2**64 - 1: b"x"}),
    ("at", TimestampType(), datetime(1969, 12, 31, 23, 59, 59, 1, timezone.utc), {"seconds": -1, "nanos": 1000}),
    ("at", TimestampType(), datetime(1970, 1, 1, tzinfo=timezone.utc), {}),
    ("took", DayTimeIntervalType(), timedelta(0, -1, -1), {"seconds": -1, "nanos": -1000}),
    ("took", columns(seconds=LONG, nanos=INT), {"seconds": 1, "nanos": 2}, {"seconds": 1, "nanos": 2}),
    ("a", INT, 0, 0),
    ("maybe_string", STRING, "", ""),
]  # fmt: skip


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize(("name", "kind", "given", "wanted"), VALUES, ids=str)
def test_values(name, kind, given, wanted, syntax):
    """A column's value as the runtime writes the field's; NULL leaves it out."""
    schema = columns(**{name: kind})
    wanted = runtime(syntax, **{name: wanted})
    assert written(schema, (given,), (None,), (given,), syntax=syntax) == [wanted, b"", wanted]


def test_fields_stand_in_the_order_of_their_numbers():
    """Whatever the order of the columns."""
    schema = columns(string=STRING, int64=LONG, bool=BooleanType())
    wanted = runtime(bool=True, int64=7, string="x")
    assert written(schema, ("x", 7, True)) == [wanted]


def test_a_row_without_columns_is_an_empty_message():
    """Which reads back as a row of defaults."""
    assert written(columns(), (), ()) == [b"", b""]


def test_equal_maps_give_equal_bytes():
    """Entries are written in the order of their keys."""
    schema = columns(by_number=MapType(INT, LEAF))
    one, two = ((key, {"id": key, "name": "", "maybe": None}) for key in (-1, 10))
    first, second, alone, last = written(schema, ([one, two],), ([two, one],), ([one],), ([two],))
    assert first == second == alone + last


NULLS = [
    ("loose", ArrayType(INT), [1, None], [1, 0]),
    ("strings", ArrayType(STRING), [None, "a"], ["none", "a"]),
    ("leaves", ArrayType(LEAF), [None], [{}]),
    ("colors", ArrayType(STRING), [None, "BLUE"], ["RED", "BLUE"]),
    ("colors", ArrayType(INT), [None], ["RED"]),
    ("bools", ArrayType(BooleanType()), [None], [False]),
    ("timestamps", ArrayType(TimestampType()), [None], [{}]),
    ("by_name", MapType(STRING, LONG), [("a", None)], {"a": 0}),
    ("by_truth", MapType(BooleanType(), STRING), [(True, None)], {True: "RED"}),
    ("by_uint64", MapType(LONG, BinaryType()), [(1, None)], {1: b""}),
]


@pytest.mark.parametrize(("name", "kind", "given", "wanted"), NULLS, ids=str)
def test_null_elements(name, kind, given, wanted):
    """Flink's: the type's default, the first value of an enum, and for strings what the option says."""
    schema = columns(**{name: kind})
    wanted = [runtime(**{name: wanted})]
    assert written(schema, (given,), write_null_string_literal="none") == wanted


def test_null_elements_of_an_enum_without_zero():
    """The first value, not 0."""
    text = 'syntax = "proto2"; enum E { A = 2; B = 3; } message M { repeated E e = 1; }'
    proto, schema = Proto(text, "M"), columns(e=ArrayType(STRING))
    wanted = proto.message(e=["A", "B"]).SerializeToString()
    assert proto.encoder(schema).encode(batch(schema, ([None, "B"],))) == [wanted]


def test_the_last_column_of_a_oneof_stays():
    """Of those that are not NULL, in the order of the columns, as Flink sets one after the other."""
    schema = columns(b=STRING, c=LEAF, a=INT)
    leaf = {"id": 1, "name": "", "maybe": None}
    assert written(schema, ("x", leaf, None), ("x", leaf, 0), ("x", None, None)) == [
        runtime(c={"id": 1}),
        runtime(a=0),
        runtime(b="x"),
    ]


UNFIT = [
    ("int32", LONG, 2**31, "2147483648 does not fit into int32"),
    ("uint32", INT, -1, "-1 does not fit into uint32"),
    ("uint64", LONG, -1, "-1 does not fit into uint64"),
    ("uint64", UINT64, Decimal(2**64), "18446744073709551616 does not fit into uint64"),
    ("fixed64", UINT64, Decimal(-1), "-1 does not fit into fixed64"),
    ("color", STRING, "PINK", "'PINK' is no value of enum 'shop.v1.Color': RED, GREEN, BLUE, DARK"),
    ("color", LONG, 2**31, "does not fit into enum"),
    ("took", DayTimeIntervalType(), timedelta(days=3_700_000), "at most 10,000 years"),
]


@pytest.mark.parametrize(("name", "kind", "given", "said"), UNFIT, ids=str)
def test_a_value_that_does_not_fit_is_refused(name, kind, given, said):
    """With the column; nothing wraps, and no unknown name becomes the first value."""
    with pytest.raises(EncodeError) as error:
        written(columns(**{name: kind}), (None,), (given,))
    assert error.value.column == name
    assert said in error.value.reason


def test_the_column_of_an_unfit_value_inside_others_is_named():
    """By its path."""
    schema = columns(leaves=ArrayType(columns(maybe=LONG)))
    with pytest.raises(EncodeError) as error:
        written(schema, ([{"maybe": 1}, {"maybe": 2**31}],))
    assert error.value.column == "leaves[].maybe"


@pytest.mark.parametrize(("kind", "value"), [(STRING, "7"), (STRING, "-7"), (INT, 7)])
def test_an_open_enum_takes_any_number(kind, value):
    """In proto3; in a STRING it is a text of digits, as such numbers are read."""
    assert written(columns(color=kind), (value,)) == [runtime(color=int(value))]


@pytest.mark.parametrize("kind", [STRING, INT])
def test_a_closed_enum_takes_no_other_number(kind):
    """In proto2; Flink writes the first value, the runtime refuses."""
    with pytest.raises(EncodeError, match=r"7'? is no value of enum"):
        written(columns(color=kind), ("7" if kind == STRING else 7,), syntax="proto2")


REQUIRED = Proto(
    'syntax = "proto2"; message M { message P { required int64 id = 1; } required int64 id = 1;'
    " optional P part = 2; repeated P parts = 3; }",
    "M",
)
PART = columns(id=LONG)


def test_a_required_field_needs_a_column():
    """Said when planned."""
    with pytest.raises(SchemaError, match=r"Field 'part.id' of protobuf message 'M.P' is required"):
        REQUIRED.encoder(columns(id=LONG, part=columns()))


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ((None, None, []), "id"),
        ((1, {"id": None}, []), "part.id"),
        ((1, None, [None]), "parts[].id"),
    ],
)
def test_a_required_field_needs_a_value(row, column):
    """But not where the message that it stands in is NULL."""
    schema = columns(id=LONG, part=PART, parts=ArrayType(PART))
    encode = REQUIRED.encoder(schema).encode
    assert encode(batch(schema, (1, None, None))) == [b"\x08\x01"]
    with pytest.raises(EncodeError) as error:
        encode(batch(schema, row))
    assert (error.value.column, error.value.reason) == (
        column,
        "the field is required, but the value is NULL",
    )


def test_high_field_numbers():
    """Tags of up to five bytes."""
    text = 'syntax = "proto3"; message M { int64 a = 16; int64 b = 2048; repeated string c = 536870911; }'
    proto = Proto(text, "M")
    schema = columns(a=LONG, b=LONG, c=ArrayType(STRING))
    message = proto.message(a=1, b=2, c=["x", "y"]).SerializeToString()
    assert proto.encoder(schema).encode(batch(schema, (1, 2, ["x", "y"]))) == [message]
    assert proto.decoder(schema).decode([message] * 199).rows.to_pylist()[198] == {
        "a": 1,
        "b": 2,
        "c": ["x", "y"],
    }
