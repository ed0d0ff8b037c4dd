"""What a query is warned of when it starts: that none of the newest messages becomes a row.

Tasks log what they skip where they run. If options let a query go on past messages, an empty table would be a silent success on
the driver: so a few messages are looked at there. Without such options nothing is read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pyspark_upsert_kafka.core.errors import UpsertKafkaError, shown_names, warn_once
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.positions.progress import bad_messages
from pyspark_upsert_kafka.core.table import Table

if TYPE_CHECKING:
    from pyspark_upsert_kafka.connector.bad_messages import BadMessage
    from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

logger = logging.getLogger("pyspark_upsert_kafka")

_MOST, _PARTITIONS = 1_000, 3
"""So many offsets are looked at, at the end of each of so many partitions: those with the most messages."""

_NAMED = 3


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
    """Logs a warning, once, if options go on past messages and none of the newest ones becomes a row.

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
    for range_ in looked_at:
        for batch, rows in reader.read(range_, seen.counted):
            seen.kept += len(batch)
            deletes = 0 if rows.deletes is None else rows.deletes.true_count
            seen.deletes += deletes
            seen.rows += len(rows) - deletes
        # A topic may hold deletes alone, unless the messages that it holds are of other types.
        if seen.rows or (seen.deletes and not options.record_names):
            return
    if seen.messages > seen.deletes:
        records = wanted_records(table, shows_all)
        yield _text(options, looked_at, seen, [*records.seen] if records else [])


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
    by_simple = {each.rpartition(".")[2].casefold(): each for each in reversed(others)}
    for name in names:
        near = get_close_matches(name.rpartition(".")[2].casefold(), by_simple, 1, 0.8)
        if near:
            return f"{text} Is {by_simple[near[0]]!r} meant by {name!r}?"
    return text
