"""Upserts and deletes become changes of whole rows in buckets of keys: what a bucket's last rows are, the state keeps.

They are in segments: a small micro-batch reads and writes only the rows beside those that change. Arrow's IPC format packs rows
into values, which Spark carries through its shuffle and keeps in its state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    ValueState,
)

from pyspark_upsert_kafka.connector.changelog.changelog_columns import ChangeColumns
from pyspark_upsert_kafka.connector.changelog.row_images import (
    kept_fields,
    normalized,
    without_deletes,
)
from pyspark_upsert_kafka.connector.spark_task import freeze_modules
from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.ddl.spark_columns import quoted
from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.formats.batches import rows_lacking, with_type
from pyspark_upsert_kafka.formats.row_hash import row_hashes

MAX_BUCKET_BYTES = 256 * 1024 * 1024
"""A Python worker must have memory for the rows of a bucket that a micro-batch changes."""

SEGMENT_BYTES = 128 * 1024
"""Bytes of rows that a segment has after the number of segments has grown, at least; it grows at more than twice as many."""

MIN_ROWS = 64
"""Rows of a segment after that, at least: a segment with one large row is no reason for more segments."""

_LAYOUT, _SEGMENTS = b"layout", b"segments"


_PACKED = "bucket INT, rows BINARY"
"""What a value of many rows comes with."""


def whole_changes(df: DataFrame, columns: ChangeColumns, buckets: int) -> DataFrame:
    """The changes of whole rows that upserts and deletes make, bucket by bucket.

    Args:
        df: The upserts and deletes, of a stream or a batch.
        columns: Which column is what.
        buckets: Over how many buckets the keys are spread.
    """
    types = {field.name: field.dataType.simpleString() for field in df.schema}
    row = {name: types[name] for name in columns.row}
    layout = Layout(buckets, columns.keys, row, columns.timestamp is not None)
    by_bucket = _packed_rows(df, layout).groupBy("bucket")
    if df.isStreaming:
        whole = by_bucket.transformWithState(
            ChangeProcessor(columns, layout), "rows BINARY", outputMode="Append", timeMode="None"
        )
    else:
        whole = by_bucket.applyInArrow(_without_state(columns), "rows BINARY")
    return whole.mapInArrow(_unpack, df.schema)


def _packed_rows(df: DataFrame, layout: Layout) -> DataFrame:
    key = [df[quoted(name)] for name in layout.keys]
    bucket = f.pmod(f.xxhash64(*key), f.lit(layout.buckets)).cast("int")
    # mapInArrow looks its columns up by name, and does not find those with dots or backticks in their names.
    by_place = df.select("*", bucket).toDF(*(f"c{at}" for at in range(len(df.columns) + 1)))
    return by_place.mapInArrow(_pack(df.columns), _PACKED)


def _pack(
    names: Sequence[str],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What packs the rows of a task, bucket by bucket.

    Args:
        names: The names of their columns, but for the last one, which is the number of the bucket.
    """

    def packed_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_modules()
        named = (batch.rename_columns([*names, "bucket"]) for batch in batches)
        for number, rows in by_bucket(named):
            yield pa.record_batch([pa.array([number], pa.int32()), [rows]], ["bucket", "rows"])

    return packed_rows


def _without_state(columns: ChangeColumns) -> Callable[[pa.Table], pa.Table]:
    """What becomes of a bucket of a batch, which has no last rows."""

    def whole_rows(changes: pa.Table) -> pa.Table:
        table = unpacked(*changes["rows"].to_pylist())
        fields = [table.schema.field(name) for name in columns.row]
        none = pa.schema([*fields, *kept_fields(columns)]).empty_table()
        whole = _packed_parts(normalized(none, table, columns).changes)
        return pa.table([pa.array(whole, pa.binary())], ["rows"])

    return whole_rows


