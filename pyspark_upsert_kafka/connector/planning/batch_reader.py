"""Spark data source reader for batch reads: what is read, and what the filters leave of it that Spark gives to it.

Comparisons of columns with constants say for which partitions, offsets, times and keys they can be true.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.bad_messages import check_dead_letter_topic
from pyspark_upsert_kafka.connector.format_catalog import check_read_sides, format_options
from pyspark_upsert_kafka.connector.planning.first_look import warn_of_no_rows
from pyspark_upsert_kafka.connector.planning.query_start import start_offset, table_ranges
from pyspark_upsert_kafka.connector.planning.unseen_messages import (
    Hidden,
    hidden_messages,
    warn_of_hidden,
)
from pyspark_upsert_kafka.connector.spark_task import freeze_modules
from pyspark_upsert_kafka.core.clock import Clock, now_ms
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import OptionError, warn_once
from pyspark_upsert_kafka.core.options.frozen_options import Position, ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import (
    LAST_OFFSET,
    Range,
    TopicPartition,
    not_empty,
)
from pyspark_upsert_kafka.core.positions.planning import split, spread
from pyspark_upsert_kafka.core.table import Table, table_to_read
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.cluster import Cluster

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("pyspark_upsert_kafka")

_NOTHING = "nothing"
"""The value of the only partition of a read that has nothing to read."""


class BatchReader(DataSourceReader):
    """Reads the table, or its changes, as of the moment when the query is planned."""

    def __init__(self, table: Table, options: ReadOptions) -> None:
        freeze_modules()
        self._table = table
        self._options = options
        self._narrowing: Narrowing | None = None
        check_read_sides(table, options)

    def partitions(self) -> Sequence[InputPartition]:
        """One for each Kafka partition that holds anything to read, unless options want more or fewer."""
        options = self._options
        warn_once(*options.warnings)
        opened = load_client(options.table.client).cluster(options.table.properties, "driver")
        with closing(opened) as cluster:
            ranges = ranges_of_batch(cluster, options, self._narrowing)
        warn_of_no_rows(self._table, options, ranges)
        # Without any partition Spark plans one of its own, with a value that depends on its version.
        tasks = spread(ranges, self._options.max_partitions)
        return [InputPartition(each) for each in tasks] or [InputPartition(_NOTHING)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task's ranges."""
        if partition.value == _NOTHING:
            return iter(())
        from pyspark_upsert_kafka.connector.reading.task_reading import read_ranges

        return read_ranges(cast("tuple[Range, ...]", partition.value), self._table, self._options)


def ranges_of_batch(
    cluster: Cluster,
    options: ReadOptions,
    narrowing: Narrowing | None = None,
    tell: Callable[[list[Hidden]], None] = warn_of_hidden,
    clock: Clock = time,
) -> list[Range]:
    """The ranges of a batch read.

    Args:
        cluster: Says what there is.
        options: How it is read.
        narrowing: Leaves out what cannot hold a row that is wanted; None = every row is wanted.
        tell: Called with what open transactions hide, if a read up to the latest offset ends before any.
        clock: For the pauses before something counts as lost.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        DataLossError: A wanted start is gone.
    """
    check_dead_letter_topic(cluster, options)
    planned_ms = now_ms()
    start, view = start_offset(cluster, options, clock)
    ends = start.stop or {}
    if options.end.mode == "latest-offset":
        read = {tp: bounds for tp, bounds in view.bounds.items() if tp in start.positions}
        tell(hidden_messages(replace(view, bounds=read), options))
    ranges = [
        Range(*tp, begin, min(ends[tp], view.bounds[tp].latest), view.topic_ids[tp.topic])
        for tp, begin in sorted(start.positions.items())
    ]
    # Which row of a key is shown, depends on all partitions.
    if narrowing is not None and not options.merges_partitions:
        ranges = narrowing.of(not_empty(ranges), cluster, view)
    if options.mode != "snapshot":
        return split(not_empty(ranges), options.min_partitions)
    return table_ranges(cluster, not_empty(ranges), list(view.topic_ids), options, planned_ms)


