"""The schema of Avro messages as the columns of a table see it: each field under the name of the column that it is read into."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.formats.avro.columns import field_of_column, name_in_schema
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
        for column in wanted.fields:
            name, of_reader = _field(column.name, wanted.names, schema, seen)
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


def _field(
    column: str, columns: Collection[str], schema: ConnectSchema, reader: AvroType | None
) -> tuple[str | None, AvroType | None]:
    """The name of a column's field in the schema, None = it has none; and the type that the reader takes it as."""
    if not isinstance(reader, Record):
        return name_in_schema(column, schema.fields, columns), None
    field = field_of_column(column, reader.fields, columns)
    if field is None:
        return None, None
    return next((n for n in (field.name, *field.aliases) if n in schema.fields), None), field.type
