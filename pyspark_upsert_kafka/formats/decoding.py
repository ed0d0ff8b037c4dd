"""Decoders made of paths: what a format may use to implement the `Decoder` of ``codec.py``.

A path is a way from messages to rows. A format has a row path, and may have faster ones:

- The *vectorised path* reads a batch as a whole.
- The *column path* reads column after column. It leaves out the messages in which a value is bad, and reads
  value by value only the columns in which some value needs that.
- The *row path* reads message by message, and says of each bad one what is wrong with it.

All give equal rows, so it is never visible which path a message took. What a path costs grows with the bytes of a
batch, whatever stands in them.

A faster path says which messages it leaves to the row path. Where it cannot, it refuses the batch, and then there is
one retreat: the batch is read in eight parts, and what the vectorised path refuses of these by the column path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.bytes_column import some_of, total_size
from pyspark_upsert_kafka.formats.batches import (
    Indexes,
    batch_of,
    joined,
    nulls,
    rows_at,
    with_others,
)
from pyspark_upsert_kafka.formats.codec import Decoded

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.codec import Decoder

Mask = Any
"""A numpy array of booleans, such as one for each message."""

Path = Callable[[Sequence[bytes]], "tuple[pa.RecordBatch, Mask] | None"]
"""A row for each message of a batch, and the mask of those that fall back to the row path, whose rows have no meaning.

