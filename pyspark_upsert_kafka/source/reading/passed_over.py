"""The warning about messages of a CDC format that change no row, such as a truncate."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch

logger = logging.getLogger("pyspark_upsert_kafka")


class PassedOver:
    """Logs the warning once for each topic and kind of message."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def look(self, batch: RawBatch, messages: Mapping[int, str]) -> None:
        """Logs it for the first of some messages.

        Args:
            batch: All messages.
            messages: The index of each that changes no row, and what it is.
        """
        for at in sorted(messages):
            what = messages[at]
            if (batch.topic, what) not in self._told:
                self._told.add((batch.topic, what))
                logger.warning(
                    "Topic %r, partition %d, offset %d is %s: it is passed over, and no row changes. Further ones in this topic "
                    "are passed over without a warning.",
                    batch.topic, batch.partition, batch.offsets[at], what,
                )  # fmt: skip
