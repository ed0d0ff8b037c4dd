"""A resolved schema: what is read of each of the writer's fields, and into which column.

It follows the writer's schema, since that is how the bytes stand. Each node says what a field becomes; ``arrow`` is
the type of the column or of a part of it, and None where no column wants the field. The vectorised path and the row
path are both compiled from it. Nodes of fields that no column wants are made by a `Skipper`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.avro_cursors import Cursor, Cursors
from pyspark_upsert_kafka.formats.avro.avro_leaf_readers import (
    AvroLeaf,
    ColumnReader,
    ValueReader,
    skip_leaf,
)
from pyspark_upsert_kafka.formats.avro.avro_types import (
    NULL,
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
)
from pyspark_upsert_kafka.formats.decoded_size import item_bytes
from pyspark_upsert_kafka.formats.decoding import UnreadableError

_STRING = Primitive("string")


@dataclass(frozen=True)
class NullNode(AvroLeaf):
    """Nothing is written; the column is NULL."""

    arrow: pa.DataType | None

    @property
    def least_bytes(self) -> int:
        """None."""
        return 0

    def column_reader(self) -> ColumnReader:
        """Nulls."""
        arrow = self.arrow
        return lambda cursors: None if arrow is None else pa.nulls(len(cursors.at), arrow)

    def value_reader(self) -> ValueReader:
        """NULL."""
        return lambda _: None


@dataclass(frozen=True)
class MismatchNode(AvroLeaf):
    """A branch of a union that the column cannot hold: a message that takes it cannot be read."""

    why: str
    arrow: pa.DataType | None = None

    @property
    def least_bytes(self) -> int:
        """It is not known."""
        return 0

    def column_reader(self) -> ColumnReader:
        """Leaves the messages to the row path."""
        arrow = self.arrow

        def read(cursors: Cursors) -> pa.Array:
            cursors.leave(np.ones(len(cursors.at), bool))
            return pa.nulls(len(cursors.at), arrow)

        return read

    def value_reader(self) -> ValueReader:
        """Refuses the message."""

        def read(_: Cursor) -> None:
            raise UnreadableError(self.why)

        return read


@dataclass(frozen=True)
class RepeatedNode:
    """Blocks of items: an array; or a map, whose items have two parts, the key and the value."""

    path: str
    item: Node
    arrow: pa.DataType | None = None


@dataclass(frozen=True)
class RecordNode:
    """The fields of a record, one after the other.

    Args:
        written: Each field in the order in which it is written, and the position in the struct that it is read into;
            None = it is skipped.
        missing: The positions in the struct that no field is written for, with their values as pyarrow takes them.
        arrow: Type of the struct.
        least_bytes: See the function; kept, since a node may be reached in very many ways.
        nodes: See `count_nodes`.
    """

    written: tuple[tuple[Node, int | None], ...]
    missing: Mapping[int, Any] = field(default_factory=dict, hash=False)
    arrow: pa.DataType | None = None
    least_bytes: int = field(init=False, repr=False, compare=False)
    nodes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = [part for part, _ in self.written]
        object.__setattr__(self, "least_bytes", sum(map(least_bytes, parts)))
        object.__setattr__(self, "nodes", 1 + sum(map(count_nodes, parts)))


@dataclass(frozen=True)
class UnionNode:
    """The number of a union's branch, and what stands in that branch."""

    path: str
    branches: tuple[Node, ...]
    arrow: pa.DataType | None = None


@dataclass(frozen=True)
class RecursiveNode:
    """A record within itself, skipped; by its name in ``ResolvedSchema.records``."""

    name: str


Node: TypeAlias = "AvroLeaf | RepeatedNode | RecordNode | UnionNode | RecursiveNode"


@dataclass(frozen=True)
class ResolvedSchema:
    """How a whole datum is read.

    Args:
        row: The datum: a RecordNode whose struct has the table's columns, or a UnionNode of such.
        records: Records that stand within themselves.
    """

    row: Node
    records: Mapping[str, Node] = field(default_factory=dict, hash=False)


def least_bytes(node: Node) -> int:
    """How many bytes the node takes at least; 0 when in doubt."""
    if isinstance(node, AvroLeaf | RecordNode):
        return node.least_bytes
    return 0 if isinstance(node, RecursiveNode) else 1


def count_nodes(node: Node) -> int:
    """How many nodes there are, each as often as it is reached."""
    if isinstance(node, RecordNode):
        return node.nodes
    if isinstance(node, RepeatedNode):
        return 1 + count_nodes(node.item)
    return 1 + sum(map(count_nodes, node.branches)) if isinstance(node, UnionNode) else 1


def constant_bytes(node: Node) -> int:
    """How many bytes each datum gets at most that do not stand in the message, but for items of arrays and maps.

    They are a reader's defaults, and the symbols of enums.
    """
    if isinstance(node, AvroLeaf):
        return node.constant_bytes
    if isinstance(node, UnionNode):
        return max(map(constant_bytes, node.branches))
    if not isinstance(node, RecordNode) or node.arrow is None:
        return 0
    struct = node.arrow
    missing = (int(pa.array([v], struct.field(s).type).nbytes) for s, v in node.missing.items())
    return sum(missing) + sum(constant_bytes(part) for part, _ in node.written)


def added_by_item(node: RepeatedNode) -> float:
    """How many bytes each item of an array or a map adds to a row; 0 where no column wants it."""
    return 0 if node.arrow is None else item_bytes(node.arrow) + constant_bytes(node.item)


@dataclass(frozen=True)
class Skipper:
    """Makes nodes without a column, one for each record, however often its name occurs.

    Args:
        writer: The schema that the data are written with.
        records: Recursive records, collected here.
        made: The nodes of the records met so far.
    """

    writer: Schema
    records: dict[str, Node] = field(default_factory=dict)
    made: dict[str, RecordNode] = field(default_factory=dict)

    def node(self, avro: AvroType, path: str) -> Node:
        """How to skip one type."""
        if avro == NULL:
            return NullNode(None)
        if isinstance(avro, Primitive | Fixed | Enum):
            return skip_leaf(avro, path)
        return self._compound(avro, path)

    def _compound(self, avro: Array | Map | Record | Union | Reference, path: str) -> Node:
        if isinstance(avro, Union):
            return UnionNode(path, tuple(self.node(branch, path) for branch in avro.branches))
        if isinstance(avro, Array):
            return RepeatedNode(path, self.node(avro.items, f"{path}[]"))
        if isinstance(avro, Map):
            parts = (self.node(part, f"{path}{{}}") for part in (_STRING, avro.values))
            return RepeatedNode(path, RecordNode(tuple((part, None) for part in parts)))
        if isinstance(avro, Record):
            return self._record(avro)
        if avro.name not in self.records:
            self.records[avro.name] = RecursiveNode(avro.name)
            self.records[avro.name] = self._record(self.writer.records[avro.name])
        return RecursiveNode(avro.name)

    def _record(self, record: Record) -> RecordNode:
        """The fields that take bytes; errors name them by their record, which stands in many places."""
        if record.name not in self.made:
            parts = [self.node(part.type, f"{record.name}.{part.name}") for part in record.fields]
            self.made[record.name] = RecordNode(
                tuple((part, None) for part in parts if not _takes_nothing(part))
            )
        return self.made[record.name]


def _takes_nothing(node: Node) -> bool:
    if isinstance(node, RecordNode):
        return not node.written
    return isinstance(node, AvroLeaf) and node.least_bytes == 0
