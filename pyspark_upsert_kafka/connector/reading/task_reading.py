"""Reads the ranges of a task: messages -> record batches in exactly Spark's schema."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.connector.bad_messages import DETAILS, ErrorHandler, error_handler
from pyspark_upsert_kafka.connector.format_catalog import (
    read_key_side,
    read_value_side,
    seen_ids,
    wanted_schema_ids,
)
from pyspark_upsert_kafka.connector.reading.decoded_messages import (
    Mask,
    decode_side,
    in_parts,
    with_schema_ids,
)
from pyspark_upsert_kafka.connector.reading.merged_partitions import merged_rows
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder, Rows
from pyspark_upsert_kafka.connector.reading.reading_past_end import (
    RangeSnapshot,
    batches_past,
    holds,
)
from pyspark_upsert_kafka.connector.reading.snapshot import snapshot_bytes
from pyspark_upsert_kafka.connector.reading.wanted_records import wanted_records
from pyspark_upsert_kafka.connector.spark_task import KEPT_CODECS, freeze_modules, session_time_zone
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.changes import SHOWN_KEYS, such_keys
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import warn_once
from pyspark_upsert_kafka.core.metadata import ALL_METADATA, Detail
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.parsers import WantedHeaders
from pyspark_upsert_kafka.core.positions.offsets import Range, Share
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.row_hash import row_hashes
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

Changes = Iterator[tuple[RawBatch, Rows]]


def read_ranges(
    ranges: Sequence[Range], table: Table, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of ranges, one range after another, as record batches in the table's schema.

    Raises:
        DecodeError: A message cannot be decoded, and ``error-handling.mode`` is ``fail``.
        DataLossError: Offsets of a range are gone, and ``failOnDataLoss`` is true.
        BrokerError: The broker stays away, or refuses.
    """
    freeze_modules()
    yield from read_with(ChangeReader(table, options), ranges)


