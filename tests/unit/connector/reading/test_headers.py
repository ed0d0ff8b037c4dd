"""Messages are chosen by their headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.reading.task_reading import with_headers
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

ORDER, INVOICE, TENANT = ("type", b"Order"), ("type", b"Invoice"), ("tenant", b"7")


def batch(*headers, bad=()):
    """Messages with these headers, at rising offsets."""
    count = len(headers)
    return RawBatch(
        "t", 0, BytesColumn.of([b"%d" % at for at in range(count)]), BytesColumn.of([None] * count),
        list(range(count)), headers=list(headers), bad_headers=dict.fromkeys(bad, "no UTF-8"),
    )  # fmt: skip


def chosen(*batches, wanted):
    """The offsets of the messages that are read, and which of them have headers that cannot be read."""
    kept = list(with_headers(batches, wanted))
    assert all(len(each) for each in kept), "an empty batch is a message for nothing"
    return [
        [f"{at}?" if index in each.bad_headers else at for index, at in enumerate(each.offsets)]
        for each in kept
    ]


@pytest.mark.parametrize(
    ("headers", "fits"),
    [
        ([ORDER], True),
        ([TENANT, ORDER], True),
        ([], False),
        ((), False),
        ([INVOICE], False),
        ([TENANT], False),
        ([("type", None)], False),
        ([("type", b"")], False),
        ([("Type", b"Order")], False),
        ([("type", b"Order ")], False),
        ([INVOICE, ORDER], True),
        ([ORDER, ("type", None)], True),
    ],
)
def test_a_message_has_the_header_with_the_value(headers, fits):
    """Exactly this name and value, in one of its headers; a header without a value has none."""
    assert chosen(batch(headers), wanted=(ORDER,)) == ([[0]] if fits else [])


def test_all_headers_are_needed():
    """A message that lacks one of them is skipped."""
    messages = batch([ORDER], [ORDER, TENANT], [TENANT], [TENANT, INVOICE, ORDER])

    assert chosen(messages, wanted=(ORDER, TENANT)) == [[1, 3]]


def test_headers_that_cannot_be_read_are_kept():
    """Nobody knows whether the message is wanted, so it is for ``error-handling.mode`` to say."""
    messages = batch([], (), [ORDER], [], bad=(1, 3))

    assert chosen(messages, wanted=(ORDER,)) == [["1?", 2, "3?"]]


def test_batches_are_passed_on_as_they_are_where_all_fits():
    """Nothing is copied; and without the option, headers need not be there."""
    messages = batch([ORDER], [ORDER])

    assert next(with_headers([messages], (ORDER,))) is messages
    assert next(with_headers([messages], ())) is messages


PAIRS = st.tuples(st.sampled_from("ab"), st.sampled_from([b"1", b"2", b"", None]))


@given(
    st.lists(st.lists(st.lists(PAIRS, max_size=3), max_size=5), max_size=3),
    st.sets(st.sampled_from([("a", b"1"), ("b", b"2")]), min_size=1),
)
def test_exactly_the_messages_with_all_headers_are_read(batches, wanted):
    """However messages are cut into batches, those and no others, in their order."""
    found = with_headers([batch(*each) for each in batches], tuple(wanted))
    expected = [headers for each in batches for headers in each if wanted <= set(headers)]

    assert [headers for each in found for headers in each.headers] == expected
