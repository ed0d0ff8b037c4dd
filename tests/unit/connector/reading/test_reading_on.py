"""A snapshot reads on past its planned end for keys that compaction took: against a log in memory that is compacted meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.reading.message_rows import Rows
from pyspark_upsert_kafka.connector.reading.reading_past_end import (
    RangeSnapshot,
    batches_past,
    holds,
)
from pyspark_upsert_kafka.connector.reading.snapshot import snapshot_bytes
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import LAST_OFFSET, Range
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.laws import FULL
from tests.table_options import table_options
from tests.unit.connector.memory_log import Log


def options(**more: object) -> ReadOptions:
    """Of a snapshot."""
    return read_options(table_options(**more), format_options, stream=False)


def table(log: Log, range_: Range, **more: object) -> dict[int, int]:
    """The table that is read of a range."""
    memory = snapshot_bytes(options(**more))
    found = RangeSnapshot(range_, ("k",), memory, partial(holds, log, range_))
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


def test_nothing_is_read_where_nothing_was_written_since() -> None:
    """Not even no offsets: a client would be opened for it."""
    reader = SimpleNamespace(end=lambda range_: range_.end)

    assert list(batches_past(reader, Range("t", 0, 0, 5, kept_until_ms=0))) == []


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


def any_history(random: Random, spellings: list[str]) -> tuple[Log, Range]:
    """A log that is written and compacted between two requests, and the range of it that was planned."""

    def any_key() -> str:
        return random.choice(spellings).format(random.randrange(8))

    log = Log(at_once=random.choice([1, 2, 5]))
    log.append(*((key, log.length + key) for key in range(8)))
    log.append(*((any_key(), at) for at in range(100, 120)))
    planned = Range("t", 0, 0, log.length, kept_until_ms=0)
    pace = random.choice([0.1, 0.5, 0.9])

    def meanwhile() -> None:
        while random.random() < pace:
            value = None if random.random() < 0.1 else log.length + 1000
            log.append((any_key(), value))
            if random.random() < 0.2:
                log.skip()
        if random.random() < pace:
            log.compact(random.randrange(log.length))

    log.meanwhile = meanwhile
    return log, planned


def after(requests: int, happens: Callable[[], None]) -> Callable[[], None]:
    """What happens once, before the request that follows so many others."""
    left = iter([*[None] * requests, happens])

    def meanwhile() -> None:
        then = next(left, None)
        if then is not None:
            then()

    return meanwhile


HISTORIES = 400 if FULL else 60


@pytest.mark.parametrize("spellings", [["{}"], ["{}", "+{}"]])
def test_no_history_loses_a_key_or_shows_an_old_row(spellings: list[str]) -> None:
    """Whatever is written and compacted between two requests, however keys are spelt.

    Each key that lived all the time is there, and each row was its key's at planning or later.
    """
    for seed in range(HISTORIES):
        random = Random(seed)
        log, planned = any_history(random, spellings)
        found = table(log, planned)
        at_planning = {int(key): value for at, key, value in log.history if at < planned.end}
        dead = {int(key) for at, key, value in log.history if at >= planned.end and value is None}
        dead |= {key for key, value in at_planning.items() if value is None}
        assert set(range(8)) - dead <= set(found), seed
        later = {(int(key), value) for at, key, value in log.history if at >= planned.end}
        assert set(found.items()) <= later | set(at_planning.items()), seed


def test_a_table_that_is_followed_shows_nothing_from_past_its_end() -> None:
    """Later batches show it: rows stay as they were at the end, and a key that compaction took is left to its newer change."""
    log = Log()
    log.append((1, 10), (2, 20), (3, 30), (4, None))
    log.append((1, 11), (3, None), (4, 40), (5, 50))
    planned = Range("t", 0, 0, 4, kept_until_ms=0, followed_to=LAST_OFFSET)

    assert table(log, planned) == {1: 10, 2: 20, 3: 30}
    log.compact()
    assert table(log, planned) == {2: 20}


def test_a_row_that_may_be_out_of_date_is_left_to_its_newer_change() -> None:
    """Compaction has taken a newer message before the end while it was read; a row without a change since is certain."""
    log = Log(at_once=1)
    log.append((1, 10), (2, 20), (1, 11), (3, 30))
    planned = Range("t", 0, 0, 4, kept_until_ms=0, followed_to=LAST_OFFSET)
    log.append((1, 12))
    log.meanwhile = after(1, log.compact)
    assert table(log, planned) == {2: 20, 3: 30}

    # Where nothing follows, it shows its newest row.
    log.messages = {at: (key, value) for at, key, value in log.history}
    log.meanwhile = after(1, log.compact)
    assert table(log, replace(planned, followed_to=0)) == {1: 12, 2: 20, 3: 30}


def test_a_row_that_no_later_batch_shows_is_not_left_out() -> None:
    """The stream ends before the newer change of its key."""
    log = Log(at_once=1)
    log.append((1, 10), (2, 20), (1, 11))
    planned = Range("t", 0, 0, 3, kept_until_ms=0, followed_to=4)
    log.append((2, 21), (1, 12))
    log.meanwhile = after(1, log.compact)

    assert table(log, planned) == {1: 10}


def test_nothing_to_show_on_either_side_of_the_end() -> None:
    """Each message that was read is a bad one."""
    batch = RawBatch("t", 0, BytesColumn.of([b"?"]), BytesColumn.of([b"?"]), [7])
    none = pa.record_batch([pa.array([], pa.int64())], ["k"])
    found = RangeSnapshot(Range("t", 0, 0, 5), ("k",), 2**30, lambda *_: True)
    found.add(batch, none, Rows([none.column(0)], None, [], np.array([], dtype=np.int64)))

    assert list(found.rows()) == []


@pytest.mark.parametrize("spellings", [["{}"], ["{}", "+{}"]])
def test_no_history_shows_a_table_that_never_was(spellings: list[str]) -> None:
    """Whatever is written and compacted between two requests, however keys are spelt.

    Each row was its key's at the end, and each key that lived then is shown, or has a newer change.
    """
    left_out = 0
    for seed in range(HISTORIES):
        random = Random(seed)
        log, planned = any_history(random, spellings)
        found = table(log, replace(planned, followed_to=LAST_OFFSET))
        at_end = {int(key): value for at, key, value in log.history if at < planned.end}
        lived = {key: value for key, value in at_end.items() if value is not None}
        later = {int(key) for at, key, value in log.history if at >= planned.end}
        assert found.items() <= lived.items(), seed
        assert lived.keys() - later <= found.keys(), seed
        left_out += len(lived) - len(found)
    assert left_out > HISTORIES // 4, "compaction took nothing"


def test_the_tail_keeps_within_the_memory_of_a_task() -> None:
    """Keys past the end are as much of the table as those before it."""
    log = Log(at_once=500)
    log.append(*((key, key) for key in range(2_000)))
    planned = Range("t", 0, 0, log.length, kept_until_ms=0)
    assert len(table(log, planned, **{"scan.snapshot.memory": "1 mb"})) == 2_000
    log.append(*((key, key) for key in range(2_000, 10_000)))

    with pytest.raises(OptionError, match=r"scan\.snapshot\.memory.*after 100 % of the offsets"):
        table(log, planned, **{"scan.snapshot.memory": "1 mb"})


@pytest.mark.parametrize(("followed_to", "parts"), [(0, 2), (LAST_OFFSET, 1)])
def test_what_is_past_the_end_shares_the_memory_that_is_left(followed_to: int, parts: int) -> None:
    """The newest changes and the keys of the first ones half each; where later batches show the changes, the keys have it all."""
    range_ = Range("t", 0, 0, 10, followed_to=followed_to)
    snapshot = RangeSnapshot(range_, ("k",), 2**20, lambda *_: True)
    rows = pa.RecordBatch.from_arrays([pa.array(range(10))], ["k"])
    nothing = BytesColumn.of([None] * 10)
    read: Any = SimpleNamespace(offsets_in=lambda _: np.arange(10), deletes=None)
    snapshot.add(RawBatch("t", 0, nothing, nothing, [*range(10)]), rows, read)
    taken = snapshot._found.size()

    late = snapshot._nothing_late()

    limits = [each._limit for each in (late.newest, late.firsts) if each is not None]
    assert taken > 2 * 10 * 128
    assert [limit.size for limit in limits] == [(2**20 - taken) // parts] * parts
    size = 3 * 2**20
    for limit in limits:
        assert f"it takes {(taken + parts * size) / 2**20:,.0f} MB of 1 MB" in str(
            limit.error(size)
        )


@pytest.mark.parametrize(("read", "percent"), [(5, 50), (10, 100)])
def test_a_table_that_does_not_fit_says_how_far_it_was_read(read: int, percent: int) -> None:
    """Up to the last message of the batch that was too much."""
    snapshot = RangeSnapshot(Range("t", 0, 0, 10), ("k",), 1, lambda *_: True)
    rows = pa.RecordBatch.from_arrays([pa.array(range(read))], ["k"])
    nothing = BytesColumn.of([None] * read)
    offsets: Any = SimpleNamespace(offsets_in=lambda _: np.arange(read), deletes=None)

    with pytest.raises(OptionError, match=rf"after {percent} % of the offsets"):
        snapshot.add(RawBatch("t", 0, nothing, nothing, [*range(read)]), rows, offsets)
