"""The keyed buffer's columns against a dict: topics of their own, NULL and empty keys, timestamps, headers, and few bytes."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.writing import keyed_buffer
from pyspark_upsert_kafka.connector.writing.keyed_buffer import NewestChanges
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, Row, octets
from tests.laws import law

ROWS = st.tuples(
    st.sampled_from(["t", "u", "v"]),
    st.sampled_from([None, b"", b"\0", b"a", b"a\0", b"\xff"]),
    st.sampled_from([None, b"", b"v", b"w" * 10]),
    st.integers(0, 3),
    st.sampled_from([None, [], [("h", None)], [("h", b"x"), ("h", b"")]]),
)


@st.composite
def batches(draw: st.DrawFn) -> Messages:
    """Messages whose columns may be parts of longer ones."""
    rows: list[Any] = draw(st.lists(ROWS, max_size=12))
    before = draw(st.integers(0, 2))
    return Messages(
        draw(st.sampled_from(["t", "u", [row[0] for row in rows]])),
        octets([b"z"] * before + [row[1] for row in rows])[before:],
        octets([None] * before + [row[2] for row in rows])[before:],
        draw(st.sampled_from([None, [row[3] for row in rows]])),
        draw(st.sampled_from([None, [row[4] for row in rows]])),
    )


def rows_of(messages: Messages) -> list[Row]:
    """The messages; none is the same as no headers."""
    return [(*row[:4], [*row[4]] if row[4] else None) for row in messages.rows()]


def last_of_each(rows: list[Row]) -> dict[Any, Row]:
    """The last message of each topic and key."""
    return {row[:2]: row for row in rows}


@pytest.mark.parametrize("held", [10, 40, 1 << 40])
@pytest.mark.parametrize("first_look", [1, 3, 50_000])
def test_what_is_given_is_what_a_dict_would_give(
    held: int, first_look: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last change of each key comes, none twice or out of order, and nothing is left in an interval's flush."""
    monkeypatch.setattr(keyed_buffer, "_FIRST_LOOK", first_look)

    @law(60, few=10)
    @given(st.lists(st.tuples(batches(), st.booleans()), max_size=8), st.integers(1, 6))
    def holds(given_: list[tuple[Messages, bool]], most: int) -> None:
        buffer, sent, flushed = NewestChanges(most, held), [], []
        for messages, is_interval_over in given_:
            sent += rows_of(messages)
            flushed += map(rows_of, buffer.add(messages))
            if is_interval_over:
                flushed += map(rows_of, buffer.drain())
                assert last_of_each([*chain(*flushed)]) == last_of_each(sent)
        flushed += map(rows_of, buffer.drain())

        assert last_of_each([*chain(*flushed)]) == last_of_each(sent)
        assert list(buffer.drain()) == []
        for rows in flushed:
            assert len(rows) == len(last_of_each(rows)) <= (most if held == 1 << 40 else len(rows))
        assert is_in_order([*chain(*flushed)], sent)

    holds()


def is_in_order(given_: list[Row], sent: list[Row]) -> bool:
    """Whether the changes of each key are some of those that were sent, in their order."""
    left: dict[Any, Any] = defaultdict(list)
    for row in sent:
        left[row[:2]].append(row)
    left = {key: iter(rows) for key, rows in left.items()}
    return all(row in left[row[:2]] for row in given_)
