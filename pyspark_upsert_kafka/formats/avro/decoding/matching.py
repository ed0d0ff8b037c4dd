"""Which of a reader's types takes which of a writer's: the same one, one that it is promoted to, a branch of a union."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TypeAlias, TypeVar

import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.decoding.resolved_schema import (
    MismatchNode,
    Node,
    NullNode,
    RecordNode,
    UnionNode,
)
from pyspark_upsert_kafka.formats.avro.errors import unresolved
from pyspark_upsert_kafka.formats.avro.model import (
    NULL,
    Array,
    AvroType,
    Enum,
    Fixed,
    LeafSchema,
    Map,
    Primitive,
    Record,
    Reference,
    Union,
    unqualified,
)

_T = TypeVar("_T", Array, Map, Record)

_PROMOTED = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}


def alike(writer: _T, reader: AvroType | None, path: str) -> _T | None:
    """The reader's type, which must be an array, a map or a record as the writer's is; None = no reader's schema."""
    if reader is None or type(reader) is type(writer):
        return reader
    raise unresolved(path, writer, reader)


def promoted(writer: LeafSchema, reader: AvroType, path: str) -> LeafSchema:
    """The reader's type of a leaf, which must be the writer's or one that Avro promotes it to."""
    if isinstance(writer, Primitive) and isinstance(reader, Primitive):
        fits = reader.type in _PROMOTED.get(writer.type, (writer.type,))
    elif isinstance(writer, Enum) and isinstance(reader, Enum):
        fits = _same_name(writer, reader)
    elif isinstance(writer, Fixed) and isinstance(reader, Fixed):
        fits = _same_name(writer, reader) and writer.size == reader.size
    else:
        fits = False
    if not fits or not isinstance(reader, Primitive | Enum | Fixed):
        raise unresolved(path, writer, reader)
    return reader


def _same_name(writer: Enum | Fixed, reader: Enum | Fixed) -> bool:
    """Unqualified names are compared, as the specification says."""
    return unqualified(writer.name) in map(unqualified, (reader.name, *reader.aliases))


Resolve: TypeAlias = "Callable[[AvroType, AvroType | None, pa.Field, str], Node]"
"""From the writer's type, the reader's, the column, and the path of the field to how the field is read."""


def union_node(
    resolve: Resolve, writer: Union, reader: AvroType | None, column: pa.Field, path: str
) -> UnionNode:
    """How a union of the writer's is read: a message that takes a branch that the column cannot hold is unreadable.

    Raises:
        SchemaError: The column can hold no branch but null.
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
    """How a type is read as a union of the reader's: as its branch of the same type, else the first it is promoted to."""
    same = reader.like(writer)
    whys = []
    for branch in chain(same, (each for each in reader.branches if each not in same)):
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
