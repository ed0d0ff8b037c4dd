"""One side (key or value) of the messages of a batch, decoded; which messages become rows, and what each row is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.connector.bad_messages import BadMessage, Stage
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.core.metadata import SCHEMA_IDS
from pyspark_upsert_kafka.formats.batches import rows_at
from pyspark_upsert_kafka.formats.codec import Decoder, Side
from pyspark_upsert_kafka.kafka.fetching.raw_batch import RawBatch


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
