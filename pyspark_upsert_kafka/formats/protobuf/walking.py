"""One message walked through: where the values of each field stand."""

from __future__ import annotations

from pyspark_upsert_kafka.formats.protobuf.kinds import FIXED32, FIXED64, LENGTH, VARINT
from pyspark_upsert_kafka.formats.protobuf.layout import Layout

FIRST_TAG, LAST_TAG, TAG_BYTES = 8, 2**32 - 1, 5
"""Between which numbers a tag is, and how many bytes it takes at most."""

_MORE = 0x80
_LAST_SHIFT = 63
_SIZES = {FIXED64: 8, FIXED32: 4}


def values_in(data: bytes, tag: int, layout: Layout) -> dict[int, list[int]] | None:
    """By the tags of fields, where their values begin; None = it is a message for the row path.

    Values of unknown fields are found too, by their wire types, for their lengths to be checked.

    Args:
        data: What stands behind a tag, to the end of the message.
        tag: The tag.
        layout: What the message may hold.
    """
    found: dict[int, list[int]] = {}
    known, at, end = layout.by_tag, 0, len(data)
    try:
        while True:
            place = known.get(tag)
            if place is None and not layout.may_skip(tag):
                return None
            places = found.setdefault(tag & 7 if place is None else tag, [])
            if places and place is not None and place not in layout.repeated:
                return None
            places.append(at)
            at = _behind(data, at, tag & 7)
            if at >= end:
                break
            begin, tag = at, data[at]
            at += 1
            if tag >= _MORE:
                tag, at = varint(data, begin)
            if not FIRST_TAG <= tag <= LAST_TAG or at - begin > TAG_BYTES:
                return None
    except IndexError:
        return None
    # Numbers that stand side by side and others of the same field: their order would be lost.
    of_fields = [known[each] for each in found if each in known]
    return None if at > end or len({*of_fields}) < len(of_fields) else found


def _behind(data: bytes, at: int, wire: int) -> int:
    """What stands behind a value. Raises IndexError."""
    if wire in _SIZES:
        return at + _SIZES[wire]
    number, at = (data[at], at + 1) if data[at] < _MORE else varint(data, at)
    return at + number if wire == LENGTH else at


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and the place behind it. Raises IndexError."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & ~_MORE) << shift
        if byte < _MORE:
            return value, at
        shift += 7
        if shift > _LAST_SHIFT:
            raise IndexError


def length(data: bytes, at: int, wire: int) -> tuple[int, int]:
    """How long a value is, and where it begins. Raises IndexError."""
    if wire == LENGTH:
        return varint(data, at)
    if wire == VARINT:
        return varint(data, at)[1] - at, at
    return _SIZES.get(wire, 0), at
