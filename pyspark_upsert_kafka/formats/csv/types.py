"""Which columns CSV can carry; said once, when a codec is compiled."""

from __future__ import annotations

from collections import Counter

from pyspark.sql.types import ArrayType, DataType, StructType

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.simple_types import TEXT_TYPES


def check_columns(columns: StructType) -> None:
    """Raises SchemaError for a column that CSV cannot carry, as ``CsvRowSchemaConverter`` does."""
    if not columns.fields:
        raise SchemaError(
            "The 'csv' format needs at least one column: it cannot write an empty row."
        )
    _check_names(columns, "")
    for field in columns.fields:
        kind = field.dataType
        if isinstance(kind, ArrayType):
            _check_nested([kind.elementType], field.name)
        elif isinstance(kind, StructType):
            _check_names(kind, f"{field.name}.")
            _check_nested([inner.dataType for inner in kind.fields], field.name)
        elif type(kind) not in TEXT_TYPES:
            raise SchemaError(
                f"Unsupported type '{kind.simpleString()}' for field '{field.name}': the 'csv' "
                "format carries booleans, numbers, strings, binary, dates, timestamps, and arrays "
                "and structs of these."
            )


def _check_names(columns: StructType, path: str) -> None:
    for name, times in Counter(columns.names).items():
        if times > 1:
            raise SchemaError(f"Field {path + name!r} occurs {times} times.")


def _check_nested(kinds: list[DataType], name: str) -> None:
    if not kinds:
        raise SchemaError(f"Field '{name}' is a struct without fields: the 'csv' format has none.")
    for kind in kinds:
        if type(kind) not in TEXT_TYPES:
            raise SchemaError(
                "Only simple types are supported in the second level nesting of fields "
                f"'{name}' but was: {kind.simpleString()}."
            )
