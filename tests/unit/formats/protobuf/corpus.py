"""Messages with a field of every kind, and strategies that make rows, messages and odd bytes of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf.message import Message
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
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
    TimestampType,
)

from tests.unit.formats.protobuf.codecs import Proto, columns

_BODY = """
package shop.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
enum Color { RED = 0; GREEN = 1; BLUE = 5; DARK = -3; }
message Leaf { OPTIONAL int64 id = 1; OPTIONAL string name = 2; optional int32 maybe = 3; }
message Everything {
  OPTIONAL bool bool = 1; OPTIONAL int32 int32 = 2; OPTIONAL sint32 sint32 = 3;
  OPTIONAL sfixed32 sfixed32 = 4; OPTIONAL uint32 uint32 = 5; OPTIONAL fixed32 fixed32 = 6;
  OPTIONAL int64 int64 = 7; OPTIONAL sint64 sint64 = 8; OPTIONAL sfixed64 sfixed64 = 9;
  OPTIONAL uint64 uint64 = 10; OPTIONAL fixed64 fixed64 = 11; OPTIONAL float float = 12;
  OPTIONAL double double = 13; OPTIONAL string string = 14; OPTIONAL bytes bytes = 15;
  OPTIONAL Color color = 16; OPTIONAL Leaf leaf = 17; OPTIONAL Everything inner = 18;
  optional int32 maybe_int = 19; optional string maybe_string = 20; optional Color maybe_color = 21;
  repeated sint64 packed = 22 [packed = true]; repeated int32 loose = 23 [packed = false];
  repeated double doubles = 24; repeated fixed32 fixeds = 25 [packed = true];
  repeated string strings = 26; repeated Leaf leaves = 27; repeated Color colors = 28;
  repeated bool bools = 29;
  map<string, int64> by_name = 30; map<int32, Leaf> by_number = 31; map<bool, Color> by_truth = 32;
  map<uint64, bytes> by_uint64 = 33;
  OPTIONAL google.protobuf.Timestamp at = 34; OPTIONAL google.protobuf.Duration took = 35;
  OPTIONAL google.protobuf.Int32Value wrapped = 36; repeated google.protobuf.Timestamp timestamps = 37;
  oneof choice { int32 a = 38; string b = 39; Leaf c = 40; }
}
"""
PROTO3 = 'syntax = "proto3";' + _BODY.replace("OPTIONAL ", "")
PROTO2 = 'syntax = "proto2";' + _BODY.replace("OPTIONAL", "optional")

EVERYTHING = {text[10:16]: Proto(text, "Everything") for text in (PROTO2, PROTO3)}
"""The message in both syntaxes, by the syntax."""

LEAF = columns(id=LongType(), name=StringType(), maybe=IntegerType())
UINT64 = DecimalType(20, 0)
LONG, STRING, INT = LongType(), StringType(), IntegerType()

KINDS: dict[str, list[DataType]] = {
    "bool": [BooleanType()],
    "int32": [INT, LONG, ShortType(), ByteType()],
    "sint32": [INT, LONG, ByteType()],
    "sfixed32": [INT, ShortType()],
    "uint32": [LONG, INT],
    "fixed32": [LONG, ByteType()],
    "int64": [LONG, INT],
    "sint64": [LONG, ShortType()],
    "sfixed64": [LONG, INT],
    "uint64": [UINT64, LONG],
    "fixed64": [UINT64, INT],
    "float": [FloatType()],
    "double": [DoubleType()],
    "string": [STRING],
    "bytes": [BinaryType()],
    "color": [STRING, INT, LONG, ByteType()],
    "leaf": [LEAF, columns(name=STRING), columns()],
    "inner": [
        columns(int32=INT, leaf=LEAF, loose=ArrayType(INT), c=LEAF, a=INT),
        columns(inner=columns(maybe_int=INT, strings=ArrayType(STRING))),
    ],
    "maybe_int": [INT, LONG],
    "maybe_string": [STRING],
    "maybe_color": [STRING, INT],
    "packed": [ArrayType(LONG), ArrayType(ByteType())],
    "loose": [ArrayType(INT), ArrayType(LONG)],
    "doubles": [ArrayType(DoubleType())],
    "fixeds": [ArrayType(LONG), ArrayType(INT)],
    "strings": [ArrayType(STRING)],
    "leaves": [ArrayType(LEAF), ArrayType(columns(maybe=INT))],
    "colors": [ArrayType(STRING), ArrayType(INT)],
    "bools": [ArrayType(BooleanType())],
    "by_name": [MapType(STRING, LONG)],
    "by_number": [MapType(INT, LEAF), MapType(LONG, columns(id=INT))],
    "by_truth": [MapType(BooleanType(), STRING), MapType(BooleanType(), INT)],
    "by_uint64": [MapType(UINT64, BinaryType()), MapType(LONG, BinaryType())],
    "at": [TimestampType(), columns(seconds=LONG, nanos=INT)],
    "took": [DayTimeIntervalType(), columns(seconds=LONG, nanos=INT)],
    "wrapped": [columns(value=INT)],
    "timestamps": [ArrayType(TimestampType())],
    "a": [INT],
    "b": [STRING],
    "c": [LEAF],
}
"""The types that a column of each field may have."""

WHOLE = columns(**{name: kinds[0] for name, kinds in KINDS.items()})
"""Every field as a column."""


@cache
def schemas(*, strict: bool = True) -> st.SearchStrategy[StructType]:
    """Some of the fields as columns, in any order; with ``strict`` some of them NOT NULL."""
    field = st.sampled_from(sorted(KINDS)).flatmap(
        lambda name: st.builds(
            StructField,
            st.just(name),
            st.sampled_from(KINDS[name]),
            st.integers(0, 9).map(bool) if strict else st.just(True),
        )
    )
    return st.lists(field, max_size=8, unique_by=lambda each: each.name).map(StructType)


BITS = {"int32": 32, "sint32": 32, "sfixed32": 32, "int64": 64, "sint64": 64, "sfixed64": 64}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@cache
def whole_numbers(first: int, last: int) -> st.SearchStrategy[int]:
    """Whole numbers, many of them where the length of a varint changes."""
    edges = {sign * (1 << bits) - off for bits in range(65) for off in (0, 1) for sign in (1, -1)}
    inside = sorted(edge for edge in edges if first <= edge <= last)
    return st.integers(first, last) | st.sampled_from(inside)


LEAVES: dict[int, st.SearchStrategy[Any]] = {
    1: st.floats(),
    2: st.floats(width=32),
    8: st.booleans(),
    9: TEXTS,
    12: st.binary(max_size=5),
    14: st.sampled_from([0, 1, 5, -3]),
    **dict.fromkeys((5, 15, 17), whole_numbers(-(2**31), 2**31 - 1)),
    **dict.fromkeys((3, 16, 18), whole_numbers(-(2**63), 2**63 - 1)),
    **dict.fromkeys((7, 13), whole_numbers(0, 2**32 - 1)),
    **dict.fromkeys((4, 6), whole_numbers(0, 2**64 - 1)),
}
"""Values of the runtime by ``FieldDescriptor.type``."""


_NUMBERS = [
    0,
    1,
    -1,
    63,
    64,
    -64,
    -65,
    127,
    128,
    2**31 - 1,
    -(2**31),
    2**31,
    2**32 - 1,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64 - 1,
]
_RANGES = {(5, 15, 17): (-(2**31), 2**31), (3, 16, 18): (-(2**63), 2**63), (7, 13): (0, 2**32), (4, 6): (0, 2**64)}  # fmt: skip
EXTREMES: dict[int, list[Any]] = {
    1: [0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf")],
    2: [0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf")],
    8: [False, True],
    9: ["", "a", "é😀", "x" * 127, "x" * 128, "\0"],
    12: [b"", b"\0", b"\xff", b"x" * 128],
    14: [0, 1, 5, -3],
    **{
        kind: [number for number in _NUMBERS if first <= number < end]
        for kinds, (first, end) in _RANGES.items()
        for kind in kinds
    },
}
"""The values of the runtime that are most likely to be written or read wrongly, by ``FieldDescriptor.type``."""


def extreme_messages(proto: Proto) -> list[Any]:
    """Messages of the runtime, each with such values in one field."""
    found = [proto.message(), *(m for f in proto.descriptor.fields for m in _extremes(proto, f))]
    for message in found:
        message.ClearField("inner")
    return found


def _extremes(proto: Proto, field: Any) -> list[Any]:
    name = field.name
    if field.message_type and field.message_type.GetOptions().map_entry:
        return _maps(proto, field)
    if field.message_type is None:
        some = EXTREMES[field.type]
        values = [[], some, *([value] for value in some)] if field.is_repeated else some
        return [proto.message(**{name: value}) for value in values]
    kind = proto.message.DESCRIPTOR.fields_by_name[name].message_type.full_name
    inner: list[dict[str, int]] = [{}]
    if kind.endswith(("Timestamp", "Duration")):
        inner += [{"seconds": 1, "nanos": 999_999_000}, {"seconds": -1}, {"nanos": 1_000}]
    return [
        proto.message(**{name: each})
        for each in ([inner, inner * 2] if field.is_repeated else inner)
    ]


def _maps(proto: Proto, field: Any) -> list[Any]:
    key_field, value_field = field.message_type.fields
    values = [{}] if value_field.message_type else EXTREMES[value_field.type]
    keys = EXTREMES[key_field.type]
    return [
        proto.message(**{field.name: {key: values[at % len(values)]}})
        for at, key in enumerate(keys)
    ]


@st.composite
def messages(draw: st.DrawFn, proto: Proto, fields: Any = None, depth: int = 2) -> Message:
    """Messages of the runtime with some fields set, those of the schema more often."""
    message = proto.message() if fields is None else fields
    names = [field.name for field in message.DESCRIPTOR.fields]
    for name in draw(st.lists(st.sampled_from(names), max_size=6, unique=True)):
        _set(draw, proto, message, message.DESCRIPTOR.fields_by_name[name], depth)
    return message


def _set(draw: st.DrawFn, proto: Proto, message: Any, field: Any, depth: int) -> None:
    value = getattr(message, field.name)
    if field.message_type and field.message_type.GetOptions().map_entry:
        key_field, value_field = field.message_type.fields
        for key in draw(st.lists(LEAVES[key_field.type], max_size=3)):
            if value_field.message_type:
                draw(messages(proto, value[key], depth - 1))
            else:
                value[key] = draw(LEAVES[value_field.type])
    elif field.is_repeated:
        for _ in range(draw(st.integers(0, 3))):
            if field.message_type:
                draw(messages(proto, value.add(), depth - 1))
            else:
                value.append(draw(LEAVES[field.type]))
    elif field.message_type:
        if depth:
            value.SetInParent()
            draw(messages(proto, value, depth - 1))
    else:
        setattr(message, field.name, draw(LEAVES[field.type]))


def varint(number: int) -> bytes:
    """A number as a varint."""
    groups = bytearray()
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


PAYLOADS = [
    *(varint(number) for number in (0, 1, 2, 5, 127, 128, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1)),
    b"\x81\x80\x80\x80\x80\x00a", b"\x80\x00", b"\x81\x80\x80\x00", b"\x81\x80\x80\x80\x80\x00", b"\xff" * 9 + b"\x7f",
    b"\xff" * 10, b"\xff" * 10 + b"\x01", b"\x80", b"", b"\0" * 4, b"\0" * 8, b"\xff" * 8,
    b"\x01a", b"\x01\xff", b"\x02\xc3\xa9", b"\x02\xc3", b"\x00", b"\x02\x08\x07", b"\x04\x08\x07\x08\x09",
    b"\x03\x12\x01a", b"\x03\x12\x01\xff", b"\x02\x0b\x0c", b"\x02\x08\x80", b"\x03\x18\x01\x02", b"\x05abc",
    b"\x04\x08\x01\x10\x05", b"\x08" + b"\0" * 8, b"\x04\x01\x02\x80\x01", b"\x02\x01\x80",
]  # fmt: skip


def odd_fields(proto: Proto) -> list[bytes]:
    """Each field of a message, and some of none, with each odd payload under each wire type, and with tags that are too long."""
    numbers = [*(field.number for field in proto.descriptor.fields), 0, 99, 2**29 - 1, 2**29]
    tags = [varint(number << 3 | wire) for number in numbers for wire in range(6)]
    long_tags = [
        tag[:-1] + bytes([tag[-1] | 0x80]) + b"\x80" * zeros + b"\x00"
        for tag in (b"\x10", b"\x38", b"\x72")
        for zeros in (0, 2, 3, 8)
    ]
    return [tag + payload for tag in (*tags, *long_tags) for payload in PAYLOADS]


@st.composite
def odd_bytes(draw: st.DrawFn, proto: Proto) -> bytes:
    """Pieces that look like fields, of this message or of none, with values that may fit them or not."""
    numbers = [field.number for field in proto.descriptor.fields]
    pieces = []
    for _ in range(draw(st.integers(1, 4))):
        number = draw(st.sampled_from([*numbers, 0, 99, 2**29 - 1, 2**29]))
        tag = varint(number << 3 | draw(st.sampled_from([0, 1, 2, 2, 3, 4, 5, 6])))
        zeros = draw(st.sampled_from([0] * 9 + [1, 3, 4]))
        if zeros:
            tag = tag[:-1] + bytes([tag[-1] | 0x80]) + b"\x80" * (zeros - 1) + b"\x00"
        pieces.append(tag + draw(st.sampled_from(PAYLOADS) | st.binary(max_size=4)))
    return b"".join(pieces)


@st.composite
def spoiled(draw: st.DrawFn, proto: Proto) -> bytes:
    """Messages, whole or cut off, with a bit flipped, another behind them, or odd bytes in them."""
    data = draw(messages(proto)).SerializePartialToString()
    at = draw(st.integers(0, len(data)))
    how = draw(st.integers(0, 5))
    if how == 1:
        return data[:at]
    if how == 2 and at:
        return data[: at - 1] + bytes([data[at - 1] ^ 1 << draw(st.integers(0, 7))]) + data[at:]
    if how == 3:
        return data + draw(messages(proto)).SerializePartialToString()
    if how == 4:
        return data + draw(odd_bytes(proto))
    if how == 5:
        inner = data + draw(odd_bytes(proto))
        return varint(18 << 3 | 2) + varint(len(inner)) + inner
    return data
