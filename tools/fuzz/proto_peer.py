"""The values that the Protobuf runtime reads from messages, as in our columns: read value by value, without our compiled readers."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError
from pyspark.sql.types import (
    DataType,
    DayTimeIntervalType,
    DecimalType,
    StringType,
    StructType,
    TimestampType,
)

from pyspark_upsert_kafka.formats.protobuf.descriptors import is_map, is_repeated
from tools.fuzz.case import UNKNOWN, NoRow, Peer
from tools.fuzz.values import BITS, FIRST, LAST

_ENUM = 14


def runtime_peer(message: Any, columns: StructType, *, defaults: bool) -> Peer:
    """The peer of messages of a class."""
    return partial(_read_all, message, columns, defaults)


def _read_all(
    message: Any, columns: StructType, defaults: bool, messages: Sequence[bytes]
) -> list[Any]:
    return [_read(message, columns, defaults, data) for data in messages]


def _read(message: Any, columns: StructType, defaults: bool, data: bytes) -> Any:
    try:
        read = message.FromString(data)
    except DecodeError as why:
        return NoRow(why)
    if not read.IsInitialized():
        return NoRow("a required field is missing")
    try:
        return _row(read, columns, defaults)
    except _NotUtf8Error:
        return NoRow("a text is not UTF-8")
    except UnicodeDecodeError:  # so is a key of a map, which proto2 lets pass
        return UNKNOWN


class _NotUtf8Error(ValueError):
    """The runtime has bytes for a text; it lets that pass in proto2."""


def _row(message: Any, columns: StructType, defaults: bool) -> dict[str, Any]:
    fields = message.DESCRIPTOR.fields_by_name
    return {
        each.name: _value(message, fields[each.name], each.dataType, each.nullable, defaults)
        for each in columns.fields
    }


def _value(message: Any, field: Any, kind: DataType, nullable: bool, defaults: bool) -> Any:
    value = getattr(message, field.name)
    if is_map(field):
        key, inner = field.message_type.fields
        if not value:
            return [] if defaults or not nullable else None
        if isinstance(kind.keyType, StringType) and any(isinstance(k, bytes) for k in value):  # type: ignore[attr-defined]
            return UNKNOWN  # a key that is not UTF-8, which proto2 lets pass
        pairs = [
            (_one(key, k, kind.keyType, defaults), _one(inner, value[k], kind.valueType, defaults))
            for k in sorted(value)
        ]  # type: ignore[attr-defined]
        return UNKNOWN if any(k is UNKNOWN for k, _ in pairs) else pairs
    if is_repeated(field):
        items = [_one(field, item, kind.elementType, defaults) for item in value]  # type: ignore[attr-defined]
        return items if items or defaults or not nullable else None
    if field.has_presence and not message.HasField(field.name):
        if not nullable:
            return UNKNOWN
        if not defaults:
            return None
        return UNKNOWN if field.message_type else _one(field, value, kind, defaults)
    return _one(field, value, kind, defaults)


def _one(field: Any, value: Any, kind: DataType, defaults: bool) -> Any:
    if field.message_type:
        return _message(value, kind, defaults)
    if field.type == _ENUM and isinstance(kind, StringType):
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    if isinstance(kind, DecimalType):
        return Decimal(value)
    if isinstance(kind, StringType) and isinstance(value, bytes):
        raise _NotUtf8Error
    if type(kind) in BITS:
        half = 1 << (BITS[type(kind)] - 1)
        return value if -half <= value < half else UNKNOWN
    return value


def _message(value: Any, kind: DataType, defaults: bool) -> Any:
    if isinstance(kind, TimestampType | DayTimeIntervalType):
        micros = value.seconds * 1_000_000 + value.nanos // 1000
        within = 0 <= value.nanos < 10**9 and value.seconds >= 0 and FIRST <= micros <= LAST
        return micros if within else UNKNOWN
    assert isinstance(kind, StructType)
    return _row(value, kind, defaults)
