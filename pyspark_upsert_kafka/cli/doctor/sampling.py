"""Reads a sample of messages, half of it from the begin and half from the end of each partition."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

from pyspark_upsert_kafka.cli.doctor.facts import (
    SampledBadMessage,
    SampledKey,
    SampledRows,
    SampleFacts,
)
from pyspark_upsert_kafka.core.errors import BrokerError, EncodeError, SchemaError, printable
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.table.arrow import arrow_schema
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.bad_messages.bad_message import BadMessage
from pyspark_upsert_kafka.source.planning.key_bytes import KeyBytes
from pyspark_upsert_kafka.source.reading.rows import Rows
from pyspark_upsert_kafka.source.reading.snapshot import Snapshot
from pyspark_upsert_kafka.source.reading.task import ChangeReader, nullable, with_last_checked
from pyspark_upsert_kafka.without_spark.request import Request

logger = logging.getLogger("pyspark_upsert_kafka")


_MOST_PARTITIONS = 100
"""A sample has messages of no more partitions than these, evenly chosen: each costs a request."""


def sample_ranges(view: ClusterView, count: int) -> list[Range]:
    """The ranges of a sample: of each partition about as many offsets, from its begin and from its end.

    Args:
        view: What the brokers have.
        count: The most messages that are read.
    """
    ranges = []
    sizes = {tp: bounds.latest - bounds.earliest for tp, bounds in sorted(view.bounds.items())}
    filled = [tp for tp, size in sizes.items() if size]
    step = max(1, -(-len(filled) // _MOST_PARTITIONS))
    for tp, share in _shares({tp: sizes[tp] for tp in filled[::step]}, count).items():
        whole = Range(
            *tp, view.bounds[tp].earliest, view.bounds[tp].latest, view.topic_ids[tp.topic]
        )
        if share == whole.size:
            ranges.append(whole)
            continue
        first = share // 2
        ranges.append(replace(whole, end=whole.begin + first))
        ranges.append(replace(whole, begin=whole.end - (share - first)))
    return [range_ for range_ in ranges if range_.size]


def _shares(sizes: Mapping[TopicPartition, int], count: int) -> dict[TopicPartition, int]:
    """A number of messages, shared among partitions: each gets the same, as far as it has so many."""
    shares = {}
    left = count
    for index, tp in enumerate(sorted(sizes, key=lambda tp: (sizes[tp], tp))):
        shares[tp] = min(sizes[tp], -(-left // (len(sizes) - index)))
        left -= shares[tp]
    return dict(sorted(shares.items()))


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
    reader = ChangeReader(request.table, options, lambda _batch, _bad: None)
    seen = _Seen(request)
    with _logged() as warnings:
        for range_ in with_last_checked(sample_ranges(view, count)):
            with closing(reader.read(range_)) as changes:
                seen.add_range(range_, changes)
    return seen.facts(view, partitions, warnings)


class _Seen:
    """Gathers what was seen of the messages.

    Args:
        request: The table and how it is read.
    """

    def __init__(self, request: Request) -> None:
        table, options = request.table, request.options
        self._table = table
        self._messages = 0
        self._keys: list[SampledKey] = []
        self._bad: list[SampledBadMessage] = []
        self._unspelled = ""
        self._has_rows = table.is_keyed and (options.mode == "snapshot" or options.table_first)
        self._snapshots: dict[TopicPartition, Snapshot] = {}
        self._covered: defaultdict[TopicPartition, int] = defaultdict(int)
        reads_keys = table.is_keyed and options.table.key_format is not None
        self._bytes = KeyBytes(table, options) if reads_keys else None

    def add_range(self, range_: Range, changes: Iterable[tuple[RawBatch, Rows]]) -> None:
        """Takes note of all messages of a range."""
        place = TopicPartition(range_.topic, range_.partition)
        self._covered[place] += range_.size
        for batch, rows in changes:
            self._messages += len(batch)
            self._bad += [_bad_message(batch, each) for each in rows.bad]
            self._keys += self._keys_of(batch)
            if self._has_rows:
                snapshot = self._snapshots.setdefault(place, Snapshot(self._table.key_names))
                snapshot.add(nullable(rows, arrow_schema(self._table.schema)), rows.deletes)

    def _keys_of(self, batch: RawBatch) -> list[SampledKey]:
        if self._bytes is None:
            return []
        topic, partition = batch.topic, batch.partition
        if not self._unspelled:
            try:
                pairs = list(self._bytes.written_again(batch))
            except (
                BrokerError,  # a registry that does not know the key's schema
                SchemaError,
                EncodeError,
            ) as error:
                self._unspelled = str(error)
            else:
                return [SampledKey(topic, partition, key, ours) for key, ours in pairs]
        return [SampledKey(topic, partition, key) for key in batch.keys if key is not None]

    def facts(
        self, view: ClusterView, partitions: Mapping[str, int], warnings: Sequence[str]
    ) -> SampleFacts:
        """All of it."""
        return SampleFacts(
            messages=self._messages,
            offsets=sum(each.latest - each.earliest for each in view.bounds.values()),
            partitions=partitions,
            keys=tuple(self._keys),
            unspelled=self._unspelled,
            bad=tuple(self._bad),
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
def _logged() -> Iterator[list[str]]:
    """The warnings that the connector logs meanwhile, which are shown as findings and not twice."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(printable(record.getMessage()))

    collector, propagates = Collector(logging.WARNING), logger.propagate
    logger.addHandler(collector)
    logger.propagate = False
    try:
        yield found
    finally:
        logger.removeHandler(collector)
        logger.propagate = propagates
