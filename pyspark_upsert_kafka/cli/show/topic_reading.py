"""What a topic holds is read, counted and followed in this process, as ``show`` wants it.

With ``--follow`` it is what the topic holds, and then what arrives, in micro-batches as a stream of Spark reads them. A bar on
the terminal, which disappears when a read is done, shows how far it is.
"""

from __future__ import annotations

import logging
import select
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pyspark_upsert_kafka.cli.show.one_key import OneKey, SoughtKey
from pyspark_upsert_kafka.connector.bad_messages import BadMessage
from pyspark_upsert_kafka.connector.change_stream import ChangeStream
from pyspark_upsert_kafka.connector.planning.batch_reader import ranges_of_batch
from pyspark_upsert_kafka.connector.planning.first_look import warn_of_no_rows
from pyspark_upsert_kafka.connector.planning.key_partitions import KeyPlace
from pyspark_upsert_kafka.connector.planning.unseen_messages import Hidden
from pyspark_upsert_kafka.connector.read_request import Request
from pyspark_upsert_kafka.connector.reading.message_rows import Rows
from pyspark_upsert_kafka.connector.reading.task_reading import ChangeReader, Changes, read_with
from pyspark_upsert_kafka.core.clock import SYSTEM_CLOCK, WallClock
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import DecodeError, OptionError
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.options.catalog import OPTIONS
from pyspark_upsert_kafka.core.options.frozen_options import Position, Topics
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

logger = logging.getLogger("pyspark_upsert_kafka")

_AS_SHOWN: frozenset[Detail] = frozenset()
_TIMESTAMPS = frozenset({Detail.TIMESTAMP})


@dataclass(frozen=True)
class TopicReading:
    """What is read.

    Args:
        ranges: The ranges; of one key, only those of the partition where it should be.
        elsewhere: The other ranges, which are read if these have no message of the key.
    """

    ranges: list[Range]
    elsewhere: list[Range] = field(default_factory=list)


def ranges_to_read(request: Request, key: OneKey | None) -> TopicReading:
    """The ranges to read, up to the end that the options name.

    Raises:
        BrokerError: No broker answers, or there is no such topic.
    """
    ranges, counts = _ranges(request)
    # What writes messages of a CDC format need not send those of one row to the partition of its key.
    options = request.options
    if key is None or options.table.is_cdc or options.merges_partitions:
        return TopicReading(ranges)
    chosen = KeyPlace(key.values, request.table, request.options).partitions(ranges, counts)
    if chosen is None:
        return TopicReading(ranges)
    is_chosen = [TopicPartition(range_.topic, range_.partition) in chosen for range_ in ranges]
    return TopicReading(
        [range_ for range_, yes in zip(ranges, is_chosen, strict=True) if yes],
        [range_ for range_, yes in zip(ranges, is_chosen, strict=True) if not yes],
    )


def _ranges(request: Request) -> tuple[list[Range], Mapping[str, int]]:
    """All ranges, and how many partitions each topic has."""
    with request.open_cluster() as cluster:
        ranges = ranges_of_batch(cluster, request.options, tell=_tell)
        topics = cluster.existing(sorted({range_.topic for range_ in ranges}))
    warn_of_no_rows(request.table, request.options, ranges)
    return ranges, {name: topic.partitions for name, topic in topics.items()}


def _tell(found: list[Hidden]) -> None:
    """Says what open transactions hide: of each one, since somebody looks at the topic."""
    for each in found:
        sys.stderr.write(f"{each}. {each.advice}.\n")


def rows_of(
    request: Request, key: SoughtKey | None, *, prints: bool
) -> Generator[pa.RecordBatch, None, None]:
    """The rows up to the end that the options name, one range after another: the table's, or its changes.

    A key that is not in its partition is looked for in all others: partitions may have been added, or another writer may
    have put it elsewhere.

    Args:
        request: How it is read.
        key: The only key that is wanted; None = all.
        prints: Whether rows are printed before all are read.

    Raises:
        BrokerError: No broker answers, or there is no such topic.
        UpsertKafkaError: While rows are read, as a batch read would raise it.
    """
    return _rows_of(
        request, ranges_to_read(request, None if key is None else key.key), key, prints=prints
    )


def _rows_of(
    request: Request, reading: TopicReading, key: SoughtKey | None, *, prints: bool
) -> Generator[pa.RecordBatch, None, None]:
    if key is None:
        yield from _rows(request, reading.ranges, iter, _AS_SHOWN, prints=prints)
        return
    found = _rows(request, reading.ranges, key.matching, _TIMESTAMPS, prints=prints)
    yield from key.shown(found)
    if not key.is_seen and reading.elsewhere:
        logger.warning(
            "Every partition is read: the key is not in the one where this connector would write it."
        )
        found = _rows(request, reading.elsewhere, key.matching, _TIMESTAMPS, prints=prints)
        yield from key.shown(found)


