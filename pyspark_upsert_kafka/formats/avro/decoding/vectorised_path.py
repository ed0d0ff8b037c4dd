"""The vectorised path: all messages of a batch are read at once, a field at a time.

It reads every message to its end or defers it to the row path; it never guesses. The plan is compiled
into a tree of functions once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.decoding.block_columns import repeated
from pyspark_upsert_kafka.formats.avro.decoding.cursors import Cursors, cursors_of
from pyspark_upsert_kafka.formats.avro.decoding.leaf_columns import LEAVES, Read
from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    Node,
    Plan,
    RecordNode,
    RepeatedNode,
    UnionNode,
    count_nodes,
)
from pyspark_upsert_kafka.formats.binary.message_buffer import MOST
from pyspark_upsert_kafka.formats.binary.numbers import Numbers

_MOST_NODES = 20_000

VectorisedReader = Callable[[Sequence[bytes]], tuple[Any, Numbers]]
"""From messages to their rows, a struct each, and the mask of those deferred to the row path."""


def vectorised_reader(plan: Plan, columns: pa.StructType, skip: int) -> VectorisedReader | None:
    """Compiles the reader of a plan.

    Args:
        plan: How a datum is read.
        columns: The columns.
        skip: How many bytes stand before a datum.

    Returns:
        None when the schema has records within themselves, or is too large for what each node costs.
    """
    if plan.records or count_nodes(plan.row) > _MOST_NODES:
        return None
    read = _reader(plan.row)

    def rows(messages: Sequence[bytes]) -> tuple[Any, Numbers]:
        cursors = cursors_of(messages, skip)
        if cursors.buffer.data.size > MOST:
            return pa.array([], columns), np.ones(len(messages), bool)
        seen = read(cursors)
        cursors.defer(cursors.at != cursors.end)
        deferred = cursors.deferred
        return (seen.filter(pa.array(~deferred)) if deferred.any() else seen), deferred

    return rows


def _reader(node: Node) -> Read:
    if isinstance(node, RecordNode):
        return _record(node)
    if isinstance(node, UnionNode):
        return _union(node)
    if isinstance(node, RepeatedNode):
        return repeated(node, _reader(node.item))
    return LEAVES[type(node)](node)


def _record(node: RecordNode) -> Read:
    parts = [(_reader(part), slot) for part, slot in node.written]
    kind = node.arrow
    missing = _constants(node)

    def read(cursors: Cursors) -> pa.Array | None:
        columns: dict[int | None, Any] = {slot: part(cursors) for part, slot in parts}
        if kind is None:
            return None
        count = len(cursors.at)
        for slot, value in missing.items():
            columns[slot] = value.take(pa.array(np.zeros(count, np.int32)))
        children = [columns[slot] for slot in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, count, [None], children=children)

    return read


def _constants(node: RecordNode) -> dict[int, pa.Array]:
    kind: Any = node.arrow
    return {slot: pa.array([value], kind.field(slot).type) for slot, value in node.missing.items()}


def _union(node: UnionNode) -> Read:
    branches = [_reader(branch) for branch in node.branches]

    def read(cursors: Cursors) -> pa.Array | None:
        numbers = cursors.longs()
        wrong = (numbers < 0) | (numbers >= len(branches))
        if wrong.any():
            cursors.defer(wrong)
            numbers[wrong] = 0
        taken = [
            (branch, chosen)
            for number, branch in enumerate(branches)
            if (chosen := np.flatnonzero(numbers == number)).size
        ]
        if len(taken) < 2:
            return (taken[0][0] if taken else branches[0])(cursors)
        columns = []
        for branch, chosen in taken:
            some = cursors.select(chosen)
            columns.append((branch(some), chosen))
            cursors.at[chosen] = some.at
        return None if node.arrow is None else _merged(columns, numbers.size)

    return read


def _merged(columns: list[tuple[Any, Numbers]], count: int) -> pa.Array:
    """The branches' columns as one, each value in its place; a column of nulls costs nothing."""
    where, valid, kept = np.zeros(count, np.int64), np.zeros(count, bool), []
    start = 0
    for column, chosen in columns:
        if column.null_count < len(column):
            where[chosen] = np.arange(start, start + chosen.size)
            valid[chosen] = True
            start += chosen.size
            kept.append(column)
    if not kept:
        return pa.nulls(count, columns[0][0].type)
    values = kept[0] if len(kept) == 1 else pa.concat_arrays(kept)
    return values.take(pa.array(where, mask=~valid))
