"""Defaults of fields, from JSON to the bytes that a writer would have written.

So a reader's default is read as any other value is.
"""

from __future__ import annotations

import struct
from typing import Any

from pyspark_upsert_kafka.formats.avro.avro_types import (
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
from pyspark_upsert_kafka.formats.binary_values import varint

_BITS = {"int": 32, "long": 64}

_MOST_VALUES = 100_000
"""The number of values that a default may be made of: records within records multiply with each level."""


def default_datum(schema: Schema, avro: AvroType, value: Any) -> bytes:
    """A default in JSON as the bytes of its type.

    Raises:
        ValueError: It is no value of the type, or one of too many parts.
    """
    return _Defaults(schema).datum(avro, value)


class _Defaults:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._values = 0

    def datum(self, avro: AvroType, value: Any) -> bytes:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise ValueError(f"it is made of more than {_MOST_VALUES} values")
        return _datum(self, avro, value)

    def record(self, name: str) -> Record | None:
        return self._schema.records.get(name)


def _datum(defaults: _Defaults, avro: AvroType, value: Any) -> bytes:
    if isinstance(avro, Primitive):
        return _primitive(avro.type, value)
    if isinstance(avro, Fixed) and isinstance(value, str) and len(value) == avro.size:
        return value.encode("latin-1")
    if isinstance(avro, Enum) and value in avro.symbols:
        return long(avro.symbols.index(value))
    if isinstance(avro, Union):
        return _first_branch(defaults, avro, value)
    return _compound(defaults, avro, value)


def _compound(defaults: _Defaults, avro: AvroType, value: Any) -> bytes:
    if isinstance(avro, Array) and isinstance(value, list):
        return _blocks([defaults.datum(avro.items, item) for item in value])
    if isinstance(avro, Map) and isinstance(value, dict):
        return _blocks(
            [
                _primitive("string", key) + defaults.datum(avro.values, item)
                for key, item in value.items()
            ]
        )
    record = avro if isinstance(avro, Record) else defaults.record(getattr(avro, "name", ""))
    if record is not None and isinstance(value, dict):
        return b"".join(
            defaults.datum(field.type, value.get(field.name, field.default))
            for field in record.fields
        )
    raise _wrong(value)


def _primitive(type_: str, value: Any) -> bytes:
    if type_ == "null" and value is None:
        return b""
    if type_ == "boolean" and type(value) is bool:
        return bytes([value])
    if type_ in _BITS and type(value) is int and -1 <= value >> (_BITS[type_] - 1) <= 0:
        return long(value)
    if type_ in ("float", "double") and type(value) in (int, float):
        return _floating(type_, value)
    if type_ in ("string", "bytes") and type(value) is str:
        data = value.encode("utf-8" if type_ == "string" else "latin-1")
        return long(len(data)) + data
    raise _wrong(value)


def _floating(type_: str, value: float) -> bytes:
    try:
        return struct.pack("<f" if type_ == "float" else "<d", float(value))
    except OverflowError:
        raise _wrong(value) from None


def _first_branch(defaults: _Defaults, union: Union, value: Any) -> bytes:
    """The first branch that the default is a value of, as of Avro 1.12; it was the first one before."""
    for number, branch in enumerate(union.branches):
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
