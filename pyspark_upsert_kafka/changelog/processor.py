"""Spark's state of each bucket: read, changed and written once per micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pyspark_upsert_kafka.changelog.buckets import Bucket
from pyspark_upsert_kafka.changelog.columns import ChangeColumns
from pyspark_upsert_kafka.changelog.layout import Layout
from pyspark_upsert_kafka.worker_garbage import freeze_modules


class ChangeProcessor(StatefulProcessor):
    """Keeps the last rows of each bucket as one value.

    Args:
        columns: Which column is what.
        layout: How the keys are spread.
    """

    def __init__(self, columns: ChangeColumns, layout: Layout) -> None:
        self._columns, self._layout = columns, layout

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's hook at the beginning of a task: which state there is."""
        freeze_modules()
        self._last = handle.getValueState("last", "rows BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002
        """Spark's hook: the number of a bucket, and its changes, packed; there are no timers."""
        kept = self._last.get()
        bucket = Bucket(key[0], self._columns, self._layout)
        last, whole = bucket.apply(
            None if kept is None else bytes(kept[0]), [row["rows"] for row in rows]
        )
        self._last.update((last,))
        return (Row(rows=part) for part in whole)

    def close(self) -> None:
        """Spark's hook; there is nothing to end."""
