"""One side (key or value) of the messages of a batch, decoded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.formats.codec import Decoder
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.bad_messages.bad_message import BadMessage, Stage
from pyspark_upsert_kafka.source.reading.selection import Indexes, Mask, Selection, select


@dataclass(frozen=True)
class DecodedSide:
    """The decoded rows of one side.

    Args:
        rows: A row for each message that could be decoded.
        index: For each message its row in ``rows``; -1 = none.
        nulls: For each message whether it is null, which in a value is a delete; None = none is.
        bad: Messages that cannot be decoded, in offset order.
        skipped: Messages that the format skips (``ignore-parse-errors``).
    """

    rows: pa.RecordBatch
    index: Indexes
    nulls: Mask | None
    bad: list[BadMessage]
    skipped: list[int]

    @property
    def is_complete(self) -> bool:
        """Whether each message has a row."""
        return bool(self.rows.num_rows == len(self.index))

    @property
    def places(self) -> Indexes:
        """The index of each row's message."""
        return np.flatnonzero(self.index >= 0)

    def column(self, name: str, selection: Selection) -> pa.Array:
        """The column for the selected messages, NULL for a message without a row."""
        array = self.rows.column(name)
        if self.is_complete:
            return selection.take(array)
        index = self.index if selection.indexes is None else self.index[selection.indexes]
        return array.take(pa.array(index, mask=index < 0))

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
    """Decodes one side; a null message has no row and is no error."""
    count = len(messages)
    nulls = nulls_of(messages)
    if nulls is None:
        indexes = np.arange(count)
        present = messages
    else:
        indexes = np.flatnonzero(~nulls)
        present = BytesColumn(messages.column.drop_null())
    decoded = decoder.decode(present)
    bad = [
        BadMessage(int(indexes[at]), side, reason) for at, reason in sorted(decoded.errors.items())
    ]
    skipped = [int(indexes[at]) for at in sorted(decoded.skipped)]
    if len(present) == count and not bad and not skipped:
        return DecodedSide(decoded.rows, indexes, nulls, bad, skipped)
    has_row = np.zeros(count, dtype=bool)
    has_row[indexes] = True
    has_row[[message.index for message in bad]] = False
    has_row[skipped] = False
    index = np.full(count, -1, dtype=np.int64)
    index[has_row] = np.arange(int(has_row.sum()))
    return DecodedSide(decoded.rows, index, nulls, bad, skipped)
