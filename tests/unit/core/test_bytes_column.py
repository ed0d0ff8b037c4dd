"""Keys or values as a column, which is a list to whoever reads them one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.bytes_column import (
    BytesColumn,
    column_of,
    lines_of,
    offsets_of,
    some_of,
    total_size,
)

VALUES = st.lists(st.none() | st.binary(max_size=3), max_size=20)
MESSAGES = st.lists(st.binary(max_size=3), max_size=20)


@given(VALUES, st.integers(0, 20), st.integers(0, 20))
def test_it_is_what_a_list_is(values: list[bytes | None], begin: int, end: int) -> None:
    """Its elements, its parts and their number, null and empty ones too."""
    column = BytesColumn.of(values)

    assert list(column) == values
    assert [column[at] for at in range(len(column))] == values
    assert list(column[begin:end]) == values[begin:end]
    assert column[begin:end].nulls == values[begin:end].count(None)
    assert column[begin:end].size == sum(len(value or b"") for value in values[begin:end])


@given(VALUES, VALUES, st.data())
def test_parts_are_joined_and_chosen(
    first: list[bytes | None], second: list[bytes | None], data: st.DataObject
) -> None:
    """In their order."""
    whole = BytesColumn.joined([BytesColumn.of(first), BytesColumn.of(second)])
    mask = data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole)))
    chosen = [value for value, kept in zip(first + second, mask, strict=True) if kept]

    assert whole == first + second
    assert whole.where(mask) == chosen
    assert whole.take([at for at, kept in enumerate(mask) if kept]) == chosen


@given(MESSAGES, st.integers(0, 20))
def test_messages_are_the_same_as_a_list_and_as_a_column(messages: list[bytes], cut: int) -> None:
    """Whichever a format is given."""
    listed, column = messages[cut:], BytesColumn.of(messages)[cut:]

    assert column_of(listed).equals(column_of(column))
    assert column_of(column).type == pa.large_binary()
    assert total_size(listed) == total_size(column)
    assert lines_of(listed) == lines_of(column) == b"".join(each + b"\n" for each in listed)
    assert list(some_of(listed, [*range(len(listed))])) == list(
        some_of(column, [*range(len(listed))])
    )


def test_some_of_a_column_are_a_column() -> None:
    """Only of a list they are a list: Arrow takes them out faster than Python."""
    column = BytesColumn.of([b"a", b"b", b"c"])

    assert isinstance(some_of(column, [2, 0]), BytesColumn)
    assert some_of(column, [2, 0]) == some_of([b"a", b"b", b"c"], [2, 0]) == [b"c", b"a"]


def test_where_values_begin_and_end() -> None:
    """One place more than there are values, also of none and within a longer column."""
    column = BytesColumn.of([b"a", None, b"bc", b""]).column

    assert offsets_of(column).tolist() == [0, 1, 1, 3, 3]
    assert offsets_of(column[2:3]).tolist() == [1, 3]
    assert offsets_of(column[4:]).tolist() == [0]


def test_another_column_is_not_equal() -> None:
    """Nor is what is no sequence."""
    assert BytesColumn.of([b"a"]) != BytesColumn.of([None])
    assert BytesColumn.of([]) != 0
    with pytest.raises(TypeError):
        hash(BytesColumn.of([]))
