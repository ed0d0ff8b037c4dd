"""Values of simple types, read one by one."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import numpy as np

from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    BytesNode,
    EnumNode,
    MismatchNode,
    NullNode,
    NumberNode,
)
from pyspark_upsert_kafka.formats.avro.errors import sql_type, unreadable
from pyspark_upsert_kafka.formats.decoded_size import Budget, check_row
from pyspark_upsert_kafka.formats.decoding import UnreadableError

_TOO_LONG = "a number is longer than 64 bits"


class Datum:
    """The bytes of a message, and how far they have been read."""

    __slots__ = ("_added", "_budget", "at", "data", "depth", "empty")

    def __init__(self, data: bytes, at: int, budget: Budget) -> None:
        self.data, self.at = data, at
        self.depth = self.empty = 0
        self._budget, self._added = budget, 0.0

    @property
    def remaining(self) -> int:
        """How many bytes have not been read yet."""
        return len(self.data) - self.at

    def add(self, size: float) -> None:
        """Notes that its row takes so many bytes more. Raises UnreadableError or TooManyMessagesError."""
        self._added += size
        self._budget.take(size)
        check_row(self._added)

    def long(self, path: str) -> int:
        """A number of variable length in zigzag code."""
        value = shift = 0
        for byte in self.data[self.at : self.at + 10]:
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            ended = self.remaining < 10
            raise unreadable(path, "the message ends within a number" if ended else _TOO_LONG)
        if value >> 64:
            raise unreadable(path, _TOO_LONG)
        self.at += shift // 7
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int, path: str, what: str) -> bytes:
        """The next bytes."""
        if not 0 <= size <= self.remaining:
            seen = (
                f"ends after {self.remaining} of {size} bytes" if size > 0 else f"has {size} bytes"
            )
            raise unreadable(path, f"the {what} {seen}")
        self.at += size
        return self.data[self.at - size : self.at]


Read = Callable[[Datum], Any]
"""Reads one node and gives its value, as ``pyarrow.array`` takes it; raises UnreadableError."""

_PLENTY = Context(prec=100)


def _nothing(_: Datum) -> None:
    return None


def _mismatch(node: MismatchNode) -> Read:
    def read(_: Datum) -> None:
        raise UnreadableError(node.why)

    return read


def _number(node: NumberNode) -> Read:
    if node.wire in ("int", "long"):
        return _integer(node)
    size, path, what = _SIZES[node.wire], node.path, node.wire
    unpack = struct.Struct(_FORMATS[node.wire]).unpack

    def read(datum: Datum) -> Any:
        return unpack(datum.take(size, path, what))[0]

    def boolean(datum: Datum) -> bool:
        byte = read(datum)
        if byte > 1:
            raise unreadable(path, f"expected a boolean, 0 or 1, got {byte}")
        return bool(byte)

    return boolean if node.wire == "boolean" else read


_SIZES = {"boolean": 1, "float": 4, "double": 8}
_FORMATS = {"boolean": "B", "float": "<f", "double": "<d"}


def _integer(node: NumberNode) -> Read:
    path, scale = node.path, node.scale
    bound = 1 << (31 if node.wire == "int" else 63)

    def written(datum: Datum) -> int:
        number = datum.long(path)
        if not -bound <= number < bound:
            raise unreadable(path, f"{number} is out of range of Avro's {node.wire}")
        return number

    def scaled(datum: Datum) -> int:
        number = written(datum)
        if not scale.low <= number <= scale.high:
            raise unreadable(path, f"{number} is out of range of {sql_type(node.arrow)}")
        return number * scale.times // scale.over

    def floating(datum: Datum) -> Any:
        number: Any = np.int64(written(datum))
        for kind in node.through:
            number = number.astype(kind)
        return number.item()

    return floating if node.through else scaled


def _sized(node: BytesNode) -> Read:
    path, size = node.path, node.size
    what = "text" if node.form == "text" else "value"
    convert = _FORMS[node.form](node)

    def read(datum: Datum) -> Any:
        data = datum.take(datum.long(path) if size is None else size, path, what)
        try:
            return convert(data)
        except ValueError as why:
            raise unreadable(path, str(why)) from None

    return read


def _text(_: BytesNode) -> Callable[[bytes], str]:
    def text(data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"not UTF-8: {error.reason} at byte {error.start}") from None

    return text


def _decimal(node: BytesNode) -> Callable[[bytes], Decimal]:
    kind: Any = node.arrow
    bound = 10**kind.precision

    def decimal(data: bytes) -> Decimal:
        if not data:
            raise ValueError("a decimal of no bytes")
        unscaled = int.from_bytes(data, "big", signed=True)
        if not -bound < unscaled < bound:
            raise ValueError(f"a number of more digits than DECIMAL({kind.precision},{kind.scale})")
        return Decimal(unscaled).scaleb(-kind.scale, _PLENTY)

    return decimal


_FORMS: dict[str, Callable[[BytesNode], Callable[[bytes], Any]]] = {
    "bytes": lambda _: bytes,
    "text": _text,
    "decimal": _decimal,
    "uuid": lambda _: lambda data: str(UUID(bytes=data)),
}


def _symbol(node: EnumNode) -> Read:
    path, symbols, skipped = node.path, node.symbols, node.arrow is None

    def read(datum: Datum) -> str | None:
        number = datum.long(path)
        if not 0 <= number < len(symbols):
            raise unreadable(path, f"there is no symbol {number} in an enum of {len(symbols)}")
        if symbols[number] is None and not skipped:
            raise unreadable(path, f"symbol {number} is none that the reader's schema knows")
        return symbols[number]

    return read


LEAVES: dict[type[Any], Callable[[Any], Read]] = {
    MismatchNode: _mismatch,
    NullNode: lambda _: _nothing,
    NumberNode: _number,
    BytesNode: _sized,
    EnumNode: _symbol,
}
