"""``update_preimage``: nothing when its key changes again in the task, else a tombstone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.kafka.client import Messages
from pyspark_upsert_kafka.sink.messages import Changes
from pyspark_upsert_kafka.sink.preimages import Preimages

Row = tuple[str, str, "str | None", bool]  # topic, key, value, whether it is a preimage


def changes(rows: list[Row], *, one_topic: bool = False, extras: bool = False) -> Changes:
    """Rows as the encoder hands them over."""
    preimages = np.array([preimage for *_, preimage in rows], dtype=bool)
    return Changes(
        Messages(
            "t" if one_topic else [topic for topic, *_ in rows],
            [key.encode() for _, key, *_ in rows],
            [value and value.encode() for _, _, value, _ in rows],
            [1000 + at for at in range(len(rows))] if extras else None,
            [[("at", str(at).encode())] for at in range(len(rows))] if extras else None,
        ),
        preimages if preimages.any() else None,
    )


def sent(batches: list[Changes]) -> list[tuple[Any, ...]]:
    """Topic, key and value of what is sent for these batches."""
    settling = Preimages()
    out = [settling.settle(batch) for batch in batches]
    rest = settling.rest()
    assert settling.rest() is None, "what waits is sent once"
    messages = [*out, rest] if rest is not None else out
    return [
        (topic, key, value)
        for each in messages
        for topic, key, value in zip(
            [each.topics] * len(each) if isinstance(each.topics, str) else each.topics,
            each.keys,
            each.values,
            strict=True,
        )
    ]


def model(rows: list[Row]) -> list[tuple[Any, ...]]:
    """The rule, row by row."""
    out, rest = [], []
    for at, (topic, key, value, preimage) in enumerate(rows):
        change = (topic, key.encode(), value and value.encode())
        if not preimage:
            out.append(change)
        elif not any(later[:2] == (topic, key) for later in rows[at + 1 :]):
            rest.append((topic, key.encode(), None))
    return out, rest


rows_of_few_keys = st.lists(
    st.tuples(
        st.sampled_from(["t", "u"]),
        st.sampled_from(["a", "b", "c"]),
        st.one_of(st.none(), st.sampled_from(["1", "2"])),
        st.booleans(),
    ).map(lambda row: (row[0], row[1], None if row[3] else row[2], row[3])),
    max_size=25,
)


@given(rows=rows_of_few_keys, borders=st.lists(st.integers(0, 25), max_size=5))
def test_it_is_the_rule_whatever_the_batches(rows: list[Row], borders: list[int]) -> None:
    """Only a preimage that nothing follows becomes a tombstone; all else is sent in its order."""
    cuts = [0, *sorted(min(border, len(rows)) for border in borders), len(rows)]
    parts = [rows[begin:end] for begin, end in pairwise(cuts)]
    found = sent([changes(part) for part in parts])
    now, rest = model(rows)
    assert found[: len(now)] == now
    assert sorted(found[len(now) :]) == sorted(rest)


@given(rows=rows_of_few_keys.map(lambda rows: [("t", *row[1:]) for row in rows]))
def test_one_topic_for_all_means_the_same(rows: list[Row]) -> None:
    """One topic for all messages and a topic for each are the same."""
    found = sent([changes(rows, one_topic=True)])
    now, rest = model(rows)
    assert found[: len(now)] == now
    assert sorted(found[len(now) :]) == sorted(rest)


def test_an_update_that_keeps_its_key_is_one_upsert() -> None:
    """-U then +U of a key is its new row, also when another batch brings the +U."""
    before, after = ("t", "a", None, True), ("t", "a", "2", False)
    assert sent([changes([before, after])]) == [("t", b"a", b"2")]
    assert sent([changes([before]), changes([after])]) == [("t", b"a", b"2")]


def test_an_update_that_changes_its_key_deletes_the_old_one() -> None:
    """-U of one key and +U of another leave the old key a tombstone."""
    rows = [("t", "old", None, True), ("t", "new", "2", False)]
    assert sent([changes(rows)]) == [("t", b"new", b"2"), ("t", b"old", None)]


def test_a_row_that_moves_to_another_topic_is_deleted_where_it_was() -> None:
    """A key is one within its topic: a change in another topic does not make up for a preimage."""
    rows = [("t", "a", None, True), ("u", "a", "2", False)]
    assert sent([changes(rows)]) == [("u", b"a", b"2"), ("t", b"a", None)]


def test_a_tombstone_keeps_what_its_preimage_had() -> None:
    """The tombstone of a preimage carries that row's timestamp and headers."""
    settling = Preimages()
    rows = [("t", "a", None, True), ("t", "b", "1", False), ("t", "c", None, True)]
    now = settling.settle(changes(rows, extras=True))
    assert (now.timestamps, now.headers) == ([1001], [[("at", b"1")]])
    rest = settling.rest()
    assert rest is not None
    assert (rest.timestamps, rest.headers) == ([1000, 1002], [[("at", b"0")], [("at", b"2")]])


def test_without_preimages_messages_pass_as_they_are() -> None:
    """A batch without preimages is passed on untouched."""
    batch = changes([("t", "a", "1", False), ("t", "b", None, False)])
    assert Preimages().settle(batch) is batch.messages
