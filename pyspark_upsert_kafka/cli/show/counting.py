"""``--count``: how many live keys, tombstones, messages and bad messages there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyspark_upsert_kafka.cli.show.progress import ReadProgress
from pyspark_upsert_kafka.cli.show.reading import ranges_to_read, watched
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import DecodeError
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.bad_messages import BadMessage
from pyspark_upsert_kafka.source.reading.rows import Rows
from pyspark_upsert_kafka.source.reading.task import ChangeReader
from pyspark_upsert_kafka.without_spark.request import Request


@dataclass
class Counts:
    """The counts; a topic without keys has neither live keys nor tombstones.

    Args:
        live_keys: Keys whose last message is no tombstone.
        tombstones: Messages without a value.
        messages: All messages.
        bad_messages: Those that cannot be decoded.
        first_bad: What is wrong with the first of these; None = there is none.
    """

    live_keys: int = 0
    tombstones: int = 0
    messages: int = 0
    bad_messages: int = 0
    first_bad: DecodeError | None = None

    def note_bad(self, batch: RawBatch, bad: Sequence[BadMessage]) -> None:
        """Counts bad messages."""
        self.bad_messages += len(bad)
        if self.first_bad is None:
            first = bad[0]
            offset = batch.offsets[first.index]
            self.first_bad = DecodeError(
                batch.topic, batch.partition, offset, first.stage, first.reason
            )


def counted(request: Request) -> Counts:
    """Counts all that there is to read; a bad message is counted, not raised.

    Raises:
        OptionError: The keys take more memory than the options allow.
        BrokerError: The broker stays away, or refuses.
    """
    counts = Counts()
    # Bad messages and deletes are counted, whatever the options say of them; and the changes of a partition are read in one
    # piece, since its keys are counted together.
    is_keyed, is_table = request.table.is_keyed, request.options.mode == "snapshot"
    options = replace(
        request.options,
        error_mode="ignore",
        emit_deletes=True,
        min_partitions=request.options.min_partitions if is_table else None,
    )
    reader = ChangeReader(request.table, options, counts.note_bad)
    ranges = ranges_to_read(replace(request, options=options), None).ranges
    with closing(ReadProgress(sum(range_.size for range_ in ranges))) as progress:
        for range_ in ranges:
            keys = _Keys(request.table, range_, reader)
            for batch, rows in watched(reader.read(range_), range_, progress):
                counts.messages += len(batch)
                if is_keyed:
                    counts.tombstones += batch.values.nulls
                    keys.add(batch, rows)
            counts.live_keys += keys.count()
    return counts


class _Keys:
    """The live keys of a range, which are those of its partition or of a part of it."""

    def __init__(self, table: Table, range_: Range, reader: ChangeReader) -> None:
        self._places = [table.schema.names.index(name) for name in table.key_names]
        self._names = tuple(str(place) for place in self._places)
        self._table = reader.snapshot_of(range_, self._names)

    def add(self, batch: RawBatch, rows: Rows) -> None:
        """Adds changes."""
        columns = [rows.columns[place] for place in self._places]
        self._table.add(batch, pa.RecordBatch.from_arrays(columns, self._names), rows)

    def count(self) -> int:
        """How many there are."""
        return sum(rows.num_rows for rows in self._table.rows())
