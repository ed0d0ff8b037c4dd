"""Rows to Avro, column by column: each column becomes bytes, and the bytes are joined.

There is a vectorised path only, and no row path: every type has a vectorised writer, so equal rows give equal bytes
whatever stands beside them. The schema is compiled into a tree of functions once. Arrays and maps are written as one
block, as Java does: count, items, and a zero that ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from pyspark_upsert_kafka.core.errors import EncodeError, SchemaError
from pyspark_upsert_kafka.formats.avro.avro_defaults import default_datum, long
from pyspark_upsert_kafka.formats.avro.avro_leaf_writers import (
    Timestamps,
    Writer,
    WrittenField,
    byte_strings,
    longs,
    write_leaf,
)
from pyspark_upsert_kafka.formats.avro.avro_types import (
    NO_DEFAULT,
    NULL,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
    type_label,
)
from pyspark_upsert_kafka.formats.binary.byte_parts import (
    ByteParts,
    among,
    constant,
    grouped,
    joined,
)
from pyspark_upsert_kafka.formats.codec import Encoder
from pyspark_upsert_kafka.formats.exact_types import as_lists

_WAY_OUT = "Cast the column, or give a schema that it fits."
_NEAREST = ("int", "long", "float", "double", "string", "bytes")


def datum_encoder(
    schema: Schema,
    columns: StructType,
    *,
    prefix: bytes = b"",
    legacy_timestamps: bool = True,
    remedy: str | None = None,
) -> Encoder:
    """Compiles an encoder that writes each row as one datum of a schema.

    Args:
        schema: What to write: a record with a field for every column, or another type if there is a single column,
            which then is the whole datum.
        columns: The columns of the rows.
        prefix: What every message begins with.
        legacy_timestamps: See `Timestamps`.
        remedy: See there.

    Raises:
        SchemaError: The columns do not fit the schema.
    """
    timestamps = Timestamps(legacy_timestamps, remedy)
    return _DatumEncoder(_datum_writer(schema, columns, timestamps), prefix)


@dataclass(frozen=True)
class _DatumEncoder:
    write: Writer
    prefix: bytes

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        parts = self.write(rows.to_struct_array())
        prefix = constant(self.prefix, rows.num_rows)
        return joined([prefix, *parts], rows.num_rows)


def _datum_writer(schema: Schema, columns: StructType, timestamps: Timestamps) -> Writer:
    """The writer of rows, given as structs.

    Raises:
        SchemaError: The columns do not fit the schema.
    """
    compiler = _Compiler(schema, timestamps)
    datum = schema.type
    if any(isinstance(branch, Record) for branch in _branches(datum)):
        return compiler.value(datum, columns, "")
    if len(columns) != 1:
        raise SchemaError(
            f"The Avro schema is a single {type_label(datum)}, no record: only one column can be "
            f"written as it, not {len(columns)}."
        )
    only = columns.fields[0]
    write = compiler.value(datum, only.dataType, only.name)
    return lambda rows: write(rows.field(0))


@dataclass(frozen=True)
class _Compiler:
    schema: Schema
    timestamps: Timestamps

    def value(self, avro: AvroType, column: DataType, path: str) -> Writer:
        """The writer of a column, nulls included."""
        if not isinstance(avro, Union):
            return partial(_refuse_null, path, self._present(avro, column, path))
        number, write = self._branch(avro, column, path)
        if NULL in avro.branches:
            return partial(_write_branch_or_null, number, avro.branches.index(NULL), write)
        return partial(_refuse_null, path, partial(_write_branch, number, write))

    def _branch(self, union: Union, column: DataType, path: str) -> tuple[int, Writer]:
        """The branch that a column is written as, by its number; of several that fit the one nearest to its type."""
        some = [branch for branch in union.branches if branch != NULL]
        if len(some) == 1:
            return union.branches.index(some[0]), self._present(some[0], column, path)
        for branch in sorted(some, key=_nearness):
            try:
                return union.branches.index(branch), self._present(branch, column, path)
            except SchemaError:
                continue
        raise SchemaError(
            f"Column {path!r} is {column.simpleString().upper()}, which can be written as none of "
            f"Avro's {', '.join(map(type_label, union.branches))}. {_WAY_OUT}"
        )

    def _present(self, avro: AvroType, column: DataType, path: str) -> Writer:
        """The writer of a column without nulls."""
        if isinstance(avro, Reference):
            avro = self.schema.records[avro.name]
        if isinstance(avro, Record) and isinstance(column, StructType):
            return partial(_write_record, self._fields(avro, column, f"{path}." if path else ""))
        if isinstance(avro, Array) and isinstance(column, ArrayType):
            return partial(_write_items, self.value(avro.items, column.elementType, f"{path}[]"))
        if isinstance(avro, Map) and _has_text_keys(column):
            return partial(_write_entries, self.value(avro.values, column.valueType, f"{path}{{}}"))
        write = None
        if isinstance(avro, Primitive | Fixed | Enum):
            write = write_leaf(WrittenField(column, avro, self.timestamps))
        if write is None:
            raise SchemaError(
                f"Column {path!r} is {column.simpleString().upper()}, which cannot be written as "
                f"Avro's {type_label(avro)}. {_WAY_OUT}"
            )
        return partial(_naming_column, path, write)

    def _fields(
        self, record: Record, columns: StructType, prefix: str
    ) -> list[tuple[int, Writer] | bytes]:
        positions = _fields_to_write(record, columns, prefix)
        fields: list[tuple[int, Writer] | bytes] = []
        for field in record.fields:
            if field.name in positions:
                at = positions[field.name]
                column = columns.fields[at]
                write = self.value(field.type, column.dataType, prefix + column.name)
                fields.append((at, write))
            else:
                fields.append(_unwritten_field(self.schema, field, prefix + field.name))
        return fields


def _fields_to_write(record: Record, columns: StructType, path: str) -> dict[str, int]:
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


def _unwritten_field(schema: Schema, field: Field, path: str) -> bytes:
    """What is written for a field that no column gives: its default.

    Raises:
        SchemaError: It has none, or a wrong one.
    """
    if field.default is NO_DEFAULT:
        raise SchemaError(
            f"No column gives the field {path!r} of the Avro schema, and it has no default."
        )
    try:
        return default_datum(schema, field.type, field.default)
    except ValueError as why:
        raise SchemaError(
            f"The default of the field {path!r} of the Avro schema is wrong: {why}."
        ) from None


def _has_text_keys(column: DataType) -> TypeGuard[MapType]:
    return isinstance(column, MapType) and isinstance(column.keyType, StringType)


def _branches(avro: AvroType) -> tuple[AvroType, ...]:
    return avro.branches if isinstance(avro, Union) else (avro,)


def _nearness(branch: AvroType) -> int:
    """The order in which branches are tried: a type before those that it is promoted to."""
    if isinstance(branch, Primitive) and branch.type in _NEAREST:
        return _NEAREST.index(branch.type)
    return len(_NEAREST)


def _naming_column(path: str, write: Writer, array: pa.Array) -> ByteParts:
    """Writes a column; the error of a value names the column."""
    try:
        return write(array)
    except ValueError as why:
        raise EncodeError(path, str(why)) from None


def _refuse_null(path: str, write: Writer, array: pa.Array) -> ByteParts:
    """Writes a column that has no union with null."""
    if array.null_count:
        raise EncodeError(path, "NULL, but the Avro schema has no union with null there")
    return write(array)


def _write_branch(number: int, write: Writer, array: pa.Array) -> ByteParts:
    """Writes a column as one branch of a union."""
    return [constant(long(number), len(array)), *write(array)]


def _write_branch_or_null(number: int, null: int, write: Writer, array: pa.Array) -> ByteParts:
    """Writes a column as one branch of a union, and NULL as another."""
    if not array.null_count:
        return _write_branch(number, write, array)
    present = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = longs(np.where(present, number, null))
    return [numbers, *(among(part, present) for part in write(array.drop_null()))]


def _write_record(fields: list[tuple[int, Writer] | bytes], array: pa.StructArray) -> ByteParts:
    """Writes each field in turn: the child at a position by its writer, or the same bytes in every row."""
    children = array.flatten()
    parts: ByteParts = []
    for field in fields:
        if isinstance(field, bytes):
            parts.append(constant(field, len(array)))
        else:
            at, write = field
            parts += write(children[at])
    return parts


def _write_items(write: Writer, lists: pa.ListArray) -> ByteParts:
    """Writes arrays."""
    counts = pc.list_value_length(lists).to_numpy()
    values = lists.flatten()
    block = grouped(joined(write(values), len(values)), counts)
    count = among(longs(counts[counts > 0]), counts > 0)
    return [count, block, constant(b"\0", len(lists))]


def _write_entries(write: Writer, maps: pa.MapArray) -> ByteParts:
    """Writes maps."""

    def entry(pairs: pa.StructArray) -> ByteParts:
        keys, values = pairs.flatten()
        return [*byte_strings(keys), *write(values)]

    return _write_items(entry, as_lists(maps))
