"""A snapshot reads on past its planned end for keys that compaction took: against a log in memory that is compacted meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options import ReadOptions, read_options
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.format_catalog import format_options
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.reading.reading_on import RangeSnapshot, batches_past, holds
from pyspark_upsert_kafka.source.reading.rows import Rows
from tests.table_options import table_options

Value = int | None


def nothing() -> None:
    """Nothing happens meanwhile."""


@dataclass
class Log:
    """A partition: its messages by offset; ``meanwhile`` happens before each request.

    A key is a number, or a text that spells one in another way: another key for compaction, and the same for the table.
    """

    messages: dict[int, tuple[int | str, Value]] = field(default_factory=dict)
    length: int = 0
    meanwhile: Callable[[], None] = nothing
    at_once: int = 1000
    asked: int = 0
    history: list[tuple[int, int | str, Value]] = field(default_factory=list)

    def append(self, *changes: tuple[int | str, Value]) -> None:
        """Appends a change of each of these keys."""
        for key, value in changes:
            self.messages[self.length] = (key, value)
            self.history.append((self.length, key, value))
            self.length += 1

    def skip(self) -> None:
        """Appends what is no message: a transaction's marker."""
        self.length += 1

    def compact(self, below: int | None = None) -> None:
        """Takes what was overwritten before an offset."""
        newest = {
            str(key): at for at, (key, _) in sorted(self.messages.items()) if at < (below or 1e9)
        }
        self.messages = {
            at: message
            for at, message in self.messages.items()
            if at >= newest.get(str(message[0]), 0)
        }

    def end(self, _: Range) -> int:
        """As `RangeReader.end`."""
        self.meanwhile()
        self.asked += 1
        return self.length

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """As `RangeReader.read`: fetches of a few messages, each of what is there by then."""
        begin = range_.begin
        while begin < range_.end:
            self.meanwhile()
            found = [at for at in sorted(self.messages) if begin <= at < range_.end]
            offsets = found[: self.at_once]
            begin = range_.end if offsets == found else offsets[-1] + 1
            keys = [str(self.messages[at][0]).encode() for at in offsets]
            values = [self.messages[at][1] for at in offsets]
            data = [None if v is None else b"%d" % v for v in values]
            yield RawBatch("t", 0, BytesColumn.of(keys), BytesColumn.of(data), offsets)


def options(**more: object) -> ReadOptions:
    """Of a snapshot."""
    return read_options(table_options(**more), format_options, stream=False)


def table(log: Log, range_: Range, **more: object) -> dict[int, int]:
    """The table that is read of a range."""
    found = RangeSnapshot(range_, ("k",), options(**more), partial(holds, log, range_))
    for source in (log.read(range_), batches_past(log, range_)):
        for batch in source:
            keys = pa.array([int(key or b"") for key in batch.keys], pa.int64())
            values = pa.array([None if v is None else int(v) for v in batch.values], pa.int64())
            rows = Rows([keys, values], values.is_null(), [])
            found.add(batch, pa.record_batch(rows.columns, ["k", "v"]), rows)
    return {row["k"]: row["v"] for rows in found.rows() for row in rows.to_pylist()}


def test_rows_stay_and_lost_keys_show_their_newest() -> None:
    """What was found before the planned end stays, changed or deleted since; a key without a row gets its newest, if any."""
    log = Log()
    log.append((1, 10), (2, 20), (3, 30), (4, 40), (5, 50))
    planned = Range("t", 0, 0, 5, kept_until_ms=0)
    log.append((1, 11), (2, 21), (3, None), (4, None), (1, 12), (6, 60))
    del log.messages[0], log.messages[3], log.messages[5]  # as compaction does

    assert table(log, planned) == {1: 12, 2: 20, 3: 30, 5: 50, 6: 60}
    assert table(log, replace(planned, kept_until_ms=None)) == {2: 20, 3: 30, 5: 50}


