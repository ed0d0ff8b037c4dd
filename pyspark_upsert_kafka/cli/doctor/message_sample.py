"""A sample of messages, from the beginning and the end of each partition, and what is seen in it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark_upsert_kafka.connector.bad_messages import BadMessage
from pyspark_upsert_kafka.connector.planning.key_partitions import KeyBytes
from pyspark_upsert_kafka.connector.read_request import Request
from pyspark_upsert_kafka.connector.reading.snapshot import Snapshot
from pyspark_upsert_kafka.connector.reading.task_reading import ChangeReader, Changes, nullable
from pyspark_upsert_kafka.connector.reading.wanted_records import wanted_records
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import BrokerError, EncodeError, SchemaError, printable
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch


@dataclass(frozen=True)
class SampledKey:
    """The key of a message.

    Args:
        topic: Its topic.
        partition: Its partition.
        data: Its bytes.
        written: The bytes that this connector would write for it; None = not known.
        offset: The offset of the message.
        deletes: Whether the message is a tombstone.
    """

    topic: str
    partition: int
    data: bytes
    written: bytes | None = None
    offset: int = 0
    deletes: bool = False

    @property
    def identity(self) -> tuple[str, bytes]:
        """What equal keys of a topic have in common."""
        return self.topic, self.data if self.written is None else self.written


@dataclass(frozen=True)
class SampledBadMessage:
    """A message that cannot be decoded.

    Args:
        topic: Its topic.
        partition: Its partition.
        offset: Its offset.
        stage: What of it cannot be decoded: ``key``, ``value``, ``null-key`` or ``headers``.
        reason: Why.
    """

    topic: str
    partition: int
    offset: int
    stage: str
    reason: str


@dataclass(frozen=True)
class SampledRows:
    """How much memory the rows of one partition's sample take.

    Args:
        size: Bytes, as a snapshot counts them.
        offsets: How many offsets the sample covers.
    """

    size: int
    offsets: int


@dataclass(frozen=True)
class SampleFacts:
    """What was seen of some messages.

    Args:
        messages: How many were read.
        offsets: How many offsets all topics have.
        values: How many of the messages have a value.
        partitions: The number of partitions of each topic.
        keys: The keys that are not null and can be decoded.
        unspelled: Why it is not known how this connector would write them; empty = it is known.
        bad: The messages that cannot be decoded.
        warnings: What the connector has logged about the messages.
        rows: The rows of each partition; empty = no table is read.
        passed_over: How many others were fetched, which options pass over.
        record_types: The record types that were seen, and whether they are wanted; empty = all messages are.
    """

    messages: int
    offsets: int
    values: int
    partitions: Mapping[str, int]
    keys: tuple[SampledKey, ...] = ()
    unspelled: str = ""
    bad: tuple[SampledBadMessage, ...] = ()
    warnings: tuple[str, ...] = ()
    rows: Mapping[TopicPartition, SampledRows] = field(default_factory=dict)
    passed_over: int = 0
    record_types: Mapping[str, bool] = field(default_factory=dict)


logger = logging.getLogger("pyspark_upsert_kafka")


def sampled(
    request: Request, view: ClusterView, partitions: Mapping[str, int], count: int
) -> SampleFacts:
    """Reads a sample and says what was seen of it.

    Args:
        request: The table and how it is read.
        view: What the brokers have.
        partitions: How many partitions each topic has.
        count: The most messages that are read.

    Raises:
        BrokerError: No broker answers, or the user may not read.
    """
    # Whatever the options say of bad messages and deletes: here they are looked at, and sent nowhere.
    options = replace(
        request.options, error_mode="ignore", emit_deletes=True, fail_on_data_loss=False
    )
    seen = _Seen(request)
    with logged() as warnings:
        reader = _SampleReader(replace(request, options=options))
        for part in sample_parts(view, count):
            for range_, changes in reader.read(part):
                seen.add(range_, changes)
    facts, records = seen.facts(view, partitions, warnings), wanted_records(request.table, options)
    return replace(
        facts,
        passed_over=reader.fetched - facts.messages,
        record_types={} if records is None else dict(records.seen),
    )


class _SampleReader:
    """Reads samples of partitions as rows.

    Args:
        request: The table and how it is read.
    """

    def __init__(self, request: Request) -> None:
        self._reader = ChangeReader(request.table, request.options, handle_errors=lambda *_: None)
        self._left = self.fetched = 0

    def read(self, part: SamplePart) -> Iterator[tuple[Range, Changes]]:
        """The ranges of a partition, each with its messages and rows, until there are enough."""
        self._left = part.most
        for range_ in part.ranges:
            if self._left:
                yield range_, self._reader.read(range_, self._first)

    def _first(self, batches: Iterator[RawBatch]) -> Iterator[RawBatch]:
        """No more messages than are left to read; no batch is fetched after the last one."""
        with closing(batches):  # type: ignore[type-var]
            while self._left and (batch := next(batches, None)) is not None:
                wanted = batch.part(0, self._left)
                self._left -= len(wanted)
                self.fetched += len(wanted)
                yield wanted


class _Seen:
    """Gathers what was seen of the messages.

    Args:
        request: The table and how it is read.
    """

    def __init__(self, request: Request) -> None:
        table, options = request.table, request.options
        self._table = table
        self._messages = self._values = 0
        self._keys: list[SampledKey] = []
        self._bad: list[SampledBadMessage] = []
        self._unspelled = ""
        self._has_rows = table.is_keyed and (options.mode == "snapshot" or options.table_first)
        self._snapshots: dict[TopicPartition, Snapshot] = {}
        self._covered: defaultdict[TopicPartition, int] = defaultdict(int)
        reads_keys = table.is_keyed and options.table.key_format is not None
        self._bytes = KeyBytes(table, options) if reads_keys else None

    def add(self, range_: Range, changes: Changes) -> None:
        """Takes note of the messages that were read of a range."""
        place, end = TopicPartition(range_.topic, range_.partition), range_.begin
        for batch, rows in changes:
            self._messages += len(batch)
            self._values += sum(value is not None for value in batch.values)
            self._bad += [_bad_message(batch, each) for each in rows.bad]
            self._keys += self._keys_of(batch)
            end = batch.offsets[-1] + 1
            if self._has_rows:
                snapshot = self._snapshots.setdefault(place, Snapshot(self._table.key_names))
                snapshot.add(nullable(rows, arrow_schema(self._table.schema)), rows.deletes)
        self._covered[place] += end - range_.begin

    def _keys_of(self, batch: RawBatch) -> list[SampledKey]:
        if self._bytes is None:
            return []
        values = zip(batch.offsets, batch.values, strict=True)
        tombstones = {offset for offset, value in values if value is None}
        return [
            SampledKey(batch.topic, batch.partition, key, ours, offset, offset in tombstones)
            for offset, key, ours in self._written(batch)
        ]

    def _written(self, batch: RawBatch) -> list[tuple[int, bytes, bytes | None]]:
        """Each key with its offset and the bytes that this connector would write."""
        if self._bytes is not None and not self._unspelled:
            try:
                return list(self._bytes.written_again(batch))
            except (
                BrokerError,  # a registry that does not know the key's schema
                SchemaError,
                EncodeError,
            ) as error:
                self._unspelled = str(error)
        keys = zip(batch.offsets, batch.keys, strict=True)
        return [(offset, key, None) for offset, key in keys if key is not None]

    def facts(
        self, view: ClusterView, partitions: Mapping[str, int], warnings: Sequence[str]
    ) -> SampleFacts:
        """All of it."""
        return SampleFacts(
            messages=self._messages,
            offsets=sum(each.latest - each.earliest for each in view.bounds.values()),
            values=self._values,
            partitions=partitions,
            keys=tuple(self._keys),
            unspelled=self._unspelled,
            bad=tuple(sorted(self._bad, key=lambda bad: (bad.topic, bad.partition, bad.offset))),
            warnings=tuple(dict.fromkeys(warnings)),
            rows={
                tp: SampledRows(snapshot.size(), self._covered[tp])
                for tp, snapshot in self._snapshots.items()
            },
        )


def _bad_message(batch: RawBatch, bad: BadMessage) -> SampledBadMessage:
    offset = batch.offsets[bad.index]
    return SampledBadMessage(batch.topic, batch.partition, offset, bad.stage, printable(bad.reason))


@contextmanager
def logged() -> Iterator[list[str]]:
    """The warnings that the connector logs of messages and their schemas meanwhile, which are shown as findings and not twice."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.name == logger.name:
                found.append(printable(record.getMessage()))
            else:  # the client's own log says nothing of messages
                logging.getLogger().handle(record)

    collector, propagates = Collector(logging.WARNING), logger.propagate
    logger.addHandler(collector)
    logger.propagate = False
    try:
        yield found
    finally:
        logger.removeHandler(collector)
        logger.propagate = propagates


