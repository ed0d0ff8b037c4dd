"""How a datum is read into columns: the writer's schema, resolved once when a decoder is compiled.

A plan follows the writer's schema, since that is how the bytes stand. Each node says what they become;
``arrow`` is the type of the column or of a part of it, and None where the datum holds something that no
column wants. The vectorised path and the row path are both compiled from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pyarrow as pa

MOST_EMPTY = 10_000
"""How many items that take no bytes a message may have: a few bytes must not fill the memory."""


@dataclass(frozen=True)
class NullNode:
    """Nothing is written; the column is NULL."""

    arrow: pa.DataType | None


@dataclass(frozen=True)
class Scale:
    """What makes a written integer the column's: ``written * times // over``.

    Args:
        low: The smallest written integer that the column can hold.
        high: The largest.
        times: Factor.
        over: Divisor.
    """

    low: int = -(1 << 63)
    high: int = (1 << 63) - 1
    times: int = 1
    over: int = 1


@dataclass(frozen=True)
class NumberNode:
    """A boolean, int, long, float or double.

    Args:
        path: The field, for errors; here and below.
        wire: Which one is written.
        arrow: Type of the column.
        scale: Of an integer column.
        through: numpy's types that a number takes on its way to a floating-point column; the
            reader's schema may ask for a step in between.
    """

    path: str
    wire: str
    arrow: pa.DataType | None = None
    scale: Scale = Scale()
    through: tuple[str, ...] = ()


@dataclass(frozen=True)
class BytesNode:
    """Bytes or a string with the length before it, or so many bytes of a fixed ``size``."""

    path: str
    size: int | None
    arrow: pa.DataType | None = None
    form: Literal["bytes", "text", "decimal", "uuid"] = "bytes"


@dataclass(frozen=True)
class EnumNode:
    """The number of one of an enum's symbols; None stands for one that the reader does not know."""

    path: str
    symbols: tuple[str | None, ...]
    arrow: pa.DataType | None = None


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
        written: Each field as it is written, and which of the struct's fields it becomes.
        missing: The struct's fields that are not written, and their values as pyarrow takes them.
        arrow: Type of the struct.
        least: See `least_bytes`; kept, since a node may be reached in very many ways.
        nodes: See `count_nodes`.
    """

    written: tuple[tuple[Node, int | None], ...]
    missing: Mapping[int, Any] = field(default_factory=dict, hash=False)
    arrow: pa.DataType | None = None
    least: int = field(init=False, repr=False, compare=False)
    nodes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = [part for part, _ in self.written]
        object.__setattr__(self, "least", sum(map(least_bytes, parts)))
        object.__setattr__(self, "nodes", 1 + sum(map(count_nodes, parts)))


@dataclass(frozen=True)
class UnionNode:
    """The number of a union's branch, and what stands in that branch."""

    path: str
    branches: tuple[Node, ...]
    arrow: pa.DataType | None = None


@dataclass(frozen=True)
class MismatchNode:
    """A branch that the column cannot hold: a message that takes it cannot be read."""

    why: str
    arrow: pa.DataType | None = None


@dataclass(frozen=True)
class RecursiveNode:
    """A record within itself, skipped; by its name in ``Plan.records``."""

    name: str


Node: TypeAlias = "NullNode | NumberNode | BytesNode | EnumNode | RepeatedNode | RecordNode | UnionNode | MismatchNode | RecursiveNode"


@dataclass(frozen=True)
class Plan:
    """How a whole datum is read.

    Args:
        row: The datum: a RecordNode whose struct has the table's columns, or a UnionNode of such.
        records: Records that stand within themselves.
    """

    row: Node
    records: Mapping[str, Node] = field(default_factory=dict, hash=False)


_LEAST = {"boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8}


def least_bytes(node: Node) -> int:
    """How many bytes the node takes at least; 0 when in doubt."""
    if isinstance(node, NumberNode):
        return _LEAST[node.wire]
    if isinstance(node, BytesNode):
        return 1 if node.size is None else node.size
    if isinstance(node, RecordNode):
        return node.least
    return 0 if isinstance(node, NullNode | MismatchNode | RecursiveNode) else 1


def count_nodes(node: Node) -> int:
    """How many nodes there are, each as often as it is reached."""
    if isinstance(node, RecordNode):
        return node.nodes
    if isinstance(node, RepeatedNode):
        return 1 + count_nodes(node.item)
    return 1 + sum(map(count_nodes, node.branches)) if isinstance(node, UnionNode) else 1
