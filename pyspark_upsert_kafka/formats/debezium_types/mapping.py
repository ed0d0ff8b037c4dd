"""A schema and the columns that a table wants: what the plain decoder reads, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.batches import batch_of, without
from pyspark_upsert_kafka.formats.codec import Decoded
from pyspark_upsert_kafka.formats.debezium_types.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.debezium_types.conversion import (
    Conversion,
    Errors,
    ItemsConversion,
    LeafConversion,
    StructConversion,
    row_errors,
)
from pyspark_upsert_kafka.formats.debezium_types.semantic_types import SemanticType, semantic_type
from pyspark_upsert_kafka.formats.decoded_size import Budget
from pyspark_upsert_kafka.formats.exact_types import with_type


@dataclass(frozen=True)
class FieldMapping:
    """How a field becomes a column.

    Args:
        physical: The type as which the plain decoder reads it.
        convert: From that to the column; None = that is the column.
    """

    physical: DataType
    convert: Conversion | None = None


@dataclass(frozen=True)
class RowMapping:
    """How the fields of a struct become the columns of a table.

    Args:
        physical: What the plain decoder reads: the table's columns, some of them with another type.
        target: The table's columns in Arrow.
        conversions: What is made of some columns, by their place.
        skip_bad: Pass over the messages of errors, as a format's ``ignore-parse-errors`` demands.
    """

    physical: StructType
    target: pa.Schema
    conversions: Mapping[int, Conversion]
    skip_bad: bool = False

    def apply(self, decoded: Decoded) -> Decoded:
        """What the plain decoder made of some messages, as the table's columns; an error is that of its message.

        Raises:
            TooManyMessagesError: The columns would be too large together.
        """
        if not self.conversions:
            return decoded
        columns, bad = self._converted(decoded.rows, Budget(decoded.rows.num_rows))
        exact = [with_type(c, field.type) for c, field in zip(columns, self.target, strict=True)]
        rows = batch_of(exact, self.target, decoded.rows.num_rows)
        return without(replace(decoded, rows=rows), bad, skip=self.skip_bad)

    def _converted(self, rows: pa.RecordBatch, budget: Budget) -> tuple[Sequence[pa.Array], Errors]:
        columns, found = list(rows.columns), []
        for at, convert in self.conversions.items():
            columns[at], errors = convert(columns[at], budget)
            found.append(errors)
        return columns, row_errors(found)


def row_mapping(schema: ConnectSchema | None, columns: StructType, *, lenient: bool) -> RowMapping:
    """How the fields of a struct become the columns of a table.

    A column without a field in the schema, and each column where there is no schema, is left to the plain decoder.

    Args:
        schema: The schema of the struct.
        columns: What the table wants.
        lenient: Whether a bad value is NULL, as ``ignore-parse-errors`` demands; not in a column that is NOT NULL.

    Raises:
        SchemaError: A column cannot hold what its field means.
    """
    fields = {} if schema is None else schema.fields
    mappings = [
        _field(fields.get(column.name), column, column.name, lenient=lenient)
        for column in columns.fields
    ]
    physical, target = _physical(columns, mappings), arrow_schema(columns)
    return RowMapping(physical, target, _conversions(mappings), skip_bad=lenient)


def _field(
    schema: ConnectSchema | None, column: StructField, path: str, *, lenient: bool
) -> FieldMapping:
    lenient_here = lenient and column.nullable
    return field_mapping(schema, column.dataType, path, lenient=lenient_here)


def field_mapping(
    schema: ConnectSchema | None, wanted: DataType, path: str, *, lenient: bool = False
) -> FieldMapping:
    """How a field becomes a column.

    Args:
        schema: The schema of the field; None = it is not known.
        wanted: The type of the column.
        path: The column, for errors.
        lenient: Whether a bad value is NULL.

    Raises:
        SchemaError: The column cannot hold what the field means.
    """
    if schema is None:
        return FieldMapping(wanted)
    meant = semantic_type(schema)
    if meant is not None:
        return _leaf(schema, meant, wanted, path, lenient=lenient)
    if isinstance(wanted, StructType) and schema.type == "struct":
        return _struct(schema, wanted, path, lenient=lenient)
    if isinstance(wanted, ArrayType) and schema.type == "array":
        return _array(schema, wanted, path, lenient=lenient)
    if isinstance(wanted, MapType) and schema.type == "map":
        return _map(schema, wanted, path, lenient=lenient)
    return FieldMapping(wanted)


def _leaf(
    schema: ConnectSchema, meant: SemanticType, wanted: DataType, path: str, *, lenient: bool
) -> FieldMapping:
    reading = meant.read(schema, wanted)
    if reading is None:
        raise SchemaError(
            f"Column {path!r} has the type {wanted.simpleString()}, but the schema of the message says "
            f"{schema.shown()}: declare it {meant.fits}."
        )
    if reading.value is None:
        return FieldMapping(reading.physical)
    kind = arrow_schema(StructType([StructField("value", wanted)])).field(0).type
    convert = LeafConversion(path, reading.column, reading.value, kind, lenient)
    return FieldMapping(reading.physical, convert)


def _struct(schema: ConnectSchema, wanted: StructType, path: str, *, lenient: bool) -> FieldMapping:
    mappings = [
        _field(schema.fields.get(part.name), part, f"{path}.{part.name}", lenient=lenient)
        for part in wanted.fields
    ]
    conversions = _conversions(mappings)
    return FieldMapping(
        _physical(wanted, mappings), StructConversion(conversions) if conversions else None
    )


def _array(schema: ConnectSchema, wanted: ArrayType, path: str, *, lenient: bool) -> FieldMapping:
    lenient_here = lenient and wanted.containsNull
    item = field_mapping(schema.items, wanted.elementType, f"{path}[]", lenient=lenient_here)
    physical = ArrayType(item.physical, wanted.containsNull)
    return FieldMapping(physical, ItemsConversion(item.convert) if item.convert else None)


def _map(schema: ConnectSchema, wanted: MapType, path: str, *, lenient: bool) -> FieldMapping:
    lenient_here = lenient and wanted.valueContainsNull
    value = field_mapping(schema.items, wanted.valueType, f"{path}{{}}", lenient=lenient_here)
    physical = MapType(wanted.keyType, value.physical, wanted.valueContainsNull)
    return FieldMapping(physical, ItemsConversion(value.convert) if value.convert else None)


def _physical(columns: StructType, mappings: Sequence[FieldMapping]) -> StructType:
    return StructType(
        [
            StructField(column.name, mapping.physical, column.nullable)
            for column, mapping in zip(columns.fields, mappings, strict=True)
        ]
    )


def _conversions(mappings: Sequence[FieldMapping]) -> Mapping[int, Conversion]:
    return {at: each.convert for at, each in enumerate(mappings) if each.convert is not None}
