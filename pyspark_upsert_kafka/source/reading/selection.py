"""Which messages of a batch become rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.bad_messages.bad_message import BadMessage

Indexes = Any
"""A numpy array of message indexes."""

Mask = Any
"""A numpy array with a boolean for each message."""


@dataclass(frozen=True)
class Selection:
    """The messages of a batch that become rows.

    Args:
        batch: All messages.
        indexes: Those that become rows; None = all.
        deletes: For each message of the batch whether it is a delete; None = none is.
        bad: The messages of the batch that cannot be decoded, in offset order.
    """

    batch: RawBatch
    indexes: Indexes | None
    deletes: Mask | None
    bad: Sequence[BadMessage]

    def __len__(self) -> int:
        return len(self.batch) if self.indexes is None else len(self.indexes)

    def take(self, array: pa.Array) -> pa.Array:
        """The selected entries of an array that has one for each message of the batch."""
        return array if self.indexes is None else array.take(pa.array(self.indexes))

    @property
    def bad_mask(self) -> Mask:
        """For each message of the batch whether it cannot be decoded."""
        mask = np.zeros(len(self.batch), dtype=bool)
        mask[[message.index for message in self.bad]] = True
        return mask


def select(
    batch: RawBatch,
    deletes: Mask | None,
    bad: Sequence[BadMessage],
    *,
    hidden: Collection[int],
    keep_deletes: bool,
) -> Selection:
    """Selects the messages that become rows.

    Args:
        batch: The messages.
        deletes: For each message whether it is a delete; None = none is.
        bad: Messages that cannot be decoded; they become rows unless they are hidden.
        hidden: Messages that become no row in any case.
        keep_deletes: Whether deletes become rows.
    """
    dropped = None if keep_deletes else deletes
    if not hidden and dropped is None:
        return Selection(batch, None, deletes, bad)
    chosen = np.ones(len(batch), dtype=bool) if dropped is None else ~dropped
    chosen[[message.index for message in bad]] = True
    chosen[[*hidden]] = False
    return Selection(batch, np.flatnonzero(chosen), deletes, bad)
