"""The kinds of fields, by the numbers that descriptors use, and how each stands on the wire.

Source: ``FieldDescriptorProto.Type`` in descriptor.proto, and
https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from enum import IntEnum

VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32 = range(6)
"""The wire types; groups, which have two of them, are not read."""


class Kind(IntEnum):
    """``FieldDescriptor.type``."""

    DOUBLE = 1
    FLOAT = 2
    INT64 = 3
    UINT64 = 4
    INT32 = 5
    FIXED64 = 6
    FIXED32 = 7
    BOOL = 8
    STRING = 9
    GROUP = 10
    MESSAGE = 11
    BYTES = 12
    UINT32 = 13
    ENUM = 14
    SFIXED32 = 15
    SFIXED64 = 16
    SINT32 = 17
    SINT64 = 18


ZIGZAG = {Kind.SINT32, Kind.SINT64}
INT32 = {Kind.INT32, Kind.SINT32, Kind.SFIXED32}
UINT32 = {Kind.UINT32, Kind.FIXED32}
INT64 = {Kind.INT64, Kind.SINT64, Kind.SFIXED64}
UINT64 = {Kind.UINT64, Kind.FIXED64}
INTEGERS = INT32 | UINT32 | INT64 | UINT64

_WIRE = {
    **dict.fromkeys((Kind.DOUBLE, Kind.FIXED64, Kind.SFIXED64), FIXED64),
    **dict.fromkeys((Kind.FLOAT, Kind.FIXED32, Kind.SFIXED32), FIXED32),
    **dict.fromkeys((Kind.STRING, Kind.BYTES, Kind.MESSAGE), LENGTH),
}


MEANING: dict[int, str] = {
    **dict.fromkeys(INT32 | {Kind.ENUM}, "i4"),
    **dict.fromkeys(UINT32, "u4"),
    **dict.fromkeys(INT64, "i8"),
    **dict.fromkeys(UINT64, "u8"),
    Kind.FLOAT: "f4",
    Kind.DOUBLE: "f8",
}
"""What a number of a kind is to numpy."""

SIZE = {kind: int(meaning[1]) for kind, meaning in MEANING.items()}
"""How many bytes that takes."""


def wire_type(kind: int) -> int:
    """The wire type of one value of a kind."""
    return _WIRE.get(Kind(kind), VARINT)


def bounds(kind: int) -> tuple[int, int]:
    """The smallest and the largest value of an integer kind; an enum is an ``int32``."""
    if kind in UINT32 | UINT64:
        return 0, 2**32 - 1 if kind in UINT32 else 2**64 - 1
    bits = 63 if kind in INT64 else 31
    return -(2**bits), 2**bits - 1
