"""Defaults of a reader's fields, as the datum that a writer would have written.

So a default is read as any other value is.
"""

from __future__ import annotations

import struct
from typing import Any

from pyspark_upsert_kafka.formats.avro.model import (
    NO_DEFAULT,
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
)
from pyspark_upsert_kafka.formats.binary.numbers import varint

_BITS = {"int": 32, "long": 64}

MOST_VALUES = 100_000
"""So many values a default may be made of: records within records multiply with each level."""


def default_datum(schema: Schema, kind: AvroType, value: Any) -> bytes:
    """A default in JSON as the bytes of its type.

    Raises:
        ValueError: It is no value of the type, or one of too many parts.
    """
    return _Defaults(schema).datum(kind, value)


class _Defaults:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._values = 0

    def datum(self, kind: AvroType, value: Any) -> bytes:
        self._values += 1
        if self._values > MOST_VALUES:
            raise ValueError(f"it is made of more than {MOST_VALUES} values")
        return _datum(self, kind, value)

    def record(self, name: str) -> Record | None:
        return self._schema.records.get(name)


def _datum(defaults: _Defaults, kind: AvroType, value: Any) -> bytes:
    if isinstance(kind, Primitive):
        return _primitive(kind.kind, value)
    if isinstance(kind, Fixed) and isinstance(value, str) and len(value) == kind.size:
        return value.encode("latin-1")
    if isinstance(kind, Enum) and value in kind.symbols:
        return long(kind.symbols.index(value))
    if isinstance(kind, Union):
        return _first_branch(defaults, kind, value)
    return _compound(defaults, kind, value)


def _compound(defaults: _Defaults, kind: AvroType, value: Any) -> bytes:
    if isinstance(kind, Array) and isinstance(value, list):
        return _blocks([defaults.datum(kind.items, item) for item in value])
    if isinstance(kind, Map) and isinstance(value, dict):
        return _blocks(
            [
                _primitive("string", key) + defaults.datum(kind.values, item)
                for key, item in value.items()
            ]
        )
    record = kind if isinstance(kind, Record) else defaults.record(getattr(kind, "name", ""))
    if record is not None and isinstance(value, dict):
        return b"".join(
            defaults.datum(field.type, value.get(field.name, field.default))
            for field in record.fields
        )
    raise _wrong(value)


def _primitive(kind: str, value: Any) -> bytes:
    if kind == "null" and value is None:
        return b""
    if kind == "boolean" and type(value) is bool:
        return bytes([value])
    if kind in _BITS and type(value) is int and -1 <= value >> (_BITS[kind] - 1) <= 0:
        return long(value)
    if kind in ("float", "double") and type(value) in (int, float):
        return _floating(kind, value)
    if kind in ("string", "bytes") and type(value) is str:
        data = value.encode("utf-8" if kind == "string" else "latin-1")
        return long(len(data)) + data
    raise _wrong(value)


def _floating(kind: str, value: float) -> bytes:
    try:
        return struct.pack("<f" if kind == "float" else "<d", float(value))
    except OverflowError:
        raise _wrong(value) from None


def _first_branch(defaults: _Defaults, kind: Union, value: Any) -> bytes:
    """The first branch that the default is a value of, as of Avro 1.12; it was the first one before."""
    for number, branch in enumerate(kind.branches):
        try:
            return long(number) + defaults.datum(branch, value)
        except ValueError:
            continue
    raise _wrong(value)


def _blocks(items: list[bytes]) -> bytes:
    return b"".join([long(len(items)), *items, long(0)]) if items else long(0)


def _wrong(value: Any) -> ValueError:
    return ValueError("no value is given" if value is NO_DEFAULT else f"{value!r} does not fit")


def long(value: int) -> bytes:
    """One number."""
    return varint((value << 1) ^ (value >> 63))
