"""What a query is warned of when it starts: that none of the newest messages becomes a row, or that a record name looks misspelt.

Tasks log what they skip where they run. If options let a query go on past messages, an empty table would be a silent success on
the driver: so a few messages are looked at there. Without such options nothing is read.

Messages of a type that is named beside others may just be rare. So its name is doubted only if a type that is skipped is spelt nearly so.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from string import digits
from typing import TYPE_CHECKING

from pyspark_upsert_kafka.core.errors import UpsertKafkaError, shown_names, warn_once
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.positions.progress import bad_messages
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.record_names import names_without

if TYPE_CHECKING:
    from pyspark_upsert_kafka.connector.bad_messages import BadMessage
    from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

logger = logging.getLogger("pyspark_upsert_kafka")

_MOST, _PARTITIONS = 1_000, 3
"""So many offsets are looked at, at the end of each of so many partitions: those with the most messages."""

_NAMED = 3

_ALIKE, _AS_MISSPELT = 0.8, 0.9
"""How alike two names are of which one may be meant by the other. Types of events are as alike as `CustomerUpdated` and `CustomerDeleted`."""

_NO_DIGITS = str.maketrans("", "", digits)


@dataclass
class _Seen:
    """What was seen of messages.

    Args:
        messages: How many there were.
        kept: Those that options do not pass over.
        rows: The rows that they became.
        deletes: Those that are deletes.
        bad: Why others cannot be decoded, with how often.
    """

    messages: int = 0
    kept: int = 0
    rows: int = 0
    deletes: int = 0
    bad: Counter[str] = field(default_factory=Counter)

    def counted(self, batches: Iterable[RawBatch]) -> Iterator[RawBatch]:
        """The messages, counted."""
        for batch in batches:
            self.messages += len(batch)
            yield batch

    def note_bad(self, _: RawBatch, bad: Sequence[BadMessage]) -> None:
        """Takes note of messages that cannot be decoded."""
        self.bad.update(each.reason for each in bad)


def warn_of_no_rows(table: Table, options: ReadOptions, ranges: Sequence[Range]) -> None:
    """Logs a warning, once, if options go on past messages and none of the newest ones becomes a row, or a type's name looks misspelt.

    It is no part of the read: what cannot be looked at is logged, and not raised.

    Args:
        table: The table.
        options: How it is read.
        ranges: What there is to be read.
    """
    if not _goes_on(options) or not ranges:
        return
    try:
        warn_once(*_warnings(table, options, ranges))
    except UpsertKafkaError as error:
        logger.info("What the newest messages are is not known: %s", error)


def _goes_on(options: ReadOptions) -> bool:
    return bad_messages(options) == "skip" or bool(options.record_names or options.wanted_headers)


def _warnings(table: Table, options: ReadOptions, ranges: Sequence[Range]) -> Iterator[str]:
    # Not before it is known that messages are read here.
    from pyspark_upsert_kafka.connector.reading.task_reading import ChangeReader
    from pyspark_upsert_kafka.connector.reading.wanted_records import wanted_records

    seen, looked_at = _Seen(), _ends(ranges)
    shows_all = replace(options, error_mode="ignore", emit_deletes=True, fail_on_data_loss=False)
    reader = ChangeReader(table, shows_all, seen.note_bad)
    records = wanted_records(table, shows_all)
    for range_ in looked_at:
        for batch, rows in reader.read(range_, seen.counted):
            seen.kept += len(batch)
            deletes = 0 if rows.deletes is None else rows.deletes.true_count
            seen.deletes += deletes
            seen.rows += len(rows) - deletes
        # A topic may hold deletes alone, unless the messages that it holds are of other types.
        if seen.rows or (seen.deletes and not options.record_names):
            yield from _misspelt(options.record_names, records.seen if records else {})
            return
    if seen.messages > seen.deletes:
        yield _text(options, looked_at, seen, [*records.seen] if records else [])


def _misspelt(names: Sequence[str], seen: Mapping[str, bool]) -> Iterator[str]:
    """What is told of names that look like misspelt ones of types that are skipped; the types that were seen, and whether they are wanted."""
    skipped = [name for name, is_wanted in seen.items() if not is_wanted]
    for name, near in _meant(names_without(names, seen), skipped, _AS_MISSPELT):
        if not _are_versions(name, near):
            yield (
                f"'scan.record-names' names {name!r}, of which no message was among the newest ones that were looked at, and messages "
                f"of the record type {near!r} are skipped. Is {near!r} meant by {name!r}?"
            )


def _are_versions(name: str, other: str) -> bool:
    """Whether two names differ in numbers alone.

    >>> _are_versions("shop.v1.Order", "shop.v2.Order"), _are_versions("OrderV1", "shop.OrderV2"), _are_versions("Ordr", "Order")
    (True, True, False)
    """
    name, other = (each.translate(_NO_DIGITS).casefold() for each in (name, other))
    return name == other or other.endswith(f".{name}")


def _ends(ranges: Sequence[Range]) -> list[Range]:
    """The ends of the partitions with the most messages."""
    whole: dict[TopicPartition, Range] = {}
    for each in ranges:
        place = TopicPartition(each.topic, each.partition)
        known = whole.setdefault(place, each)
        begin, end = min(known.begin, each.begin), max(known.end, each.end)
        whole[place] = Range(*place, begin, end, each.topic_id, is_checked_after=False)
    largest = sorted(whole.values(), key=lambda each: each.size, reverse=True)[:_PARTITIONS]
    return [replace(each, begin=max(each.begin, each.end - _MOST)) for each in largest if each.size]


def _text(options: ReadOptions, ranges: Sequence[Range], seen: _Seen, others: list[str]) -> str:
    places = ", ".join(f"topic {each.topic!r} partition {each.partition}" for each in ranges)
    found = []
    passed = seen.messages - seen.kept
    if passed:
        headers = [f"{key}={value.decode()}" for key, value in options.wanted_headers]
        by = {"scan.record-names": options.record_names, "scan.headers": headers}
        # With the values, since a text is logged once: another value that fits none is another one.
        given = [f"'{name}' = '{';'.join(values)}'" for name, values in by.items() if values]
        found.append(f"{passed:,} are skipped by {', '.join(given)}")
    found += [f"{count:,} cannot be read: {why}" for why, count in seen.bad.most_common(_NAMED)]
    if seen.deletes:
        found.append(f"{seen.deletes:,} are deletes")
    text = f"None of the {seen.messages:,} newest messages that were looked at ({places}) becomes a row: {'; '.join(found)}."
    return f"{text} {types_seen(options.record_names, others)}".rstrip()


def types_seen(names: Sequence[str], others: Sequence[str]) -> str:
    """What record types there are beside the wanted ones, and which of them may be meant; empty = there are none.

    >>> types_seen(["com.acme.Oder"], ["com.acme.Order", "com.acme.Customer"])
    "Record types that were seen: 'com.acme.Order', 'com.acme.Customer'. Is 'com.acme.Order' meant by 'com.acme.Oder'?"
    """
    if not others:
        return ""
    text = f"Record types that were seen: {shown_names([each or '(no name)' for each in others])}."
    for name, near in _meant(names, others, _ALIKE):
        return f"{text} Is {near!r} meant by {name!r}?"
    return text


def _meant(names: Sequence[str], others: Sequence[str], alike: float) -> Iterator[tuple[str, str]]:
    """The names that are nearly those of other types, each with that type.

    >>> [*_meant(["Custmer", "CustomerDeleted"], ["shop.Customer", "shop.CustomerUpdated"], _AS_MISSPELT)]
    [('Custmer', 'shop.Customer')]
    """
    by_simple = {_simple(each): each for each in reversed(others)}
    for name in names:
        near = get_close_matches(_simple(name), by_simple, 1, alike)
        if near:
            yield name, by_simple[near[0]]


def _simple(name: str) -> str:
    """A name as others are compared with it: without its namespace, in small letters."""
    return name.rpartition(".")[2].casefold()