def _rows(
    request: Request,
    ranges: Sequence[Range],
    chosen: Callable[[Changes], Changes],
    details: frozenset[Detail],
    *,
    prints: bool,
) -> Iterator[pa.RecordBatch]:
    reader = ChangeReader(request.table, request.options, details=details)
    offsets = sum(range_.size for range_ in ranges)
    with closing(ReadProgress(offsets, prints=prints)) as progress:
        yield from read_with(
            reader, ranges, lambda changes, range_: chosen(watched(changes, range_, progress))
        )


def watched(changes: Changes, range_: Range, progress: ReadProgress) -> Changes:
    """The changes; the progress advances as they are read."""
    position = range_.begin
    for batch, rows in changes:
        yield batch, rows
        if len(batch):
            # What lies past the planned end is not among the offsets that the progress counts to.
            reached = min(batch.offsets[-1] + 1, range_.end)
            progress.advance(reached - position)
            position = reached
    progress.advance(range_.end - position)


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


class Follower:
    """Reads what there is and what arrives, without an end.

    Args:
        request: What is read.
        key: The only key that is wanted; None = all.
        clock: Says when the brokers are asked again.

    Raises:
        OptionError: The options name an end.
    """

    def __init__(
        self, request: Request, key: OneKey | None, clock: WallClock = SYSTEM_CLOCK
    ) -> None:
        if request.options.end.mode != "latest-offset":
            raise OptionError("--follow has no end: leave out 'scan.bounded.mode'.")
        options = replace(request.options, end=Position("unbounded"))
        self._stream = ChangeStream(
            replace(request, options=options), clock=clock, chosen=key.matching if key else iter
        )

    def changes(self) -> Iterator[tuple[TopicPartition, Rows] | None]:
        """The rows of changes with their partition; None = all that has arrived so far has been read.

        For one key, those of all partitions: another writer may put it elsewhere.

        Raises:
            BrokenPipeError: Nobody reads the output any more.
            UpsertKafkaError: As a streaming query would raise it.
        """
        for step in self._stream.steps(self._stream.beginning()):
            if step.place is None or step.rows is None:
                stop_without_reader()
                yield None
            else:
                yield step.place, step.rows


def stop_without_reader() -> None:
    """Raises BrokenPipeError when nobody reads the pipe any more; a write would find out only when a change arrives."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        raise BrokenPipeError


_BEGINS_AFTER_S = 0.5
"""Seconds; a read that is done sooner needs no bar."""


class ReadProgress:
    """Shows how many offsets are read, if that takes long and standard error is a terminal.

    Args:
        offsets: How many there are.
        prints: Whether rows are printed meanwhile; if they go to a terminal, there is no bar.
        clock: Says how many seconds have passed, since any moment.
    """

    def __init__(
        self, offsets: int, *, prints: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._offsets, self._prints, self._clock = offsets, prints, clock
        self._began = clock()
        self._read = 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def advance(self, offsets: int) -> None:
        """Adds to the offsets that are read."""
        self._read += offsets
        if self._bar is None and self._is_wanted():
            self._bar = _bar()
            self._task = self._bar.add_task("reading", total=self._offsets)
            self._bar.start()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._read)

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def _is_wanted(self) -> bool:
        if not sys.stderr.isatty() or (self._prints and sys.stdout.isatty()):
            return False
        return self._clock() - self._began > _BEGINS_AFTER_S


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("offsets"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


class RawMessage(NamedTuple):
    """One message of a topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def raw_messages(properties: Properties, topic: str) -> Iterator[RawMessage]:
    """The messages that a topic holds now, partition by partition, in offset order.

    Raises:
        BrokerError: No broker answers, or there is no such topic.
    """
    client = load_client(OPTIONS["kafka.client"].default)
    with closing(client.cluster(properties, "driver")) as cluster:
        view = cluster.view(cluster.topics(Topics(names=(topic,))), read_committed=True)
    settings = ReadSettings(
        properties, read_committed=True, fail_on_data_loss=False, details=frozenset()
    )
    reader = client.reader(settings)
    for (name, partition), bounds in sorted(view.bounds.items()):
        for batch in reader.read(Range(name, partition, bounds.earliest, bounds.latest)):
            for offset, key, value in zip(batch.offsets, batch.keys, batch.values, strict=True):
                yield RawMessage(partition, offset, key, value)
