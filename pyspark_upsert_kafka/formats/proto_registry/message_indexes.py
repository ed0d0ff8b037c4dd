"""Confluent's message indexes: which message of a ``.proto`` file follows.

Behind the schema's id stand how many indexes there are, and the indexes: the place of a message among those of its
file, of one within it among those within it, and so on. All are zigzag varints. The first message of a file,
``[0]``, is the one byte 0.
Source: https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

from pyspark_upsert_kafka.core.errors import SchemaError, shown
from pyspark_upsert_kafka.formats.binary.numbers import varint

Indexes = tuple[int, ...]

FIRST: Indexes = (0,)

_LONGEST = 10  # bytes of a varint
_MOST = 100  # bytes of indexes: a message stands in others no deeper than that


def encoded(indexes: Indexes) -> bytes:
    r"""Message indexes, in the bytes that a message has for them.

    >>> encoded((0,)), encoded((2, 1))
    (b'\x00', b'\x04\x04\x02')
    """
    if indexes == FIRST:
        return b"\0"
    return b"".join(varint(number << 1) for number in (len(indexes), *indexes))


def encoded_part(message: bytes, start: int) -> bytes:
    """The beginning of a message up to the end of its indexes; where there are none, as many bytes as they could take.

    Args:
        message: The message.
        start: Where the indexes begin.
    """
    if message[start : start + 1] == b"\0":
        return message[: start + 1]
    longest = message[: start + _MOST]
    found = _read(longest, start)
    return longest if found is None else longest[: found[1]]


def decoded(prefix: bytes, start: int) -> Indexes:
    r"""The indexes that end the prefix.

    Raises:
        SchemaError: They are none.

    >>> decoded(b"\x00", 0), decoded(b"\x04\x04\x02", 0)
    ((0,), (2, 1))
    """
    found = _read(prefix, start)
    if found is None or min(found[0]) < 0:
        raise SchemaError(
            "behind the schema's id there are no message indexes, as the Protobuf serializers of a schema "
            f"registry write them; it goes on with {shown(prefix[start:])!r}"
        )
    return found[0]


def _read(message: bytes, start: int) -> tuple[Indexes, int] | None:
    """The indexes, and where they end."""
    numbers: list[int] = []
    count = _number(message, start)
    while count is not None and len(numbers) < count[0]:
        number = _number(message, count[1])
        if number is None:
            return None
        numbers.append(number[0])
        count = count[0], number[1]
    if count is None or count[0] < 0:
        return None
    return tuple(numbers) or FIRST, count[1]


def _number(message: bytes, at: int) -> tuple[int, int] | None:
    """A zigzag varint, and where it ends; in no more bytes than it needs, so that there are few spellings to compile a decoder for."""
    value = 0
    for place, byte in enumerate(message[at : at + _LONGEST]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return None if place and not byte else ((value >> 1) ^ -(value & 1), at + place + 1)
    return None
