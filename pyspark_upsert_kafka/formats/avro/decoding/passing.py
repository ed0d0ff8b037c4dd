"""What a datum holds and no column wants: how to get past it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    Again,
    Choice,
    Node,
    Null,
    Number,
    Parts,
    Repeated,
    Sized,
    Symbol,
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
class Passing:
    """Makes nodes without a column, one for each record, however often its name occurs.

    ``records`` collects those that stand within themselves.
    """

    writer: Schema
    records: dict[str, Node] = field(default_factory=dict)
    made: dict[str, Parts] = field(default_factory=dict)

    def node(self, kind: AvroType, path: str) -> Node:
        """How to get past one type."""
        if isinstance(kind, Primitive):
            return _primitive(kind.kind, path)
        if isinstance(kind, Fixed):
            return Sized(path, kind.size)
        if isinstance(kind, Enum):
            return Symbol(path, kind.symbols)
        return self._compound(kind, path)

    def _compound(self, kind: Array | Map | Record | Union | Reference, path: str) -> Node:
        if isinstance(kind, Union):
            return Choice(path, tuple(self.node(branch, path) for branch in kind.branches))
        if isinstance(kind, Array):
            return Repeated(path, self.node(kind.items, f"{path}[]"))
        if isinstance(kind, Map):
            key, value = Sized(f"{path}{{}}", None), self.node(kind.values, f"{path}{{}}")
            return Repeated(path, Parts(((key, None), (value, None))))
        if isinstance(kind, Record):
            return self._record(kind)
        if kind.name not in self.records:
            self.records[kind.name] = Again(kind.name)
            self.records[kind.name] = self._record(self.writer.records[kind.name])
        return Again(kind.name)

    def _record(self, kind: Record) -> Parts:
        """The fields that take bytes; errors name them by their record, which stands in many places."""
        if kind.name not in self.made:
            parts = [self.node(field.type, f"{kind.name}.{field.name}") for field in kind.fields]
            self.made[kind.name] = Parts(tuple((p, None) for p in parts if not _takes_nothing(p)))
        return self.made[kind.name]


def _takes_nothing(node: Node) -> bool:
    if isinstance(node, Parts):
        return not node.written
    return isinstance(node, Null) or (isinstance(node, Sized) and node.size == 0)


def _primitive(kind: str, path: str) -> Node:
    if kind == "null":
        return Null(None)
    return Sized(path, None) if kind in ("bytes", "string") else Number(path, kind)
