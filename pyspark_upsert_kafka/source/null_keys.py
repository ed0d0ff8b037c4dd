"""The warning about key columns that are NULL: all such messages are changes of one row."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from pyspark_upsert_kafka.core.errors import shown
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.source.decoded_side import DecodedSide

logger = logging.getLogger("pyspark_upsert_kafka")


class NullKeys:
    """Warns once for each topic and column: most often the column has another name in the messages.

    Args:
        names: The columns of the message key.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._told: set[tuple[str, str]] = set()

    def look_at(self, batch: RawBatch, keys: DecodedSide) -> None:
        """Warns if a column is NULL in a key of the batch."""
        for name in self._names:
            column = keys.rows.column(name)
            if column.null_count and (batch.topic, name) not in self._told:
                self._told.add((batch.topic, name))
                row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                self._warn(batch, int(np.flatnonzero(keys.index == row)[0]), name)

    def _warn(self, batch: RawBatch, at: int, name: str) -> None:
        logger.warning(
            "Key column %r is NULL in the message at topic %r, partition %d, offset %d, whose key is %s. Messages "
            "with equal keys are changes of one row. Has the column this name in the messages, where the case of "
            "letters counts?",
            name, batch.topic, batch.partition, batch.offsets[at], shown(batch.keys[at]),
        )  # fmt: skip
