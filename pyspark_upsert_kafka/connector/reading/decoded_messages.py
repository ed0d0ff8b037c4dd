"""The messages of a batch, decoded: one side of them (key or value), or the rows that messages of a CDC format changed.

And which messages become rows, and what each row is. In a CDC format the row's own columns win; where one of the key is NULL or
missing, the key of the message says it, if that is read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.connector.bad_messages import BadMessage, Stage
from pyspark_upsert_kafka.connector.local_time import local_time
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.core.metadata import SCHEMA_IDS
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.batches import rows_at, with_type
from pyspark_upsert_kafka.formats.codec import (
    ChangeDecoder,
    DecodedChanges,
    Decoder,
    Side,
    TooManyMessagesError,
)
from pyspark_upsert_kafka.formats.row_hash import differing_keys
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

logger = logging.getLogger("pyspark_upsert_kafka")

T = TypeVar("T")


def in_parts(batch: RawBatch, decode: Callable[[RawBatch], T]) -> Iterator[tuple[RawBatch, T]]:
    """What a batch is decoded to, in parts if the whole would become too large."""
    try:
        decoded = decode(batch)
    except TooManyMessagesError as error:
        most = error.most  # the error itself would hold all that was decoded until then
    else:
        yield batch, decoded
        return
    for at in range(0, len(batch), most):
        yield from in_parts(batch.part(at, at + most), decode)


def with_schema_ids(batch: RawBatch, *sides: Side | None) -> tuple[RawBatch, list[BadMessage]]:
    """The messages as the formats of these sides read them: a schema that a header names stands before the bytes.

    Args:
        batch: The messages, with the headers that name schemas.
        sides: The sides; None = one that is not read.

    Returns:
        The messages, and those whose header is wrong.
    """
    bad: list[BadMessage] = []
    for side in sides:
        if side is None or side.format.with_schema_ids is None:
            continue
        name = side.spec.side
        ids = batch.schema_ids.get(SCHEMA_IDS[name])
        if ids is not None:
            messages = batch.keys if name == "key" else batch.values
            messages, wrong = side.format.with_schema_ids(name, messages, ids)
            keys, values = (messages, batch.values) if name == "key" else (batch.keys, messages)
            batch = replace(batch, keys=keys, values=values)
            bad += [BadMessage(at, name, why) for at, why in wrong.items()]
    return batch, bad


@dataclass(frozen=True)
class DecodedSide:
    """The decoded rows of one side.

    Args:
        rows: A row for each message; NULL in all columns for one that is null, bad or skipped.
        read: For each message whether its row is its own, and not one of these.
        nulls: For each message whether it is null, which in a value is a delete; None = none is.
        bad: Messages that cannot be decoded, in offset order.
        skipped: Messages that the format skips (``ignore-parse-errors``).
    """

    rows: pa.RecordBatch
    read: Mask
    nulls: Mask | None
    bad: list[BadMessage]
    skipped: list[int]

    @property
    def places(self) -> Indexes:
        """The index of each message whose row is its own."""
        return np.flatnonzero(self.read)

    def column(self, name: str, selection: Selection) -> pa.Array:
        """The column for the selected messages."""
        return selection.take(self.rows.column(name))

    def with_nulls_bad(self, stage: Stage, reason: str) -> DecodedSide:
        """The same, with each null message as one that cannot be decoded."""
        if self.nulls is None:
            return self
        nulls = [BadMessage(int(at), stage, reason) for at in np.flatnonzero(self.nulls)]
        bad = sorted([*self.bad, *nulls], key=lambda message: message.index)
        return replace(self, bad=bad, nulls=None)

    def selection(
        self,
        batch: RawBatch,
        bad: Sequence[BadMessage],
        *,
        hidden: Collection[int],
        keep_deletes: bool,
    ) -> Selection:
        """The messages that become rows, of values; see `select`."""
        return select(batch, self.nulls, bad, hidden=hidden, keep_deletes=keep_deletes)


def nulls_of(messages: BytesColumn) -> Mask | None:
    """For each message whether it is null; None = none is."""
    return messages.column.is_null().to_numpy(zero_copy_only=False) if messages.nulls else None


def decode_side(
    messages: BytesColumn, decoder: Decoder, side: Literal["key", "value"]
) -> DecodedSide:
    """Decodes one side; a null message is no error."""
    nulls = nulls_of(messages)
    if nulls is None:
        decoded, at = decoder.decode(messages), np.arange(len(messages))
        rows, read = decoded.rows, decoded.read
    else:
        decoded = decoder.decode(BytesColumn(messages.column.drop_null()))
        rows = rows_at(decoded.rows, pa.array(np.cumsum(~nulls) - 1, mask=nulls))
        at, read = np.flatnonzero(~nulls), ~nulls
        read[at] = decoded.read
    bad = [BadMessage(int(at[i]), side, why) for i, why in sorted(decoded.errors.items())]
    return DecodedSide(rows, read, nulls, bad, [int(at[i]) for i in sorted(decoded.skipped)])


Indexes = Any
"""A numpy array of message indexes."""

Mask = Any
"""A numpy array with a boolean for each message."""

_UPSERT, _DELETE = np.int8(Change.UPSERT), np.int8(Change.DELETE)


@dataclass(frozen=True)
class Selection:
    """The rows that the messages of a batch become.

    Args:
        batch: All messages.
        indexes: The index of each row's message, rising; None = each message has one row.
        bad: The messages of the batch that cannot be decoded, in offset order.
        kinds: The `Change` of each row; None = all are upserts.
        changes: Of a CDC format, for each row its number among the decoded changes; -1 = it is none of them.
    """

    batch: RawBatch
    indexes: Indexes | None
    bad: Sequence[BadMessage]
    kinds: Indexes | None = None
    changes: Indexes = None

    def __len__(self) -> int:
        return len(self.batch) if self.indexes is None else len(self.indexes)

    def take(self, array: pa.Array) -> pa.Array:
        """For each row the entry of its message in an array that has one for each message of the batch."""
        return array if self.indexes is None else array.take(pa.array(self.indexes))

    @property
    def bad_mask(self) -> Mask:
        """For each message of the batch whether it cannot be decoded."""
        mask = np.zeros(len(self.batch), dtype=bool)
        mask[[message.index for message in self.bad]] = True
        return mask

    @property
    def deletes(self) -> pa.BooleanArray | None:
        """Whether each row is a delete; None = no row is."""
        return None if self.kinds is None else pa.array(self.kinds == Change.DELETE)


def select(
    batch: RawBatch,
    deletes: Mask | None,
    bad: Sequence[BadMessage],
    *,
    hidden: Collection[int],
    keep_deletes: bool,
) -> Selection:
    """Selects the messages that become rows, one each.

    Args:
        batch: The messages.
        deletes: For each message whether it is a delete; None = none is.
        bad: Messages that cannot be decoded; they become rows unless they are hidden.
        hidden: Messages that become no row in any case.
        keep_deletes: Whether deletes become rows.
    """
    dropped = None if keep_deletes else deletes
    kinds = None if deletes is None else np.where(deletes, _DELETE, _UPSERT)
    if not hidden and dropped is None:
        return Selection(batch, None, bad, kinds)
    chosen = np.ones(len(batch), dtype=bool) if dropped is None else ~dropped
    chosen[[message.index for message in bad]] = True
    chosen[[*hidden]] = False
    return Selection(batch, np.flatnonzero(chosen), bad, None if kinds is None else kinds[chosen])


@dataclass(frozen=True)
class ChangedRows:
    """The rows that the messages of a batch changed.

    Args:
        changes: The rows; their places, and all other indexes, are those of messages in the batch.
        nulls: For each message whether it is null and so deletes the row that its key tells; None = none does.
        bad: Messages that cannot be decoded, in offset order.
    """

    changes: DecodedChanges
    nulls: Mask | None
    bad: list[BadMessage]

    @property
    def rows(self) -> pa.RecordBatch:
        """The rows."""
        return self.changes.rows

    @property
    def places(self) -> Indexes:
        """The index of each row's message."""
        return self.changes.places

    @property
    def skipped(self) -> Collection[int]:
        """Messages that the format skips (``ignore-parse-errors``)."""
        return self.changes.skipped

    def column(self, name: str, selection: Selection) -> pa.Array:
        """The column for the selected rows, NULL for a row that no change gave."""
        return _taken(self.rows.column(name), selection)

    def selection(
        self,
        batch: RawBatch,
        bad: Sequence[BadMessage],
        *,
        hidden: Collection[int],
        keep_deletes: bool,
    ) -> Selection:
        """Selects the rows that are shown.

        Args:
            batch: The messages.
            bad: Messages that cannot be decoded; each becomes one row unless it is hidden.
            hidden: Messages that become no row in any case.
            keep_deletes: Whether deletes become rows.
        """
        places, kinds = np.asarray(self.places), np.asarray(self.changes.kinds, np.int8)
        of_bad = {message.index for message in bad}
        without_rows = [*of_bad, *hidden]
        kept = np.flatnonzero(_not_in(places, without_rows))
        shown_bad = np.array(sorted(of_bad.difference(hidden)), np.int64)
        deleted = np.flatnonzero(self.nulls) if self.nulls is not None else np.zeros(0, np.int64)
        deleted = deleted[_not_in(deleted, without_rows)]
        indexes, kinds, numbers = _in_order(
            (places[kept], kinds[kept], kept),
            _without_change(deleted, Change.DELETE),
            _without_change(shown_bad, Change.UPSERT),
        )
        if not keep_deletes:
            stay = kinds != Change.DELETE
            indexes, kinds, numbers = indexes[stay], kinds[stay], numbers[stay]
        return Selection(batch, indexes, bad, kinds, numbers)

    def metadata(self, key: str, selection: Selection, kind: pa.DataType, zone: str) -> pa.Array:
        """What a metadata key of the format is for the selected rows.

        Args:
            key: The key, such as ``value.source.timestamp``.
            selection: The rows.
            kind: The Arrow type of the column.
            zone: The session's time zone, for ``TIMESTAMP_NTZ``.
        """
        column = _taken(self.changes.metadata[key], selection)
        if pa.types.is_timestamp(kind) and kind.tz is None:
            return local_time(column, zone)
        return with_type(column, kind)


