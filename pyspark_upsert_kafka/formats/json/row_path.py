"""The row path: one message to the values of its row, or to what is wrong with it.

The schema is compiled into a tree of functions once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

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
