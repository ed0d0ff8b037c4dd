"""Values that a change did not send, because they have not changed: Debezium's ``unavailable.value.placeholder``."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
)

if TYPE_CHECKING:
    from pyspark.sql import Column


def placeholders(kind: DataType, text: str) -> list[Any]:
    """What Debezium's connector for Postgres writes in place of a value; none for a type that cannot hold it.

    Texts and bytes are the text itself. An array has it as its only element, one of numbers has its bytes, one of UUIDs
    the UUID made of its MD5. A map has it as its only key.

    >>> placeholders(ArrayType(IntegerType()), "ab"), placeholders(LongType(), "ab")
    ([[97, 98]], [])
    """
    data = text.encode()
    if isinstance(kind, StringType):
        return [text]
    if isinstance(kind, BinaryType):
        return [data]
    if isinstance(kind, MapType):
        return placeholders(kind.keyType, text) if isinstance(kind.keyType, StringType) else []
    return _arrays(kind.elementType, text, data) if isinstance(kind, ArrayType) else []


def _arrays(element: DataType, text: str, data: bytes) -> list[Any]:
    if isinstance(element, (IntegerType, LongType)):
        return [list(data)]
    if isinstance(element, StringType):
        return [[text], [str(UUID(bytes=_md5(data), version=3))]]
    return [[data]] if isinstance(element, BinaryType) else []


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def is_unavailable(column: Column, kind: DataType, text: str) -> Column:
    """Whether a value is one of its placeholders; false for NULL."""
    from pyspark.sql import functions as f

    seen = column
    if isinstance(kind, MapType):
        seen = f.when(f.size(column) == 1, f.map_keys(column)[0])
    found = f.lit(False)
    for placeholder in placeholders(kind, text):
        found = found | (seen == _literal(placeholder, kind))
    return f.coalesce(found, f.lit(False))


def _literal(value: Any, kind: DataType) -> Column:
    from pyspark.sql import functions as f

    if isinstance(value, list) and isinstance(kind, ArrayType):
        return f.array(*(_literal(each, kind.elementType) for each in value))
    if isinstance(value, bytes):
        return f.lit(bytearray(value))
    if isinstance(kind, (IntegerType, LongType)):
        return f.lit(value).cast(kind)
    return f.lit(value)
