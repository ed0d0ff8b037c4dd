"""The writer's schema resolved to the table's columns (Avro specification 1.12, "Schema Resolution").

Columns find their fields by name: in the reader's schema when one is given, and from there by name or
alias in the writer's; else in the writer's own. The records' own names do not matter, as in Java.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.columns import fields_to_read
from pyspark_upsert_kafka.formats.avro.decoding.matching import (
    alike,
    matching_branch,
    promoted,
    union_node,
)
from pyspark_upsert_kafka.formats.avro.decoding.resolved_schema import (
    Node,
    NullNode,
    RecordNode,
    RepeatedNode,
    ResolvedSchema,
    Skipper,
)
from pyspark_upsert_kafka.formats.avro.decoding.row_path import value_reader
from pyspark_upsert_kafka.formats.avro.defaults import default_datum
from pyspark_upsert_kafka.formats.avro.errors import field_label, mismatch, type_label
from pyspark_upsert_kafka.formats.avro.leaf_types import Leaf, ReadField
from pyspark_upsert_kafka.formats.avro.leaf_types.table import read_leaf
from pyspark_upsert_kafka.formats.avro.model import (
    NO_DEFAULT,
    NULL,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    LeafSchema,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
)
from pyspark_upsert_kafka.formats.decoded_size import Budget

_STRING = Primitive("string")

_MOST_STEPS = 50_000
"""The number of steps that resolving may take: unions of records within unions of records multiply with each level."""


def resolve(
    writer: Schema, reader: Schema | None, columns: pa.Schema, *, strict_zones: bool
) -> ResolvedSchema:
    """How messages of the writer's schema are read into the columns.

    A schema that is no record is read into a single column.

    Raises:
        SchemaError: A column does not fit its field, or has none and may not be NULL.
    """
    resolution = _Resolution(writer, reader, strict_zones, Skipper(writer))
    try:
        row = _row(resolution, columns)
    except _TooManyStepsError:
        raise SchemaError(
            "The Avro schema has unions within unions that the columns can be read from in more than "
            f"{_MOST_STEPS} ways."
        ) from None
    return ResolvedSchema(row, resolution.skipper.records)


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
        return RecordNode(((value, 0),), {}, target)
    raise SchemaError(
        f"The Avro schema is a single {type_label(seen)} and no record: it can be read into one "
        f"column, not into {len(columns)}."
    )


class _TooManyStepsError(Exception):
    """Not a SchemaError: that would only rule out one branch of a union."""


@dataclass(frozen=True)
class _Resolution:
    writer: Schema
    reader: Schema | None
    strict_zones: bool
    skipper: Skipper
    steps: Iterator[int] = field(default_factory=count)

    def node(self, writer: AvroType, reader: AvroType | None, column: pa.Field, path: str) -> Node:
        """How a field is read into its column, given its type in the writer's schema, and in the reader's if there is one."""
        if next(self.steps) > _MOST_STEPS:
            raise _TooManyStepsError
        if isinstance(writer, Union):
            return union_node(self.node, writer, reader, column, path)
        if isinstance(reader, Union):
            return matching_branch(self.node, writer, reader, column, path)
        if isinstance(writer, Reference):
            writer = self.writer.records[writer.name]
        if isinstance(reader, Reference) and self.reader:
            reader = self.reader.records[reader.name]
        if writer == NULL and reader in (None, NULL):
            return _null(column, path)
        if isinstance(writer, Primitive | Fixed | Enum):
            return self._leaf(writer, reader, column.type, path)
        return self._compound(writer, reader, column, path)

    def _leaf(
        self, writer: LeafSchema, reader: AvroType | None, column: pa.DataType, path: str
    ) -> Leaf:
        seen = writer if reader is None else promoted(writer, reader, path)
        return read_leaf(ReadField(path, writer, seen, column, self.strict_zones))

    def _compound(
        self, writer: Array | Map | Record, reader: AvroType | None, column: pa.Field, path: str
    ) -> Node:
        if isinstance(writer, Array):
            return self._array(writer, alike(writer, reader, path), column.type, path)
        if isinstance(writer, Map):
            return self._map(writer, alike(writer, reader, path), column.type, path)
        return self._record(writer, alike(writer, reader, path), column.type, path)

    def _array(
        self, writer: Array, reader: Array | None, column: pa.DataType, path: str
    ) -> RepeatedNode:
        if not pa.types.is_list(column):
            raise mismatch(path, column, writer)
        items = reader.items if reader else None
        item = self.node(writer.items, items, column.value_field, f"{path}[]")
        return RepeatedNode(path, item, column)

    def _map(self, writer: Map, reader: Map | None, column: pa.DataType, path: str) -> RepeatedNode:
        if not pa.types.is_map(column) or not pa.types.is_string(column.key_type):
            raise mismatch(path, column, writer)
        values = reader.values if reader else None
        key = self.node(_STRING, None, column.key_field, f"{path}{{}}")
        value = self.node(writer.values, values, column.item_field, f"{path}{{}}")
        entry = RecordNode(((key, 0), (value, 1)), {}, column.field(0).type)
        return RepeatedNode(path, entry, column)

    def _record(
        self, writer: Record, reader: Record | None, column: pa.DataType, path: str
    ) -> RecordNode:
        if not pa.types.is_struct(column):
            raise mismatch(path, column, writer)
        prefix = f"{path}." if path else ""
        found, unwritten = fields_to_read(writer, reader, column)
        missing = {
            slot: self._missing(field, column.field(slot), prefix + column.field(slot).name)
            for slot, field in unwritten.items()
        }
        nodes: list[tuple[Node, int | None]] = []
        for written in writer.fields:
            if written.name in found:
                slot, wanted = found[written.name]
                part = column.field(slot)
                nodes.append((self.node(written.type, wanted, part, prefix + part.name), slot))
            else:
                nodes.append((self.skipper.node(written.type, prefix + written.name), None))
        return RecordNode(tuple(nodes), missing, column)

    def _missing(self, field: Field | None, column: pa.Field, path: str) -> Any:
        """The value of a column that the writer's schema has no field for: the reader's default, else NULL."""
        if self.reader and field and field.default is not NO_DEFAULT:
            skipper = Skipper(self.reader)
            alone = _Resolution(self.reader, None, self.strict_zones, skipper)
            node = alone.node(field.type, None, column, path)
            read = value_reader(ResolvedSchema(node, skipper.records))
            try:
                return read(default_datum(self.reader, field.type, field.default), Budget(1))
            except ValueError as why:
                raise SchemaError(
                    f"The default of {field_label(path)} cannot be read: {why}."
                ) from None
        if self.reader and field:  # Avro's rule (specification 1.12, "Schema Resolution")
            raise SchemaError(
                f"{field_label(path)} has no default in the reader's schema, and the schema that the data "
                "are written with has no such field."
            )
        if not column.nullable:
            raise SchemaError(
                f"{field_label(path)} is NOT NULL, but the schema that the data are written with has no "
                "such field."
            )
        return None


def _null(column: pa.Field, path: str) -> NullNode:
    """How a null is read: the column must be one that may be NULL."""
    if column.nullable:
        return NullNode(column.type)
    raise SchemaError(f"{field_label(path)} is NOT NULL, but Avro's null is written")
