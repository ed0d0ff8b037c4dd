"""The columns of a table fitted to an Avro schema: a tree of writers, compiled once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.defaults import default_datum
from pyspark_upsert_kafka.formats.avro.encoding import nested
from pyspark_upsert_kafka.formats.avro.encoding.nested import columns_by_field
from pyspark_upsert_kafka.formats.avro.encoding.type_mapping import Timestamps, Writer, leaf_writer
from pyspark_upsert_kafka.formats.avro.errors import type_label
from pyspark_upsert_kafka.formats.avro.model import (
    NO_DEFAULT,
    Array,
    AvroType,
    Field,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
)

_NULL = Primitive("null")
_WAY_OUT = "Cast the column, or give a schema that it fits."
_NEAREST = ("int", "long", "float", "double", "string", "bytes")


def datum_writer(schema: Schema, columns: StructType, timestamps: Timestamps) -> Writer:
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

    def value(self, avro: AvroType, kind: DataType, path: str) -> Writer:
        """The writer of a column, nulls included."""
        if not isinstance(avro, Union):
            return partial(nested.never_null, path, self._present(avro, kind, path))
        number, write = self._branch(avro, kind, path)
        if _NULL in avro.branches:
            return partial(nested.branch_or_null, number, avro.branches.index(_NULL), write)
        return partial(nested.never_null, path, partial(nested.branch, number, write))

    def _branch(self, union: Union, kind: DataType, path: str) -> tuple[int, Writer]:
        """The branch that a column goes into: among several the one nearest to its type."""
        some = [branch for branch in union.branches if branch != _NULL]
        if len(some) == 1:
            return union.branches.index(some[0]), self._present(some[0], kind, path)
        for branch in sorted(some, key=_nearness):
            try:
                return union.branches.index(branch), self._present(branch, kind, path)
            except SchemaError:
                continue
        raise SchemaError(
            f"Column {path!r} is {kind.simpleString().upper()}, which can be written as none of "
            f"Avro's {', '.join(map(type_label, union.branches))}. {_WAY_OUT}"
        )

    def _present(self, avro: AvroType, kind: DataType, path: str) -> Writer:
        """The writer of a column without nulls."""
        if isinstance(avro, Reference):
            avro = self.schema.records[avro.name]
        if isinstance(avro, Record) and isinstance(kind, StructType):
            return partial(nested.record, self._fields(avro, kind, f"{path}." if path else ""))
        if isinstance(avro, Array) and isinstance(kind, ArrayType):
            return partial(nested.items, self.value(avro.items, kind.elementType, f"{path}[]"))
        if isinstance(avro, Map) and _has_text_keys(kind):
            return partial(nested.entries, self.value(avro.values, kind.valueType, f"{path}{{}}"))
        write = leaf_writer(kind, avro, self.timestamps)
        if write is None:
            raise SchemaError(
                f"Column {path!r} is {kind.simpleString().upper()}, which cannot be written as "
                f"Avro's {type_label(avro)}. {_WAY_OUT}"
            )
        return partial(nested.blaming, path, write)

    def _fields(
        self, record: Record, columns: StructType, prefix: str
    ) -> list[tuple[int, Writer] | bytes]:
        positions = columns_by_field(record, columns, prefix)
        fields: list[tuple[int, Writer] | bytes] = []
        for field in record.fields:
            if field.name in positions:
                at = positions[field.name]
                column = columns.fields[at]
                write = self.value(field.type, column.dataType, prefix + column.name)
                fields.append((at, write))
            else:
                fields.append(self._default(field, prefix + field.name))
        return fields

    def _default(self, field: Field, path: str) -> bytes:
        if field.default is NO_DEFAULT:
            raise SchemaError(
                f"No column gives the field {path!r} of the Avro schema, and it has no default."
            )
        try:
            return default_datum(self.schema, field.type, field.default)
        except ValueError as why:
            raise SchemaError(
                f"The default of the field {path!r} of the Avro schema is wrong: {why}."
            ) from None


def _has_text_keys(kind: DataType) -> TypeGuard[MapType]:
    return isinstance(kind, MapType) and isinstance(kind.keyType, StringType)


def _branches(avro: AvroType) -> tuple[AvroType, ...]:
    return avro.branches if isinstance(avro, Union) else (avro,)


def _nearness(branch: AvroType) -> int:
    """Types that a column may be promoted to stand behind its own."""
    if isinstance(branch, Primitive) and branch.kind in _NEAREST:
        return _NEAREST.index(branch.kind)
    return len(_NEAREST)
