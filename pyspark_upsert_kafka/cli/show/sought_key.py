"""What a read has seen of the one key that it looks for, and what is said when there is no row of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.cli.show.one_key import OneKey
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.reading.rows import Rows

_NO_TIMESTAMP = 0


@dataclass(frozen=True)
class _LastChange:
    """The last change of the key in a partition.

    Args:
        timestamp: In ms since the epoch; None = the message has none.
        offset: Its offset.
        deletes: Whether it is a delete.
    """

    timestamp: int | None
    offset: int
    deletes: bool


class SoughtKey:
    """Watches the changes of a key while they are read.

    Args:
        key: The key.
    """

    def __init__(self, key: OneKey) -> None:
        self._key = key
        self._is_shown = False
        self._last: dict[TopicPartition, _LastChange] = {}

    @property
    def is_seen(self) -> bool:
        """Whether there was any change of it."""
        return bool(self._last)

    def matching(self, changes: Iterable[tuple[RawBatch, Rows]]) -> Iterator[tuple[RawBatch, Rows]]:
        """The rows that have this key, whose messages must have been read with their timestamps."""
        for batch, rows in self._key.matching(changes):
            if len(rows):
                self._last[TopicPartition(batch.topic, batch.partition)] = _last_change(batch, rows)
            yield batch, rows

    def shown(self, found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What is shown of it: a row may be, although a delete came while it was read."""
        for rows in found:
            self._is_shown = True
            yield rows

    def absence(self) -> str | None:
        """What is said when nothing is shown; None = something is."""
        if self._is_shown:
            return None
        if not self._last:
            return "no such row"
        place, last = max(self._last.items(), key=lambda each: each[1].timestamp or 0)
        time = "" if last.timestamp is None else f" at {np.datetime64(last.timestamp, 'ms')}Z"
        topics = {each.topic for each in self._last}
        topic = f"topic {place.topic!r}, " if len(topics) > 1 else ""
        return (
            f"no such row; deleted{time} ({topic}partition {place.partition}, offset {last.offset})"
        )


def _last_change(batch: RawBatch, rows: Rows) -> _LastChange:
    at = len(batch) - 1 if rows.places is None else int(rows.places[-1])
    deletes = rows.deletes is not None and rows.deletes[-1].as_py()
    known = batch.timestamp_types[at] != _NO_TIMESTAMP
    return _LastChange(batch.timestamps[at] if known else None, batch.offsets[at], deletes)
