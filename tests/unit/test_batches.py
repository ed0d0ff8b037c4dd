"""How a batch is read: the fast way as far as it goes, the exact way for what it refuses."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from pyspark_upsert_kafka.formats.batches import (
    UnreadableError,
    batch_of,
    decode_in_pieces,
    exact_decoder,
)
from pyspark_upsert_kafka.formats.codec import Decoder

SCHEMA = pa.schema([("n", pa.int64())])


class Fast:
    """Reads numbers all at once, but refuses a batch that holds anything else; counts its work."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, messages: Sequence[bytes]) -> pa.RecordBatch | None:
        """Rows, or None."""
        self.seen += len(messages)
        if not all(message.isdigit() for message in messages):
            return None
        return pa.RecordBatch.from_arrays([pa.array(map(int, messages), pa.int64())], schema=SCHEMA)


def exact(skip_bad: bool = False) -> tuple[Decoder, list[int]]:
    """Reads number by number, a sign too; and how many messages each call had."""
    sizes: list[int] = []

    def row_of(message: bytes) -> list[int]:
        try:
            return [int(message)]
        except ValueError:
            raise UnreadableError(f"no number: {message!r}") from None

    read = exact_decoder(row_of, SCHEMA, skip_bad=skip_bad)

    def decode(messages: Sequence[bytes]):
        sizes.append(len(messages))
        return read(messages)

    return decode, sizes


def numbers(count: int, **odd: bytes) -> list[bytes]:
    """The numbers from 0, some of them replaced: ``at_7=b"x"``."""
    messages = [b"%d" % i for i in range(count)]
    for name, message in odd.items():
        messages[int(name.removeprefix("at_"))] = message
    return messages


def test_a_good_batch_needs_no_exact_way():
    """What the fast way takes is read once."""
    fast, (read, sizes) = Fast(), exact()
    decoded = decode_in_pieces(numbers(10_000), fast, read)
    assert decoded.rows.column(0).to_pylist() == list(range(10_000))
    assert (fast.seen, sizes) == (10_000, [])


@pytest.mark.parametrize("at", [0, 49_999, 99_999])
def test_one_odd_message_costs_little(at):
    """One odd message among 100,000 costs one more batch and a few hundred by the exact way."""
    fast, (read, sizes) = Fast(), exact()
    decoded = decode_in_pieces(numbers(100_000, **{f"at_{at}": b"-1"}), fast, read)
    assert decoded.rows.column(0).to_pylist()[at] == -1
    assert decoded.rows.num_rows == 100_000
    assert not decoded.errors
    assert fast.seen < 2.2 * 100_000
    assert sum(sizes) <= 256


def test_nothing_but_odd_messages():
    """When every message is odd, the fast way is tried three times and no more."""
    fast, (read, sizes) = Fast(), exact()
    decode_in_pieces([b"-1"] * 100_000, fast, read)
    assert fast.seen <= 4 * 100_000
    assert sum(sizes) == 100_000


def test_errors_keep_their_places():
    """Indexes of errors and of skipped messages are those of the whole batch."""
    messages = numbers(5_000, at_0=b"a", at_3000=b"b", at_4999=b"c")
    decoded = decode_in_pieces(messages, Fast(), exact()[0])
    assert dict(decoded.errors) == {
        0: "no number: b'a'", 3000: "no number: b'b'", 4999: "no number: b'c'",
    }  # fmt: skip
    good = [i for i in range(5_000) if i not in decoded.errors]
    assert decoded.rows.column(0).to_pylist() == good
    skipping = decode_in_pieces(messages, Fast(), exact(skip_bad=True)[0])
    assert skipping.skipped == {0, 3000, 4999}
    assert not skipping.errors
    assert skipping.rows.equals(decoded.rows)


def test_few_messages_go_the_exact_way():
    """A handful of messages is cheaper without the vectorised parser."""
    fast, (read, sizes) = Fast(), exact()
    assert decode_in_pieces(numbers(3), fast, read).rows.num_rows == 3
    assert (fast.seen, sizes) == (0, [3])
    assert decode_in_pieces([], fast, read).rows.schema == SCHEMA


def test_rows_without_columns_are_counted():
    """A batch without columns keeps its number of rows."""
    empty = pa.schema([])
    assert batch_of([], empty, 3).num_rows == 3
    read = exact_decoder(lambda _: [], empty)
    fast = lambda messages: None if b"x" in messages else batch_of([], empty, len(messages))  # noqa: E731
    assert decode_in_pieces([b"1"] * 500 + [b"x"], fast, read).rows.num_rows == 501
