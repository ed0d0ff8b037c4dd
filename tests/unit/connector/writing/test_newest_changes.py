"""The newest change of each key is found among columns: when keys are enough, and what is held meanwhile."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.writing import keyed_buffer
from pyspark_upsert_kafka.connector.writing.keyed_buffer import NewestChanges, flushes
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, octets


@pytest.mark.parametrize(
    ("keys", "most", "ends", "newest"),
    [
        ([], 2, [], []),
        ([0], 1, [1], [0]),
        ([0, 0, 0], 2, [], [2]),
        ([0, 1], 2, [2], [0, 1]),
        ([0, 0, 1, 0], 2, [3], [1, 2, 3]),
        ([0, 1, 0, 1], 1, [1, 2, 3, 4], [0, 1, 2, 3]),
        ([3, 3, 3, 3, 3, 3, 3, 0, 3], 2, [8], [6, 7, 8]),
    ],
)
def test_a_buffer_is_flushed_by_the_key_that_fills_it(
    keys: list[int], most: int, ends: list[int], newest: list[int]
) -> None:
    """A stretch ends with the message that brings the last distinct key; of each key its last message there is newest."""
    found, mask = flushes(np.array(keys, np.int64), most)

    assert found == ends
    assert np.flatnonzero(mask).tolist() == newest


@given(keys=st.lists(st.integers(0, 5), max_size=60), most=st.integers(1, 7))
def test_stretches_are_those_of_a_dict(keys: list[int], most: int) -> None:
    """As if messages came one by one into a dict that is emptied when it has so many keys."""
    expected, ends, last = [], [], {}
    for at, key in enumerate(keys):
        last[key] = at
        if len(last) == most:
            expected += last.values()
            ends.append(at + 1)
            last = {}
    expected += last.values()

    found, mask = flushes(np.array(keys, np.int64), most)

    assert found == ends
    assert np.flatnonzero(mask).tolist() == sorted(expected)


def changes(numbers: range, keys: int, topics: str | list[str] = "t") -> Messages:
    """Changes with these numbers as values, over so many keys."""
    return Messages(
        topics,
        octets([b"%d" % (number % keys) for number in numbers]),
        octets([b"%d" % number for number in numbers]),
    )


def test_keys_that_are_held_are_no_objects_of_python() -> None:
    """A hundred thousand keys are a few columns, whose memory is that of their bytes."""
    held = NewestChanges(1_000_000)
    batches = [changes(range(at, at + 1_000), 100_000) for at in range(0, 100_000, 1_000)]
    before = sys.getallocatedblocks()
    for batch in batches:
        assert list(held.add(batch)) == []
    grown = sys.getallocatedblocks() - before

    assert grown < 5_000
    (drained,) = held.drain()
    assert len(drained) == 100_000


@pytest.mark.parametrize("keys", [1, 999, 100_000])
def test_what_is_overwritten_is_dropped_before_much_has_come(keys: int) -> None:
    """However many changes come, at most about twice the keys are held, or a first look's worth."""
    held = NewestChanges(1_000_000)
    most = 0
    for at in range(0, 400_000, 20_000):
        assert list(held.add(changes(range(at, at + 20_000), keys))) == []
        most = max(most, held._count)

    assert most <= max(2 * keys, keys + keyed_buffer._FIRST_LOOK)


def test_each_message_is_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the buffer is all but full, and each batch brings almost nothing but keys that it has."""
    seen = 0
    numbered = keyed_buffer._numbered

    def counted(parts):
        nonlocal seen
        seen += sum(map(len, parts))
        return numbered(parts)

    monkeypatch.setattr(keyed_buffer, "_numbered", counted)
    held = NewestChanges(10_000)
    for at in range(0, 300_000, 1_000):
        assert list(held.add(changes(range(at, at + 1_000), 9_999))) == []

    assert seen <= 3 * 300_000


def test_the_same_key_in_two_topics_is_two_changes() -> None:
    """With topics of their own, messages are distinguished by both."""
    held = NewestChanges(100)
    assert list(held.add(changes(range(4), 1, ["t", "u", "u", "t"]))) == []
    assert list(held.add(changes(range(4, 6), 1, "u"))) == []

    (drained,) = held.drain()

    assert [(topic, value) for topic, _, value, *_ in drained.rows()] == [("t", b"3"), ("u", b"5")]


def test_it_knows_how_many_messages_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come at once: it looks for what is overwritten when as many have come again."""
    looked_at: list[int] = []
    flushes = keyed_buffer.flushes
    monkeypatch.setattr(
        keyed_buffer,
        "flushes",
        lambda keys, most: looked_at.append(len(keys)) or flushes(keys, most),
    )
    held = NewestChanges(1_000_000)
    assert list(held.add(changes(range(120_000), 120_000))) == []
    assert held._count == 120_000
    assert looked_at == [50_000, 100_000]
    assert list(held.add(changes(range(120_000), 120_000))) == []

    assert sum(map(len, held._parts)) == held._count


def test_messages_of_one_topic_and_then_of_another_are_told_apart() -> None:
    """Each part has one topic for all of its messages."""
    held = NewestChanges(100)
    for at, topic in enumerate(["t", "u", "t"]):
        assert list(held.add(changes(range(at, at + 1), 1, topic))) == []

    (drained,) = held.drain()

    assert [(topic, value) for topic, _, value, *_ in drained.rows()] == [("u", b"1"), ("t", b"2")]


@pytest.mark.parametrize(("keys", "given"), [(4, 0), (5, 5), (6, 6), (10, 10)])
def test_when_its_bytes_are_full_it_keeps_what_is_less_than_half(keys: int, given: int) -> None:
    """Else it would look again and again for what is overwritten, and find little."""
    held = NewestChanges(1_000, 100)
    of_ten_bytes = Messages(
        "t", octets([b"%d" % (number % keys) for number in range(10)]), octets([b"x" * 9] * 10)
    )

    assert sum(map(len, held.add(of_ten_bytes))) == given
    assert sum(map(len, held.drain())) == (0 if given else keys)
