"""Many rows in one value: Arrow's IPC format carries a table's rows through Spark's shuffle and its state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES

_OUT_ROWS = 50_000
"""Rows of a table that one value holds, at most."""

NO_KEYS = -1
"""A bucket beside the others, which has no keys and is there whenever any other is."""


def by_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """Rows whose last column is the number of their bucket: the rows of each bucket, packed.

    A bucket may come several times: rows are packed whenever `MAX_HELD_BYTES` have come.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= MAX_HELD_BYTES:
            yield from _split(held)
            held, size = [], 0
    yield from _split(held)


def _split(batches: Sequence[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    if not batches:
        return
    table = pa.Table.from_batches(batches).combine_chunks()
    last = table.num_columns - 1
    rows = table.select(range(last))
    yield NO_KEYS, packed(rows.slice(0, 0))
    for number, of_number in by_number(rows, table.column(last).to_numpy()):
        yield number, packed(of_number)


def by_number(rows: pa.Table, numbers: np.ndarray) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each number, in the order in which they are; one number for each row."""
    order = np.argsort(numbers, kind="stable")
    rows = rows.take(order)
    found, begins = np.unique(numbers[order], return_index=True)
    for number, begin, end in zip(found, begins, [*begins, len(order)][1:], strict=True):
        yield int(number), rows.slice(begin, end - begin)


def packed(rows: pa.Table) -> bytes:
    """The rows with their columns' names and types, as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def packed_parts(rows: pa.Table) -> Iterator[bytes]:
    """The rows in parts that a batch of Spark can hold."""
    for begin in range(0, rows.num_rows, _OUT_ROWS):
        yield packed(rows.slice(begin, _OUT_ROWS))


def unpacked(*values: bytes) -> pa.Table:
    """The rows that were packed into some values, one after the other; at least one value."""
    tables = [pa.ipc.open_stream(value).read_all() for value in values]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