_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
"""The program of the process that Spark starts to give filters to a reader; it does so only while its setting
``spark.sql.python.filterPushdown.enabled`` is true."""


def batch_reader(schema: StructType, raw: Mapping[str, str]) -> BatchReader:
    """The reader of a batch: one that takes filters, if that is asked and if this process was started for it.

    In every other process Spark plans without filters, and there it rejects a reader that could take them while its setting
    is off.

    Args:
        schema: The columns.
        raw: The options, by name.

    Raises:
        OptionError: An option is wrong; or filters are asked for, and this PySpark gives none.
        SchemaError: Columns, key or types do not fit.
    """
    options = read_options(raw, format_options, stream=False)
    table = table_to_read(schema, options)
    if options.takes_filters and not hasattr(DataSourceReader, "pushFilters"):
        raise OptionError(
            "'scan.filter-pushdown' needs PySpark 4.1 or newer: the Python data source API of 4.0 does not pass filters. "
            "Leave the option out."
        )
    reader = FilteredReader if options.takes_filters and _is_given_filters() else BatchReader
    return reader(table, options)


def _is_given_filters() -> bool:
    """Whether this process was started to give filters to a reader: as a program, or by Spark's daemon for Python."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _WORKER in sys.modules or getattr(spec, "name", None) == _WORKER


class FilteredReader(BatchReader):
    """Reads what the filters of a query leave; Spark applies each of them again."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Notes the filters, and returns all of them: those that Spark has to apply."""
        self._narrowing = Narrowing.by(filters, self._table, self._options)
        return filters


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

Constants = tuple[Any, ...]


@dataclass(frozen=True)
class Condition:
    """A comparison that is true for every row that a query wants.

    Args:
        column: The name of the column.
        test: Which comparison, by the name that Spark's filters have: ``EqualTo``, ``In``, ``IsNull``, ...
        constants: What the column is compared with.
        is_negated: Whether the comparison must be false, and not true.
    """

    column: str
    test: str
    constants: Constants = ()
    is_negated: bool = False


def conditions(filters: Sequence[Any]) -> tuple[Condition, ...]:
    """Spark's filters on whole columns, as conditions. PySpark 4.0 has no such classes, so they are known by their names."""
    found = []
    for each in filters:
        is_negated = type(each).__name__ == "Not"
        test = each.child if is_negated else each
        if len(test.attribute) == 1:
            (column,), name = test.attribute, type(test).__name__
            found.append(Condition(column, name, _constants_of(test), is_negated))
    return tuple(found)


def _constants_of(test: Any) -> tuple[Any, ...]:
    if not hasattr(test, "value"):
        return ()
    return tuple(test.value) if type(test).__name__ == "In" else (test.value,)


_HOLDS: Mapping[str, Callable[[Any, Constants], bool]] = {
    "EqualTo": lambda value, constants: value in constants,
    "EqualNullSafe": lambda value, constants: value in constants,
    "In": lambda value, constants: value in constants,
    "GreaterThan": lambda value, constants: value > constants[0],
    "GreaterThanOrEqual": lambda value, constants: value >= constants[0],
    "LessThan": lambda value, constants: value < constants[0],
    "LessThanOrEqual": lambda value, constants: value <= constants[0],
    "StringStartsWith": lambda value, constants: value.startswith(constants[0]),
    "StringEndsWith": lambda value, constants: value.endswith(constants[0]),
    "StringContains": lambda value, constants: constants[0] in value,
    "IsNull": lambda _value, _constants: False,
    "IsNotNull": lambda _value, _constants: True,
}

_FIRST_AND_LAST: Mapping[str, Callable[[Constants], tuple[int, int]]] = {
    "EqualTo": lambda at: (at[0], at[0]),
    "EqualNullSafe": lambda at: (at[0], at[0]),
    "In": lambda at: (min(at), max(at)),
    "GreaterThan": lambda at: (at[0] + 1, LAST_OFFSET),
    "GreaterThanOrEqual": lambda at: (at[0], LAST_OFFSET),
    "LessThan": lambda at: (0, at[0] - 1),
    "LessThanOrEqual": lambda at: (0, at[0]),
}

