"""What rows get that their messages do not hold: a reader's defaults, and the symbols of enums."""

from __future__ import annotations

import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    EnumNode,
    Node,
    RecordNode,
    RepeatedNode,
    UnionNode,
)
from pyspark_upsert_kafka.formats.decoded_size import item_bytes


def added_by_item(node: RepeatedNode) -> float:
    """How many bytes each item of an array or a map adds to a row; 0 where no column wants it."""
    return 0 if node.arrow is None else item_bytes(node.arrow) + constant_bytes(node.item)


def constant_bytes(node: Node) -> int:
    """How many bytes each datum gets at most that it does not hold, but for items of arrays and maps."""
    if isinstance(node, UnionNode):
        return max(map(constant_bytes, node.branches))
    if isinstance(node, EnumNode):
        return 0 if node.arrow is None else max((len(s or "") for s in node.symbols), default=0)
    if not isinstance(node, RecordNode) or node.arrow is None:
        return 0
    kind = node.arrow
    missing = (int(pa.array([v], kind.field(s).type).nbytes) for s, v in node.missing.items())
    return sum(missing) + sum(constant_bytes(part) for part, _ in node.written)
