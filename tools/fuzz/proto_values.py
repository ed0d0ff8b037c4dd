"""Random messages of the Protobuf runtime, and the same messages with spoiled fields."""

from __future__ import annotations

from random import Random
from typing import Any

from pyspark_upsert_kafka.formats.protobuf.descriptors import is_map, is_repeated
from pyspark_upsert_kafka.formats.protobuf.wire import Kind
from tests.unit.formats.protobuf.corpus import PAYLOADS, varint
from tests.unit.formats.protobuf.mutations import records
from tools.fuzz.odd_values import integers, texts
from tools.fuzz.values import Values

_RANGES = {
    **dict.fromkeys((5, 15, 17), (-(2**31), 2**31 - 1)),
    **dict.fromkeys((3, 16, 18), (-(2**63), 2**63 - 1)),
    **dict.fromkeys((7, 13), (0, 2**32 - 1)),
    **dict.fromkeys((4, 6), (0, 2**64 - 1)),
}


class Messages:
    """Makes messages.

    Args:
        rng: Decides.
        message: The class of the messages.
    """

    def __init__(self, rng: Random, message: Any) -> None:
        self._rng, self._message = rng, message
        self._pools: dict[int, list[Any]] = {
            kind: integers(rng, *bounds) for kind, bounds in _RANGES.items()
        }
        values = Values(rng)
        self._pools |= {
            1: values.pool(_DOUBLE),
            2: values.pool(_FLOAT),
            8: [True, False],
            9: texts(rng),
            12: [rng.randbytes(rng.randrange(9)) for _ in range(20)] + [b"", b"x" * 200],
        }

    def one(self) -> bytes:
        """A message."""
        message = self._message()
        self._fill(message, 3)
        return message.SerializePartialToString()

    def _fill(self, message: Any, depth: int) -> None:
        rng = self._rng
        small = message.DESCRIPTOR.full_name in (
            "google.protobuf.Timestamp",
            "google.protobuf.Duration",
        )
        for field in message.DESCRIPTOR.fields:
            if small and rng.random() < 0.8:
                high = 10**9 if field.name == "nanos" else 2**33
                setattr(message, field.name, rng.randrange(high))
            elif rng.random() < (0.97 if field.is_required else 0.7):
                self._set(message, field, depth)

    def _set(self, message: Any, field: Any, depth: int) -> None:
        rng, value = self._rng, getattr(message, field.name)
        if is_map(field):
            key, inner = field.message_type.fields
            for _ in range(rng.randrange(4)):
                at = self._leaf(key)
                if inner.message_type:
                    self._fill(value[at], depth - 1)
                else:
                    value[at] = self._leaf(inner)
        elif is_repeated(field):
            for _ in range(rng.choice([0, 1, 2, 3, 3, 20])):
                if field.message_type:
                    self._fill(value.add(), depth - 1)
                else:
                    value.append(self._leaf(field))
        elif field.message_type:
            value.SetInParent()
            self._fill(value, depth - 1)
        else:
            setattr(message, field.name, self._leaf(field))

    def _leaf(self, field: Any) -> Any:
        if field.type != Kind.ENUM:
            return self._rng.choice(self._pools[field.type])
        numbers = [value.number for value in field.enum_type.values]
        if not field.enum_type.is_closed and self._rng.random() < 0.2:
            return self._rng.choice([7, -1, 2**31 - 1])
        return self._rng.choice(numbers)


_DOUBLE, _FLOAT = (
    __import__("pyspark.sql.types", fromlist=[name]).__dict__[name]()
    for name in ("DoubleType", "FloatType")
)


def spoil_fields(rng: Random, message: bytes, depth: int = 3) -> bytes:
    """Fields in another order, twice, left out, of another wire type, or changed inside."""
    try:
        parts = records(message)
    except (IndexError, KeyError):  # it is no message
        return message
    if not parts:
        return _odd(rng)
    for _ in range(rng.randint(1, 2)):
        at, how = rng.randrange(len(parts)), rng.randrange(9)
        if how == 0:
            parts.insert(rng.randrange(len(parts) + 1), parts[at])
        elif how == 1:
            rng.shuffle(parts)
        elif how == 2:
            parts[at] = bytes([parts[at][0] ^ rng.randint(1, 7)]) + parts[at][1:]
        elif how == 3:
            parts.insert(rng.randrange(len(parts) + 1), _odd(rng))
        elif how == 4:
            parts[at] = parts[at][:1] + rng.choice(PAYLOADS)
        elif how == 5 and len(parts) > 1:
            del parts[at]
        elif how == 6:
            parts.insert(
                at,
                parts[at][:1]
                + rng.choice([b"\0", b"\1\0", b"\2\x08\1", b"\4\x08\1\x10\2", b"\2\x12\0"]),
            )
        elif depth:
            parts[at] = _inside(rng, parts[at], depth - 1)
    return b"".join(parts)


def _inside(rng: Random, part: bytes, depth: int) -> bytes:
    """A field with a length, with what is inside changed, whether or not it is a message."""
    at = 0
    while at < len(part) and part[at] >= 0x80:
        at += 1
    if part[0] & 7 != 2:
        return part
    head, rest = part[: at + 1], part[at + 1 :]
    start = 0
    while start < len(rest) and rest[start] >= 0x80:
        start += 1
    body = spoil_fields(rng, rest[start + 1 :], depth)
    if rng.random() < 0.02:
        for _ in range(rng.choice([5, 98, 99, 100, 101, 120])):
            body = head + varint(len(body)) + body
    return head + varint(len(body)) + body


def _odd(rng: Random) -> bytes:
    number = rng.choice([*range(1, 16), 16, 17, 100, 2047, 2**29 - 1, 0, 2**29])
    return varint(number << 3 | rng.choice([0, 1, 2, 2, 3, 4, 5, 6])) + rng.choice(PAYLOADS)
