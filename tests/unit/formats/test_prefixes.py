"""Messages of very many schemas."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.codec import Decoded
from pyspark_upsert_kafka.formats.prefixes import DecoderByPrefix
from pyspark_upsert_kafka.formats.registry_format import UnknownSchemaError
from pyspark_upsert_kafka.registry.framing import decoder_by_id
from pyspark_upsert_kafka.registry.glue_framing import decoder_by_version

TARGET = pa.schema([("schema", pa.int64()), ("value", pa.int64())])


class Reads:
    """Reads a number behind a prefix, as a decoder of that schema would."""

    def __init__(self, schema: int) -> None:
        self.schema = schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        found = [(self.schema, int(message[4:])) for message in messages]
        columns = [pa.array(column, pa.int64()) for column in zip(*found, strict=True)]
        return Decoded(pa.record_batch(columns, schema=TARGET), {})


def test_ten_thousand_schemas() -> None:
    """Each message is read by its own, in its place, and decoders are kept of a bounded number."""
    kept: weakref.WeakSet[Reads] = weakref.WeakSet()

    def compiled(prefix: bytes) -> Reads:
        reads = Reads(int.from_bytes(prefix, "big"))
        kept.add(reads)
        return reads

    decoder = DecoderByPrefix(lambda message: message[:4], compiled, TARGET)
    numbers = [(n * 7919) % 10_000 for n in range(20_000)]
    batches = [
        decoder.decode(
            BytesColumn.of(n.to_bytes(4, "big") + b"%d" % n for n in numbers[at:][:2_500])
        )
        for at in range(0, len(numbers), 2_500)
    ]

    rows = [tuple(row.values()) for batch in batches for row in batch.rows.to_pylist()]
    assert rows == [(n, n) for n in numbers]
    gc.collect()
    assert len(kept) <= 1_000


class Echo:
    """Gives each message back as text, with its prefix, but for those that end with an exclamation mark."""

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        whole = [*messages]
        bad = {
            at: f"bad: {message!r}" for at, message in enumerate(whole) if message.endswith(b"!")
        }
        columns = [[self.prefix] * len(whole), whole]
        rows = pa.record_batch([pa.array(each, pa.binary()) for each in columns], ["prefix", "all"])
        return Decoded(rows, bad)


def echo(prefix: bytes) -> Echo:
    """Refuses some prefixes: one kind for good, one for now."""
    if prefix.endswith(b"\xff"):
        raise UnknownSchemaError(f"{prefix!r} is not known")
    if not prefix or prefix[0] > 3:
        raise SchemaError(f"{prefix!r} is none")
    return Echo(prefix)


ECHOED = pa.schema([("prefix", pa.binary()), ("all", pa.binary())])
BYTES = st.sampled_from([b"\0", b"\1", b"\3", b"\5", b"\xff", b"!", b"a"])
MESSAGES = st.lists(
    st.one_of(
        st.lists(BYTES, max_size=25).map(b"".join),
        st.builds(lambda first, rest: first + bytes(15) + rest, BYTES, st.lists(BYTES, max_size=5).map(b"".join)),
    ),
    max_size=40,
)  # fmt: skip


@pytest.mark.parametrize(
    "framed",
    [
        decoder_by_id(lambda _: Echo(b""), ECHOED),
        decoder_by_version(lambda *_: Echo(b""), ECHOED),
    ],
    ids=["Confluent's ids and GUIDs", "versions of Glue"],
)
@given(messages=MESSAGES, begin=st.integers(0, 3))
def test_messages_are_grouped_at_once_as_one_by_one(
    framed: DecoderByPrefix, messages: list[bytes], begin: int
) -> None:
    """By both kinds of registries, in a column that is part of another: with equal rows and errors, and each message for itself."""
    one_by_one = DecoderByPrefix(framed._prefix_of, echo, ECHOED)
    at_once = DecoderByPrefix(framed._prefix_of, echo, ECHOED, framed._prefixes_of)
    column = BytesColumn.of([b"other"] * begin + messages)[begin:]
    found = at_once.decode(column)
    alone = [one_by_one.decode([message]) for message in messages]

    for expected in (one_by_one.decode(column), one_by_one.decode(messages)):
        assert found.rows.equals(expected.rows)
        assert (found.errors, found.skipped) == (expected.errors, expected.skipped)
    assert found.rows.to_pylist() == [row for each in alone for row in each.rows.to_pylist()]
    assert found.errors == {at: each.errors[0] for at, each in enumerate(alone) if each.errors}


def test_what_several_messages_begin_with_is_looked_up_first() -> None:
    """In the order of the messages, and then what only one begins with: that may be garbage."""
    asked: list[bytes] = []

    def compiled(prefix: bytes) -> Echo:
        asked.append(prefix)
        return Echo(prefix)

    messages = [b"c1", b"b1", b"d1", b"a1", b"b2", b"a2", b"a3"]
    for prefixes_of in (None, lambda column: pc.binary_slice(column, 0, 1)):
        del asked[:]
        decoder = DecoderByPrefix(lambda message: message[:1], compiled, ECHOED, prefixes_of)
        rows = decoder.decode(BytesColumn.of(messages)).rows
        assert rows.column("all").to_pylist() == messages
        assert asked == [b"b", b"a", b"c", b"d"]