@pytest.mark.parametrize(("kept_s", "asked"), [(None, 0), (3600, 0), (-1, 1)])
def test_nothing_is_asked_while_the_topic_keeps_what_was_planned(
    kept_s: float | None, asked: int
) -> None:
    """Where no key can be lost yet, it costs nothing; else one question, if nothing was written since."""
    log = Log()
    log.append((1, 10), (2, 20))
    kept_ms = None if kept_s is None else int((time.time() + kept_s) * 1000)

    assert table(log, Range("t", 0, 0, 2, kept_until_ms=kept_ms)) == {1: 10, 2: 20}
    assert log.asked == asked


def test_a_part_without_a_gap_is_the_last() -> None:
    """A writer who never pauses keeps nobody from ending."""
    log = Log()
    log.append((1, 10))
    log.meanwhile = lambda: log.append((2, log.length))

    assert table(log, Range("t", 0, 0, 1, kept_until_ms=0)) == {1: 10, 2: 2}
    assert log.asked == 1


def test_transactions_without_a_pause_keep_nobody_from_ending() -> None:
    """Each leaves an offset without a message, so that the end is asked for again, but not for ever."""
    log = Log()
    log.append((1, 10))

    def transaction() -> None:
        log.append((2, log.length))
        log.skip()

    log.meanwhile = transaction

    table(log, Range("t", 0, 0, 1, kept_until_ms=0))
    assert log.asked == 10


def test_a_key_that_is_overwritten_and_compacted_while_the_tail_is_read() -> None:
    """It is gone from the tail that was asked for, and seen in the next part."""
    log = Log(at_once=1)
    log.append((1, 10), (2, 20))
    planned = Range("t", 0, 0, 2, kept_until_ms=0)
    log.append((3, 30), (1, 11), (2, 21))
    log.compact()
    requests = 0

    def once() -> None:
        nonlocal requests
        requests += 1
        if requests == 4:  # after the end was asked for, and a message of the tail was read
            log.append((1, 12), (2, 22))
            log.compact()

    log.meanwhile = once

    assert table(log, planned) == {1: 12, 2: 22, 3: 30}


@pytest.mark.parametrize("spellings", [["{}"], ["{}", "+{}"]])
def test_no_history_loses_a_key_or_shows_an_old_row(spellings: list[str]) -> None:
    """Whatever is written and compacted between two requests, however keys are spelt.

    Each key that lived all the time is there, and each row was its key's at planning or later.
    """
    for seed in range(400):
        random = Random(seed)

        def any_key(random: Random = random) -> str:
            return random.choice(spellings).format(random.randrange(8))

        log = Log(at_once=random.choice([1, 2, 5]))
        log.append(*((key, log.length + key) for key in range(8)))
        log.append(*((any_key(), at) for at in range(100, 120)))
        planned = Range("t", 0, 0, log.length, kept_until_ms=0)
        pace = random.choice([0.1, 0.5, 0.9])

        def meanwhile(
            random: Random = random, pace: float = pace, log: Log = log, any_key: Any = any_key
        ) -> None:
            while random.random() < pace:
                value = None if random.random() < 0.1 else log.length + 1000
                log.append((any_key(), value))
                if random.random() < 0.2:
                    log.skip()
            if random.random() < pace:
                log.compact(random.randrange(log.length))

        log.meanwhile = meanwhile
        found = table(log, planned)
        at_planning = {int(key): value for at, key, value in log.history if at < planned.end}
        dead = {int(key) for at, key, value in log.history if at >= planned.end and value is None}
        dead |= {key for key, value in at_planning.items() if value is None}
        assert set(range(8)) - dead <= set(found), seed
        later = {(int(key), value) for at, key, value in log.history if at >= planned.end}
        assert set(found.items()) <= later | set(at_planning.items()), seed


def test_the_tail_keeps_within_the_memory_of_a_task() -> None:
    """Keys past the end are as much of the table as those before it."""
    log = Log(at_once=500)
    log.append(*((key, key) for key in range(2_000)))
    planned = Range("t", 0, 0, log.length, kept_until_ms=0)
    assert len(table(log, planned, **{"scan.snapshot.memory": "1 mb"})) == 2_000
    log.append(*((key, key) for key in range(2_000, 10_000)))

    with pytest.raises(OptionError, match=r"scan\.snapshot\.memory.*after 100 % of the offsets"):
        table(log, planned, **{"scan.snapshot.memory": "1 mb"})
