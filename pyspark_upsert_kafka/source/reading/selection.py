"""Which messages of a batch become rows, and what each row is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.bad_messages import BadMessage

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
