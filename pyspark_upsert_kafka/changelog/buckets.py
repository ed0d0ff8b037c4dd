"""A bucket of keys: its last rows as the state keeps them, from micro-batch to micro-batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    ValueState,
)

from pyspark_upsert_kafka.changelog.columns import ChangeColumns
from pyspark_upsert_kafka.changelog.layout import Layout
from pyspark_upsert_kafka.changelog.normalization import normalized
from pyspark_upsert_kafka.changelog.packing import packed, packed_parts, unpacked
from pyspark_upsert_kafka.changelog.recent_rows import RecentRows, changed, with_key_in
from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.formats.exact_types import rows_lacking, with_type
from pyspark_upsert_kafka.spark_task import freeze_modules

MAX_BUCKET_BYTES = 256 * 1024 * 1024
"""The last rows of a bucket go through a Python worker and the JVM as one value, which must fit into both."""

_LAYOUT = b"layout"

_REWRITTEN_PART = 8
"""All rows are written again when more than one in this number has changed."""


@dataclass(frozen=True)
class Kept:
    """What the state has of a bucket, packed.

    Args:
        rows: Its rows as they were when they were written as a whole; None = there is no state yet.
        recent: `RecentRows` since then; None = there are none.
    """

    rows: bytes | None = None
    recent: bytes | None = None


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

    def apply(self, kept: Kept, changes: Sequence[bytes]) -> tuple[Kept, Iterator[bytes]]:
        """Applies changes.

        Args:
            kept: What the state has.
            changes: The changes of the micro-batch, packed; at least one value.

        Returns:
            What the state has after them, and the changes of whole rows, packed.
        """
        table = unpacked(*changes)
        schema = pa.schema([table.schema.field(name) for name in self.columns.row])
        rows, recent = schema.empty_table(), RecentRows.none(schema)
        written = None
        if kept.rows is not None:
            rows, written = self._read(unpacked(kept.rows), schema)
        if kept.recent is not None:
            read = RecentRows.from_table(unpacked(kept.recent))
            recent = RecentRows(self._read(read.rows, schema)[0], read.deleted)
        many = (table.num_rows + len(recent.deleted)) * _REWRITTEN_PART > rows.num_rows
        if (many and table.num_rows) or written != self.layout.to_json():
            return self._rewritten(recent.over(rows, list(self.columns.keys)), table)
        return self._amended(kept, rows, recent, table)

    def _rewritten(self, rows: pa.Table, changes: pa.Table) -> tuple[Kept, Iterator[bytes]]:
        now = normalized(rows, changes, self.columns)
        self._check_size(now.last.nbytes)
        return Kept(self._packed(now.last)), packed_parts(now.changes)

    def _amended(
        self, kept: Kept, rows: pa.Table, recent: RecentRows, changes: pa.Table
    ) -> tuple[Kept, Iterator[bytes]]:
        """Looks at the rows of the keys that changed, and writes no others."""
        if not changes.num_rows:
            return kept, iter(())
        keys = list(self.columns.keys)
        before = rows.filter(pa.array(with_key_in(rows, changes, keys)))
        is_touched = with_key_in(recent.rows, changes, keys)
        now = normalized(recent.where(is_touched).over(before, keys), changes, self.columns)
        recent = recent.where(~is_touched).and_others(changed(now.last, before, keys))
        self._check_size(rows.nbytes + recent.rows.nbytes)
        return Kept(kept.rows, self._packed(recent.to_table())), packed_parts(now.changes)

    def _packed(self, rows: pa.Table) -> bytes:
        return packed(rows.replace_schema_metadata({_LAYOUT: self.layout.to_json()}))

    def _read(self, rows: pa.Table, schema: pa.Schema) -> tuple[pa.Table, str]:
        """Rows of the state with the columns of now: those that were added since are NULL; and their layout."""
        layout = rows.schema.metadata[_LAYOUT].decode()
        self.layout.check(layout)
        columns = [
            _as_now(rows[field.name], field)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema), layout

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
    """Keeps the rows of each bucket as two values: those of all keys, and those that changed since.

    Args:
        columns: Which column is what.
        layout: How the keys are spread.
    """

    def __init__(self, columns: ChangeColumns, layout: Layout) -> None:
        self._columns, self._layout = columns, layout

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's hook at the beginning of a task: which state there is."""
        freeze_modules()
        self._rows = handle.getValueState("last", "rows BINARY")
        self._recent = handle.getValueState("recent", "rows BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002
        """Spark's hook: the number of a bucket, and its changes, packed; there are no timers."""
        kept = Kept(_value(self._rows), _value(self._recent))
        bucket = Bucket(key[0], self._columns, self._layout)
        now, whole = bucket.apply(kept, [row["rows"] for row in rows])
        if now.rows is not kept.rows:
            self._rows.update((now.rows,))
        if now.recent is None and kept.recent is not None:
            self._recent.clear()
        elif now.recent is not kept.recent:
            self._recent.update((now.recent,))
        return (Row(rows=part) for part in whole)

    def close(self) -> None:
        """Spark's hook; there is nothing to end."""


def _value(state: ValueState) -> bytes | None:
    found = state.get()
    return None if found is None else found[0]
