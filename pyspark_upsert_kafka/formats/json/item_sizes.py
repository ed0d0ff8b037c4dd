"""How many bytes the items of JSON's arrays and maps are decoded to: NULL and ``{}`` may become very wide structs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.core.bytes_column import total_size
from pyspark_upsert_kafka.core.memory import MAX_HELD_BYTES
from pyspark_upsert_kafka.formats.decoded_size import Measure, item_bytes
from pyspark_upsert_kafka.formats.decoding import UnreadableError
from pyspark_upsert_kafka.formats.json.document import parse_object

# The fewest bytes of an item that is an object, "{},", of one that is null, and of any other, "1,".
_OBJECT, _NULL, _VALUE = 3, 5, 2
_BRACE = ord("{")
_BEFORE_ITEMS = (b"[", b"{", b",")


def item_sizes(schema: StructType, target: pa.Schema, *, lenient: bool) -> Measure:
    """Compiles what the items of messages take.

    Args:
        schema: The columns.
        target: The same in Arrow.
        lenient: Whether whatever is no object is read as NULL where one is expected.
    """
    return Measure(_at_most(schema, target, lenient=lenient), _of_one(schema, target))


def _at_most(
    schema: StructType, target: pa.Schema, *, lenient: bool
) -> Callable[[Sequence[bytes]], float] | None:
    """Compiles what the items of messages take at most; None = no column has items."""
    widths = list(_widths(schema, pa.struct(list(target))))
    if not widths:
        return None
    structs = max((width for width, is_struct in widths if is_struct), default=0)
    values = max((width for width, is_struct in widths if not is_struct), default=0)

    def any_items(messages: Sequence[bytes]) -> float:
        widest, size = max(values, structs), total_size(messages)
        if widest * size / _VALUE <= MAX_HELD_BYTES:
            return widest * size / _VALUE
        text = b"".join(messages)
        return widest * sum(map(text.count, _BEFORE_ITEMS))

    if lenient and structs:
        return any_items

    def items(messages: Sequence[bytes]) -> float:
        size = total_size(messages)
        of_values = values * size / _VALUE
        if of_values + structs * size / _OBJECT <= MAX_HELD_BYTES:
            return of_values + structs * size / _OBJECT
        text = b"".join(messages)
        objects = np.count_nonzero(np.frombuffer(text, np.uint8) == _BRACE)
        nulls = size / _NULL
        if of_values + structs * (objects + nulls) > MAX_HELD_BYTES:
            nulls = text.count(b"null")
        return of_values + structs * (objects + nulls)

    return items


def _of_one(schema: StructType, target: pa.Schema) -> Callable[[bytes], float]:
    """Compiles what the items of one message take; 0 where it is no object."""
    measure = _measure(schema, pa.struct(list(target)))

    def items(message: bytes) -> float:
        try:
            return measure(parse_object(message))
        except UnreadableError:
            return 0

    return items


def _widths(kind: DataType, arrow: pa.DataType) -> Iterator[tuple[float, bool]]:
    """What each kind of item takes, and whether it is an object or null."""
    if isinstance(kind, StructType):
        for field, part in zip(kind.fields, arrow, strict=True):
            yield from _widths(field.dataType, part.type)
    elif isinstance(kind, ArrayType | MapType):
        item, part = _item(kind, arrow)
        yield item_bytes(arrow), isinstance(item, StructType)
        yield from _widths(item, part)


def _item(kind: ArrayType | MapType, arrow: pa.DataType) -> tuple[DataType, pa.DataType]:
    if isinstance(kind, ArrayType):
        return kind.elementType, arrow.value_type
    return kind.valueType, arrow.item_type


def _measure(kind: DataType, arrow: pa.DataType) -> Callable[[Any], float]:
    """Compiles what the items in a parsed value take."""
    if isinstance(kind, StructType):
        parts = {
            field.name: _measure(field.dataType, part.type)
            for field, part in zip(kind.fields, arrow, strict=True)
            if any(_widths(field.dataType, part.type))
        }
        return lambda value: (
            sum(part(value.get(name)) for name, part in parts.items()) if type(value) is dict else 0
        )
    if not isinstance(kind, ArrayType | MapType):
        return lambda _: 0
    width, inner = item_bytes(arrow), _measure(*_item(kind, arrow))

    def of_list(value: Any) -> float:
        return len(value) * width + sum(map(inner, value)) if type(value) is list else 0

    def of_map(value: Any) -> float:
        return of_list([*value.values()]) if type(value) is dict else 0

    return of_map if isinstance(kind, MapType) else of_list
