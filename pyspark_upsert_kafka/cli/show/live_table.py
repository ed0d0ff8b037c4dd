"""A table that is redrawn on a terminal as it changes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import datetime

import pyarrow as pa
from pyspark.sql.types import StructType
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table as DrawnTable
from rich.text import Text

from pyspark_upsert_kafka.cli.show.live_rows import LiveRows
from pyspark_upsert_kafka.cli.show.output import cell
from pyspark_upsert_kafka.cli.show.spelling import Spelling
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.source.reading.rows import Rows

_SECONDS_BETWEEN = 0.25
"""It is redrawn no more often than this, and for no more than a third of the time."""

_BESIDE_ROWS = 7
"""Lines of a table that are none of its rows: title, header, borders, caption, and the cursor's."""

_CHANGED = "bold"


class LiveTable:
    """Draws rows.

    Args:
        title: Above the table.
        schema: Its columns.
        key: Those by which a row is known again; none = rows do not change.
        limit: So many rows at most.
    """

    def __init__(self, title: str, schema: StructType, key: Iterable[str], limit: int) -> None:
        self._title, self._names, self._limit = title, schema.names, limit
        self._spelling = Spelling(schema)
        self._key = [schema.names.index(name) for name in key]
        self._before: dict[tuple[str, ...], tuple[str, ...]] | None = None
        self._console = Console(highlight=False)

    def follow(
        self, changes: Iterable[tuple[TopicPartition, Rows] | None], shown: LiveRows
    ) -> None:
        """Redraws the table while changes arrive.

        Args:
            changes: The changes; None = nothing waits to be read.
            shown: What they add up to.
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

    def _drawn(self, rows: LiveRows) -> Group:
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