_EQUALITIES = frozenset({"EqualTo", "EqualNullSafe", "In"})

_LOWER_BOUNDS = _EQUALITIES | {"GreaterThan", "GreaterThanOrEqual"}


def can_hold(value: str | int, conditions: Iterable[Condition]) -> bool:
    """Whether all conditions on a column can be true where it has this value.

    What this package does not know, or is compared with a constant of another type, counts as true.

    >>> can_hold(3, [Condition("_partition", "In", (1, 2))])
    False
    >>> can_hold(3, [Condition("_partition", "In", (1, 2), is_negated=True)])
    True
    """
    return all(_can_hold(value, each) for each in conditions)


def _can_hold(value: str | int, condition: Condition) -> bool:
    holds = _HOLDS.get(condition.test)
    if holds is None or not _are(type(value), condition.constants):
        return True
    return holds(value, condition.constants) != condition.is_negated


def first_and_last_offset(conditions: Iterable[Condition]) -> tuple[int, int]:
    """The least and the greatest offset for which all conditions on offsets can be true.

    >>> first_and_last_offset([Condition("_offset", "GreaterThan", (4,)), Condition("_offset", "LessThan", (9,))])
    (5, 8)
    """
    first, last = 0, LAST_OFFSET
    for each in conditions:
        if each.test in _FIRST_AND_LAST and _compares(each, int):
            low, high = _FIRST_AND_LAST[each.test](each.constants)
            first, last = max(first, low), min(last, high)
    return first, last


def since_ms(conditions: Iterable[Condition]) -> int | None:
    """The time, in ms since the epoch, before which no timestamp makes all conditions true; None = there is no such time.

    A time before 1970 is none either: brokers do not look for such timestamps.

    >>> noon = datetime(1970, 1, 1, 12, tzinfo=timezone.utc)
    >>> since_ms([Condition("_timestamp", "GreaterThan", (noon,))])
    43200000
    """
    times = [
        (min(each.constants) - _EPOCH) // timedelta(milliseconds=1)
        for each in conditions
        if each.test in _LOWER_BOUNDS
        and _compares(each, datetime)
        and all(time.tzinfo is not None for time in each.constants)
    ]
    latest = max(times, default=0)
    return latest if latest > 0 else None


def only_values(conditions: Iterable[Condition]) -> Sequence[Any] | None:
    """The only values for which all conditions on a column can be true; None = there may be any number.

    >>> only_values([Condition("id", "In", (1, 2, None)), Condition("id", "GreaterThan", (1,))])
    (1, 2)
    """
    known = [_without_null(each) for each in conditions if _is_equality(each)]
    return min((each for each in known if each), key=len, default=None)


def _is_equality(condition: Condition) -> bool:
    return condition.test in _EQUALITIES and not condition.is_negated


def _without_null(condition: Condition) -> Constants:
    """A comparison with NULL is never true, but for ``EqualNullSafe``, which has one constant: what is left is empty."""
    return tuple(each for each in condition.constants if each is not None)


def _compares(condition: Condition, type_: type) -> bool:
    """Whether the column is compared with constants of a type."""
    return (
        not condition.is_negated and bool(condition.constants) and _are(type_, condition.constants)
    )


def _are(type_: type, constants: Constants) -> bool:
    """Whether constants are of a type, and none of a subtype, as a boolean is of int."""
    return all(type(each) is type_ for each in constants)


