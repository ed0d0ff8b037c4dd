"""Decoders made of paths: what a format may use to implement the `Decoder` of ``codec.py``.

A path is a way from messages to rows. A format has a row path, and may have faster ones:

- The *vectorised path* reads a batch as a whole.
- The *column path* reads column after column. It leaves out the messages in which a value is bad, and reads
  value by value only the columns in which some value needs that.
- The *row path* reads message by message, and says of each bad one what is wrong with it.

All give equal rows, so it is never visible which path a message took. What a path costs grows with the bytes of a
batch, whatever stands in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.bytes_column import some_of, total_size
from pyspark_upsert_kafka.formats.batches import batch_of, joined, merge_by_position, nulls
from pyspark_upsert_kafka.formats.codec import Decoded

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.codec import Decoder

VectorisedPath = Callable[[Sequence[bytes]], "pa.RecordBatch | None"]
"""All rows of a batch, or None: something in it needs another path."""

PartialPath = Callable[[Sequence[bytes]], "tuple[pa.RecordBatch, np.ndarray] | None"]
"""The rows of a batch without the messages that fall back to the row path, and the mask of these.

None: it cannot tell which messages those are.
"""

# A vectorised parse has a fixed cost (half a millisecond for JSON); under this many messages, and bytes, the
# row path costs less.
_MIN_VECTORISED = 64
_MIN_VECTORISED_BYTES = 64 * 1024
# The number of parts into which a refused batch is split, again and again, until a part is small. With eight, one
# message among 100,000 that needs the row path makes the batch cost about twice, and a batch of nothing
# else costs the other paths plus three attempts.
_SPLIT = 8
_SMALL = 256
# Values of Python take many times the bytes that they were read from, and the bytes that they become.
_ROW_PATH_BYTES = 1024 * 1024


class UnreadableError(ValueError):
    """One message cannot be read; the text says which field, what was seen and what expected."""


@dataclass(frozen=True)
class RowField:
    """A field of a message, or one inside it.

    Args:
        path: Where it stands, for people: ``order.lines[].price``.
        nullable: Whether it may be NULL.
        lenient: Whether a bad value is NULL, as ``ignore-parse-errors`` demands.
    """

    path: str
    nullable: bool
    lenient: bool = False

    def null(self, absent: str = "null or missing") -> None:
        """NULL, for a field without a value. Raises UnreadableError when the field is NOT NULL."""
        if not self.nullable:
            raise UnreadableError(f"field '{self.path}' is NOT NULL, but is {absent}")

    def reader(
        self, read: Callable[[Any], Any], shown: Callable[[Any], str], null: Any = None
    ) -> Callable[[Any], Any]:
        """Compiles its reader, which raises UnreadableError.

        Args:
            read: Reads a value; None = it is NULL after all, ValueError = it is bad.
            shown: A value as it stands in an error.
            null: A value that means NULL, as None does.
        """

        def field(value: Any) -> Any:
            if value is None or value == null:
                return self.null()
            try:
                found = read(value)
            except UnreadableError:
                raise
            except ValueError as why:
                if self.lenient:
                    return self.null()
                raise UnreadableError(f"field '{self.path}': {why}, got {shown(value)}") from None
            return self.null() if found is None else found

        return field


@dataclass(frozen=True)
class RowPath:
    """Decodes message by message, and says of each bad one what is wrong with it.

    Args:
        row_of: A message to its values, one per column, as ``pyarrow.array`` takes them; it raises
            UnreadableError.
        schema: The columns.
        skip_bad: Pass over what cannot be read, for a format's ``ignore-parse-errors``.
    """

    row_of: Callable[[bytes], Sequence[Any]]
    schema: pa.Schema
    skip_bad: bool = False

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of the messages, and what is wrong with the bad ones."""
        row_of, nothing, rows, errors = self.row_of, [None] * len(self.schema), [], {}
        batches, size = [], 0
        for index, message in enumerate(messages):
            try:
                rows.append(row_of(message))
            except UnreadableError as why:
                errors[index] = str(why)
                rows.append(nothing)
            size += len(message)
            if size > _ROW_PATH_BYTES:
                batches.append(self._batch(rows))
                rows, size = [], 0
        if rows or not batches:
            batches.append(self._batch(rows))
        batch = joined(batches)
        return (
            Decoded(batch, skipped=frozenset(errors)) if self.skip_bad else Decoded(batch, errors)
        )

    def _batch(self, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
        values = zip(*rows, strict=True) if rows else ([] for _ in self.schema)
        columns = [pa.array(v, field.type) for v, field in zip(values, self.schema, strict=True)]
        return batch_of(columns, self.schema, len(rows))


@dataclass(frozen=True)
class Refusal:
    """Decodes nothing: all messages are bad for one reason, such as a schema that does not fit the table.

    Args:
        reason: Why.
        schema: The columns.
    """

    reason: str
    schema: pa.Schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The reason for each message."""
        count = len(messages)
        return Decoded(nulls(self.schema, count), dict.fromkeys(range(count), self.reason))


@dataclass(frozen=True)
class FallbackDecoder:
    """Decodes a batch by a vectorised path that says which messages it leaves to the row path.

    Args:
        vectorised: The rows of the messages that it can read.
        row_path: Reads the others.
        min_vectorised: Fewer messages than this cost less by the row path.
    """

    vectorised: PartialPath
    row_path: Decoder
    min_vectorised: int

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All messages."""
        read = self.vectorised(messages) if len(messages) >= self.min_vectorised else None
        if read is None:
            return self.row_path.decode(messages)
        return _with_fallback(*read, messages, self.row_path)


@dataclass(frozen=True)
class SplittingDecoder:
    """Decodes by a vectorised path that refuses whole batches; what it refuses is split.

    Args:
        vectorised: All rows of a batch, or none.
        row_path: Reads what the other paths do not.
        column_path: Reads small parts that the vectorised path refuses.
    """

    vectorised: VectorisedPath
    row_path: Decoder
    column_path: PartialPath | None = None

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All messages."""
        parts = list(self._parts(messages, 0))
        return parts[0][1] if len(parts) == 1 else merge_by_position(parts)

    def _parts(self, messages: Sequence[bytes], start: int) -> Iterator[tuple[np.ndarray, Decoded]]:
        count = len(messages)
        is_small = count < _MIN_VECTORISED and total_size(messages) < _MIN_VECTORISED_BYTES
        rows = None if is_small else self.vectorised(messages)
        decoded = self._by_columns(messages) if rows is None else Decoded(rows)
        if decoded is None and count <= _SMALL:
            decoded = self.row_path.decode(messages)
        if decoded is not None:
            yield np.arange(start, start + count), decoded
            return
        size = -(-count // _SPLIT)
        for at in range(0, count, size):
            yield from self._parts(messages[at : at + size], start + at)

    def _by_columns(self, messages: Sequence[bytes]) -> Decoded | None:
        """The column path, for a small part, or a large one whose first and last messages are refused, and so probably all."""
        count = len(messages)
        if self.column_path is None or count < _MIN_VECTORISED:
            return None
        ends = messages[:_MIN_VECTORISED], messages[-_MIN_VECTORISED:]
        if count > _SMALL and any(self.vectorised(end) is not None for end in ends):
            return None
        read = self.column_path(messages)
        return None if read is None else _with_fallback(*read, messages, self.row_path)


def _with_fallback(
    rows: pa.RecordBatch, fallback: np.ndarray, messages: Sequence[bytes], row_path: Decoder
) -> Decoded:
    """The rows, and what the row path makes of the messages that they leave out, in their order."""
    places = np.flatnonzero(fallback)
    if not places.size:
        return Decoded(rows)
    others = row_path.decode(some_of(messages, places))
    return merge_by_position([(np.flatnonzero(~fallback), Decoded(rows)), (places, others)])
