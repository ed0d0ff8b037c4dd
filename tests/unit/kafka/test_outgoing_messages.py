"""Messages as columns and as rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, octets

KEYS, VALUES = octets([b"a", None, b"c"]), octets([b"1", b"2", None])
HEADERS = [[("h", b"1")], None, []]


@st.composite
def messages(draw):
    """Messages, some with one topic for all, some without timestamps or headers."""
    count = draw(st.integers(0, 5))

    def column(of):
        return st.lists(of, min_size=count, max_size=count)

    texts = st.one_of(st.none(), st.binary(max_size=2))
    return Messages(
        draw(st.one_of(st.just("t"), column(st.sampled_from("tu")))),
        octets(draw(column(texts))),
        octets(draw(column(texts))),
        draw(st.one_of(st.none(), column(st.integers(0, 9)))),
        draw(st.one_of(st.none(), column(st.sampled_from(HEADERS)))),
    )


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        (
            ("t",),
            [("t", b"a", b"1", 0, None), ("t", None, b"2", 0, None), ("t", b"c", None, 0, None)],
        ),
        (
            (["t", "u", "t"], [7, 0, 8], HEADERS),
            [
                ("t", b"a", b"1", 7, HEADERS[0]),
                ("u", None, b"2", 0, HEADERS[1]),
                ("t", b"c", None, 8, HEADERS[2]),
            ],
        ),
    ],
)
def test_each_message_has_every_part(given, rows):
    """One topic counts for all; without timestamps it is now (0), without headers there are none."""
    topics, *more = given

    assert list(Messages(topics, KEYS, VALUES, *more).rows()) == rows


@given(messages=messages(), data=st.data())
def test_messages_are_filtered_as_their_rows_are(messages, data):
    """Every column keeps the same messages, in their order."""
    mask = data.draw(st.lists(st.booleans(), min_size=len(messages), max_size=len(messages)))

    expected = [row for row, kept in zip(messages.rows(), mask, strict=True) if kept]
    assert list(messages.filter(np.array(mask, bool)).rows()) == expected


@given(parts=st.lists(messages(), min_size=1, max_size=3))
def test_messages_are_joined_as_their_rows_are(parts):
    """One part after the other in every column, also where some have timestamps, headers or topics of their own."""
    assert list(Messages.joined(parts).rows()) == [row for part in parts for row in part.rows()]


@given(messages=messages(), begin=st.integers(0, 5), end=st.integers(0, 5))
def test_a_part_of_messages_is_a_part_of_their_rows(messages, begin, end):
    """Every column gives the same messages."""
    assert list(messages.part(begin, end).rows()) == list(messages.rows())[begin:end]
