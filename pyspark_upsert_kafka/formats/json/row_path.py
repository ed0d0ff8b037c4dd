"""The row path: one message to the values of its row, or to what is wrong with it; and how much memory they take.

The schema is compiled into a tree of functions once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.formats.decoded_size import Items, Measure, item_bytes
from pyspark_upsert_kafka.formats.decoding import RowField, UnreadableError
from pyspark_upsert_kafka.formats.json.document import HALF, Half, parse_object, shown
from pyspark_upsert_kafka.formats.json.leaf_readers import Reader, leaf
from pyspark_upsert_kafka.formats.json.settings import Settings


def row_reader(columns: StructType, settings: Settings) -> Callable[[bytes], Sequence[Any]]:
    """Compiles the function from a message to its row; it raises UnreadableError."""
    read = object_reader(columns, settings)

    def row(message: bytes) -> Sequence[Any]:
        values: Sequence[Any] = read(parse_object(message))
        return values

    return row


def object_reader(columns: StructType, settings: Settings, path: str = "") -> Reader:
    """Compiles the function from a parsed object to the values of its columns."""
    fields = {
        field.name: field_reader(
            field.dataType, settings, path + field.name, nullable=field.nullable
        )
        for field in columns.fields
    }

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not dict:
            raise ValueError("expected an object")
        # A tuple takes a fifth of what a dict does: a message may hold very many objects.
        return tuple([field(value.get(name)) for name, field in fields.items()])

    def read_all(value: Any) -> tuple[Any, ...]:
        if type(value) is dict:
            for name in fields:
                if name not in value:
                    raise UnreadableError(f"field '{path}{name}' is missing")
        return read(value)

    return read_all if settings.fail_on_missing_field else read


def field_reader(kind: DataType, settings: Settings, path: str, *, nullable: bool) -> Reader:
    """Compiles the function from a parsed value, or None for null and nothing, to that of a column."""
    field = RowField(path, nullable, settings.ignore_parse_errors)
    return field.reader(_reader(kind, settings, path), shown)


def _reader(kind: DataType, settings: Settings, path: str) -> Reader:
    if isinstance(kind, StructType):
        return object_reader(kind, settings, f"{path}.")
    if isinstance(kind, ArrayType):
        return _array(
            field_reader(kind.elementType, settings, f"{path}[]", nullable=kind.containsNull)
        )
    if isinstance(kind, MapType):
        return _map(
            field_reader(kind.valueType, settings, f"{path}{{}}", nullable=kind.valueContainsNull)
        )
    return leaf(kind, settings).value


def _array(element: Reader) -> Reader:
    def read(value: Any) -> list[Any]:
        if type(value) is not list:
            raise ValueError("expected an array")
        return [element(item) for item in value]

    return read


def _map(entry: Reader) -> Reader:
    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise ValueError("expected an object")
        if Half in map(type, value):
            raise ValueError(HALF)
        return {key: entry(item) for key, item in value.items()}

    return read


def measure_of(columns: StructType, target: pa.Schema, *, lenient: bool) -> Measure:
    """Compiles how much memory messages take: NULL and ``{}`` may become very wide structs.

    Args:
        columns: The columns.
        target: The same in Arrow.
        lenient: Whether whatever is no object is read as NULL where one is expected.
    """
    row = pa.struct(list(target))
    items = _items(row)
    if items is None:
        return Measure()
    widths = [(0.0, 0.0), *_widths(columns, row)]
    objects, values = (max(width) for width in zip(*widths, strict=True))
    if lenient:
        objects, values = 0, max(objects, values)
    marks = {b"{": objects + values, b"null": objects, b"[": values, b",": values}

    def exactly(message: bytes) -> float:
        try:
            return items(parse_object(message))
        except UnreadableError:
            return 0

    # The shortest items are "{}," and "1,".
    return Measure(Items(max(objects / 3, values / 2), marks), exactly=exactly)


def _widths(kind: DataType, arrow: pa.DataType) -> Iterator[tuple[float, float]]:
    """What an item of each array and map takes that is an object, or else what any other item takes."""
    if isinstance(kind, StructType):
        for field, part in zip(kind.fields, arrow, strict=True):
            yield from _widths(field.dataType, part.type)
    elif isinstance(kind, ArrayType | MapType):
        item, part = (
            (kind.elementType, arrow.value_type)
            if isinstance(kind, ArrayType)
            else (kind.valueType, arrow.item_type)
        )
        width = item_bytes(arrow)
        yield (width, 0) if isinstance(item, StructType) else (0, width)
        yield from _widths(item, part)


def _items(kind: pa.DataType) -> Callable[[Any], float] | None:
    """Compiles what the items in a parsed value take; None = it has none."""
    if pa.types.is_struct(kind):
        parts = {part.name: items for part in kind if (items := _items(part.type))}

        def of_parts(value: Any) -> float:
            if type(value) is not dict:
                return 0
            return sum(items(value.get(name)) for name, items in parts.items())

        return of_parts if parts else None
    if not kind.num_fields:
        return None
    width, is_map = item_bytes(kind), pa.types.is_map(kind)
    inner = _items(kind.item_type if is_map else kind.value_type)

    def of_items(items: Collection[Any]) -> float:
        return len(items) * width + (sum(map(inner, items)) if inner else 0)

    if is_map:
        return lambda value: of_items(value.values()) if type(value) is dict else 0
    return lambda value: of_items(value) if type(value) is list else 0
