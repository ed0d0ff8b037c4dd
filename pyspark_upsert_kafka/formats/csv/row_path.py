"""The row path: one message to the values of its row, or to what is wrong with it.

The schema is compiled into a list of functions once. The rules are those of Flink's
``CsvToRowDataConverters`` on top of Jackson's ``CsvParser``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.csv.leaf_readers import leaf
from pyspark_upsert_kafka.formats.csv.record import Split, splitter
from pyspark_upsert_kafka.formats.decoding import RowField, UnreadableError
from pyspark_upsert_kafka.formats.number_text import BLANK

FieldReader = Callable[["str | None"], Any]
"""The text of a field, or None when there is no field, to its value; raises UnreadableError."""

_SHOWN = 60


def row_reader(columns: StructType, dialect: Dialect) -> Callable[[bytes], Sequence[Any]]:
    """Compiles the function from a message to its row; it raises UnreadableError."""
    count = len(columns.fields)
    split = _counted(splitter(dialect, most=count + 1), count, dialect)
    readers = [field_reader(field, dialect) for field in columns.fields]

    def row(message: bytes) -> Sequence[Any]:
        return [read(text) for read, text in zip(readers, split(message), strict=True)]

    return row


def _counted(split: Split, count: int, dialect: Dialect) -> Callable[[bytes], Sequence[str | None]]:
    """As many fields as there are columns; a last delimiter with nothing behind it is let pass."""
    lenient = dialect.ignore_parse_errors

    def fields(message: bytes) -> Sequence[str | None]:
        found = split(message)
        if len(found) == count + 1 and not found[-1].strip(BLANK):
            found.pop()
        if len(found) > count:
            raise UnreadableError(f"Too many entries: expected at most {count}")
        if len(found) < count and not lenient:
            raise UnreadableError(_mismatch(count, len(found)))
        return [*found, *[None] * (count - len(found))]

    return fields


def field_reader(field: StructField, dialect: Dialect) -> FieldReader:
    """Compiles the reader of one column."""
    return _nullable(field.dataType, dialect, field.name, nullable=field.nullable)


def _nullable(kind: DataType, dialect: Dialect, path: str, *, nullable: bool) -> FieldReader:
    field = RowField(path, nullable, dialect.ignore_parse_errors)
    return field.reader(_reader(kind, dialect, path), _shown, _null_text(kind, dialect))


def _shown(text: str) -> str:
    return repr(text[:_SHOWN])


def _null_text(kind: DataType, dialect: Dialect) -> str | None:
    """The text that stands for NULL.

    Flink writes NULL as the empty text when there is no null literal, and then cannot read it where a
    number or a date should be. Here it can.
    """
    if dialect.null_literal is not None:
        return dialect.null_literal
    if isinstance(kind, ArrayType):
        return None
    return "" if isinstance(kind, StructType) or not leaf(kind, dialect).has_empty_text else None


def _reader(kind: DataType, dialect: Dialect, path: str) -> Callable[[str], Any]:
    if isinstance(kind, ArrayType):
        return _array(kind, dialect, path)
    if isinstance(kind, StructType):
        return _struct(kind, dialect, path)
    return leaf(kind, dialect).value


def _array(kind: ArrayType, dialect: Dialect, path: str) -> Callable[[str], list[Any]]:
    element = _nullable(kind.elementType, dialect, f"{path}[]", nullable=kind.containsNull)
    delimiter = dialect.array_delimiter

    def read(text: str) -> list[Any]:
        return [element(item) for item in text.split(delimiter)] if text.strip(BLANK) else []

    return read


def _struct(kind: StructType, dialect: Dialect, path: str) -> Callable[[str], Any]:
    fields = {
        inner.name: _nullable(
            inner.dataType, dialect, f"{path}.{inner.name}", nullable=inner.nullable
        )
        for inner in kind.fields
    }
    delimiter, count = dialect.array_delimiter, len(fields)

    def read(text: str) -> dict[str, Any] | None:
        if not text.strip(BLANK):
            return None
        items: list[str | None] = [*text.split(delimiter)]
        if len(items) != count and not dialect.ignore_parse_errors:
            raise ValueError(_mismatch(count, len(items)))
        items += [None] * (count - len(items))
        return {name: field(items[at]) for at, (name, field) in enumerate(fields.items())}

    return read


def _mismatch(expected: int, actual: int) -> str:
    """The wording is Flink's."""
    return f"Row length mismatch. {expected} fields expected but was {actual}."