None: it cannot tell which messages those are, or they are so many that another path costs less.
"""

# A vectorised parse has a fixed cost (some tenths of a millisecond for JSON); under this many messages, and bytes,
# the row path costs less.
_MIN_VECTORISED = 64
_MIN_VECTORISED_BYTES = 64 * 1024
# The number of parts into which a refused batch is split. When as many of them as this are refused and none is read,
# the vectorised path is not tried on the others.
_PARTS = 8
_TRIED = 2
MOST_LEFT = 1 / 4
"""A path that leaves a larger share of messages than this to the row path does not pay."""

PROBE = 64
"""A path that may not pay is tried on so many messages first."""

# Such a try costs as much as the row path for some hundreds of messages. Where one has failed, the row path reads so many
# messages before the next one, and twice as many after each that fails.
_FIRST_PAUSE = 1024
_LONGEST_PAUSE = 64 * 1024

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


def _is_small(messages: Sequence[bytes]) -> bool:
    return len(messages) < _MIN_VECTORISED and total_size(messages) < _MIN_VECTORISED_BYTES


class PathsDecoder:
    """Decodes by the fastest path that reads a message.

    Args:
        vectorised: Reads whole batches, or parts of them.
        row_path: Reads what the other paths do not.
        column_path: Reads parts that the vectorised path refuses; None = there is none.
        is_small: Whether messages are so few that the row path costs less.
    """

    def __init__(
        self,
        vectorised: Path,
        row_path: Decoder,
        column_path: Path | None = None,
        is_small: Callable[[Sequence[bytes]], bool] = _is_small,
    ) -> None:
        self.row_path = row_path
        self._vectorised, self._column_path, self._is_small = vectorised, column_path, is_small
        # How many messages the row path reads before the other paths are tried again, and how many of these it has read;
        # 0 = it did not have to read many of the last batch.
        self._pause = self._read = 0

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All messages."""
        if self._is_small(messages) or (self._pause and not self._pays_again(messages)):
            return self.row_path.decode(messages)
        read = self._vectorised(messages)
        left, decoded = (
            self._in_parts(messages) if read is None else self._with_rows(messages, *read)
        )
        if left > MOST_LEFT * len(messages):
            self._pause_longer()
        else:
            self._pause = 0
        return decoded

    def _pause_longer(self) -> None:
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE)
        self._read = 0

    def _pays_again(self, messages: Sequence[bytes]) -> bool:
        """Whether one of the faster paths reads most of the messages after all, which is tried now and then."""
        self._read += len(messages)
        if self._read < self._pause:
            return False
        pays = self._pays(messages[:PROBE])
        if not pays:
            self._pause_longer()
        return pays

    def _pays(self, first: Sequence[bytes]) -> bool:
        """Whether one of the faster paths reads most of some messages."""
        return _reads_most(self._vectorised(first)) or (
            self._column_path is not None and _reads_most(self._column_path(first))
        )

    def _in_parts(self, messages: Sequence[bytes]) -> tuple[int, Decoded]:
        """A batch that the vectorised path refuses, and how many messages the row path has read."""
        parts: list[tuple[np.ndarray, Decoded]] = []
        size = max(-(-len(messages) // _PARTS), _MIN_VECTORISED)
        refused, all_left, places = 0, 0, np.arange(len(messages))
        for at in range(0, len(messages), size):
            part = messages[at : at + size]
            is_tried = size < len(messages) and refused < max(_TRIED, len(parts))
            read = self._vectorised(part) if is_tried else None
            if read is None:
                refused += 1
                read = self._by_columns(part)
            left, decoded = (
                (len(part), self.row_path.decode(part))
                if read is None
                else self._with_rows(part, *read)
            )
            all_left += left
            parts.append((places[at : at + size], decoded))
        return all_left, merge_by_position(parts)

    def _by_columns(self, messages: Sequence[bytes]) -> tuple[pa.RecordBatch, Mask] | None:
        """A part by the column path, unless it would leave too much of it."""
        if self._column_path is None or not _reads_most(self._column_path(messages[:PROBE])):
            return None
        return self._column_path(messages)

    def _with_rows(
        self, messages: Sequence[bytes], rows: pa.RecordBatch, fallback: Mask
    ) -> tuple[int, Decoded]:
        """How many messages fall back, and the rows, with what the row path makes of these."""
        places = np.flatnonzero(fallback)
        if not places.size:
            return 0, Decoded(rows)
        if places.size == len(messages):
            return len(places), self.row_path.decode(messages)
        others = self.row_path.decode(some_of(messages, places))
        return len(places), replaced(Decoded(rows), places, others)


def _reads_most(read: tuple[pa.RecordBatch, Mask] | None) -> bool:
    return read is not None and bool(read[1].mean() <= MOST_LEFT)


def merge_by_position(parts: Sequence[tuple[np.ndarray, Decoded]]) -> Decoded:
    """Puts the results of parts of a batch together, as if all messages had been decoded at once.

    Args:
        parts: The positions of a part's messages in the batch, in order, and their result; at least one part.
    """
    errors = {int(at[i]): why for at, part in parts for i, why in part.errors.items()}
    skipped = frozenset(int(at[i]) for at, part in parts for i in part.skipped)
    rows, positions = (
        joined([part.rows for _, part in parts]),
        np.concatenate([at for at, _ in parts]),
    )
    if (positions[1:] < positions[:-1]).any():
        rows = rows_at(rows, pa.array(np.argsort(positions)))
    return Decoded(rows, errors, skipped)


def replaced(decoded: Decoded, places: Indexes, others: Decoded) -> Decoded:
    """What was decoded, with other results for the messages at some places; at least one."""
    columns = zip(decoded.rows.columns, others.rows.columns, strict=True)
    found = [with_others(column, places, other) for column, other in columns]
    rows = batch_of(found, decoded.rows.schema, decoded.rows.num_rows)
    gone = {*np.asarray(places).tolist()}
    errors = {at: why for at, why in decoded.errors.items() if at not in gone}
    errors |= {int(places[i]): why for i, why in others.errors.items()}
    skipped = decoded.skipped.difference(gone).union(int(places[i]) for i in others.skipped)
    return Decoded(rows, errors, skipped)


def without(decoded: Decoded, bad: Mapping[int, str], *, skip: bool = False) -> Decoded:
    """What was decoded, but for some messages that are bad after all.

    Args:
        decoded: What was decoded.
        bad: The index of each of them, and why.
        skip: Whether they are skipped instead, for a format's ``ignore-parse-errors``.
    """
    if not bad:
        return decoded
    index = np.arange(decoded.rows.num_rows)
    rows = rows_at(decoded.rows, pa.array(index, mask=np.isin(index, [*bad])))
    if skip:
        return Decoded(rows, decoded.errors, decoded.skipped.union(bad))
    return Decoded(rows, {**decoded.errors, **bad}, decoded.skipped)
