"""The columns of a table by a Connect schema: what the plain decoder reads of a field, and what is made of it.

A conversion keeps what is null as null, and a bad value becomes null: it is the error of its message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.batches import batch_of, with_type
from pyspark_upsert_kafka.formats.binary_values import Numbers
from pyspark_upsert_kafka.formats.cdc.connect_schema import ConnectSchema, SemanticType
from pyspark_upsert_kafka.formats.cdc.semantic_types import semantic_type
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from pyspark_upsert_kafka.formats.decoded_size import Budget
from pyspark_upsert_kafka.formats.decoding import without
from pyspark_upsert_kafka.formats.json.json_document import shown

_Errors = Mapping[int, str]
"""Positions in a column, and what is wrong with the value there or in it."""

_Conversion = Callable[[pa.Array, Budget], "tuple[pa.Array, _Errors]"]
"""A column of the physical type to one of the table's type, whose nested fields may have other names and be nullable.

How large the columns of some messages may become together is a budget: a decimal of a few bytes may be a text of 200 KB.
"""


@dataclass(frozen=True)
class FieldMapping:
    """How a field becomes a column.

    Args:
        physical: The type as which the plain decoder reads it.
        convert: From that to the column; None = that is the column.
    """

    physical: DataType
    convert: _Conversion | None = None


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
    conversions: Mapping[int, _Conversion]
    skip_bad: bool = False

    def apply(self, decoded: Decoded) -> Decoded:
        """What the plain decoder made of some messages, as the table's columns; an error is that of its message.

        Raises:
            TooManyMessagesError: The columns would be too large together.
        """
        if not self.conversions:
            return decoded
        count = decoded.rows.num_rows
        budget, columns = Budget(count), list(decoded.rows.columns)
        bad: dict[int, str] = {}
        for at, convert in self.conversions.items():
            columns[at], found = convert(columns[at], budget)
            for row, why in found.items():
                bad.setdefault(row, why)  # of several in a row the first
        exact = [with_type(c, field.type) for c, field in zip(columns, self.target, strict=True)]
        rows = batch_of(exact, self.target, count)
        return without(replace(decoded, rows=rows), bad, skip=self.skip_bad)


@dataclass(frozen=True)
class MappedDecoder:
    """Decodes the physical columns, and makes the table's columns of them.

    Args:
        plain: Decodes the physical columns.
        mapping: What is made of these.
    """

    plain: Decoder
    mapping: RowMapping

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of some messages."""
        return self.mapping.apply(self.plain.decode(messages))


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
    read_as = meant.read(schema, wanted)
    if read_as is None:
        raise SchemaError(
            f"Column {path!r} has the type {wanted.simpleString()}, but the schema of the message says "
            f"{schema.shown()}: declare it {meant.fits}."
        )
    if read_as.value is None:
        return FieldMapping(read_as.physical)
    kind = arrow_schema(StructType([StructField("value", wanted)])).field(0).type
    convert = LeafConversion(path, read_as.column, read_as.value, kind, lenient)
    return FieldMapping(read_as.physical, convert)


def _struct(schema: ConnectSchema, wanted: StructType, path: str, *, lenient: bool) -> FieldMapping:
    mappings = [
        _field(schema.fields.get(part.name), part, f"{path}.{part.name}", lenient=lenient)
        for part in wanted.fields
    ]
    conversions = _conversions(mappings)
    return FieldMapping(
        _physical(wanted, mappings), _StructConversion(conversions) if conversions else None
    )


def _array(schema: ConnectSchema, wanted: ArrayType, path: str, *, lenient: bool) -> FieldMapping:
    lenient_here = lenient and wanted.containsNull
    item = field_mapping(schema.items, wanted.elementType, f"{path}[]", lenient=lenient_here)
    physical = ArrayType(item.physical, wanted.containsNull)
    return FieldMapping(physical, _ItemsConversion(item.convert) if item.convert else None)


def _map(schema: ConnectSchema, wanted: MapType, path: str, *, lenient: bool) -> FieldMapping:
    lenient_here = lenient and wanted.valueContainsNull
    value = field_mapping(schema.items, wanted.valueType, f"{path}{{}}", lenient=lenient_here)
    physical = MapType(wanted.keyType, value.physical, wanted.valueContainsNull)
    return FieldMapping(physical, _ItemsConversion(value.convert) if value.convert else None)


