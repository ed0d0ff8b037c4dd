"""How a batch is read: by the vectorised path as far as it goes, by the row path where it refuses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from pyspark_upsert_kafka.formats.batches import batch_of, with_others
from pyspark_upsert_kafka.formats.codec import Decoded
from pyspark_upsert_kafka.formats.decoding import (
    PathsDecoder,
    RowPath,
    UnreadableError,
    merge_by_position,
    replaced,
    without,
)

SCHEMA = pa.schema([("n", pa.int64())])


class Vectorised:
    """Reads numbers all at once, but refuses a batch that holds anything else; counts its work."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray] | None:
        """Rows, or None."""
        self.seen += len(messages)
        if not all(message.isdigit() for message in messages):
            return None
        return ints(*map(int, messages)), np.zeros(len(messages), np.bool_)


class Columns:
    """Reads numbers, and leaves whatever else there is; counts its work."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray]:
        """Rows, and which messages are left."""
        self.seen += len(messages)
        left = np.array([not message.isdigit() for message in messages])
        return ints(*(7 if bad else int(m) for m, bad in zip(messages, left, strict=True))), left


class CountedRowPath:
    """Reads number by number, a sign too; and notes how many messages each call had."""

    def __init__(self, *, skip_bad: bool = False) -> None:
        self.sizes: list[int] = []
        self._row_path = RowPath(row_of, SCHEMA, skip_bad=skip_bad)

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The numbers."""
        self.sizes.append(len(messages))
        return self._row_path.decode(messages)


def row_of(message: bytes) -> list[int]:
    """The row of one number."""
    try:
        return [int(message)]
    except ValueError:
        raise UnreadableError(f"no number: {message!r}") from None


def numbers(count: int, **replaced: bytes) -> list[bytes]:
    """The numbers from 0, some of them replaced: ``at_7=b"x"``."""
    messages = [b"%d" % i for i in range(count)]
    for name, message in replaced.items():
        messages[int(name.removeprefix("at_"))] = message
    return messages


def test_a_good_batch_needs_no_row_path():
    """What the vectorised path takes is read once."""
    vectorised, row_path = Vectorised(), CountedRowPath()
    decoded = PathsDecoder(vectorised, row_path).decode(numbers(10_000))
    assert decoded.rows.column(0).to_pylist() == list(range(10_000))
    assert (vectorised.seen, row_path.sizes) == (10_000, [])


@pytest.mark.parametrize("at", [0, 49_999, 99_999])
def test_one_refused_message_costs_little(at):
    """One message at which a batch of 100,000 is refused: an eighth is read by columns, and it alone by the row path."""
    vectorised, columns, row_path = Vectorised(), Columns(), CountedRowPath()
    decoded = PathsDecoder(vectorised, row_path, columns).decode(
        numbers(100_000, **{f"at_{at}": b"-1"})
    )
    assert decoded.rows.column(0).to_pylist()[at] == -1
    assert decoded.rows.num_rows == 100_000
    assert not decoded.errors
    assert vectorised.seen == 2 * 100_000
    assert columns.seen < 12_600
    assert row_path.sizes == [1]


@pytest.mark.parametrize("columns", [None, Columns()])
def test_nothing_but_refused_messages(columns):
    """When every message is refused, little is tried before the row path reads all, and less in the next batch."""
    vectorised, row_path = Vectorised(), CountedRowPath()
    decoder = PathsDecoder(vectorised, row_path, columns)
    decoder.decode([b"-1"] * 100_000)
    assert vectorised.seen == 125_000
    assert columns is None or columns.seen == 8 * 64
    assert sum(row_path.sizes) == 100_000
    decoder.decode([b"-1"] * 100_000)
    assert vectorised.seen == 125_064
    assert row_path.sizes[-1] == 100_000
    decoder.decode(numbers(100_000))
    assert sum(row_path.sizes) == 200_000


def test_the_longer_messages_are_refused_the_less_is_tried():
    """In batches of any size the tries cost next to nothing; once the messages are good, little is read by the row path."""
    vectorised, row_path = Vectorised(), CountedRowPath()
    decoder = PathsDecoder(vectorised, row_path)
    for _ in range(10_000):
        decoder.decode([b"-1"] * 100)
    tried = vectorised.seen
    assert 300 < tried < 64 * 30
    batches = 0
    while vectorised.seen < tried + 64 + 100:
        decoder.decode(numbers(100))
        batches += 1
    assert batches <= 656
    row_path.sizes.clear()
    decoder.decode(numbers(100))
    decoder.decode([b"-1"] * 100)
    decoder.decode(numbers(10_000))
    assert row_path.sizes == [64, 36]


