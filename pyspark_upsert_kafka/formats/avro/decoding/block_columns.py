"""Arrays and maps of all messages: the first item of each, then the second of each, and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.avro.decoding.constants import added_by_item
from pyspark_upsert_kafka.formats.avro.decoding.cursors import Cursors
from pyspark_upsert_kafka.formats.avro.decoding.leaf_columns import Read
from pyspark_upsert_kafka.formats.avro.decoding.plan import RepeatedNode, least_bytes
from pyspark_upsert_kafka.formats.binary.numbers import Numbers, offsets_of

# When so few messages have more items, the row path costs less; and fewer and fewer of them are worth
# another round, the longer it goes on.
_TOO_FEW = 4
_MANY_ROUNDS = 16


def repeated(node: RepeatedNode, item: Read) -> Read:
    """The reader of an array or a map, made of the reader of its items."""
    header = _block_header(node)

    def read(cursors: Cursors) -> pa.Array | None:
        remaining = header(cursors)
        owners, items, rounds = [], [], 0
        active = np.flatnonzero(remaining)
        while active.size:
            rounds += 1
            some = cursors.select(active)
            if active.size < _TOO_FEW * (1 + rounds // _MANY_ROUNDS):
                some.defer(np.ones(active.size, bool))
            else:
                items.append(item(some))
                owners.append(active)
            remaining[active] -= 1
            ended = np.flatnonzero(remaining[active] == 0)
            if ended.size:
                others = some.select(ended)
                remaining[active[ended]] = header(others)
                some.at[ended] = others.at
            cursors.at[active] = some.at
            active = active[(remaining[active] > 0) & ~cursors.deferred[some.rows]]
        return None if node.arrow is None else _lists(node.arrow, items, owners, cursors)

    return read


def _block_header(node: RepeatedNode) -> Callable[[Cursors], Numbers]:
    """How many items the next block has: 0 behind the last one, and for a message that is deferred."""
    least, added = least_bytes(node.item), added_by_item(node)
    sized_blocks = _skip_sized_blocks if node.arrow is None else _read_sized_blocks

    def header(cursors: Cursors) -> Numbers:
        counts = cursors.longs()
        sized_blocks(cursors, counts)
        wrong = (counts < 0) | (counts > (cursors.end - cursors.at) // max(least, 1))
        if not least:
            wrong |= counts > 0
        if wrong.any():
            cursors.defer(wrong)
            counts[wrong] = 0
        cursors.budget.take(added * int(counts.sum()))
        return counts

    return header


def _read_sized_blocks(cursors: Cursors, counts: Numbers) -> None:
    """A negative count is followed by the size of the block, which is of no use to who reads its items."""
    sized = np.flatnonzero(counts < 0)
    if sized.size:
        some = cursors.select(sized)
        some.longs()
        counts[sized] = -counts[sized]
        cursors.at[sized] = some.at


def _skip_sized_blocks(cursors: Cursors, counts: Numbers) -> None:
    """Blocks that give their size are skipped by it, until one comes that gives none."""
    sized = np.flatnonzero(counts < 0)
    rounds = 0
    while sized.size:
        rounds += 1
        some = cursors.select(sized)
        sizes = some.longs()
        some.defer((sizes < 0) | (sizes > some.end - some.at) | (rounds > _MANY_ROUNDS))
        some.at += np.where(some.at < some.end, sizes, 0)
        counts[sized] = some.longs()
        cursors.at[sized] = some.at
        sized = sized[counts[sized] < 0]


def _lists(
    kind: pa.DataType, items: list[Any], owners: list[Numbers], cursors: Cursors
) -> pa.Array:
    """Lists or maps of what was read round by round: one item of each owner in every round."""
    count = len(cursors.at)
    values = pa.array([], kind.field(0).type)
    owner = np.concatenate([np.empty(0, np.int64), *owners])
    if items:
        order = np.argsort(owner, kind="stable")
        values = pa.concat_arrays(items).take(pa.array(order))
        if pa.types.is_map(kind):
            _defer_repeated_keys(values.field(0), owner[order], cursors)
    offsets = offsets_of(np.bincount(owner, minlength=count)).astype(np.int32)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets)], children=[values])


def _defer_repeated_keys(keys: pa.Array, owner: Numbers, cursors: Cursors) -> None:
    """Of equal keys in a map the last one stands; the row path sees to that."""
    encoded = pc.dictionary_encode(keys)
    size = len(encoded.dictionary)
    pairs = np.sort(owner * size + encoded.indices.to_numpy())
    twice = pairs[1:][pairs[1:] == pairs[:-1]] // size
    wrong = np.zeros(len(cursors.at), bool)
    wrong[twice] = True
    cursors.defer(wrong)
