"""What binary formats share: numbers of variable length, slices of many messages, parts of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.formats.binary_values import (
    TOO_LONG,
    MessageBuffer,
    among,
    constant,
    fixed,
    grouped,
    joined,
    only,
    unzigzag,
    varint,
    varints,
    zigzag,
)
from tests.laws import law, pinned

SIZES = st.integers(0, 63).flatmap(lambda bits: st.integers(0, 2 ** (bits + 1) - 1))
"""Unsigned numbers, as many of every size."""


def buffer_of(*messages: bytes) -> tuple[MessageBuffer, np.ndarray, np.ndarray]:
    """Messages, and where each of them starts and ends."""
    buffer = MessageBuffer.of(messages)
    return buffer, buffer.bounds[:-1], buffer.bounds[1:]


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (150, b"\x96\x01"), (300, b"\xac\x02")],
)
def test_a_number_of_variable_length(value, data):
    """The examples of https://protobuf.dev/programming-guides/encoding, and the bounds of a byte."""
    assert varint(value) == data


@pinned(
    "values",
    [
        [],
        [0],
        [127, 128, 0],
        [2**14 - 1, 2**14],
        [2**63, 2**64 - 1, 1],
        [2**35 - 1, 2**35, 2**56, 2**63 - 1],
    ],
)
@law(200)
@given(values=st.lists(SIZES))
def test_many_numbers_are_written_as_each_is_alone(values):
    """Whichever numbers stand beside it."""
    part = varints(np.array(values, np.uint64))
    assert joined([part], len(values)).to_pylist() == [varint(value) for value in values]


@pinned(
    "values",
    [
        [],
        [0],
        [127, 128, 0],
        [2**14 - 1, 2**14],
        [2**63, 2**64 - 1, 1],
        [2**35 - 1, 2**35, 2**56, 2**63 - 1],
    ],
)
@law(200)
@given(values=st.lists(SIZES))
def test_numbers_that_are_written_are_read(values):
    """To their last byte, of which there may be ten."""
    buffer, starts, ends = buffer_of(*map(varint, values))
    read, sizes = buffer.varints(starts)
    assert read.tolist() == values
    assert (starts + sizes).tolist() == ends.tolist()


@pytest.mark.parametrize("data", [b"\xff" * 9 + b"\x02", b"\xff" * 11, b"\x80" * 10])
def test_numbers_that_are_too_long(data):
    """More than 64 bits, or no end within ten bytes; the number before is read all the same."""
    buffer, starts, _ = buffer_of(b"\xff" * 9 + b"\x01", data)
    read, sizes = buffer.varints(starts)
    assert (int(read[0]), sizes.tolist()) == (2**64 - 1, [10, TOO_LONG])


@pytest.mark.parametrize(
    ("value", "code"),
    [(0, 0), (-1, 1), (1, 2), (-2, 3), (2**63 - 1, 2**64 - 2), (-(2**63), 2**64 - 1)],
)
def test_zigzag(value, code):
    """The examples of https://protobuf.dev/programming-guides/encoding."""
    assert zigzag(np.array([value])).tolist() == [code]
    assert unzigzag(np.array([code], np.uint64)).tolist() == [value]


@pytest.mark.parametrize("bits", [32, 64])
def test_zigzag_in_other_sizes(bits):
    """A code of so many bits is a number of as many."""
    signed = unzigzag(np.array([0, 2**bits - 1, 2**bits - 2], f"u{bits // 8}"))
    assert signed.dtype == f"i{bits // 8}"
    assert signed.tolist() == [0, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1]


@pinned(
    "parts",
    [[], [(b"", b"", b"")], [(b"", b"a", b"")] * 2, [(b"x", b"", b"y"), (b"", b"abc", b"z")]],
)
@law(200)
@given(
    parts=st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=5), st.binary(max_size=3)))
)
def test_slices(parts):
    """Bytes come out as they stand in their messages, whatever is between them."""
    buffer, starts, ends = buffer_of(*map(b"".join, parts))
    before, within, behind = (
        np.array([len(part[i]) for part in parts], np.int64) for i in range(3)
    )
    slices = buffer.slices(starts + before, ends - behind)
    assert slices.to_pylist() == [part[1] for part in parts]
    assert (ends - starts).tolist() == (before + within + behind).tolist()


def test_texts():
    """What is not UTF-8 is wrong and empty, and its neighbours are as they were."""
    buffer, starts, ends = buffer_of(b"one", b"\xff", "zwölf".encode(), b"")
    column, wrong = buffer.texts(starts, ends)
    assert column.to_pylist() == ["one", "", "zwölf", ""]
    assert wrong.tolist() == [False, True, False, False]


def test_pieces_are_joined_row_by_row():
    """Numbers, texts and constants side by side; NULL is no bytes."""
    parts = [
        constant(b"<", 2),
        varints(np.array([1, 300])),
        pa.array([b"a", None], pa.large_binary()),
        fixed(np.array([1, 2], "<u2")),
    ]
    assert joined(parts, 2).to_pylist() == [b"<\x01a\x01\x00", b"<\xac\x02\x02\x00"]
    assert joined([], 2).to_pylist() == [b"", b""]


def test_rows_may_have_more_than_two_gibibytes():
    """Bytes are counted in 64 bits, in every part that is made of others."""
    part = joined([constant(b"x", 3)], 3)
    assert {part.type, grouped(part, np.array([1, 2])).type} == {pa.large_binary()}


def test_rows_that_are_not_present():
    """They have no bytes: of a part with all rows, and of one with those alone that are present."""
    present = np.array([False, True, True, False])
    parts = [
        only(varints(np.array([1, 2, 300, 4])), present),
        among(varints(np.array([5, 600])), present),
        among(pa.array([b"a", b"b"], pa.large_binary()), present),
    ]
    assert joined(parts, 4).to_pylist() == [b"", b"\x02\x05a", b"\xac\x02\xd8\x04b", b""]


@law(200)
@given(texts=st.lists(st.binary(max_size=3)), start=st.integers(0, 3), data=st.data())
def test_rows_grouped(texts, start, data):
    """Rows become one where they stand, in a part of an array too."""
    rows = texts[start:]
    counts = data.draw(st.lists(st.integers(0, 2), max_size=len(rows) // 2))
    part = pa.array(texts, pa.large_binary()).slice(start)

    groups = grouped(part, np.array(counts, np.int64)).to_pylist()

    ends = np.cumsum(counts, dtype=np.int64).tolist()
    assert groups == [b"".join(rows[e - n : e]) for e, n in zip(ends, counts, strict=True)]