def _physical(columns: StructType, mappings: Sequence[FieldMapping]) -> StructType:
    return StructType(
        [
            StructField(column.name, mapping.physical, column.nullable)
            for column, mapping in zip(columns.fields, mappings, strict=True)
        ]
    )


def _conversions(mappings: Sequence[FieldMapping]) -> Mapping[int, _Conversion]:
    return {at: each.convert for at, each in enumerate(mappings) if each.convert is not None}


@dataclass(frozen=True)
class LeafConversion:
    """Converts the values of a semantic type.

    Args:
        path: Where the field stands, for errors: ``after.lines[].price``.
        column: A column of the physical type to that of the table, as in `ReadAs`.
        value: The same of a value.
        kind: The type of the column.
        lenient: Whether a bad value is NULL and no error.
    """

    path: str
    column: Callable[[pa.Array], pa.Array] | None
    value: Callable[[Any], Any]
    kind: pa.DataType
    lenient: bool = False

    def __call__(self, array: pa.Array, budget: Budget) -> tuple[pa.Array, _Errors]:
        """The column, and its errors. Raises TooManyMessagesError."""
        if self.column is not None:
            try:
                return self.column(array).cast(self.kind), {}
            except ValueError:  # pyarrow's ArrowInvalid is one
                pass
        return self._one_by_one(array, budget)

    def _one_by_one(self, array: pa.Array, budget: Budget) -> tuple[pa.Array, _Errors]:
        read, found, errors = self.value, [], {}
        for at, value in enumerate(array.to_pylist()):
            try:
                seen = None if value is None else read(value)
                if isinstance(seen, str):
                    budget.take_text(seen)
                found.append(seen)
            except ValueError as why:
                found.append(None)
                errors[at] = self._error(value, why)
        return pa.array(found, self.kind), {} if self.lenient else errors

    def _error(self, value: Any, why: ValueError) -> str:
        return f"field '{self.path}': {why}, got {shown(value)}"


@dataclass(frozen=True)
class _StructConversion:
    """Converts some fields of structs.

    Args:
        fields: A conversion for each field that needs one, by its place.
    """

    fields: Mapping[int, _Conversion]

    def __call__(self, array: pa.StructArray, budget: Budget) -> tuple[pa.Array, _Errors]:
        """The structs; what stands in a struct that is null is no error."""
        valid = array.is_valid()
        children, errors = [array.field(at) for at in range(array.type.num_fields)], {}
        for at, convert in self.fields.items():
            children[at], found = convert(children[at], budget)
            errors.update({row: why for row, why in found.items() if valid[row].as_py()})
        names = [field.name for field in array.type]
        made = pa.StructArray.from_arrays(children, names, mask=array.is_null()) if names else array
        return made, errors


@dataclass(frozen=True)
class _ItemsConversion:
    """Converts the items of arrays, or the values of maps.

    Args:
        items: The conversion of an item.
    """

    items: _Conversion

    def __call__(self, array: pa.Array, budget: Budget) -> tuple[pa.Array, _Errors]:
        """The arrays or maps, whose errors are those of their items."""
        values, found = self._converted(array, budget)
        kind = _kind_around(array.type, values)
        offsets = _offsets(array)
        exact = with_type(values, kind.field(0).type)
        own = array.buffers()[:2]
        made = pa.Array.from_buffers(kind, len(array), own, offset=array.offset, children=[exact])
        return made, _errors_of_rows(found, offsets, array)

    def _converted(self, array: pa.Array, budget: Budget) -> tuple[pa.Array, _Errors]:
        if not pa.types.is_map(array.type):
            return self.items(array.values, budget)
        entries = array.values
        values, found = self.items(entries.field(1), budget)
        names = [field.name for field in entries.type]
        return pa.StructArray.from_arrays([entries.field(0), values], names), found


def _kind_around(kind: pa.DataType, values: pa.Array) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(values.type.field(0).type, values.type.field(1).type)
    return pa.list_(values.type)


def _offsets(array: pa.Array) -> Numbers:
    """Where the items of each row begin, and where those of the last one end."""
    if not len(array):
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]


def _errors_of_rows(found: _Errors, offsets: Numbers, array: pa.Array) -> _Errors:
    """The errors of items as those of the rows that they stand in; of several the first. Some stand in no row."""
    errors: dict[int, str] = {}
    for item in sorted(found):
        row = int(np.searchsorted(offsets, item, side="right")) - 1
        if 0 <= row < len(array) and array[row].is_valid:
            errors.setdefault(row, found[item])
    return errors