def test_where_each_part_is_refused_the_others_are_read_by_columns():
    """One message of a thousand: after two parts the vectorised path is not tried on the next ones."""
    vectorised, columns, row_path = Vectorised(), Columns(), CountedRowPath()
    messages = [b"-1" if at % 1000 == 500 else b"%d" % at for at in range(8_000)]
    decoded = PathsDecoder(vectorised, row_path, columns).decode(messages)
    assert decoded.rows.column(0).to_pylist() == [*map(int, messages)]
    assert vectorised.seen == 8_000 + 2 * 1_000
    assert row_path.sizes == [1] * 8


def test_errors_keep_their_places():
    """Indexes of errors and of skipped messages are those of the whole batch."""
    messages = numbers(5_000, at_0=b"a", at_3000=b"b", at_4999=b"c")
    for columns in (None, Columns()):
        decoded = PathsDecoder(Vectorised(), CountedRowPath(), columns).decode(messages)
        assert dict(decoded.errors) == {
            0: "no number: b'a'", 3000: "no number: b'b'", 4999: "no number: b'c'",
        }  # fmt: skip
        every = [None if i in decoded.errors else i for i in range(5_000)]
        assert decoded.rows.column(0).to_pylist() == every
        row_path = CountedRowPath(skip_bad=True)
        skipping = PathsDecoder(Vectorised(), row_path, columns).decode(messages)
        assert skipping.skipped == {0, 3000, 4999}
        assert not skipping.errors
        assert skipping.rows.equals(decoded.rows)


def test_few_messages_take_the_row_path():
    """A handful of messages is cheaper without the vectorised parser."""
    vectorised, row_path = Vectorised(), CountedRowPath()
    decode = PathsDecoder(vectorised, row_path).decode
    assert decode(numbers(3)).rows.num_rows == 3
    assert (vectorised.seen, row_path.sizes) == (0, [3])
    assert decode([]).rows.schema == SCHEMA


def test_few_large_messages_take_the_vectorised_path_once():
    """What is parsed at once costs a tenth; where that is refused, they are not parsed in parts again."""
    vectorised, row_path = Vectorised(), CountedRowPath()
    decode = PathsDecoder(vectorised, row_path).decode
    large = [b"%04000d" % at for at in range(30)]
    assert decode(large).rows.column(0).to_pylist() == [*range(30)]
    assert (vectorised.seen, row_path.sizes) == (30, [])
    assert decode([*large, b"x"]).errors.keys() == {30}
    assert (vectorised.seen, row_path.sizes) == (61, [31])


def test_rows_without_columns_are_counted():
    """A batch without columns keeps its number of rows."""
    empty = pa.schema([])
    assert batch_of([], empty, 3).num_rows == 3
    row_path = RowPath(lambda _: [], empty)

    def vectorised(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray] | None:
        none = np.zeros(len(messages), np.bool_)
        return None if b"x" in messages else (batch_of([], empty, len(messages)), none)

    assert PathsDecoder(vectorised, row_path).decode([b"1"] * 500 + [b"x"]).rows.num_rows == 501


def test_parts_are_merged_by_position():
    """Rows, errors and skipped messages of parts come out as those of the whole, in its order."""
    merged = merge_by_position(
        [
            (np.array([1, 4]), Decoded(ints(10, 40))),
            (np.array([0, 2, 5]), Decoded(ints(0, None, 50), {1: "bad"})),
            (np.array([3]), Decoded(ints(None), skipped=frozenset({0}))),
        ]
    )

    assert merged.rows.equals(ints(0, 10, None, None, 40, 50))
    assert (dict(merged.errors), merged.skipped) == ({2: "bad"}, {3})


def test_results_of_some_messages_are_replaced():
    """Those of the others stay, in their places."""
    decoded = Decoded(ints(0, None, None, 3), {1: "bad"}, frozenset({2}))

    found = replaced(
        decoded, [1, 2, 3], Decoded(ints(10, None, None), {1: "worse"}, frozenset({2}))
    )

    assert found.rows.equals(ints(0, 10, None, None))
    assert (dict(found.errors), found.skipped) == ({2: "worse"}, {3})


@pytest.mark.parametrize("count", [70, 3_000])
def test_values_are_replaced_by_others(count):
    """Few of many, and most of them."""
    values, places = pa.array(range(count)), [0, 7, 8, count - 1]
    found = with_others(values, places, pa.array([-1, None, -2, -3]))

    expected = [*range(count)]
    expected[0], expected[7], expected[8], expected[-1] = -1, None, -2, -3
    assert found.to_pylist() == expected


@pytest.mark.parametrize("skip", [False, True])
def test_a_message_that_is_bad_after_all_has_no_row(skip):
    """NULL stands there, and why."""
    found = without(Decoded(ints(0, None, 2), {1: "bad"}), {2: "worse"}, skip=skip)

    assert found.rows.equals(ints(0, None, None))
    assert dict(found.errors) == ({1: "bad"} if skip else {1: "bad", 2: "worse"})
    assert found.skipped == ({2} if skip else frozenset())


def ints(*values: int | None) -> pa.RecordBatch:
    """Rows of numbers."""
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], schema=SCHEMA)
