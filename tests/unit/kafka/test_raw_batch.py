"""Messages of a batch are chosen and joined with all that belongs to them."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import compress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

MESSAGES = st.lists(st.booleans(), max_size=8)


def batch(bad: list[bool], begin: int = 0, *, details: bool = True) -> RawBatch:
    """Messages from an offset on, of which some have headers that cannot be read."""
    offsets = range(begin, begin + len(bad))
    return RawBatch(
        "t",
        3,
        BytesColumn.of([b"k%d" % at for at in offsets]),
        BytesColumn.of([None if at % 3 == 0 else b"v%d" % at for at in offsets]),
        [*offsets],
        array("q", [at % 3 for at in offsets] if details else []),
        array("q", [1000 + at for at in offsets] if details else []),
        [[("at", b"%d" % at)] for at in offsets] if details else [],
        [at % 5 for at in offsets] if details else [],
        {at: f"why {begin + at}" for at, is_bad in enumerate(bad) if is_bad},
        # Where no message has one there is no column, so that some parts have none.
        {Detail.VALUE_SCHEMA_ID: BytesColumn.of([b"s" if is_bad else None for is_bad in bad])}
        if any(bad)
        else {},
    )


def rows(found: RawBatch) -> list[tuple[Any, ...]]:
    """All that is known of each message."""
    columns = (
        found.keys, found.values, found.offsets, found.timestamp_types,
        found.timestamps, found.headers, found.leader_epochs,
    )  # fmt: skip
    assert found.bad_headers.keys() <= set(range(len(found)))
    why = [found.bad_headers.get(at) for at in range(len(found))]
    ids = found.schema_ids.get(Detail.VALUE_SCHEMA_ID, [None] * len(found))
    return list(zip(*columns, why, ids, strict=True))


@given(MESSAGES, st.integers(0, 8), st.integers(0, 8))
def test_a_part(bad: list[bool], begin: int, end: int) -> None:
    """In their order."""
    assert rows(batch(bad).part(begin, end)) == rows(batch(bad))[begin:end]


@given(MESSAGES, st.data())
def test_messages_that_are_wanted(bad: list[bool], data: st.DataObject) -> None:
    """Likewise."""
    mask = data.draw(st.lists(st.booleans(), min_size=len(bad), max_size=len(bad)))

    assert rows(batch(bad).where(mask)) == list(compress(rows(batch(bad)), mask))


@given(st.lists(MESSAGES, min_size=1, max_size=4))
def test_batches_one_after_another(parts: list[list[bool]]) -> None:
    """They are of one partition; what was taken of none of them is there of none."""
    batches = [batch(bad, 10 * at) for at, bad in enumerate(parts)]
    joined = RawBatch.joined(batches)

    assert rows(joined) == [row for each in batches for row in rows(each)]
    assert (joined.topic, joined.partition) == ("t", 3)


@pytest.mark.parametrize("step", ["part", "where", "joined"])
def test_details_that_were_not_taken_are_not_there(step: str) -> None:
    """Only keys, values and offsets always are."""
    raw = batch([False, True], details=False)
    found = {
        "part": lambda: raw.part(0, 1),
        "where": lambda: raw.where([True, False]),
        "joined": lambda: RawBatch.joined([raw, raw]),
    }[step]()

    assert [*map(len, (found.timestamps, found.timestamp_types, found.headers))] == [0, 0, 0]
    assert len(found.leader_epochs) == 0
    assert len(found) == len(found.offsets) > 0


def test_one_batch_alone_is_not_copied() -> None:
    """Most often there is nothing to join."""
    raw = batch([True])
    assert RawBatch.joined([raw]) is raw


def test_schema_ids_are_taken_out_of_headers() -> None:
    """Of several the last counts, as for Confluent's deserializers; a header without a value is none; without any no column is made."""
    key, value = "__key_schema_id", "__value_schema_id"
    found = replace(
        batch([False] * 5),
        headers=[[(value, b"1"), ("x", b"2"), (value, b"3")], (), [(value, b"4"), (value, None)],
                 [(value, b"")], [("x", b"5"), (key, None)]],
    )  # fmt: skip

    found.keep_of_headers([Detail.KEY_SCHEMA_ID, Detail.VALUE_SCHEMA_ID])

    assert found.headers == []
    assert found.schema_ids == {Detail.VALUE_SCHEMA_ID: [b"3", None, None, b"", None]}
