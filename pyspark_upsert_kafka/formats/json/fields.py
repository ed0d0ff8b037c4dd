"""Some fields of many messages, parsed by orjson.

It is strict about what JSON is, and of duplicate names it keeps the last, as the exact way does. What
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
    """The values of some fields of each message; ValueError = a message needs the exact way."""
    if not all(message.startswith(b"{") for message in messages):
        raise ValueError("a message is not plainly an object")
    if any(too_deep(m) for m in messages if len(m) > 2 * DEEPEST):
        raise ValueError("a message is nested too deep")
    if any(map(_MINUS_ZERO.search, messages)):
        raise ValueError("a number may be -0")
    # Only what is needed is kept: the collector would walk through all documents again and again.
    if len(names) == 1:
        return [[document.get(names[0]) for document in map(orjson.loads, messages)]]
    rows = [tuple(map(document.get, names)) for document in map(orjson.loads, messages)]
    return [list(values) for values in zip(*rows, strict=True)]


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
