"""Many messages at once: the fast way for the batch, the exact way for what it refuses.

Every format has two ways to read messages. The fast one takes a batch as a whole and either gives
all its rows or refuses it; the exact one takes a few messages and blames each that is bad. Both
give equal rows, so which way a message went is never visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_upsert_kafka.formats.codec import Decoded

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.codec import Decoder

Fast = Callable[[Sequence[bytes]], "pa.RecordBatch | None"]
"""All rows of a batch, or None: something in it needs the exact way."""

# A vectorised parse has a fixed cost (half a millisecond for JSON); under this many messages the
# exact way costs less.
_TOO_FEW = 64
# A refused batch is cut into so many pieces, again and again, until a piece is small. With eight,
# one odd message among 100,000 makes the batch cost about twice, and a batch of nothing but odd
# messages costs the exact way plus three attempts.
_PIECES = 8
_SMALL = 256


class UnreadableError(ValueError):
    """One message cannot be read; the text says which field, what was seen and what expected."""


@dataclass(frozen=True)
class _Piece:
    start: int
    decoded: Decoded


def decode_in_pieces(messages: Sequence[bytes], fast: Fast, exact: Decoder) -> Decoded:
    """All messages by the fast way as far as it goes, the rest by the exact way."""
    return _joined(list(_pieces(messages, 0, fast, exact)))


def sparing_columns(
    plain: Fast, alone: Mapping[int, Fast], without: Callable[[frozenset[int]], Fast]
) -> Fast:
    """A fast way from which only those columns are taken whose values are odd all along.

    Args:
        plain: The fast way of all columns.
        alone: That of each column that can be odd, to find out whether it is.
        without: The way in which some columns go a slower one.
    """
    without = cache(without)

    def read(messages: Sequence[bytes]) -> pa.RecordBatch | None:
        rows = plain(messages)
        if rows is not None:
            return rows
        first = messages[:_TOO_FEW]
        odd = frozenset(column for column, way in alone.items() if way(first) is None)
        return without(odd)(messages) if 0 < len(odd) < len(alone) else None

    return read


def _pieces(messages: Sequence[bytes], start: int, fast: Fast, exact: Decoder) -> Iterator[_Piece]:
    count = len(messages)
    rows = fast(messages) if count >= _TOO_FEW else None
    if rows is not None:
        yield _Piece(start, Decoded(rows))
    elif count <= _SMALL:
        yield _Piece(start, exact(messages))
    else:
        size = -(-count // _PIECES)
        for at in range(0, count, size):
            yield from _pieces(messages[at : at + size], start + at, fast, exact)


def _joined(pieces: list[_Piece]) -> Decoded:
    if len(pieces) == 1:
        return pieces[0].decoded
    return Decoded(
        rows=_stacked([piece.decoded.rows for piece in pieces]),
        errors={p.start + i: why for p in pieces for i, why in p.decoded.errors.items()},
        skipped=frozenset(p.start + i for p in pieces for i in p.decoded.skipped),
    )


def _stacked(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    schema = batches[0].schema
    columns = [pa.concat_arrays([batch.column(i) for batch in batches]) for i in range(len(schema))]
    return batch_of(columns, schema, sum(batch.num_rows for batch in batches))


def batch_of(columns: Sequence[Any], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """A batch of ``count`` rows, which keeps its rows even when it has no columns."""
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


def exact_decoder(
    row_of: Callable[[bytes], Sequence[Any]], schema: pa.Schema, *, skip_bad: bool = False
) -> Decoder:
    """The exact way: message by message, each bad one blamed.

    Args:
        row_of: A message to its values, one per column, as ``pyarrow.array`` takes them.
        schema: The columns.
        skip_bad: Pass over what cannot be read, for a format's ``ignore-parse-errors``.
    """

    def decode(messages: Sequence[bytes]) -> Decoded:
        rows, errors = [], {}
        for index, message in enumerate(messages):
            try:
                rows.append(row_of(message))
            except UnreadableError as why:
                errors[index] = str(why)
        values = zip(*rows, strict=True) if rows else ([] for _ in schema)
        columns = [pa.array(v, field.type) for v, field in zip(values, schema, strict=True)]
        batch = batch_of(columns, schema, len(rows))
        return Decoded(batch, skipped=frozenset(errors)) if skip_bad else Decoded(batch, errors)

    return decode
