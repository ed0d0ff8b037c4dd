"""Columns and fields: which columns a schema means, and which field of a record each column of a table is.

The former is Spark's own ``SchemaConverters.toSqlType``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.leaf_types.table import column_of
from pyspark_upsert_kafka.formats.avro.model import (
    NULL,
    Array,
    AvroType,
    Field,
    LeafSchema,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
    logical_of,
)

_MOST_DIGITS = 38

MOST_COLUMNS = 100_000
"""The number of fields that a schema may have in all, a record counted each time it occurs: records within records multiply."""

_WIDER = {frozenset({"int", "long"}): LongType(), frozenset({"float", "double"}): DoubleType()}


def columns_of(schema: Schema, only: str | None = None) -> StructType:
    """The columns of a record schema: in its order, nullable where it has a union with null.

    Args:
        schema: The schema.
        only: Name of the only column, where the schema is not that of a record.

    Raises:
        SchemaError: It is not the schema of a record, or Spark has no type for a field.
    """
    top = schema.type
    if _count(top, {}) > MOST_COLUMNS:
        raise SchemaError(
            f"The Avro schema has more than {MOST_COLUMNS} fields in all, those of records within "
            "records counted each time. Give the columns by .schema(...)."
        )
    if isinstance(top, Record):
        return _columns(top, "")
    if only is None:
        raise SchemaError(
            "An Avro schema that gives the columns must be a record; this one is not. Give the "
            "columns by .schema(...)."
        )
    return StructType([_column(only, top, only)])


def _count(avro: AvroType, known: dict[str, int]) -> int:
    """How many types there are within a type; each record is counted once and kept."""
    if isinstance(avro, Record):
        if avro.name not in known:
            known[avro.name] = 1 + sum(_count(field.type, known) for field in avro.fields)
        return known[avro.name]
    if isinstance(avro, Union):
        return sum(_count(branch, known) for branch in avro.branches)
    if isinstance(avro, Array | Map):
        return 1 + _count(avro.items if isinstance(avro, Array) else avro.values, known)
    return 1


def _columns(record: Record, path: str) -> StructType:
    return StructType([_column(f.name, f.type, path + f.name) for f in record.fields])


def _column(name: str, avro: AvroType, path: str) -> StructField:
    column, nullable = _type(avro, path)
    return StructField(name, column, nullable)


def _type(avro: AvroType, path: str) -> tuple[DataType, bool]:
    """The type, and whether it may be NULL."""
    if isinstance(avro, Union):
        some = tuple(branch for branch in avro.branches if branch != NULL)
        return _of_branches(some, path), NULL in avro.branches
    if isinstance(avro, Array):
        return ArrayType(*_type(avro.items, f"{path}[]")), False
    if isinstance(avro, Map):
        return MapType(StringType(), *_type(avro.values, f"{path}{{}}")), False
    if isinstance(avro, Record):
        return _columns(avro, f"{path}."), False
    if isinstance(avro, Reference):
        raise _refused(path, f"the record {avro.name!r} within itself")
    return _leaf(avro, path), False


def _of_branches(branches: tuple[AvroType, ...], path: str) -> DataType:
    if len(branches) == 1:
        return _type(branches[0], path)[0]
    types = frozenset(branch.type for branch in branches if isinstance(branch, Primitive))
    if len(types) != len(branches) or types not in _WIDER:
        raise _refused(path, "a union of several types")
    return _WIDER[types]


def _leaf(avro: LeafSchema, path: str) -> DataType:
    logical = logical_of(avro)
    if logical and logical.precision > _MOST_DIGITS:
        raise _refused(path, f"a decimal of {logical.precision} digits")
    if avro == NULL:
        raise _refused(path, "nothing but null")
    return column_of(avro)


def _refused(path: str, what: str) -> SchemaError:
    return SchemaError(
        f"Field {path!r} of the Avro schema is {what}, for which Spark has no type. Give the columns "
        "by .schema(...)."
    )


def fields_to_read(
    writer: Record, reader: Record | None, columns: pa.StructType
) -> tuple[dict[str, tuple[int, AvroType | None]], dict[int, Field | None]]:
    """Which column each of the writer's fields is read into, and the columns that it has no field for.

    Returns:
        First, by the name of each field that is read, the position of its column, and its type in the reader's schema
        if there is one. Then, by their positions, the other columns, each with its field in the reader's schema.

    Raises:
        SchemaError: A field would be read into two columns.
    """
    names = [column.name for column in columns]
    of_columns = {field.name: field for field in (reader or writer).fields}
    of_writer = {field.name: field for field in writer.fields}
    in_schema = NamesInSchema(of_columns, names)
    found: dict[str, tuple[int, AvroType | None]] = {}
    unwritten: dict[int, Field | None] = {}
    for slot, column in enumerate(names):
        name = in_schema.of(column)
        field = None if name is None else of_columns[name]
        written = _written_field(field, of_writer) if field and reader else field
        if written is None:
            unwritten[slot] = field
        elif written.name in found:
            raise SchemaError(f"field {written.name!r} is read into two columns")
        else:
            found[written.name] = slot, field.type if field and reader else None
    return found, unwritten


class NamesInSchema:
    """The fields that columns have in a schema.

    A column has the field of exactly its name, else the only one that differs in case alone. A field that has exactly the
    name of another column belongs to that column.

    Args:
        fields: The names of the fields.
        columns: The names of all columns.
    """

    def __init__(self, fields: Iterable[str], columns: Iterable[str]) -> None:
        self._fields = frozenset(fields)
        self._free: dict[str, list[str]] = {}
        for field in self._fields.difference(columns):
            self._free.setdefault(field.lower(), []).append(field)

    def of(self, column: str) -> str | None:
        """The name of a column's field; None = it has none."""
        if column in self._fields:
            return column
        free = self._free.get(column.lower(), [])
        return free[0] if len(free) == 1 else None


def _written_field(field: Field, writer: Mapping[str, Field]) -> Field | None:
    """The writer's field that a reader's field is, by its name or else by an alias."""
    return next((writer[name] for name in (field.name, *field.aliases) if name in writer), None)


def fields_to_write(record: Record, columns: StructType, path: str) -> dict[str, int]:
    """The position of the column that each field is written from, by the name of the field.

    A column is the field of exactly its name, else the only one that differs in case alone.

    Args:
        record: The record to be written.
        columns: The columns, all of which need a field.
        path: Where these columns stand, for errors: empty, or a name and a dot.

    Raises:
        SchemaError: A column has no field, or shares it with another.
    """
    names = [field.name for field in record.fields]
    found: dict[str, int] = {}
    for at, column in enumerate(columns.names):
        name = _field_to_write(column, names, path)
        if name in found:
            raise SchemaError(
                f"Columns {path + columns.names[found[name]]!r} and {path + column!r} both give the "
                f"field {name!r} of the Avro schema."
            )
        found[name] = at
    return found


def _field_to_write(column: str, names: list[str], path: str) -> str:
    alike = [column] if column in names else [n for n in names if n.lower() == column.lower()]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise SchemaError(
            f"Column {path + column!r} may be any of the fields {', '.join(alike)} of the Avro "
            "schema; write its name as one of them."
        )
    raise SchemaError(
        f"The Avro schema has no field for column {path + column!r}; its fields there: "
        f"{', '.join(names)}."
    )