def _taken(column: pa.Array, selection: Selection) -> pa.Array:
    of_change = selection.changes
    if len(of_change) == len(column) and (of_change == np.arange(len(column))).all():
        return column
    return column.take(pa.array(of_change, mask=of_change < 0))


def decode_changes(
    messages: BytesColumn, decoder: ChangeDecoder, *, nulls_delete: bool
) -> ChangedRows:
    """Decodes values; a null one is no error.

    Args:
        messages: The values.
        decoder: The decoder.
        nulls_delete: Whether a null value is a delete of the row that the message's key tells; otherwise it is ignored.
    """
    nulls = nulls_of(messages)
    if nulls is None:
        return _of_batch(decoder.decode(messages), None)
    decoded = decoder.decode(BytesColumn(messages.column.drop_null()))
    at = np.flatnonzero(~nulls)
    moved = replace(
        decoded,
        places=at[decoded.places],
        errors={int(at[index]): why for index, why in decoded.errors.items()},
        skipped=frozenset(int(at[index]) for index in decoded.skipped),
        passed_over={int(at[index]): what for index, what in decoded.passed_over.items()},
    )
    return _of_batch(moved, nulls if nulls_delete else None)


def _of_batch(changes: DecodedChanges, nulls: Mask | None) -> ChangedRows:
    errors = sorted(changes.errors.items())
    return ChangedRows(changes, nulls, [BadMessage(at, "value", why) for at, why in errors])


