"""The schema of Avro messages as the columns of a table see it: each field under the name of the column that it is read into."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.formats.avro.columns import NamesInSchema
from pyspark_upsert_kafka.formats.avro.model import (
    Array,
    AvroType,
    Map,
    Record,
    Reference,
    Schema,
    Union,
)
from pyspark_upsert_kafka.formats.debezium_types.connect_schema import ConnectSchema

_SHAPES = {"struct": Record, "array": Array, "map": Map}


def named_as_columns(
    schema: ConnectSchema, columns: StructType, reader: Schema | None
) -> ConnectSchema:
    """The schema of a record, with its fields under the names of the columns, as Avro finds the field of a column.

    Args:
        schema: What the messages are written with. One that is no record is that of the only column.
        columns: The columns.
        reader: The reader's schema, whose fields may have other names, with aliases; None = there is none.
    """
    if schema.type != "struct" and len(columns) == 1:
        return ConnectSchema("struct", fields={columns.names[0]: schema})
    if reader is None:
        return _named(schema, columns, None, {})
    return _named(schema, columns, reader.type, reader.records)


def _named(
    schema: ConnectSchema,
    wanted: DataType,
    reader: AvroType | None,
    records: Mapping[str, Record],
) -> ConnectSchema:
    seen = _of_shape(reader, schema.type, records)
    if isinstance(wanted, StructType) and schema.type == "struct":
        fields = {}
        of_column = _fields(wanted.names, schema, seen)
        for column in wanted.fields:
            name, of_reader = of_column(column.name)
            if name is not None:
                part = schema.fields[name]
                fields[column.name] = _named(part, column.dataType, of_reader, records)
        return replace(schema, fields=fields)
    if isinstance(wanted, ArrayType | MapType) and schema.items is not None:
        inner = wanted.elementType if isinstance(wanted, ArrayType) else wanted.valueType
        return replace(schema, items=_named(schema.items, inner, _items(seen), records))
    return schema


def _of_shape(reader: AvroType | None, kind: str, records: Mapping[str, Record]) -> AvroType | None:
    """The record, array or map that the reader takes; None = it takes none."""
    branches = reader.branches if isinstance(reader, Union) else (reader,)
    found = (records[each.name] if isinstance(each, Reference) else each for each in branches)
    shape = _SHAPES.get(kind)
    return None if shape is None else next((e for e in found if isinstance(e, shape)), None)


def _items(reader: AvroType | None) -> AvroType | None:
    if isinstance(reader, Array):
        return reader.items
    return reader.values if isinstance(reader, Map) else None


def _fields(
    columns: Collection[str], schema: ConnectSchema, reader: AvroType | None
) -> Callable[[str], tuple[str | None, AvroType | None]]:
    """From a column to the name of its field in the schema, None = it has none; and the type that the reader takes it as."""
    if not isinstance(reader, Record):
        of_schema = NamesInSchema(schema.fields, columns)
        return lambda column: (of_schema.of(column), None)
    of_reader = {field.name: field for field in reader.fields}
    names = NamesInSchema(of_reader, columns)

    def field(column: str) -> tuple[str | None, AvroType | None]:
        name = names.of(column)
        if name is None:
            return None, None
        found = of_reader[name]
        written = (n for n in (found.name, *found.aliases) if n in schema.fields)
        return next(written, None), found.type

    return field
