"""How to skip what a datum holds and no column wants."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    BytesNode,
    EnumNode,
    Node,
    NullNode,
    NumberNode,
    RecordNode,
    RecursiveNode,
    RepeatedNode,
    UnionNode,
)
from pyspark_upsert_kafka.formats.avro.model import (
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

    def node(self, kind: AvroType, path: str) -> Node:
        """How to skip one type."""
        if isinstance(kind, Primitive):
            return _primitive(kind.kind, path)
        if isinstance(kind, Fixed):
            return BytesNode(path, kind.size)
        if isinstance(kind, Enum):
            return EnumNode(path, kind.symbols)
        return self._compound(kind, path)

    def _compound(self, kind: Array | Map | Record | Union | Reference, path: str) -> Node:
        if isinstance(kind, Union):
            return UnionNode(path, tuple(self.node(branch, path) for branch in kind.branches))
        if isinstance(kind, Array):
            return RepeatedNode(path, self.node(kind.items, f"{path}[]"))
        if isinstance(kind, Map):
            key, value = BytesNode(f"{path}{{}}", None), self.node(kind.values, f"{path}{{}}")
            return RepeatedNode(path, RecordNode(((key, None), (value, None))))
        if isinstance(kind, Record):
            return self._record(kind)
        if kind.name not in self.records:
            self.records[kind.name] = RecursiveNode(kind.name)
            self.records[kind.name] = self._record(self.writer.records[kind.name])
        return RecursiveNode(kind.name)

    def _record(self, kind: Record) -> RecordNode:
        """The fields that take bytes; errors name them by their record, which stands in many places."""
        if kind.name not in self.made:
            parts = [self.node(field.type, f"{kind.name}.{field.name}") for field in kind.fields]
            self.made[kind.name] = RecordNode(
                tuple((p, None) for p in parts if not _takes_nothing(p))
            )
        return self.made[kind.name]


def _takes_nothing(node: Node) -> bool:
    if isinstance(node, RecordNode):
        return not node.written
    return isinstance(node, NullNode) or (isinstance(node, BytesNode) and node.size == 0)


def _primitive(kind: str, path: str) -> Node:
    if kind == "null":
        return NullNode(None)
    return BytesNode(path, None) if kind in ("bytes", "string") else NumberNode(path, kind)