def _not_in(places: Indexes, others: Sequence[int]) -> Mask:
    return ~np.isin(places, others) if others else np.ones(len(places), np.bool_)


_Rows = tuple[Any, Any, Any]
"""The message of each row, its kind, and its number among the changes; -1 = it is none of them."""


def _without_change(places: Indexes, kind: Change) -> _Rows:
    return places, np.full(len(places), kind, np.int8), np.full(len(places), -1, np.int64)


def _in_order(*parts: _Rows) -> _Rows:
    """The rows of all parts in the order of their messages."""
    filled = [part for part in parts if len(part[0])] or [parts[0]]
    if len(filled) == 1:
        return filled[0]
    places, kinds, numbers = (np.concatenate(each) for each in zip(*filled, strict=True))
    order = np.argsort(places, kind="stable")
    return places[order], kinds[order], numbers[order]


class ChangedKeys:
    """Finds rows without a key, and warns of those whose key is not that of their message.

    Args:
        table: The table.
    """

    def __init__(self, table: Table) -> None:
        self._names = dict(zip(table.key_names, table.key_message.names, strict=True))
        self._in_value = {field.name for field in table.value}
        self._told: set[tuple[str, str]] = set()

    def without_key(
        self, batch: RawBatch, values: ChangedRows, keys: DecodedSide | None
    ) -> list[BadMessage]:
        """The messages in which a column of the primary key is NULL.

        Args:
            batch: The messages.
            values: The rows that they changed.
            keys: Their keys; None = they are not read.
        """
        found: list[BadMessage] = []
        for name, in_key in self._names.items():
            of_row = values.rows.column(name) if name in self._in_value else None
            of_key = (
                None if keys is None else keys.rows.column(in_key).take(pa.array(values.places))
            )
            if of_row is not None and of_key is not None:
                self._warn_of_other(batch, name, values.places, of_row, of_key)
            known = [column.is_valid() for column in (of_row, of_key) if column is not None]
            lacking = pc.invert(pc.or_(known[0], known[-1]))
            places = values.places[lacking.to_numpy(zero_copy_only=False)]
            found += [BadMessage(int(at), "null-key", _lacks(name)) for at in dict.fromkeys(places)]
            if values.nulls is not None and keys is not None:
                deleted = np.flatnonzero(values.nulls)
                null = keys.rows.column(in_key).is_null().to_numpy(zero_copy_only=False)[deleted]
                found += [BadMessage(int(at), "null-key", _lacks(name)) for at in deleted[null]]
        return found

    def _warn_of_other(
        self, batch: RawBatch, name: str, places: Indexes, of_row: pa.Array, of_key: pa.Array
    ) -> None:
        """Looks at the last row of each message: an update of the key gives a delete of the old key before it."""
        if (batch.topic, name) in self._told or not len(places):
            return
        is_last = pa.array(np.append(places[1:] != places[:-1], True))
        at = pc.index(pc.and_(is_last, differing_keys(of_row, of_key)), True).as_py()
        if at >= 0:
            self._told.add((batch.topic, name))
            logger.warning(
                "Topic %r, partition %d, offset %d: column %r of the primary key differs between the row and the message key. "
                "The key of the row is taken, here and in other messages of this topic.",
                batch.topic, batch.partition, batch.offsets[int(places[at])], name,
            )  # fmt: skip


def _lacks(name: str) -> str:
    return (
        f"key column '{name}' is NULL or missing, so the message does not say which row it changes"
    )
