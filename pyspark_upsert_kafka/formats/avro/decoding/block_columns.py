"""Arrays and maps, read in step: the first items of all messages, then the second ones, and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.avro.decoding.leaf_columns import Read
from pyspark_upsert_kafka.formats.avro.decoding.plan import Repeated, least_bytes
from pyspark_upsert_kafka.formats.avro.decoding.positions import Positions
from pyspark_upsert_kafka.formats.bytewise.numbers import Numbers, offsets_of

# When so few messages have more items, the exact way costs less; and fewer and fewer of them are worth
# another round, the longer it goes on.
_TOO_FEW = 4
_PATIENCE = 16


def repeated(node: Repeated, item: Read) -> Read:
    """The reader of an array or a map, made of the reader of its items."""
    header = _block_header(node)

    def read(positions: Positions) -> pa.Array | None:
        remaining = header(positions)
        owners, items, rounds = [], [], 0
        active = np.flatnonzero(remaining)
        while active.size:
            rounds += 1
            some = positions.some(active)
            if active.size < _TOO_FEW * (1 + rounds // _PATIENCE):
                some.leave(np.ones(active.size, bool))
            else:
                items.append(item(some))
                owners.append(active)
            remaining[active] -= 1
            ended = np.flatnonzero(remaining[active] == 0)
            if ended.size:
                others = some.some(ended)
                remaining[active[ended]] = header(others)
                some.at[ended] = others.at
            positions.at[active] = some.at
            active = active[(remaining[active] > 0) & ~positions.left[some.rows]]
        return None if node.arrow is None else _lists(node.arrow, items, owners, positions)

    return read


def _block_header(node: Repeated) -> Callable[[Positions], Numbers]:
    """How many items the next block has: 0 behind the last one, and for a message that is left.

    A negative count is followed by the size of the block, by which it is passed over.
    """
    least, passed = least_bytes(node.item), node.arrow is None

    def header(positions: Positions) -> Numbers:
        counts = positions.longs()
        sized = np.flatnonzero(counts < 0)
        rounds = 0
        while sized.size:
            rounds += 1
            some = positions.some(sized)
            sizes = some.longs()
            if passed:
                some.leave((sizes < 0) | (sizes > some.end - some.at) | (rounds > _PATIENCE))
                some.at += np.where(some.at < some.end, sizes, 0)
                counts[sized] = some.longs()
            else:
                counts[sized] = -counts[sized]
            positions.at[sized] = some.at
            sized = sized[counts[sized] < 0] if passed else sized[:0]
        wrong = (counts < 0) | (counts > (positions.end - positions.at) // max(least, 1))
        if not least:
            wrong |= counts > 0
        if wrong.any():
            positions.leave(wrong)
            counts[wrong] = 0
        return counts

    return header


def _lists(
    kind: pa.DataType, items: list[Any], owners: list[Numbers], positions: Positions
) -> pa.Array:
    """Lists or maps of what was read round by round: one item of each owner in every round."""
    count = len(positions.at)
    values = pa.array([], kind.field(0).type)
    owner = np.concatenate([np.empty(0, np.int64), *owners])
    if items:
        order = np.argsort(owner, kind="stable")
        values = pa.concat_arrays(items).take(pa.array(order))
        if pa.types.is_map(kind):
            _leave_repeated_keys(values.field(0), owner[order], positions)
    offsets = offsets_of(np.bincount(owner, minlength=count)).astype(np.int32)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets)], children=[values])


def _leave_repeated_keys(keys: pa.Array, owner: Numbers, positions: Positions) -> None:
    """Of equal keys in a map the last one stands; the exact way sees to that."""
    encoded = pc.dictionary_encode(keys)
    size = len(encoded.dictionary)
    pairs = np.sort(owner * size + encoded.indices.to_numpy())
    twice = pairs[1:][pairs[1:] == pairs[:-1]] // size
    wrong = np.zeros(len(positions.at), bool)
    wrong[twice] = True
    positions.leave(wrong)
