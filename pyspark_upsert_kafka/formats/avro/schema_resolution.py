"""The writer's schema resolved to the table's columns (Avro specification 1.12, "Schema Resolution").

Columns find their fields by name: in the reader's schema when one is given, and from there by name or
alias in the writer's; else in the writer's own. The records' own names do not matter, as in Java.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from typing import Any, TypeVar

import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.avro_columns import NamesInSchema
from pyspark_upsert_kafka.formats.avro.avro_defaults import default_datum
from pyspark_upsert_kafka.formats.avro.avro_leaf_readers import AvroLeaf, ReadField, read_leaf
from pyspark_upsert_kafka.formats.avro.avro_row_path import value_reader
from pyspark_upsert_kafka.formats.avro.avro_types import (
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
    field_label,
    mismatch,
    type_label,
    unqualified,
)
from pyspark_upsert_kafka.formats.avro.resolved_schema import (
    MismatchNode,
    Node,
    NullNode,
    RecordNode,
    RepeatedNode,
    ResolvedSchema,
    Skipper,
    UnionNode,
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
            return self._union(writer, reader, column, path)
        if isinstance(reader, Union):
            return self._branch(writer, reader, column, path)
        if isinstance(writer, Reference):
            writer = self.writer.records[writer.name]
        if isinstance(reader, Reference) and self.reader:
            reader = self.reader.records[reader.name]
        if writer == NULL and reader in (None, NULL):
            return _null(column, path)
        if isinstance(writer, Primitive | Fixed | Enum):
            return self._leaf(writer, reader, column.type, path)
        return self._compound(writer, reader, column, path)

    def _union(
        self, writer: Union, reader: AvroType | None, column: pa.Field, path: str
    ) -> UnionNode:
        """A message that takes a branch that the column cannot hold is unreadable.

        Raises:
            SchemaError: The column can hold no branch but null.
        """
        nodes: list[Node] = []
        whys: list[SchemaError] = []
        for branch in writer.branches:
            try:
                if reader is None:
                    alone = partial(self.node, branch, None)
                    nodes.append(_as_branch(alone, writer, branch, column, path))
                else:
                    nodes.append(self.node(branch, reader, column, path))
            except SchemaError as why:
                nodes.append(MismatchNode(str(why), column.type))
                whys.insert(len(whys) if branch == NULL else 0, why)
        if whys and all(isinstance(node, MismatchNode | NullNode) for node in nodes):
            raise whys[0]
        return UnionNode(path, tuple(nodes), column.type)

    def _branch(self, writer: AvroType, reader: Union, column: pa.Field, path: str) -> Node:
        """A type as a union of the reader's: as its branch of the same type, else the first it is promoted to."""
        same = reader.like(writer)
        whys = []
        for branch in chain(same, (each for each in reader.branches if each not in same)):
            try:
                alone = partial(self.node, writer, branch)
                return _as_branch(alone, reader, branch, column, path)
            except SchemaError as why:
                whys.append(why)
        raise whys[0] if same else _unresolved(path, writer, reader)

    def _leaf(
        self, writer: LeafSchema, reader: AvroType | None, column: pa.DataType, path: str
    ) -> AvroLeaf:
        seen = writer if reader is None else _promoted(writer, reader, path)
        return read_leaf(ReadField(path, writer, seen, column, self.strict_zones))

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
        found, unwritten = _fields_to_read(writer, reader, column)
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


def _fields_to_read(
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


def _written_field(field: Field, writer: Mapping[str, Field]) -> Field | None:
    """The writer's field that a reader's field is, by its name or else by an alias."""
    return next((writer[name] for name in (field.name, *field.aliases) if name in writer), None)


_T = TypeVar("_T", Array, Map, Record)


def _alike(writer: _T, reader: AvroType | None, path: str) -> _T | None:
    """The reader's type, which must be an array, a map or a record as the writer's is; None = no reader's schema."""
    if reader is None or type(reader) is type(writer):
        return reader
    raise _unresolved(path, writer, reader)


_PROMOTIONS = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}


def _promoted(writer: LeafSchema, reader: AvroType, path: str) -> LeafSchema:
    """The reader's type of a leaf, which must be the writer's or one that Avro promotes it to."""
    if isinstance(writer, Primitive) and isinstance(reader, Primitive):
        fits = reader.type in _PROMOTIONS.get(writer.type, (writer.type,))
    elif isinstance(writer, Enum) and isinstance(reader, Enum):
        fits = _same_name(writer, reader)
    elif isinstance(writer, Fixed) and isinstance(reader, Fixed):
        fits = _same_name(writer, reader) and writer.size == reader.size
    else:
        fits = False
    if not fits or not isinstance(reader, Primitive | Enum | Fixed):
        raise _unresolved(path, writer, reader)
    return reader


def _same_name(writer: Enum | Fixed, reader: Enum | Fixed) -> bool:
    """Unqualified names are compared, as the specification says."""
    return unqualified(writer.name) in map(unqualified, (reader.name, *reader.aliases))


def _unresolved(path: str, writer: AvroType, reader: AvroType) -> SchemaError:
    """The error of a field that the writer's schema and the reader's disagree about."""
    return SchemaError(
        f"{field_label(path)} is written as Avro's {type_label(writer)}, which the reader's schema cannot "
        f"take as {type_label(reader)}"
    )


def _as_branch(
    resolve: Callable[[pa.Field, str], Node],
    union: Union,
    branch: AvroType,
    column: pa.Field,
    path: str,
) -> Node:
    """How a branch is read: Spark has a union of several types as a struct of ``member0``, ``member1``, ..."""
    types = union.not_null
    if branch == NULL or not _are_members(column.type, types):
        return resolve(column, path)
    at = types.index(branch)
    member = column.type.field(at)
    value = resolve(member, f"{path}.{member.name}")
    others = {number: None for number in range(len(types)) if number != at}
    return RecordNode(((value, at),), others, column.type)


def _are_members(struct: pa.DataType, types: Sequence[AvroType]) -> bool:
    """Whether the fields of a struct are the branches of a union, and not the fields of a record in it."""
    if not pa.types.is_struct(struct) or not 1 < len(types) == struct.num_fields:
        return False
    return all(
        (member.name, member.nullable) == (f"member{number}", True)
        and (pa.types.is_struct(member.type) or not isinstance(avro, Record | Reference))
        for number, (member, avro) in enumerate(zip(struct, types, strict=True))
    )
