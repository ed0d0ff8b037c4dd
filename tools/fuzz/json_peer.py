"""The values that Python's json reads from messages, for values that need no conversion."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
)

from tools.fuzz.case import UNKNOWN, NoRow
from tools.fuzz.values import BITS


def json_peer(schema: StructType, options: Any, messages: Sequence[bytes]) -> list[Any]:
    """The answer to each message."""
    lenient = options.get("ignore-parse-errors") == "true"
    read = _row_reader(schema, fails=options.get("fail-on-missing-field") == "true")
    return [UNKNOWN if lenient else _read(read, message) for message in messages]


def _read(read: Callable[[Any], Any], message: bytes) -> Any:
    try:
        text = message.removeprefix(b"\xef\xbb\xbf").decode()
        value = json.loads(text, parse_constant=_no_constant, strict=False)
    except (ValueError, RecursionError) as why:
        return UNKNOWN if isinstance(why, RecursionError) else NoRow(why)
    if not isinstance(value, dict):
        return NoRow("no object")
    if message.count(b"[") + message.count(b"{") > 100 or b"\\ud" in message or b"\\uD" in message:
        return UNKNOWN
    return read(value)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _row_reader(schema: StructType, *, fails: bool) -> Callable[[Any], Any]:
    fields = [(f.name, _reader(f.dataType, fails=fails), f.nullable) for f in schema.fields]

    def read(value: Any) -> Any:
        row = {}
        for name, one, nullable in fields:
            found = value.get(name)
            if found is None and (not nullable or (fails and name not in value)):
                row[name] = UNKNOWN
            else:
                row[name] = None if found is None else one(found)
        return row

    return read


def _reader(kind: DataType, *, fails: bool) -> Callable[[Any], Any]:
    """A value of JSON's own type; any other one is no business of the peer."""
    if isinstance(kind, StructType):
        return _of_type(dict, _row_reader(kind, fails=fails))
    if isinstance(kind, ArrayType):
        item = _or_none(_reader(kind.elementType, fails=fails), nullable=kind.containsNull)
        return _of_type(list, lambda value: [item(each) for each in value])
    if isinstance(kind, MapType):
        item = _or_none(_reader(kind.valueType, fails=fails), nullable=kind.valueContainsNull)
        return _of_type(dict, lambda value: [(name, item(each)) for name, each in value.items()])
    if type(kind) in BITS:
        half = 1 << (BITS[type(kind)] - 1)
        return _of_type(int, lambda value: value if -half <= value < half else _other())
    if isinstance(kind, StringType):
        return _of_type(str, lambda value: value)
    if isinstance(kind, BooleanType):
        return _of_type(bool, lambda value: value)
    if isinstance(kind, DoubleType):
        return _of_type(float, lambda value: value if math.isfinite(value) else _other())
    if isinstance(kind, FloatType | DecimalType):
        return lambda value: (
            UNKNOWN
            if isinstance(value, float) and abs(value) < 1e3 and kind == FloatType()
            else _other()
        )
    return lambda _: _other()


def _or_none(read: Callable[[Any], Any], *, nullable: bool) -> Callable[[Any], Any]:
    def one(value: Any) -> Any:
        if value is not None:
            return read(value)
        return None if nullable else _other()

    return one


def _of_type(kind: type, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: read(value) if type(value) is kind else _other()


def _other() -> Any:
    return UNKNOWN
