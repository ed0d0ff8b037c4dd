"""What a reader's defaults add to rows: a few bytes of a message must not fill the memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyspark_upsert_kafka.core.memory import MAX_HELD_BYTES
from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    MOST_EMPTY,
    Node,
    Plan,
    RecordNode,
    RepeatedNode,
    UnionNode,
    least_bytes,
)
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder, TooManyMessagesError


def limited(decoder: Decoder, plan: Plan) -> Decoder:
    """Refuses messages to whose rows the reader's defaults may add too much together."""
    for_each, for_each_byte = constant_bytes(plan.row), item_constant_bytes(plan.row)
    return _Limited(decoder, for_each, for_each_byte) if for_each or for_each_byte else decoder


@dataclass(frozen=True)
class _Limited:
    decoder: Decoder
    for_each: int
    for_each_byte: float

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        count = len(messages)
        added = self.for_each * count + self.for_each_byte * sum(map(len, messages))
        if added > MAX_HELD_BYTES and count > 1:
            raise TooManyMessagesError(max(1, int(count * MAX_HELD_BYTES / added)))
        return self.decoder.decode(messages)


def constant_bytes(node: Node) -> int:
    """How many bytes each datum gets that it does not hold, but for items of arrays and maps."""
    if isinstance(node, UnionNode):
        return max(map(constant_bytes, node.branches))
    if not isinstance(node, RecordNode) or node.arrow is None:
        return 0
    kind = node.arrow
    missing = (int(pa.array([v], kind.field(s).type).nbytes) for s, v in node.missing.items())
    return sum(missing) + sum(constant_bytes(part) for part, _ in node.written)


def item_constant_bytes(node: Node) -> float:
    """How many such bytes the items of arrays and maps can get at most, for each byte of a datum."""
    if isinstance(node, RepeatedNode) and node.arrow is not None:
        least = least_bytes(node.item) or 1 / MOST_EMPTY
        return constant_bytes(node.item) / least + item_constant_bytes(node.item)
    inner: Iterable[Node] = ()
    if isinstance(node, UnionNode):
        inner = node.branches
    elif isinstance(node, RecordNode) and node.arrow is not None:
        inner = (part for part, _ in node.written)
    # No byte is part of two of these.
    return max(map(item_constant_bytes, inner), default=0)
