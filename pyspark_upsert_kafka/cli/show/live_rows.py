"""The rows that a live table shows: of a table the first by its key, of changes the last ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import pyarrow as pa

from pyspark_upsert_kafka.cli.show.first_rows import FirstRows
from pyspark_upsert_kafka.cli.show.planning import Plan
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.core.table.arrow import arrow_schema
from pyspark_upsert_kafka.source.reading.rows import Rows
from pyspark_upsert_kafka.source.reading.snapshot import MemoryLimit, Snapshot
from pyspark_upsert_kafka.source.reading.task import nullable
from pyspark_upsert_kafka.source.reading.worker_memory import snapshot_bytes

_PLACE = ""
"""The column that tells keys of one partition from equal ones of another; no column of a table has this name."""


class LiveRows(Protocol):
    """What a live table shows."""

    def add(self, place: TopicPartition, rows: Rows) -> None:
        """Adds changes of a partition, later than those before."""

    def first(self, limit: int) -> tuple[list[pa.RecordBatch], int]:
        """So many rows, and how many there are."""


class TableRows:
    """The table: the last row of each key in its partition.

    Args:
        planned: What is read.
    """

    def __init__(self, planned: Plan) -> None:
        self._schema = arrow_schema(planned.table.schema)
        self._key = planned.table.key_names
        self._memory = snapshot_bytes(planned.options)
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
    """Changes, or messages: those that came last.

    Args:
        planned: What is read.
        limit: So many are kept.
    """

    def __init__(self, planned: Plan, limit: int) -> None:
        self._schema = arrow_schema(planned.table.schema)
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
