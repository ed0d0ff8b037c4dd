"""Decoders of Avro: by the vectorised path, and by the row path what that leaves.

The vectorised path reads all messages of a batch at once, a field at a time. It reads every message to its end or leaves it to
the row path; it never guesses. The resolved schema is compiled into a tree of functions once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema
from pyspark_upsert_kafka.formats.avro.avro_cursors import Cursors
from pyspark_upsert_kafka.formats.avro.avro_leaf_readers import ColumnReader
from pyspark_upsert_kafka.formats.avro.avro_row_path import value_reader
from pyspark_upsert_kafka.formats.avro.avro_types import Schema
from pyspark_upsert_kafka.formats.avro.resolved_schema import (
    Node,
    RecordNode,
    RecursiveNode,
    RepeatedNode,
    ResolvedSchema,
    UnionNode,
    added_by_item,
    constant_bytes,
    count_nodes,
    least_bytes,
)
from pyspark_upsert_kafka.formats.avro.schema_resolution import resolve
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.binary_values import MOST, Numbers, offsets_of
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from pyspark_upsert_kafka.formats.decoded_size import BoundedDecoder, Budget, Measure
from pyspark_upsert_kafka.formats.decoding import PathsDecoder, RowPath, UnreadableError

# The vectorised path costs some thirty microseconds a field, however few the messages are.
_MIN_VECTORISED = 64
_MOST_NODES = 20_000
# Items are read in rounds, one item of each message in each. When so few messages have more items, the row path
# costs less; the more rounds there were, the more messages it takes to make another one worth its cost.
_TOO_FEW = 4
_MANY_ROUNDS = 16


def resolve_columns(
    writer: Schema,
    columns: StructType,
    *,
    reader: Schema | None = None,
    legacy_timestamps: bool = True,
) -> ResolvedSchema:
    """How messages that hold one datum each are read into columns.

    Args:
        writer: The schema that the messages are written with.
        columns: The columns; each is the field of its name.
        reader: The reader's schema, which has defaults and aliases; None = there is none.
        legacy_timestamps: Read a local timestamp into a TIMESTAMP, and the reverse; else that is refused.

    Raises:
        SchemaError: A column does not fit the schema.
    """
    # Refuses a column that Avro has no type for: a VARIANT, for one, looks like a record of two binaries.
    derived_schema(columns, frozenset(), legacy_timestamps=legacy_timestamps)
    return resolve(writer, reader, arrow_schema(columns), strict_zones=not legacy_timestamps)


def datum_decoder(
    writer: Schema,
    columns: StructType,
    *,
    reader: Schema | None = None,
    prefix_length: int = 0,
    legacy_timestamps: bool = True,
) -> Decoder:
    """Compiles the decoder of messages that hold one datum each.

    Args:
        writer: See `resolve_columns`.
        columns: See there.
        reader: See there.
        prefix_length: How many bytes stand before the datum.
        legacy_timestamps: See `resolve_columns`.

    Raises:
        SchemaError: A column does not fit the schema.
    """
    schema = resolve_columns(writer, columns, reader=reader, legacy_timestamps=legacy_timestamps)
    target = arrow_schema(columns)
    row_path = _RowPath(_row_reader(schema, prefix_length), target)
    measure = Measure(constants=constant_bytes(schema.row))
    read = vectorised_reader(schema, pa.struct(list(target)), prefix_length)
    if read is None:
        return BoundedDecoder(row_path, target, measure)

    def vectorised(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray]:
        rows, fallback = read(messages)
        return batch_of(rows.flatten(), target, len(rows)), fallback

    decoder = PathsDecoder(
        vectorised, row_path, is_small=lambda messages: len(messages) < _MIN_VECTORISED
    )
    return BoundedDecoder(decoder, target, measure)


@dataclass(frozen=True)
class _RowPath:
    """The row path, with a budget for each batch."""

    read: Callable[[bytes, Budget], Sequence[Any]]
    schema: pa.Schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        budget = Budget(len(messages), begun=0)
        return RowPath(lambda message: self.read(message, budget), self.schema).decode(messages)


def _row_reader(
    schema: ResolvedSchema, prefix_length: int
) -> Callable[[bytes, Budget], Sequence[Any]]:
    read = value_reader(schema, prefix_length)

    def row(message: bytes, budget: Budget) -> Sequence[Any]:
        budget.begun += 1
        if not message:
            raise UnreadableError("the message is empty")
        if len(message) < prefix_length:
            raise UnreadableError(
                f"the message ends within the {prefix_length} bytes before the datum"
            )
        values: Sequence[Any] = read(message, budget)
        return values

    return row


_VectorisedReader = Callable[[Sequence[bytes]], tuple[Any, Numbers]]
"""From messages to their rows, a struct each, and the mask of those left to the row path, whose rows have no meaning."""


def vectorised_reader(
    schema: ResolvedSchema, columns: pa.StructType, prefix_length: int
) -> _VectorisedReader | None:
    """Compiles the reader of a resolved schema.

    Args:
        schema: How a datum is read.
        columns: The columns.
        prefix_length: How many bytes stand before a datum.

    Returns:
        None when the row path costs less, or must read all: the schema is very large, or has records within themselves.
    """
    if schema.records or count_nodes(schema.row) > _MOST_NODES:
        return None
    read = _reader(schema.row)

    def rows(messages: Sequence[bytes]) -> tuple[Any, Numbers]:
        cursors = Cursors.of(messages, prefix_length)
        if cursors.buffer.data.size > MOST:
            return pa.nulls(len(messages), columns), np.ones(len(messages), bool)
        seen = read(cursors)
        cursors.leave(cursors.at != cursors.end)
        return seen, cursors.fallback

    return rows


def _reader(node: Node) -> ColumnReader:
    if isinstance(node, RecordNode):
        return _record(node)
    if isinstance(node, UnionNode):
        return _union(node)
    if isinstance(node, RepeatedNode):
        return _repeated(node)
    if isinstance(node, RecursiveNode):
        raise TypeError("records within themselves are read by the row path")
    return node.column_reader()


def _record(node: RecordNode) -> ColumnReader:
    parts = [(_reader(part), slot) for part, slot in node.written]
    arrow, missing = node.arrow, _constants(node)

    def read(cursors: Cursors) -> pa.Array | None:
        columns: dict[int | None, Any] = {slot: part(cursors) for part, slot in parts}
        if arrow is None:
            return None
        count = len(cursors.at)
        for slot, value in missing.items():
            columns[slot] = value.take(pa.array(np.zeros(count, np.int32)))
        children = [columns[slot] for slot in range(arrow.num_fields)]
        return pa.Array.from_buffers(arrow, count, [None], children=children)

    return read


def _constants(node: RecordNode) -> dict[int, pa.Array]:
    arrow: Any = node.arrow
    return {slot: pa.array([value], arrow.field(slot).type) for slot, value in node.missing.items()}


def _union(node: UnionNode) -> ColumnReader:
    branches = [_reader(branch) for branch in node.branches]

    def read(cursors: Cursors) -> pa.Array | None:
        numbers = cursors.longs()
        wrong = (numbers < 0) | (numbers >= len(branches))
        if wrong.any():
            cursors.leave(wrong)
            numbers[wrong] = 0
        # A union may have thousands of branches, of which few occur.
        taken = [
            (branches[number], np.flatnonzero(numbers == number))
            for number in np.flatnonzero(np.bincount(numbers)).tolist()
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


def _repeated(node: RepeatedNode) -> ColumnReader:
    """Arrays and maps: the first item of each message, then the second of each, and so on."""
    header, item = _block_header(node), _reader(node.item)

    def read(cursors: Cursors) -> pa.Array | None:
        remaining = header(cursors)
        owners, items, rounds = [], [], 0
        active = np.flatnonzero(remaining)
        while active.size:
            rounds += 1
            some = cursors.select(active)
            if active.size < _TOO_FEW * (1 + rounds // _MANY_ROUNDS):
                some.leave(np.ones(active.size, bool))
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
            active = active[(remaining[active] > 0) & ~cursors.fallback[some.rows]]
        return None if node.arrow is None else _lists(node.arrow, items, owners, cursors)

    return read


def _block_header(node: RepeatedNode) -> Callable[[Cursors], Numbers]:
    """How many items the next block has: 0 behind the last one, and for a message that is left to the row path."""
    least, added = least_bytes(node.item), added_by_item(node)
    sized_blocks = _skip_sized_blocks if node.arrow is None else _read_sized_blocks

    def header(cursors: Cursors) -> Numbers:
        counts = cursors.longs()
        sized_blocks(cursors, counts)
        wrong = (counts < 0) | (counts > (cursors.end - cursors.at) // max(least, 1))
        if not least:
            wrong |= counts > 0
        if wrong.any():
            cursors.leave(wrong)
            counts[wrong] = 0
        cursors.budget.take(added * int(counts.sum()))
        return counts

    return header


def _read_sized_blocks(cursors: Cursors, counts: Numbers) -> None:
    """A negative count is followed by the size of the block in bytes, which is not needed when its items are read."""
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
        some.leave((sizes < 0) | (sizes > some.end - some.at) | (rounds > _MANY_ROUNDS))
        some.at += np.where(some.at < some.end, sizes, 0)
        counts[sized] = some.longs()
        cursors.at[sized] = some.at
        sized = sized[counts[sized] < 0]


def _lists(
    arrow: pa.DataType, items: list[Any], owners: list[Numbers], cursors: Cursors
) -> pa.Array:
    """Lists or maps of what was read round by round: one item of each owner in every round."""
    count = len(cursors.at)
    values = pa.array([], arrow.field(0).type)
    owner = np.concatenate([np.empty(0, np.int64), *owners])
    if items:
        order = np.argsort(owner, kind="stable")
        values = pa.concat_arrays(items).take(pa.array(order))
        if pa.types.is_map(arrow):
            _leave_repeated_keys(values.field(0), owner[order], cursors)
    offsets = offsets_of(np.bincount(owner, minlength=count)).astype(np.int32)
    return pa.Array.from_buffers(arrow, count, [None, pa.py_buffer(offsets)], children=[values])


def _leave_repeated_keys(keys: pa.Array, owner: Numbers, cursors: Cursors) -> None:
    """Leaves maps in which a key occurs twice to the row path, which keeps the last value."""
    encoded = keys.dictionary_encode()
    size = len(encoded.dictionary)
    pairs = np.sort(owner * size + encoded.indices.to_numpy())
    twice = pairs[1:][pairs[1:] == pairs[:-1]] // size
    wrong = np.zeros(len(cursors.at), bool)
    wrong[twice] = True
    cursors.leave(wrong)
