"""``update_preimage``: nothing when its key changes again in the task, else a tombstone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.writing import row_encoding as preimages_module
from pyspark_upsert_kafka.connector.writing.row_encoding import Changes, Preimages, preimages_in
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, octets

Row = tuple[str, str, "str | None", bool]  # topic, key, value, whether it is a preimage


def changes(rows: list[Row], *, one_topic: bool = False, extras: bool = False) -> Changes:
    """Rows as the encoder hands them over."""
    preimages = np.array([preimage for *_, preimage in rows], dtype=bool)
    return Changes(
        Messages(
            "t" if one_topic else [topic for topic, *_ in rows],
            octets(key.encode() for _, key, *_ in rows),
            octets(value and value.encode() for _, _, value, _ in rows),
            [1000 + at for at in range(len(rows))] if extras else None,
            [[("at", str(at).encode())] for at in range(len(rows))] if extras else None,
        ),
        preimages if preimages.any() else None,
    )


def sent(batches: list[Changes], settling: Preimages | None = None) -> list[tuple[Any, ...]]:
    """Topic, key and value of what is sent for these batches."""
    settling = settling or preimages_in("in-task")
    out = [settling.settle(batch) for batch in batches]
    rest = settling.rest()
    assert settling.rest() is None, "what waits is sent once"
    messages = [*out, rest] if rest is not None else out
    return [row[:3] for each in messages for row in each.rows()]


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
    settling = preimages_in("in-task")
    rows = [("t", "a", None, True), ("t", "b", "1", False), ("t", "c", None, True)]
    now = settling.settle(changes(rows, extras=True))
    assert (now.timestamps, now.headers) == ([1001], [[("at", b"1")]])
    rest = settling.rest()
    assert rest is not None
    assert (rest.timestamps, rest.headers) == ([1000, 1002], [[("at", b"0")], [("at", b"2")]])


@pytest.mark.parametrize("timestamp", [0, 1000])
@pytest.mark.parametrize("headers", [None, [("h", b"1")]])
def test_a_tombstone_has_only_what_its_preimage_had(
    timestamp: int, headers: list[tuple[str, bytes]] | None
) -> None:
    """A timestamp without headers, headers without a timestamp, or neither."""
    settling = preimages_in("in-task")
    message = Messages("t", octets([b"a"]), octets([None]), [timestamp], [headers])
    assert list(settling.settle(Changes(message, np.array([True]))).rows()) == []
    rest = settling.rest()
    assert rest is not None
    assert [*rest.rows()] == [("t", b"a", None, timestamp, headers)]


def test_without_preimages_messages_pass_as_they_are() -> None:
    """A batch without preimages is passed on untouched."""
    batch = changes([("t", "a", "1", False), ("t", "b", None, False)])
    for order in ("in-task", "by-key", "unknown"):
        assert preimages_in(order).settle(batch) is batch.messages
        assert preimages_in(order).rest() is None


def split(rows: list[Row], borders: list[int]) -> list[Changes]:
    """The rows in batches that end there."""
    cuts = [0, *sorted(min(border, len(rows)) for border in borders), len(rows)]
    return [changes(rows[begin:end], one_topic=True, extras=True) for begin, end in pairwise(cuts)]


@given(
    rows=rows_of_few_keys.map(lambda rows: [("t", *row[1:]) for row in rows]),
    borders=st.lists(st.integers(0, 25), max_size=5),
)
def test_sorted_by_key_the_same_table_is_left(rows: list[Row], borders: list[int]) -> None:
    """When the changes of a key follow one another, what is sent for each key is the same as otherwise."""
    rows = sorted(rows, key=lambda row: row[1])
    found = sent(split(rows, borders), preimages_in("by-key"))
    now, rest = model(rows)
    for key in (b"a", b"b", b"c"):
        expected = [message for message in [*now, *rest] if message[1] == key]
        assert [message for message in found if message[1] == key] == expected


def test_sorted_by_key_one_preimage_waits_at_most() -> None:
    """A million rows that all are preimages hold no more than one message back."""
    settling = preimages_in("by-key")
    batch = changes([("t", str(key), None, True) for key in range(1000)], one_topic=True)
    assert len(settling.settle(batch)) == 999
    again = settling.settle(changes([("t", "999", "1", False)], one_topic=True))
    assert [row[1:3] for row in again.rows()] == [(b"999", b"1")]
    assert settling.rest() is None


@given(
    rows=rows_of_few_keys.map(lambda rows: [("t", *row[1:]) for row in rows]),
    borders=st.lists(st.integers(0, 25), max_size=5),
)
def test_a_tombstone_sent_early_is_overwritten(rows: list[Row], borders: list[int]) -> None:
    """Though keys are mixed, as under a collation, the last message of each key is right."""
    last = {
        message[:2]: message[2] for message in sent(split(rows, borders), preimages_in("by-key"))
    }
    now, rest = model(rows)
    assert last == {message[:2]: message[2] for message in [*now, *rest]}


def test_in_unknown_order_a_preimage_is_refused() -> None:
    """Its tombstone could come after a change that another task has; the error names the remedy."""
    settling = preimages_in("unknown")
    settling.settle(changes([("t", "a", "1", False)]))
    with pytest.raises(OptionError, match=r"update_preimage.*'sequence-by'"):
        settling.settle(changes([("t", "a", "1", False), ("t", "a", None, True)]))


def test_preimages_that_wait_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many are an error that names the remedy; those that were followed take no room."""
    monkeypatch.setattr(preimages_module, "MAX_HELD_BYTES", 20_000)
    settling = preimages_in("in-task")
    for at in range(1000):
        pair = [("t", str(at), None, True), ("t", str(at), "1", False)]
        settling.settle(changes(pair))
    with pytest.raises(OptionError, match="'sequence-by'"):
        settling.settle(changes([("t", str(at), None, True) for at in range(1000)]))


def test_how_many_preimages_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of their keys, and 150 for each: so much and not a byte more; what was sent at the end counts no longer."""
    monkeypatch.setattr(preimages_module, "MAX_HELD_BYTES", 2 * 150 + len("a" + "bb"))
    settling = preimages_in("in-task")
    for _ in range(2):
        settling.settle(changes([("t", "a", None, True), ("t", "bb", None, True)]))
        assert settling.rest() is not None
    settling.settle(changes([("t", "a", None, True)]))
    with pytest.raises(OptionError, match="'sequence-by'"):
        settling.settle(changes([("t", "bbb", None, True)]))