@dataclass(frozen=True)
class Narrowing:
    """The ranges that can hold a row for which all conditions are true.

    In a snapshot the message that a row shows is the last one of its key, whatever a filter says of it. So there only what is
    the same for all messages of a key counts: topic, partition, and the key itself.

    Args:
        table: The table.
        options: How it is read.
        conditions: The conditions.
    """

    table: Table
    options: ReadOptions
    conditions: tuple[Condition, ...]

    @classmethod
    def by(cls, filters: Sequence[Any], table: Table, options: ReadOptions) -> Narrowing:
        """What Spark's filters leave of a table that is read with these options."""
        return cls(table, options, conditions(filters))

    def of(self, ranges: Sequence[Range], cluster: Cluster, view: ClusterView) -> list[Range]:
        """The ranges, without what cannot hold such a row.

        Args:
            ranges: All that would be read.
            cluster: Says where messages get later than a time.
            view: What the cluster has.

        Raises:
            BrokerError: No broker answers.
        """
        left = [range_ for range_ in ranges if self._can_hold(range_)]
        if self.options.mode != "snapshot":
            left = self._since(self._between_offsets(left), cluster, view)
        left = self._of_keys(not_empty(left), view)
        _log(ranges, left)
        return left

    def _on(self, metadata_key: str) -> Iterator[Condition]:
        """The conditions on the columns that show this metadata."""
        names = {column.name for column in self.table.metadata if column.key == metadata_key}
        return (each for each in self.conditions if each.column in names)

    def _can_hold(self, range_: Range) -> bool:
        return can_hold(range_.topic, self._on("topic")) and can_hold(
            range_.partition, self._on("partition")
        )

    def _between_offsets(self, ranges: Sequence[Range]) -> list[Range]:
        first, last = first_and_last_offset(self._on("offset"))
        return [
            replace(each, begin=max(each.begin, first), end=min(each.end, last + 1))
            for each in ranges
        ]

    def _since(self, ranges: list[Range], cluster: Cluster, view: ClusterView) -> list[Range]:
        """Without what lies before the first message that is late enough, in whatever order the times are."""
        time_ms = since_ms(self._on("timestamp"))
        if time_ms is None or not ranges:
            return ranges
        asked = {tp: view.bounds[tp] for tp in map(_place, ranges)}
        begins = cluster.positions(
            Position("timestamp", timestamp_ms=time_ms), ClusterView(view.topic_ids, asked)
        )
        return [replace(each, begin=max(each.begin, begins[_place(each)])) for each in ranges]

    def _of_keys(self, ranges: list[Range], view: ClusterView) -> list[Range]:
        """Only the partitions of the keys, if the conditions name them and the user says where keys lie."""
        if self.options.key_partitioner is None or not ranges:
            return ranges
        values = [
            only_values(each for each in self.conditions if each.column == field.name)
            for field in self.table.key
        ]
        from pyspark_upsert_kafka.connector.planning.key_partitions import KeyPlace, keys_of

        keys = keys_of(self.table, values)
        if keys is None:
            return ranges
        place = KeyPlace(keys, self.table, self.options)
        counts = Counter(tp.topic for tp in view.bounds)
        chosen = place.partitions(ranges, counts)
        if chosen is None:
            return ranges
        unseen = [each for each in _lowest(ranges) if _place(each) not in chosen]
        if not all(place.is_ours(each, counts) for each in unseen):
            return ranges
        return [each for each in ranges if _place(each) in chosen]


def _lowest(ranges: Sequence[Range]) -> list[Range]:
    """The range of the lowest partition of each topic: where partitions were added, it holds keys that belong to others now."""
    by_partition = sorted(ranges, key=lambda each: each.partition, reverse=True)
    return [*{each.topic: each for each in by_partition}.values()]


def _place(range_: Range) -> TopicPartition:
    return TopicPartition(range_.topic, range_.partition)


def _log(before: Sequence[Range], after: Sequence[Range]) -> None:
    """Logged as a warning: in the process that plans, nobody sees less, and the next query over this DataFrame is concerned."""
    partitions, all_partitions = ({_place(each) for each in ranges} for ranges in (after, before))
    offsets, all_offsets = (sum(each.size for each in ranges) for ranges in (after, before))
    if offsets < all_offsets:
        logger.warning(
            "The filters of this query leave %d of %d Kafka partitions and %d of %d offsets to be read. Spark keeps this for "
            "later queries over the same load(), whatever their filters: use another load() for another filter.",
            len(partitions), len(all_partitions), offsets, all_offsets,
        )  # fmt: skip
