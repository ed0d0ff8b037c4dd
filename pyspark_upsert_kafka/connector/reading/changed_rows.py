"""The values of messages of a CDC format, decoded: the rows that each message changed, and their primary keys.

The row's own columns win; where one is NULL or missing, the key of the message says it, if that is read.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.connector.bad_messages import BadMessage
from pyspark_upsert_kafka.connector.local_time import local_time
from pyspark_upsert_kafka.connector.reading.decoded_side import (
    DecodedSide,
    Indexes,
    Mask,
    Selection,
    nulls_of,
)
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.batches import with_type
from pyspark_upsert_kafka.formats.codec import ChangeDecoder, DecodedChanges
from pyspark_upsert_kafka.formats.row_hash import equal_keys
from pyspark_upsert_kafka.kafka.fetching.raw_batch import RawBatch

logger = logging.getLogger("pyspark_upsert_kafka")


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
        both = pc.and_(of_row.is_valid(), of_key.is_valid())
        differs = pc.and_(pc.and_(both, is_last), pc.invert(equal_keys(of_row, of_key)))
        at = pc.index(differs, True).as_py()
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
