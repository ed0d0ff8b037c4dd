"""The fast way: all messages of a batch read in step, a field at a time.

It reads every message to its end or leaves it to the exact way; it never guesses. The plan is compiled
into a tree of functions once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.decoding.block_columns import repeated
from pyspark_upsert_kafka.formats.avro.decoding.leaf_columns import LEAVES, Read
from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    Choice,
    Node,
    Parts,
    Plan,
    Repeated,
    count_nodes,
)
from pyspark_upsert_kafka.formats.avro.decoding.positions import Positions, positions_of
from pyspark_upsert_kafka.formats.bytewise.numbers import Numbers
from pyspark_upsert_kafka.formats.bytewise.octets import MOST

_MOST_NODES = 20_000


def columnar_reader(
    plan: Plan, columns: pa.StructType, skip: int
) -> Callable[[Sequence[bytes]], tuple[Any, Numbers]] | None:
    """Compiles the function from messages to their rows, a struct each, and the mask of those left.

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
        positions = positions_of(messages, skip)
        if positions.octets.data.size > MOST:
            return pa.array([], columns), np.ones(len(messages), bool)
        seen = read(positions)
        positions.leave(positions.at != positions.end)
        left = positions.left
        return (seen.filter(pa.array(~left)) if left.any() else seen), left

    return rows


def _reader(node: Node) -> Read:
    if isinstance(node, Parts):
        return _parts(node)
    if isinstance(node, Choice):
        return _choice(node)
    if isinstance(node, Repeated):
        return repeated(node, _reader(node.item))
    return LEAVES[type(node)](node)


def _parts(node: Parts) -> Read:
    parts = [(_reader(part), slot) for part, slot in node.written]
    kind = node.arrow
    missing = _constants(node)

    def read(positions: Positions) -> pa.Array | None:
        columns: dict[int | None, Any] = {slot: part(positions) for part, slot in parts}
        if kind is None:
            return None
        count = len(positions.at)
        for slot, value in missing.items():
            columns[slot] = value.take(pa.array(np.zeros(count, np.int32)))
        children = [columns[slot] for slot in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, count, [None], children=children)

    return read


def _constants(node: Parts) -> dict[int, pa.Array]:
    kind: Any = node.arrow
    return {slot: pa.array([value], kind.field(slot).type) for slot, value in node.missing.items()}


def _choice(node: Choice) -> Read:
    branches = [_reader(branch) for branch in node.branches]

    def read(positions: Positions) -> pa.Array | None:
        numbers = positions.longs()
        wrong = (numbers < 0) | (numbers >= len(branches))
        if wrong.any():
            positions.leave(wrong)
            numbers[wrong] = 0
        taken = [
            (branch, chosen)
            for number, branch in enumerate(branches)
            if (chosen := np.flatnonzero(numbers == number)).size
        ]
        if len(taken) < 2:
            return (taken[0][0] if taken else branches[0])(positions)
        columns = []
        for branch, chosen in taken:
            some = positions.some(chosen)
            columns.append((branch(some), chosen))
            positions.at[chosen] = some.at
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
