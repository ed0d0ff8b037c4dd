"""Messages with their fields repeated, spoiled, moved and changed, as a hostile or broken writer may."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.unit.formats.protobuf.codecs import Proto
from tests.unit.formats.protobuf.corpus import messages, odd_bytes, varint

_SPOILERS = [b"\xff", b"\xc3", b"\x80", b"\0", b"\x0b", b"\x0c", b"\x7f", b"\xed\xa0\x80", b"a"]


def records(data: bytes) -> list[bytes]:
    """The fields of a message that the runtime wrote, each with its tag."""
    found, start = [], 0
    while start < len(data):
        tag, at = _varint(data, start)
        wire = tag & 7
        if wire == 0:
            _, at = _varint(data, at)
        elif wire == 2:
            length, at = _varint(data, at)
            at += length
        else:
            at += {1: 8, 5: 4}[wire]
        found.append(data[start:at])
        start = at
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


@st.composite
def mutated(draw: st.DrawFn, proto: Proto) -> bytes:
    """A message of the runtime after some changes to its fields, at any depth, and to its bytes."""
    data = draw(_changed(draw(messages(proto)).SerializePartialToString(), 3))
    how = draw(st.integers(0, 9))
    if how == 8:
        return _spoiled(draw, data)
    return data + draw(odd_bytes(proto)) if how == 9 else data


@st.composite
def _changed(draw: st.DrawFn, data: bytes, depth: int) -> bytes:
    """Fields in another order, twice, without a part, of another wire type, or changed inside."""
    parts = records(data)
    if not parts:
        return data
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(parts) - 1))
        kind = draw(st.integers(0, 5))
        if kind == 0:
            parts.insert(draw(st.integers(0, len(parts))), parts[at])
        elif kind == 1:
            parts.insert(at, _with_another_value(draw, parts[at]))
        elif kind == 2:
            parts[at] = _spoiled(draw, parts[at], keep=_after_tag(parts[at]))
        elif kind == 3:
            parts[at] = bytes([parts[at][0] ^ draw(st.integers(1, 7))]) + parts[at][1:]
        elif kind == 4:
            parts = draw(st.permutations(parts))
        elif depth:
            parts[at] = draw(_inside(parts[at], depth - 1))
    return b"".join(parts)


@st.composite
def _inside(draw: st.DrawFn, part: bytes, depth: int) -> bytes:
    """A field that has a length, and looks like a message, with that message changed."""
    tag, at = _varint(part, 0)
    if tag & 7 != 2:
        return part
    at = _varint(part, at)[1]
    try:
        body = draw(_changed(part[at:], depth))
    except (IndexError, KeyError):  # it is none
        body = _spoiled(draw, part[at:])
    return varint(tag) + varint(len(body)) + body


def _with_another_value(draw: Any, part: bytes) -> bytes:
    """A field with one byte as its value where it has a length, else with its value spoiled."""
    tag, at = _varint(part, 0)
    if tag & 7 == 2:
        return part[:at] + b"\x01" + draw(st.sampled_from(_SPOILERS))
    return _spoiled(draw, part, keep=at)


def _after_tag(part: bytes) -> int:
    """Where the value of a field begins: behind its tag and its length."""
    tag, at = _varint(part, 0)
    return _varint(part, at)[1] if tag & 7 == 2 else at


def _spoiled(draw: Any, data: bytes, keep: int = 0) -> bytes:
    """One byte changed to another, behind those that are kept."""
    if len(data) <= keep:
        return data
    at = draw(st.integers(keep, len(data) - 1))
    byte = draw(st.sampled_from(_SPOILERS) | st.binary(min_size=1, max_size=1))
    return data[:at] + byte + data[at + 1 :]
