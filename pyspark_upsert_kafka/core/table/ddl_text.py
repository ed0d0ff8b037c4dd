"""Columns and their types as Spark's DDL has them."""

from __future__ import annotations

import re

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from pyspark_upsert_kafka.core.table.names import quoted


def columns_as_ddl(schema: StructType) -> str:
    """The columns as Spark's DDL, but for NOT NULL of elements, which it has no word for.

    >>> of_row = StructType([StructField("B", ArrayType(StructType()), nullable=False)])
    >>> columns_as_ddl(StructType([StructField("a b", of_row)]))
    '`a b` STRUCT<B: ARRAY<STRUCT<>> NOT NULL>'
    """
    return ", ".join(map(_column, schema))


def type_as_ddl(kind: DataType) -> str:
    """A type as Spark's DDL, with the limit of `columns_as_ddl`."""
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(_column(field, ': ') for field in kind)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{type_as_ddl(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{type_as_ddl(kind.keyType)}, {type_as_ddl(kind.valueType)}>"
    return kind.simpleString().upper()


def name_as_ddl(name: str) -> str:
    """A column's name, in backticks only where it needs them.

    >>> name_as_ddl("id"), name_as_ddl("a b")
    ('id', '`a b`')
    """
    if re.fullmatch(r"[a-z_][a-z0-9_]*", name, re.IGNORECASE | re.ASCII):
        return name
    return quoted(name)


def _column(field: StructField, separator: str = " ") -> str:
    return f"{name_as_ddl(field.name)}{separator}{type_as_ddl(field.dataType)}" + (
        "" if field.nullable else " NOT NULL"
    )