def read_with(
    reader: ChangeReader,
    ranges: Sequence[Range],
    chosen: Callable[[Changes, Range], Changes] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of ranges, as `read_ranges` gives them, by a reader that there is already.

    Args:
        reader: Reads the changes.
        ranges: The ranges.
        chosen: Passes on which of the changes of a range count; None = all.
    """
    if reader.options.merges_partitions and reader.options.mode == "snapshot":
        all_ranges = list(with_last_checked(ranges))
        yield from merged_rows(all_ranges, reader, chosen or (lambda changes, _: changes))
        return
    schema = arrow_schema(reader.table.schema)
    is_table = reader.options.mode == "snapshot"
    seen = SeenKeys(reader.table.key_names, ranges) if is_table else None
    for range_ in with_last_checked(ranges):
        # An error of the rows ends the client's fetches at once, and not when its traceback is forgotten.
        with closing(reader.read(range_)) as changes:
            found = chosen(changes, range_) if chosen else changes
            for rows in shown_rows(found, range_, reader):
                if len(rows):
                    batch = pa.RecordBatch.from_arrays(rows.columns, schema=schema)
                    if seen is not None:
                        seen.look(range_, batch)
                    yield batch


def with_last_checked(ranges: Sequence[Range]) -> Iterator[Range]:
    """The ranges of a task, of which the last one of each topic is checked after it.

    It is checked by a question about the topic, whose answer grows with its partitions.
    """
    last = {(range_.topic, range_.topic_id): range_ for range_ in ranges}
    for range_ in ranges:
        is_last = last[range_.topic, range_.topic_id] is range_
        yield replace(range_, is_checked_after=is_last)


class ChangeReader:
    """Reads the messages of ranges as rows, deletes among them.

    Args:
        table: The table.
        options: How it is read.
        handle_errors: Called with each batch that has bad messages; None = as the options say.
        details: What is wanted of each message beyond what the table shows.
    """

    def __init__(
        self,
        table: Table,
        options: ReadOptions,
        handle_errors: ErrorHandler | None = None,
        details: frozenset[Detail] = frozenset(),
    ) -> None:
        self.table, self.options = table, options
        self._handle_errors = handle_errors or error_handler(options)
        self._ends_at_bad = handle_errors is None and options.bad_messages_become == "fail"
        self._reader = load_client(options.table.client).reader(
            ReadSettings.of(options, details | wanted_details(table, options))
        )
        self._decoder = RangeDecoder(table, options)

    def read(
        self,
        range_: Range,
        wanted: Callable[[Iterator[RawBatch]], Iterator[RawBatch]] = iter,
    ) -> Generator[tuple[RawBatch, Rows], None, None]:
        """The messages of a range, or its share of them, and their rows; of a snapshot those past its end, too, if need be.

        Args:
            range_: The range.
            wanted: Passes on which of its messages are decoded.

        Raises:
            UpsertKafkaError: As `read_ranges` does.
        """
        yield from self._decoded(wanted(self._reader.read(range_)), range_)
        past = batches_past(self._reader, range_)
        yield from self._decoded(past, range_, handles_bad=not range_.is_followed)

    def _decoded(
        self, batches: Iterable[RawBatch], range_: Range, *, handles_bad: bool = True
    ) -> Iterator[tuple[RawBatch, Rows]]:
        """The messages with their rows; bad messages are handled once, by the batch that shows them."""
        for whole in self._chosen(batches):
            ends_at_bad = handles_bad and self._ends_at_bad
            decoded = self._decoder.decode(whole, range_.share, ends_at_bad=ends_at_bad)
            for batch, rows in decoded:
                if rows.bad and handles_bad:
                    self._handle_errors(batch, rows.bad)
                yield batch, rows

    def _chosen(self, batches: Iterable[RawBatch]) -> Iterator[RawBatch]:
        """The messages that are read, as if there were no others."""
        found = with_headers(batches, self.options.wanted_headers)
        records = wanted_records(self.table, self.options)
        return found if records is None else filter(len, map(records.of, found))

    def snapshot_of(
        self,
        range_: Range,
        key_columns: tuple[str, ...],
        taken: int = 0,
        greatest: str | None = None,
    ) -> RangeSnapshot:
        """The table of a range that is read, for its changes to be added.

        Args:
            range_: The range.
            key_columns: The names of the key's columns among those that are added.
            taken: Bytes of the task's memory that are taken already.
            greatest: A column of which the greatest value of each key is kept; None = none.
        """
        return RangeSnapshot(
            range_,
            key_columns,
            snapshot_bytes(self.options) - taken,
            partial(holds, self._reader, range_),
            greatest,
        )


class RangeDecoder:
    """Decodes the messages of ranges, or their shares of them; codecs are compiled once.

    Args:
        table: The table.
        options: How it is read.
    """

    def __init__(self, table: Table, options: ReadOptions) -> None:
        self._table, self._options = table, options

    def decode(
        self, batch: RawBatch, share: Share | None, *, ends_at_bad: bool = False
    ) -> Iterator[tuple[RawBatch, Rows]]:
        """The rows of a batch, in as many parts as are needed for no part to become too large.

        Args:
            batch: The messages.
            share: The share of them that is read.
            ends_at_bad: Whether an error is raised for the first message that cannot be decoded: there is no need to look up the
                schemas of those behind it.
        """
        if share is None or share.count == 1:
            decoder = self._rows_until_bad if ends_at_bad else self._all_rows
            yield from in_parts(batch, decoder.decode)
            return
        if self._options.table.is_cdc:
            for part, rows in in_parts(batch, self._all_rows.decode):
                yield part, self._of_share(rows, share)
            return
        for _, kept in in_parts(batch, lambda part: self._shares.of(part, share)):
            yield from in_parts(kept, self._shared_rows.decode)

    def _of_share(self, rows: Rows, share: Share) -> Rows:
        """The rows of a share: a message of a CDC format may give rows of several keys, and its own need not be one of them."""
        names = self._table.schema.names
        keys = [rows.columns[names.index(name)] for name in self._table.key_names]
        batch = pa.RecordBatch.from_arrays(keys, [*self._table.key_names])
        kept = rows.where(of_share(batch, share))
        return kept if share.index == 0 else replace(kept, bad=[])

    @cached_property
    def _all_rows(self) -> RowDecoder:
        return _row_decoder(self._table, self._options, session_time_zone(), shares_keys=False)

    @cached_property
    def _rows_until_bad(self) -> RowDecoder:
        zone = session_time_zone()
        return _row_decoder(self._table, self._options, zone, shares_keys=False, ends_at_bad=True)

    @cached_property
    def _shared_rows(self) -> RowDecoder:
        return _row_decoder(self._table, self._options, session_time_zone(), shares_keys=True)

    @cached_property
    def _shares(self) -> KeyShares:
        return KeyShares(self._table, self._options)


@lru_cache(maxsize=KEPT_CODECS)
def _row_decoder(
    table: Table,
    options: ReadOptions,
    time_zone: str,
    *,
    shares_keys: bool,
    ends_at_bad: bool = False,
) -> RowDecoder:
    """Kept for the next task of the worker, which in a stream is one of the same table."""
    return RowDecoder(table, options, time_zone, shares_keys=shares_keys, ends_at_bad=ends_at_bad)


class KeyShares:
    """Takes out of batches the messages whose keys are of a share: equal keys are in one, however they are spelt.

    Messages whose key cannot be read belong to the first share.

    Args:
        table: The table.
        options: How it is read.
    """

    def __init__(self, table: Table, options: ReadOptions) -> None:
        side = read_key_side(table, options)
        if side is None:
            raise ValueError("Keys are shared in snapshots only, and a snapshot has keys.")
        self._side, self._decoder = side, side.decoder()

    def of(self, batch: RawBatch, share: Share) -> RawBatch:
        """The messages of a share."""
        read, _ = with_schema_ids(batch, self._side)
        keys = decode_side(read.keys, self._decoder, "key")
        shares = np.zeros(len(batch), dtype=np.uint64)
        shares[keys.read] = (row_hashes(keys.rows) % share.count)[keys.read]
        mask: Mask = shares == share.index
        return batch.where(mask)


def of_share(keys: pa.RecordBatch, share: Share) -> Mask:
    """For each row of keys whether it is of a share."""
    mask: Mask = row_hashes(keys) % share.count == share.index
    return mask


def shown_rows(
    changes: Iterable[tuple[RawBatch, Rows]], range_: Range, reader: ChangeReader
) -> Iterator[Rows]:
    """The rows that a read shows of a range's changes: a snapshot the last one of each key, another all.

    Args:
        changes: The changes, or some of them.
        range_: Their range.
        reader: What has read them.

    Raises:
        OptionError: A snapshot takes more memory than the options allow.
    """
    if reader.options.mode == "snapshot":
        return _last_rows(changes, range_, reader)
    return (rows for _, rows in changes)


def _last_rows(
    changes: Iterable[tuple[RawBatch, Rows]], range_: Range, reader: ChangeReader
) -> Iterator[Rows]:
    """The last change of each key, if it is not a delete."""
    schema = arrow_schema(reader.table.schema)
    found = reader.snapshot_of(range_, reader.table.key_names)
    for batch, rows in changes:
        found.add(batch, nullable(rows, schema), rows)
    for each in found.rows():
        yield Rows(each.columns, None, [])


def nullable(rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with nullable columns: deletes among them have NULL in NOT NULL columns."""
    return pa.RecordBatch.from_arrays(rows.columns, schema.names)


def wanted_details(table: Table, options: ReadOptions) -> frozenset[Detail]:
    """What is needed of a message beside its key, value and offset."""
    shown = (ALL_METADATA[column.key].detail for column in table.metadata)
    wanted = frozenset(detail for detail in shown if detail is not None)
    sides = read_key_side(table, options), read_value_side(table, options)
    wanted |= wanted_schema_ids(*sides) | seen_ids(*sides)
    if options.wanted_headers:
        wanted |= {Detail.HEADERS}
    if options.merges_partitions:
        wanted |= {Detail.TIMESTAMP}
    return wanted | DETAILS if options.sends_dead_letters else wanted


def with_headers(batches: Iterable[RawBatch], wanted: WantedHeaders) -> Iterator[RawBatch]:
    """The messages that have these headers, each with its value: as if there were no others.

    A message whose headers cannot be read may be one of them. It is kept, and its headers make it a bad message.

    Args:
        batches: The messages, with their headers.
        wanted: Names and values; a message that has a header several times needs the value in one of them. Empty = all
            messages are read.
    """
    if not wanted:
        yield from batches
        return
    for batch in batches:
        kept = _with_headers(batch, wanted)
        if len(kept):
            yield kept


def _with_headers(batch: RawBatch, wanted: WantedHeaders) -> RawBatch:
    mask = [True] * len(batch)
    for pair in wanted:
        mask = [fits and pair in headers for fits, headers in zip(mask, batch.headers, strict=True)]
    for at in batch.bad_headers:
        mask[at] = True
    return batch if all(mask) else batch.where(mask)


_MOST, _LEAST_OF_EACH = 1_000_000, 10_000
"""So many rows are looked at in all, and of each partition at least: a hash of a key takes a tenth of what reading it takes."""

_WARNING = (
    "Keys lie in several partitions, as after partitions were added to a topic: the table has a row of each. With "
    "'scan.snapshot.merge-partitions' = 'true' it has one row of each key, and each task reads all partitions."
)


class SeenKeys:
    """Warns once if a key of a snapshot has rows in two partitions.

    Args:
        key_columns: The columns of the key.
        ranges: All that is read.
    """

    def __init__(self, key_columns: Sequence[str], ranges: Sequence[Range]) -> None:
        self._keys = list(key_columns)
        places = {(range_.topic, range_.partition) for range_ in ranges}
        self._most = max(_LEAST_OF_EACH, _MOST // max(1, len(places)))
        self._is_over = len(places) < 2
        self._before = np.zeros(0, np.uint64)
        self._here: list[np.ndarray] = []
        self._place: tuple[str, int] | None = None

    def look(self, range_: Range, rows: pa.RecordBatch) -> None:
        """Looks at rows of a range."""
        if self._is_over:
            return
        place = (range_.topic, range_.partition)
        if place != self._place:
            self._before = np.sort(np.concatenate([self._before, *self._here]))
            self._here, self._place = [], place
        looked_at = sum(map(len, self._here))
        hashes = row_hashes(rows.select(self._keys).slice(0, max(0, self._most - looked_at)))
        self._here.append(hashes)
        at = np.searchsorted(self._before, hashes)
        known = at < len(self._before)
        again = np.flatnonzero(known)[self._before[at[known]] == hashes[known]]
        if len(again):
            such = rows.select(self._keys).take(pa.array(again[:SHOWN_KEYS])).to_pylist()
            warn_once(_WARNING, detail=partial(such_keys, such))
            self._is_over = True