def _unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that were packed."""
    freeze_modules()
    for batch in batches:
        for rows in batch.column(0):
            yield from unpacked(rows.as_buffer()).to_batches()


_VERSION, _VERSION_WITH_TIMES = 3, 4
"""In version 1 a bucket was one value. Version 2 was never released. Version 4 keeps where and when the last change of each key
was, deletes of the last day among them."""


@dataclass(frozen=True)
class Layout:
    """What the state is written with, and what a query that goes on with it must have.

    Args:
        buckets: Over how many buckets the keys are spread.
        keys: The columns of the key.
        columns: The columns of the rows, and their types.
        has_times: Whether times are kept, by which changes of a key in several partitions are ordered.
    """

    buckets: int
    keys: Sequence[str]
    columns: Mapping[str, str]
    has_times: bool = False

    def to_json(self) -> str:
        """It as the state keeps it."""
        version = _VERSION_WITH_TIMES if self.has_times else _VERSION
        kept = {"buckets": self.buckets, "keys": list(self.keys), "columns": dict(self.columns)}
        return json.dumps({"version": version, **kept})

    def check(self, kept: str) -> None:
        """Refuses to go on with a state that was written with another layout.

        Columns may have been added: rows from before have NULL there.

        Raises:
            CheckpointError: Naming the number of buckets, or the first column that is wrong.
        """
        old = json.loads(kept)
        start_anew = "Keep what the checkpoint has, or start with a new one."
        if old["version"] not in (1, _VERSION, _VERSION_WITH_TIMES):
            raise CheckpointError(
                "normalize_changelog: the checkpoint was written by a later version of this package, or by one that was "
                f"never released. {start_anew}"
            )
        if old["buckets"] != self.buckets:
            raise CheckpointError(
                f"normalize_changelog: the checkpoint has buckets={old['buckets']}, and this query has "
                f"buckets={self.buckets}: a key would be in another bucket. {start_anew}"
            )
        if old["keys"] != list(self.keys):
            raise CheckpointError(
                f"normalize_changelog: the checkpoint has the keys {', '.join(old['keys'])}, and this query "
                f"has {', '.join(self.keys)}. {start_anew}"
            )
        for name, type_ in old["columns"].items():
            if self.columns.get(name) != type_:
                now = f"has the type {self.columns[name]}" if name in self.columns else "is gone"
                raise CheckpointError(
                    f"normalize_changelog: column {name!r} has the type {type_} in the checkpoint, and now it {now}. "
                    f"Columns may only be added. {start_anew}"
                )


class KeptBucket(Protocol):
    """What the state has of a bucket: values that are packed tables."""

    def head(self) -> bytes | None:
        """A table without rows whose metadata has the layout and the number of segments; None = there is no state yet.

        In version 1 of the layout it has all rows, and there are no segments.
        """

    def set_head(self, head: bytes) -> None:
        """Writes the head."""

    def segment(self, number: int) -> bytes | None:
        """The rows of a segment; None = it has none."""

    def set_segment(self, number: int, rows: bytes) -> None:
        """Writes the rows of a segment."""

    def remove_segment(self, number: int) -> None:
        """Removes the rows of a segment, if it has any."""


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

    def apply(self, kept: KeptBucket, changes: Sequence[bytes]) -> Iterator[bytes]:
        """Applies changes: reads the segments that have rows of their keys, and writes them.

        Args:
            kept: What the state has.
            changes: The changes of the micro-batch, packed; at least one value.

        Returns:
            The changes of whole rows, packed.
        """
        table, touched = unpacked(*changes), [0]
        fields = [table.schema.field(name) for name in self.columns.row]
        schema = pa.schema([*fields, *kept_fields(self.columns)])
        count, rows = self._read_head(kept, schema)
        if rows is None:
            keys = table.select(list(self.columns.keys))
            touched = np.unique(_segment_numbers(keys, count)).tolist()
            rows = self._read_segments(kept, touched, schema)
        now = normalized(rows, table, self.columns)
        self._write(kept, count, touched, now.last)
        return _packed_parts(now.changes)

    def _read_head(self, kept: KeptBucket, schema: pa.Schema) -> tuple[int, pa.Table | None]:
        """The number of segments, and all rows where they are not in segments yet."""
        head = kept.head()
        if head is None:
            return 1, schema.empty_table()
        table = unpacked(head)
        self.layout.check(table.schema.metadata[_LAYOUT].decode())
        count = table.schema.metadata.get(_SEGMENTS)
        return (1, _with_columns(table, schema)) if count is None else (int(count), None)

    def _read_segments(
        self, kept: KeptBucket, numbers: Collection[int], schema: pa.Schema
    ) -> pa.Table:
        packed_rows = filter(None, map(kept.segment, numbers))
        tables = [_with_columns(unpacked(each), schema) for each in packed_rows]
        return pa.concat_tables([schema.empty_table(), *tables])

    def _write(
        self, kept: KeptBucket, count: int, touched: Collection[int], rows: pa.Table
    ) -> None:
        """Writes the segments that these rows fill; all, when there must be more of them."""
        self._check_size(rows.nbytes)
        new_count = count
        # More segments take all rows into memory: a bucket that is too large for that gets larger segments.
        if touched and rows.nbytes * count // len(touched) <= MAX_BUCKET_BYTES:
            new_count = _segment_count(count, len(touched), rows)
        if new_count > count:
            others = set(range(count)).difference(touched)
            rows = pa.concat_tables([rows, self._read_segments(kept, others, rows.schema)])
            touched = range(new_count)
        now = dict(_split(rows.combine_chunks(), list(self.columns.keys), new_count))
        for number in touched:
            if number in now:
                kept.set_segment(number, packed(now[number]))
            elif number < count:
                kept.remove_segment(number)
        head = self._head(new_count)
        if head != kept.head():
            kept.set_head(head)

    def _head(self, count: int) -> bytes:
        metadata = {_LAYOUT: self.layout.to_json(), _SEGMENTS: str(count)}
        return packed(pa.schema([], metadata).empty_table())

    def _check_size(self, size: int) -> None:
        if size <= MAX_BUCKET_BYTES:
            return
        buckets = self.layout.buckets
        needed = buckets * ceil(2 * size / MAX_BUCKET_BYTES)
        raise CheckpointError(
            f"normalize_changelog: the micro-batch changes segments of bucket {self.number} of {buckets} that have {size:,} bytes "
            f"of rows, and more than {MAX_BUCKET_BYTES:,} are not possible. Start a new checkpoint with buckets={needed}."
        )


def _segment_numbers(keys: pa.Table, count: int) -> np.ndarray:
    """For each key the segment of its row.

    Args:
        keys: The columns of the key; equal keys are of one segment, in each version of this package.
        count: The number of segments, a power of two.
    """
    # A table without rows has no chunks, of which pyarrow 20 makes no struct array.
    if count == 1 or not keys.num_rows:
        return np.zeros(keys.num_rows, np.int64)
    batch = pa.RecordBatch.from_struct_array(
        keys.combine_chunks().to_struct_array().combine_chunks()
    )
    return (row_hashes(batch) % np.uint64(count)).astype(np.int64)


def _segment_count(now: int, looked_at: int, rows: pa.Table) -> int:
    """The number of segments that a bucket should have.

    Args:
        now: How many it has, a power of two.
        looked_at: How many of them the rows fill; at least one.
        rows: The rows of these segments.

    >>> rows = pa.table({"text": ["x" * 1000] * 1000})
    >>> _segment_count(4, looked_at=1, rows=rows), _segment_count(4, looked_at=4, rows=rows)
    (16, 4)
    """
    size, most = rows.nbytes // looked_at, rows.num_rows // looked_at
    while size > 2 * SEGMENT_BYTES and most > 2 * MIN_ROWS:
        now, size, most = now * 2, size // 2, most // 2
    return now


def _split(rows: pa.Table, keys: list[str], count: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each segment that has any."""
    if count > 1:
        yield from _by_number(rows, _segment_numbers(rows.select(keys), count))
    elif rows.num_rows:
        yield 0, rows


