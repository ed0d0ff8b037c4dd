"""The wire format: the kinds of fields and how each stands there; values read one by one, and written with their tags.

The kinds have the numbers that descriptors use. Source: ``FieldDescriptorProto.Type`` in descriptor.proto, and
https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts, Cells, constant, only, varints
from pyspark_upsert_kafka.formats.binary.numbers import varint

VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32 = range(6)
"""The wire types; groups, which have two of them, are not read."""

FIRST_TAG, LAST_TAG, TAG_BYTES = 8, 2**32 - 1, 5
"""Between which numbers a tag is, and how many bytes it takes at most."""

MORE = 0x80
"""The bit of a varint's byte that says that another byte follows."""

_LAST_SHIFT = 63
_SIZES = {FIXED64: 8, FIXED32: 4}


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


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and the place behind it. Raises IndexError."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & ~MORE) << shift
        if byte < MORE:
            return value, at
        shift += 7
        if shift > _LAST_SHIFT:
            raise IndexError


def read_length(data: bytes, at: int, wire: int) -> tuple[int, int]:
    """How long a value is, and where it begins. Raises IndexError."""
    if wire == LENGTH:
        return read_varint(data, at)
    if wire == VARINT:
        return read_varint(data, at)[1] - at, at
    return _SIZES.get(wire, 0), at


def behind(data: bytes, at: int, wire: int) -> int:
    """The place behind a value. Raises IndexError."""
    if wire in _SIZES:
        return at + _SIZES[wire]
    number, at = (data[at], at + 1) if data[at] < MORE else read_varint(data, at)
    return at + number if wire == LENGTH else at


EncodeValues = Callable[[bytes, pa.Array, np.ndarray], ByteParts]
"""Values with the tag before each, but nothing where not present."""


def tag_of(field: Any, wire: int) -> bytes:
    """The tag of a field in a wire type."""
    return varint(field.number << 3 | wire)


def with_tag(tag: bytes, values: Cells, present: np.ndarray) -> ByteParts:
    """Values with a tag before them, and nothing where not present."""
    return [only(cells, present) for cells in (constant(tag, len(present)), values)]


def with_length(tag: bytes, bodies: pa.LargeBinaryArray, present: np.ndarray) -> ByteParts:
    """Bytes with tag and length before them, and nothing where not present."""
    return [*with_tag(tag, varints(lengths_of(bodies)), present), bodies]


def lengths_of(bodies: pa.LargeBinaryArray) -> np.ndarray:
    """How many bytes each one has."""
    lengths: np.ndarray = pc.binary_length(bodies).fill_null(0).to_numpy()
    return lengths