_MOST_PARTITIONS = 100
"""A sample has messages of no more partitions than these, evenly chosen: each costs a request."""


@dataclass(frozen=True)
class SamplePart:
    """The sample of one partition.

    Args:
        ranges: What is read, one after another, until there are enough messages.
        most: How many are enough.
    """

    ranges: tuple[Range, ...]
    most: int


def sample_parts(view: ClusterView, count: int) -> list[SamplePart]:
    """Of each partition about as many messages, half of them from its end and half from its begin.

    After compaction and transactions there are fewer messages than offsets there: then more of the beginning is read.

    Args:
        view: What the brokers have.
        count: The most messages that are read.
    """
    sizes = {tp: bounds.latest - bounds.earliest for tp, bounds in sorted(view.bounds.items())}
    filled = [tp for tp, size in sizes.items() if size]
    step = max(1, -(-len(filled) // _MOST_PARTITIONS))
    shares = _shares({tp: sizes[tp] for tp in filled[::step]}, count)
    return [_part(view, tp, share) for tp, share in shares.items() if share]


def _part(view: ClusterView, tp: TopicPartition, share: int) -> SamplePart:
    bounds = view.bounds[tp]
    whole = Range(
        *tp, bounds.earliest, bounds.latest, view.topic_ids[tp.topic], is_checked_after=False
    )
    if share == whole.size:
        return SamplePart((whole,), share)
    first, last = whole.begin + share // 2, whole.end - (share - share // 2)
    ranges = (
        replace(whole, begin=last),
        replace(whole, end=first),
        replace(whole, begin=first, end=last),
    )
    return SamplePart(tuple(each for each in ranges if each.size), share)


def _shares(sizes: Mapping[TopicPartition, int], count: int) -> dict[TopicPartition, int]:
    """A number of messages, shared among partitions: each gets the same, as far as it has so many, and the largest what is left."""
    shares = {}
    left = count
    for index, tp in enumerate(sorted(sizes, key=lambda tp: (sizes[tp], tp))):
        shares[tp] = min(sizes[tp], left // (len(sizes) - index))
        left -= shares[tp]
    return dict(sorted(shares.items()))
