"""Many messages at once: the fast way for the batch, slower ones for what it refuses.

Every text format has up to three ways to read messages. The fast one takes a batch as a whole and either
gives all its rows or refuses it. The one by columns leaves out the messages in which a value is bad, and
reads value by value only where a column holds an odd one. The exact one takes message by message and blames
each that is bad. All give equal rows, so which way a message went is never visible; and each costs so much
for a byte and no more, whatever stands in a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.codec import Decoded

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.codec import Decoder

Fast = Callable[[Sequence[bytes]], "pa.RecordBatch | None"]
"""All rows of a batch, or None: something in it needs another way."""

ByColumns = Callable[[Sequence[bytes]], "tuple[pa.RecordBatch, np.ndarray] | None"]
"""The rows of a batch without the messages that are left to the exact way, and the mask of these.

None: it cannot tell which messages those are.
"""

# A vectorised parse has a fixed cost (half a millisecond for JSON); under this many messages the
# exact way costs less.
_TOO_FEW = 64
# A refused batch is cut into so many pieces, again and again, until a piece is small. With eight,
# one odd message among 100,000 makes the batch cost about twice, and a batch of nothing but odd
# messages costs the slower ways plus three attempts.
_PIECES = 8
_SMALL = 256


class UnreadableError(ValueError):
    """One message cannot be read; the text says which field, what was seen and what expected."""


@dataclass(frozen=True)
class _Piece:
    start: int
    decoded: Decoded


@dataclass(frozen=True)
class _Ways:
    fast: Fast
    exact: Decoder
    by_columns: ByColumns | None


def decode_in_pieces(
    messages: Sequence[bytes],
    fast: Fast,
    exact: Decoder,
    by_columns: ByColumns | None = None,
) -> Decoded:
    """All messages by the fast way as far as it goes, the rest by the others."""
    return _joined(list(_pieces(messages, 0, _Ways(fast, exact, by_columns))))


def _pieces(messages: Sequence[bytes], start: int, ways: _Ways) -> Iterator[_Piece]:
    count = len(messages)
    rows = ways.fast(messages) if count >= _TOO_FEW else None
    if rows is not None:
        yield _Piece(start, Decoded(rows))
        return
    decoded = _by_columns(messages, ways)
    if decoded is None and count <= _SMALL:
        decoded = ways.exact(messages)
    if decoded is not None:
        yield _Piece(start, decoded)
        return
    size = -(-count // _PIECES)
    for at in range(0, count, size):
        yield from _pieces(messages[at : at + size], start + at, ways)


def _by_columns(messages: Sequence[bytes], ways: _Ways) -> Decoded | None:
    """A small piece, or a large one with odd messages at both ends, which will not be the only ones."""
    count = len(messages)
    if ways.by_columns is None or count < _TOO_FEW:
        return None
    ends = messages[:_TOO_FEW], messages[-_TOO_FEW:]
    if count > _SMALL and any(ways.fast(end) is not None for end in ends):
        return None
    read = ways.by_columns(messages)
    return None if read is None else with_left(*read, messages, ways.exact)


def with_left(
    rows: pa.RecordBatch, left: np.ndarray, messages: Sequence[bytes], exact: Decoder
) -> Decoded:
    """The rows, and what the exact way makes of the messages that they leave out, in their order.

    Args:
        rows: One row for each message that is not left.
        left: Which messages are.
        messages: All of them.
        exact: The exact way.
    """
    places = np.flatnonzero(left)
    if not places.size:
        return Decoded(rows)
    others = exact([messages[at] for at in places.tolist()])
    errors = {int(places[at]): why for at, why in others.errors.items()}
    skipped = frozenset(int(places[at]) for at in others.skipped)
    if not others.rows.num_rows:
        return Decoded(rows, errors, skipped)
    read_late = np.delete(places, [*others.errors, *others.skipped])
    order = pa.array(np.argsort(np.concatenate([np.flatnonzero(~left), read_late])))
    columns = [pa.concat_arrays([a, b]).take(order) for a, b in zip(rows, others.rows, strict=True)]
    return Decoded(batch_of(columns, rows.schema, len(order)), errors, skipped)


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
