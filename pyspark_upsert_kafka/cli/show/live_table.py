"""A table that is redrawn on a terminal as it changes: of a table the first rows by its key, of changes the last ones."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Protocol

import pyarrow as pa
from pyspark.sql.types import StructType
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table as DrawnTable
from rich.text import Text

from pyspark_upsert_kafka.cli.show.row_printing import FirstRows, Spelling, cell
from pyspark_upsert_kafka.connector.read_request import Request
from pyspark_upsert_kafka.connector.reading.message_rows import Rows
from pyspark_upsert_kafka.connector.reading.snapshot import MemoryLimit, Snapshot, snapshot_bytes
from pyspark_upsert_kafka.connector.reading.task_reading import nullable
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition

_SECONDS_BETWEEN = 0.25
"""Seconds between two drawings, at least; drawing takes a third of the time at most."""

_BESIDE_ROWS = 7
"""Lines that are not rows: title, header, borders, caption, and the line of the cursor."""


_MOST_ROWS = 1_000
"""No terminal has more lines."""


_CHANGED = "bold"

_PLACE = ""
"""The column with the partition, since two partitions may hold equal keys; no column of a table has this name."""


class ShownRows(Protocol):
    """What a live table shows."""

    def add(self, place: TopicPartition, rows: Rows) -> None:
        """Adds changes of a partition; they are newer than those added before."""

    def first(self, limit: int) -> tuple[list[pa.RecordBatch], int]:
        """The first rows up to a number, and how many there are in all."""


class TableRows:
    """The table: the last row of each key in its partition.

    Args:
        request: What is read.
    """

    def __init__(self, request: Request) -> None:
        self._schema = arrow_schema(request.table.schema)
        self._key = request.table.key_names
        self._memory = snapshot_bytes(request.options)
        self._snapshot = self._empty()
        self._places: dict[TopicPartition, int] = {}

    def add(self, place: TopicPartition, rows: Rows) -> None:
        """Adds changes.

        Raises:
            OptionError: The table takes more memory than the options allow.
        """
        number = self._places.setdefault(place, len(self._places))
        column = pa.repeat(pa.scalar(number, pa.int32()), len(rows))
        batch = nullable(rows, self._schema).append_column(_PLACE, column)
        self._snapshot.add(batch, rows.deletes)

    def first(self, limit: int) -> tuple[list[pa.RecordBatch], int]:
        """The first rows by their key, and how many rows the table has."""
        batches = list(self._snapshot.rows())
        self._snapshot = self._empty()
        rows = FirstRows(self._key, limit)
        for batch in batches:
            self._snapshot.add(batch, None)
            rows.add(batch.select(self._schema.names))
        return rows.rows(), rows.count

    def _empty(self) -> Snapshot:
        return Snapshot([*self._key, _PLACE], MemoryLimit(self._memory, self._too_large))

    def _too_large(self, size: int) -> OptionError:
        return OptionError(
            f"The table takes {size / 2**20:,.0f} MB of {self._memory / 2**20:,.0f} MB of memory "
            "('scan.snapshot.memory'), and --follow keeps all of it: follow one --key, or the --changelog."
        )


class LastRows:
    """The changes, or messages, that came last.

    Args:
        request: What is read.
        limit: How many are kept.
    """

    def __init__(self, request: Request, limit: int) -> None:
        self._schema = arrow_schema(request.table.schema)
        self._limit, self._count = limit, 0
        self._last = self._schema.empty_table()

    def add(self, place: TopicPartition, rows: Rows) -> None:  # noqa: ARG002 - they show where they are
        """Adds changes."""
        self._count += len(rows)
        added = pa.Table.from_arrays(rows.columns, schema=self._schema)
        together = pa.concat_tables([self._last, added.slice(max(0, len(rows) - self._limit))])
        self._last = together.slice(max(0, together.num_rows - self._limit)).combine_chunks()

    def first(self, limit: int) -> tuple[list[pa.RecordBatch], int]:
        """The last rows, and how many came."""
        begin = max(0, self._last.num_rows - limit)
        shown: Iterable[pa.RecordBatch] = self._last.slice(begin).to_batches()
        return list(shown), self._count


class _LiveTable:
    """Draws rows.

    Args:
        title: Above the table.
        schema: Its columns.
        key: The columns that identify a row; none = rows do not change.
        limit: How many rows at most.
    """

    def __init__(self, title: str, schema: StructType, key: Iterable[str], limit: int) -> None:
        self._title, self._names, self._limit = title, schema.names, limit
        self._spelling = Spelling(schema)
        self._key = [schema.names.index(name) for name in key]
        self._before: dict[tuple[str, ...], tuple[str, ...]] | None = None
        self._console = Console(highlight=False)

    def follow(
        self, changes: Iterable[tuple[TopicPartition, Rows] | None], shown: ShownRows
    ) -> None:
        """Redraws the table while changes arrive.

        Args:
            changes: The changes; None = all that has arrived so far has been read.
            shown: Takes the changes, and has the rows to draw.
        """
        drawn_at, took, dirty = float("-inf"), 0.0, True
        with Live(console=self._console, auto_refresh=False) as live:
            for change in changes:
                if change is not None:
                    shown.add(*change)
                    dirty = True
                now = time.monotonic()
                if dirty and now - drawn_at > max(_SECONDS_BETWEEN, 2 * took):
                    live.update(self._drawn(shown), refresh=True)
                    drawn_at, dirty = time.monotonic(), False
                    took = drawn_at - now

    def _drawn(self, rows: ShownRows) -> Group:
        limit = max(1, min(self._limit, self._console.height - _BESIDE_ROWS))
        batches, count = rows.first(limit)
        table = DrawnTable(box=box.ROUNDED)
        for name in self._names:
            table.add_column(Text(cell(name)), overflow="fold")
        drawn: dict[tuple[str, ...], tuple[str, ...]] = {}
        for row in self._cells(batches):
            key = tuple(row[at] for at in self._key)
            is_changed = self._before is not None and self._before.get(key) != row
            table.add_row(*map(Text, row), style=_CHANGED if self._key and is_changed else None)
            drawn[key] = row
        self._before = drawn
        caption = self._caption(sum(batch.num_rows for batch in batches), count)
        return Group(Text(self._title), table, Text(caption, style="dim"))

    def _cells(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, ...]]:
        for batch in batches:
            columns = [column.to_list() for column in self._spelling.cells(batch)]
            for row in zip(*columns, strict=True):
                yield tuple(map(cell, row))

    @staticmethod
    def _caption(shown: int, count: int) -> str:
        rows = f"{count:,} rows" if shown == count else f"{shown:,} of {count:,} rows"
        return f"{rows} at {datetime.now().astimezone():%H:%M:%S}; Ctrl-C ends"


def redraw(
    request: Request, changes: Iterable[tuple[TopicPartition, Rows] | None], limit: int
) -> None:
    """Draws the table, or the last changes, while changes arrive.

    Args:
        request: What is read.
        changes: The changes; None = all that has arrived so far has been read.
        limit: How many rows at most.
    """
    is_table = request.options.mode == "snapshot"
    names = request.table.key_names if is_table else ()
    table = _LiveTable(str(request.options.table.topics), request.table.schema, names, limit)
    shown = TableRows(request) if is_table else LastRows(request, min(limit, _MOST_ROWS))
    table.follow(changes, shown)
