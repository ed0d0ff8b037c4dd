"""The writer's schema resolved to the table's columns (Avro specification 1.12, "Schema Resolution").

Columns find their fields by name: in the reader's schema when one is given, and from there by name or
alias in the writer's; else in the writer's own. The records' own names do not matter, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.decoding.exact import value_reader
from pyspark_upsert_kafka.formats.avro.decoding.fitting import fitted
from pyspark_upsert_kafka.formats.avro.decoding.names import named, written_as
from pyspark_upsert_kafka.formats.avro.decoding.passing import Passing
from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    Node,
    Null,
    Parts,
    Plan,
    Repeated,
)
from pyspark_upsert_kafka.formats.avro.decoding.unions import NULL, choice, first_fitting
from pyspark_upsert_kafka.formats.avro.defaults import default_datum
from pyspark_upsert_kafka.formats.avro.model import (
    NO_DEFAULT,
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
)
from pyspark_upsert_kafka.formats.avro.words import described, misfit, place, unresolved

_STRING = Primitive("string")
_T = TypeVar("_T", Array, Map, Record)

_MOST_STEPS = 50_000
"""Of resolving: unions of records within unions of records multiply with each level of the columns."""


def resolved(
    writer: Schema, reader: Schema | None, columns: pa.Schema, *, strict_zones: bool
) -> Plan:
    """How data of the writer's schema are read into the columns.

    A schema that is no record stands for the only column.

    Raises:
        SchemaError: A column does not fit, or nothing is there for it.
    """
    resolution = _Resolution(writer, reader, strict_zones, Passing(writer))
    try:
        row = _row(resolution, columns)
    except _TooManyStepsError:
        raise SchemaError(
            "The Avro schema has unions within unions that the columns can be read from in more than "
            f"{_MOST_STEPS} ways."
        ) from None
    return Plan(row, resolution.passing.records)


def _row(resolution: _Resolution, columns: pa.Schema) -> Node:
    writer, reader = resolution.writer, resolution.reader
    wanted = reader.type if reader else None
    seen = wanted or writer.type
    branches = seen.branches if isinstance(seen, Union) else (seen,)
    target = pa.struct(list(columns))
    if any(isinstance(branch, Record) for branch in branches):
        return resolution.node(writer.type, wanted, pa.field("", target, nullable=False), "")
    if len(columns) == 1:
        only = columns.field(0)
        value = resolution.node(writer.type, wanted, only, only.name)
        return Parts(((value, 0),), {}, target)
    raise SchemaError(
        f"The Avro schema is a single {described(seen)} and no record: it can be read into one "
        f"column, not into {len(columns)}."
    )


class _TooManyStepsError(Exception):
    """No SchemaError, which would only be the fault of a union's branch."""


@dataclass(frozen=True)
class _Resolution:
    writer: Schema
    reader: Schema | None
    strict_zones: bool
    passing: Passing
    steps: Iterator[int] = field(default_factory=count)

    def node(self, writer: AvroType, reader: AvroType | None, column: pa.Field, path: str) -> Node:
        """How the writer's type is read as the reader's, when there is one, into the column."""
        if next(self.steps) > _MOST_STEPS:
            raise _TooManyStepsError
        if isinstance(writer, Union):
            return choice(self.node, writer, reader, column, path)
        if isinstance(reader, Union):
            return first_fitting(self.node, writer, reader, column, path)
        if isinstance(writer, Reference):
            writer = self.writer.records[writer.name]
        if isinstance(reader, Reference) and self.reader:
            reader = self.reader.records[reader.name]
        if writer == NULL and reader in (None, NULL):
            return _null(column, path)
        if isinstance(writer, Primitive | Fixed | Enum):
            return fitted(writer, reader, column.type, path, strict_zones=self.strict_zones)
        return self._compound(writer, reader, column, path)

    def _compound(
        self, writer: Array | Map | Record, reader: AvroType | None, column: pa.Field, path: str
    ) -> Node:
        if isinstance(writer, Array):
            return self._array(writer, _alike(writer, reader, path), column.type, path)
        if isinstance(writer, Map):
            return self._map(writer, _alike(writer, reader, path), column.type, path)
        return self._record(writer, _alike(writer, reader, path), column.type, path)

    def _array(
        self, writer: Array, reader: Array | None, column: pa.DataType, path: str
    ) -> Repeated:
        if not pa.types.is_list(column):
            raise misfit(path, column, "array")
        items = reader.items if reader else None
        item = self.node(writer.items, items, column.value_field, f"{path}[]")
        return Repeated(path, item, column)

    def _map(self, writer: Map, reader: Map | None, column: pa.DataType, path: str) -> Repeated:
        if not pa.types.is_map(column) or not pa.types.is_string(column.key_type):
            raise misfit(path, column, "map")
        values = reader.values if reader else None
        key = self.node(_STRING, None, column.key_field, f"{path}{{}}")
        value = self.node(writer.values, values, column.item_field, f"{path}{{}}")
        entry = Parts(((key, 0), (value, 1)), {}, column.field(0).type)
        return Repeated(path, entry, column)

    def _record(
        self, writer: Record, reader: Record | None, column: pa.DataType, path: str
    ) -> Parts:
        if not pa.types.is_struct(column):
            raise misfit(path, column, "record")
        prefix = f"{path}." if path else ""
        slots: dict[str, tuple[int, AvroType | None]] = {}
        missing: dict[int, Any] = {}
        names = [field.name for field in column]
        for slot, part in enumerate(column):
            field = named(part.name, (reader or writer).fields, names)
            written = written_as(field, writer) if field and reader else field
            if written is None:
                missing[slot] = self._missing(field, part, prefix + part.name)
            elif written.name in slots:
                raise SchemaError(f"field {written.name!r} is read into two columns")
            else:
                slots[written.name] = slot, field.type if field and reader else None
        nodes: list[tuple[Node, int | None]] = []
        for field in writer.fields:
            if field.name in slots:
                slot, wanted = slots[field.name]
                part = column.field(slot)
                nodes.append((self.node(field.type, wanted, part, prefix + part.name), slot))
            else:
                nodes.append((self.passing.node(field.type, prefix + field.name), None))
        return Parts(tuple(nodes), missing, column)

    def _missing(self, field: Field | None, column: pa.Field, path: str) -> Any:
        """What a column is that the writer does not know: the reader's default, else NULL."""
        if self.reader and field and field.default is not NO_DEFAULT:
            passing = Passing(self.reader)
            alone = _Resolution(self.reader, None, self.strict_zones, passing)
            read = value_reader(Plan(alone.node(field.type, None, column, path), passing.records))
            try:
                return read(default_datum(self.reader, field.type, field.default))
            except ValueError as why:
                raise SchemaError(f"The default of {place(path)} cannot be read: {why}.") from None
        if self.reader and field:  # Avro's rule (specification 1.12, "Schema Resolution")
            raise SchemaError(
                f"{place(path)} has no default in the reader's schema, and the schema that the data "
                "are written with has no such field."
            )
        if not column.nullable:
            raise SchemaError(
                f"{place(path)} is NOT NULL, but the schema that the data are written with has no "
                "such field."
            )
        return None


def _null(column: pa.Field, path: str) -> Null:
    if column.nullable:
        return Null(column.type)
    raise SchemaError(f"{place(path)} is NOT NULL, but Avro's null is written")


def _alike(writer: _T, reader: AvroType | None, path: str) -> _T | None:
    """The reader's type, which must be of the writer's kind."""
    if reader is None or type(reader) is type(writer):
        return reader
    raise unresolved(path, writer, reader)
