"""A bucket of keys: its last rows as the state keeps them, from micro-batch to micro-batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pyspark_upsert_kafka.changelog.columns import ChangeColumns
from pyspark_upsert_kafka.changelog.layout import Layout
from pyspark_upsert_kafka.changelog.normalization import normalized
from pyspark_upsert_kafka.changelog.packing import packed, packed_parts, unpacked
from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.formats.exact_types import rows_lacking, with_type
from pyspark_upsert_kafka.worker_garbage import freeze_modules

MAX_BUCKET_BYTES = 256 * 1024 * 1024
"""The last rows of a bucket go through a Python worker and the JVM as one value, which must fit into both."""

_LAYOUT = b"layout"


@dataclass(frozen=True)
class Bucket:
    """What becomes of a bucket in a micro-batch.

    Args:
        number: Which one it is.
        columns: Which column is what.
        layout: How the keys are spread.
    """

    number: int
    columns: ChangeColumns
    layout: Layout

    def apply(self, last: bytes | None, changes: Sequence[bytes]) -> tuple[bytes, Iterator[bytes]]:
        """Applies changes.

        Args:
            last: The last rows, packed; None = there are none yet.
            changes: The changes of the micro-batch, packed; at least one value.

        Returns:
            The last rows after them, and the changes of whole rows, all packed.
        """
        table = unpacked(*changes)
        schema = pa.schema([table.schema.field(name) for name in self.columns.row])
        rows = schema.empty_table() if last is None else self._kept(last, schema)
        now = normalized(rows, table, self.columns)
        self._check_size(now.last.nbytes)
        kept = now.last.replace_schema_metadata({_LAYOUT: self.layout.to_json()})
        return packed(kept), packed_parts(now.changes)

    def _kept(self, last: bytes, schema: pa.Schema) -> pa.Table:
        """The last rows with the columns of now: those that were added since are NULL."""
        rows = unpacked(last)
        self.layout.check(rows.schema.metadata[_LAYOUT].decode())
        columns = [
            _as_now(rows[field.name], field)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema)

    def _check_size(self, size: int) -> None:
        if size <= MAX_BUCKET_BYTES:
            return
        buckets = self.layout.buckets
        needed = buckets * ceil(2 * size / MAX_BUCKET_BYTES)
        raise CheckpointError(
            f"normalize_changelog: bucket {self.number} of {buckets} has {size:,} bytes of rows, and more than "
            f"{MAX_BUCKET_BYTES:,} are not possible. Start a new checkpoint with buckets={needed}."
        )


def _as_now(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """A column of the state in the type of now: its timestamps may have had another time zone.

    Raises:
        CheckpointError: A value is NULL that is NOT NULL now.
    """
    # Arrow's cast refuses even its own type where a struct that is NULL has a NOT NULL field.
    if column.type == field.type:
        return column
    chunks = [with_type(chunk, field.type) for chunk in column.chunks]
    for chunk in chunks:
        for path in rows_lacking(chunk, field.with_nullable(True)).values():
            raise CheckpointError(
                f"normalize_changelog: {path!r} is NOT NULL now, and NULL in rows that the checkpoint has. "
                "Go on with a column that may be NULL, or start a new checkpoint."
            )
    return pa.chunked_array(chunks, field.type)


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
