"""The bytes that say which message of a file follows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.protobuf.proto_schema import (
    decoded_indexes,
    encoded_indexes,
    indexes_part,
)

INDEXES = st.lists(st.integers(0, 2**31), min_size=1, max_size=4).map(tuple)


@pytest.mark.parametrize(
    ("indexes", "expected"),
    [
        ((0,), b"\x00"),
        ((1,), b"\x02\x02"),
        ((1, 0), b"\x04\x02\x00"),
        ((2, 1, 3), b"\x06\x04\x02\x06"),
        ((64,), b"\x02\x80\x01"),
    ],
)
def test_the_bytes(indexes, expected):
    """As Confluent's ``MessageIndexes`` writes them: a count and the indexes, and one zero for the first message."""
    assert encoded_indexes(indexes) == expected
    assert decoded_indexes(expected, 0) == indexes


def test_the_first_message_written_in_full():
    """A writer need not know the short form."""
    assert decoded_indexes(b"\x02\x00", 0) == (0,)


@given(indexes=INDEXES, rest=st.binary(max_size=4), before=st.binary(max_size=4))
def test_where_they_end(indexes, rest, before):
    """They are found among other bytes, and are what was written."""
    whole = before + encoded_indexes(indexes)

    assert indexes_part(whole + rest, len(before)) == whole
    assert decoded_indexes(whole, len(before)) == indexes


@given(INDEXES, INDEXES)
def test_none_begins_another(one, other):
    """So messages that begin with the bytes of one have that one."""
    assert one == other or not encoded_indexes(one).startswith(encoded_indexes(other))


@pytest.mark.parametrize(
    "data", [b"", b"\x02", b"\x04\x02", b"\x80", b"\x01\x02", b"\x02\x01", b"\xff" * 20]
)
def test_what_is_none(data):
    """An end too early, a negative number, and one without an end; it is told by its bytes."""
    assert indexes_part(data, 0) in (data, b"\x02\x01")
    assert len(indexes_part(data + b"\xff" * 1000, 0)) <= 100
    with pytest.raises(SchemaError, match="no message indexes"):
        decoded_indexes(data, 0)


@pytest.mark.parametrize(
    "data", [b"\x82\x00\x02", b"\x02\x82\x00", b"\x80\x80\x00", b"\x04\x02\x80\x80\x00"]
)
def test_a_number_in_more_bytes_than_it_needs(data):
    """No writer has it, and each spelling of the same indexes would have a decoder compiled."""
    with pytest.raises(SchemaError, match="no message indexes"):
        decoded_indexes(data, 0)