def _with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of the state with the columns of now: those that were added since are NULL."""
    rows = without_deletes(rows, schema)
    columns = [
        _as_now(rows[field.name], field)
        if field.name in rows.column_names
        else pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
        for field in schema
    ]
    for column, field in zip(columns, schema, strict=True):
        if column.null_count and not field.nullable:
            raise _null_now(field.name)
    return pa.table(columns, schema=schema)


def _as_now(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """A column of the state in the type of now: its timestamps may have had another time zone.

    Raises:
        CheckpointError: A field in it is NULL that is NOT NULL now.
    """
    # Arrow's cast refuses even its own type where a struct that is NULL has a NOT NULL field.
    if column.type == field.type:
        return column
    chunks = [with_type(chunk, field.type) for chunk in column.chunks]
    for chunk in chunks:
        for path in rows_lacking(chunk, field.with_nullable(True)).values():
            raise _null_now(path)
    return pa.chunked_array(chunks, field.type)


def _null_now(path: str) -> CheckpointError:
    return CheckpointError(
        f"normalize_changelog: {path!r} is NOT NULL now, and NULL in rows that the checkpoint has. "
        "Go on with a column that may be NULL, or start a new checkpoint."
    )


class ChangeProcessor(StatefulProcessor):
    """Applies the changes of each bucket to what Spark's state has of it.

    Args:
        columns: Which column is what.
        layout: How the keys are spread.
    """

    def __init__(self, columns: ChangeColumns, layout: Layout) -> None:
        self._columns, self._layout = columns, layout

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's hook at the beginning of a task: which state there is."""
        freeze_modules()
        # The head has the name that all rows had in version 1 of the layout: so version 1 finds a later version, and
        # does not begin anew.
        self._heads = handle.getValueState("last", "rows BINARY")
        self._segments = handle.getMapState("segments", "segment INT", "rows BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002
        """Spark's hook: the number of a bucket, and its changes, packed; there are no timers."""
        bucket = Bucket(key[0], self._columns, self._layout)
        kept = _SparkState(self._heads, self._segments)
        whole = bucket.apply(kept, [row["rows"] for row in rows])
        return (Row(rows=part) for part in whole)

    def close(self) -> None:
        """Spark's hook; there is nothing to end."""


class _SparkState:
    """A bucket in Spark's state, which each call asks the JVM for."""

    def __init__(self, heads: ValueState, segments: MapState) -> None:
        self._heads, self._segments = heads, segments
        self._head = _value(heads.get())

    def head(self) -> bytes | None:
        return self._head

    def set_head(self, head: bytes) -> None:
        self._heads.update((head,))

    def segment(self, number: int) -> bytes | None:
        return _value(self._segments.getValue((number,)))

    def set_segment(self, number: int, rows: bytes) -> None:
        self._segments.updateValue((number,), (rows,))

    def remove_segment(self, number: int) -> None:
        self._segments.removeKey((number,))


def _value(found: tuple[bytes] | None) -> bytes | None:
    return None if found is None else found[0]


_OUT_ROWS = 50_000
"""Rows of a table that one value holds, at most."""

NO_KEYS = -1
"""A bucket beside the others, which has no keys and is there whenever any other is."""


def by_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """Rows whose last column is the number of their bucket: the rows of each bucket, packed.

    A bucket may come several times: rows are packed whenever `MAX_HELD_BYTES` have come.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= MAX_HELD_BYTES:
            yield from _by_bucket(held)
            held, size = [], 0
    yield from _by_bucket(held)


def _by_bucket(batches: Sequence[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    if not batches:
        return
    table = pa.Table.from_batches(batches).combine_chunks()
    last = table.num_columns - 1
    rows = table.select(range(last))
    yield NO_KEYS, packed(rows.slice(0, 0))
    for number, of_number in _by_number(rows, table.column(last).to_numpy()):
        yield number, packed(of_number)


def _by_number(rows: pa.Table, numbers: np.ndarray) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each number, in the order in which they are; one number for each row."""
    order = np.argsort(numbers, kind="stable")
    rows = rows.take(order)
    found, begins = np.unique(numbers[order], return_index=True)
    for number, begin, end in zip(found, begins, [*begins, len(order)][1:], strict=True):
        yield int(number), rows.slice(begin, end - begin)


def packed(rows: pa.Table) -> bytes:
    """The rows with their columns' names and types, as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _packed_parts(rows: pa.Table) -> Iterator[bytes]:
    """The rows in parts that a batch of Spark can hold."""
    for begin in range(0, rows.num_rows, _OUT_ROWS):
        yield packed(rows.slice(begin, _OUT_ROWS))


def unpacked(*values: bytes) -> pa.Table:
    """The rows that were packed into some values, one after the other; at least one value."""
    tables = [pa.ipc.open_stream(value).read_all() for value in values]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
