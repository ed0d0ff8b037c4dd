"""Some fields of many messages, parsed by orjson.

It is strict about what JSON is, and of duplicate names it keeps the last, as the row path does. What
it loses is refused: here the sign of ``-0``, elsewhere the digits of what is no 64-bit integer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson

from pyspark_upsert_kafka.formats.json.document import DEEPEST, Number, too_deep

_MINUS_ZERO = re.compile(rb"[:,\[][ \t\r\n]*-0(?![.0-9eE])")


def fields_of(messages: Sequence[bytes], names: Sequence[str]) -> list[list[Any]]:
    """The values of some fields of each message; ValueError = a message needs the row path."""
    # Only what is needed is kept: the collector would walk through all documents again and again.
    if len(names) == 1:
        return [[read.get(names[0]) for read in map(document, messages)]]
    rows = [tuple(map(read.get, names)) for read in map(document, messages)]
    return [list(values) for values in zip(*rows, strict=True)]


def document(message: bytes) -> dict[str, Any]:
    """The object that a message is; ValueError = it needs the row path."""
    if not message.startswith(b"{"):
        raise ValueError("the message is not plainly an object")
    if len(message) > 2 * DEEPEST and too_deep(message):
        raise ValueError("the message is nested too deep")
    if b"-0" in message and _MINUS_ZERO.search(message):
        raise ValueError("a number may be -0")
    read: dict[str, Any] = orjson.loads(message)
    return read


def as_written(value: Any) -> Any:
    """A parsed value with its numbers as they stood in the message; ValueError = that is not known."""
    kind = type(value)
    if kind is int:
        return Number(value)
    if kind is list:
        return [as_written(item) for item in value]
    if kind is dict:
        return {name: as_written(item) for name, item in value.items()}
    if kind is float:
        raise ValueError("the digits of a number are lost")
    return value


def as_float(value: Any) -> Any:
    """The same for a column of 64-bit floats: these digits are read as the same number."""
    return Number(repr(value)) if type(value) is float else as_written(value)
