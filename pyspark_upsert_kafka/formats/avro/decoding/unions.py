"""Unions: of the writer, whose branch each message names, and of the reader, of whose one fits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    MismatchNode,
    Node,
    NullNode,
    RecordNode,
    UnionNode,
)
from pyspark_upsert_kafka.formats.avro.errors import unresolved
from pyspark_upsert_kafka.formats.avro.model import (
    AvroType,
    Enum,
    Field,
    Fixed,
    Primitive,
    Record,
    Reference,
    Union,
)


def columns_of_fields(
    writer: Record, reader: Record | None, columns: pa.StructType
) -> tuple[dict[str, tuple[int, AvroType | None]], dict[int, Field | None]]:
    """Which column each of the writer's fields is read into, and the columns that nobody wrote.

    Returns:
        By a written field's name its column, and its type in the reader's schema when there is one; and the
        columns left over, each with its field in the reader's schema.

    Raises:
        SchemaError: Two columns are the same field.
    """
    names = [column.name for column in columns]
    found: dict[str, tuple[int, AvroType | None]] = {}
    unwritten: dict[int, Field | None] = {}
    for slot, name in enumerate(names):
        field = _field_of_column(name, (reader or writer).fields, names)
        written = _written_field(field, writer) if field and reader else field
        if written is None:
            unwritten[slot] = field
        elif written.name in found:
            raise SchemaError(f"field {written.name!r} is read into two columns")
        else:
            found[written.name] = slot, field.type if field and reader else None
    return found, unwritten


def _field_of_column(name: str, fields: Iterable[Field], columns: Collection[str]) -> Field | None:
    """The field of a column: of exactly its name, else the only one that differs in case alone.

    A field that another one of the columns has the exact name of belongs to that one.
    """
    alike = [field for field in fields if field.name.lower() == name.lower()]
    same = [field for field in alike if field.name == name]
    free = [field for field in alike if field.name not in columns]
    return next(iter(same), free[0] if len(free) == 1 else None)


def _written_field(field: Field, writer: Record) -> Field | None:
    """The writer's field that a reader's field is, by its name or else by an alias."""
    fields = {written.name: written for written in writer.fields}
    return next((fields[name] for name in (field.name, *field.aliases) if name in fields), None)


def unqualified(name: str) -> str:
    """A full name without its namespace."""
    return name.rpartition(".")[2]


NULL = Primitive("null")

Resolve: TypeAlias = "Callable[[AvroType, AvroType | None, pa.Field, str], Node]"
"""The writer's type, the reader's, the column and the path of the field to how it is read."""


def union_node(
    resolve: Resolve, writer: Union, reader: AvroType | None, column: pa.Field, path: str
) -> UnionNode:
    """The writer's union: a branch that does not fit is the fault of a message that takes it.

    Raises:
        SchemaError: No branch fits, null aside.
    """
    nodes: list[Node] = []
    whys: list[SchemaError] = []
    for branch in writer.branches:
        try:
            if reader is None:
                alone = partial(resolve, branch, None)
                nodes.append(_as_branch(alone, writer, branch, column, path))
            else:
                nodes.append(resolve(branch, reader, column, path))
        except SchemaError as why:
            nodes.append(MismatchNode(str(why), column.type))
            whys.insert(len(whys) if branch == NULL else 0, why)
    if whys and all(isinstance(node, MismatchNode | NullNode) for node in nodes):
        raise whys[0]
    return UnionNode(path, tuple(nodes), column.type)


def matching_branch(
    resolve: Resolve, writer: AvroType, reader: Union, column: pa.Field, path: str
) -> Node:
    """The reader's union: its branch of the writer's type, else the first one it promotes to."""
    same = [branch for branch in reader.branches if _same(writer, branch)]
    whys = []
    others = [branch for branch in reader.branches if not _same(writer, branch)]
    for branch in (*same, *others):
        try:
            return _as_branch(partial(resolve, writer, branch), reader, branch, column, path)
        except SchemaError as why:
            whys.append(why)
    raise whys[0] if same else unresolved(path, writer, reader)


def _as_branch(
    resolve: Callable[[pa.Field, str], Node],
    union: Union,
    branch: AvroType,
    column: pa.Field,
    path: str,
) -> Node:
    """A union of several types may be a struct of ``member0``, ``member1``, ..., as for Spark."""
    types = [kind for kind in union.branches if kind != NULL]
    members = list(column.type) if pa.types.is_struct(column.type) else []
    if branch == NULL or not _are_members(members, types):
        return resolve(column, path)
    at = types.index(branch)
    value = resolve(members[at], f"{path}.{members[at].name}")
    others = {number: None for number in range(len(types)) if number != at}
    return RecordNode(((value, at),), others, column.type)


def _are_members(members: list[pa.Field], types: list[AvroType]) -> bool:
    """Whether the fields of a struct are the branches of a union, and not the fields of a record in it."""
    wanted = [(f"member{number}", True) for number in range(len(types))]
    return (
        len(types) > 1
        and [(member.name, member.nullable) for member in members] == wanted
        and all(
            pa.types.is_struct(member.type)
            for member, kind in zip(members, types, strict=True)
            if isinstance(kind, Record | Reference)
        )
    )


def _same(writer: AvroType, reader: AvroType) -> bool:
    if isinstance(writer, Primitive) and isinstance(reader, Primitive):
        return writer.kind == reader.kind
    named = Record | Enum | Fixed
    if isinstance(writer, named) and isinstance(reader, named):
        return unqualified(writer.name) == unqualified(reader.name)
    return type(writer) is type(reader)
