"""Messages of several schemas in one batch: each is read by its own, and blamed alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.errors import BrokerError, SchemaError
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from pyspark_upsert_kafka.formats.decoding import RowPath, UnreadableError
from pyspark_upsert_kafka.formats.registry_format import UnknownSchemaError
from pyspark_upsert_kafka.registry.client import SchemaId
from pyspark_upsert_kafka.registry.framing import decoder_by_id, id_bytes
from tests.unit.formats.listed import good_rows

TARGET = pa.schema([("id", pa.int64()), ("text", pa.string())])


def decoder_of(schema_id: int) -> Decoder:
    """Reads what is behind the prefix as text, and shows which decoder it was; ids from 90 on are bad."""
    if schema_id >= 90:
        raise SchemaError(f"no schema {schema_id}")

    def row(message: bytes) -> tuple[int, str]:
        assert message.startswith(id_bytes(schema_id))
        if message.endswith(b"!"):
            raise UnreadableError("a bad one")
        return schema_id, message[5:].decode("latin-1")

    return RowPath(row, TARGET)


def rows(decoded: Decoded) -> list[tuple[int, str]]:
    """The rows as tuples."""
    assert decoded.rows.schema == TARGET
    return [tuple(row.values()) for row in good_rows(decoded).to_pylist()]


def message(schema_id: int, text: str = "x") -> bytes:
    """A message of that schema."""
    return id_bytes(schema_id) + text.encode()


def test_a_head():
    """A zero byte, and the id in four bytes, the highest first."""
    assert id_bytes(258) == b"\x00\x00\x00\x01\x02"


def test_messages_of_several_schemas_keep_their_order():
    """The rows stand as the messages did, whichever schema each has."""
    messages = [message(2, "a"), message(1, "b"), message(2, "c"), message(3, "d")]

    assert rows(decoder_by_id(decoder_of, TARGET).decode(messages)) == [
        (2, "a"), (1, "b"), (2, "c"), (3, "d"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"", r"does not begin with a zero byte .* it begins with ''"),
        (b"\x00\x00\x00\x00", "does not begin with a zero byte"),
        (b'{"id": 1}', r"it begins with '\{\"id\"'"),
        (b"\x01\x00\x00\x00\x01x", "does not begin with a zero byte"),
        (b"\x01" + bytes(15), "does not begin with a zero byte"),
        (b"\x02" + bytes(16), "does not begin with a zero byte"),
        (b"\x00\x80\x00\x00\x01x", "does not begin with a zero byte"),
        (message(90), "no schema 90"),
        (message(1, "!"), "a bad one"),
        (message(2, "!"), "a bad one"),
    ],
)
@pytest.mark.parametrize("others", [[message(1, "a"), message(1, "b")], []])
def test_a_bad_message_is_blamed_alone(bad, why, others):
    """Its neighbours are read, in their order."""
    messages = [*others[:1], bad, *others[1:]]

    decoded = decoder_by_id(decoder_of, TARGET).decode(messages)

    assert rows(decoded) == [(1, message[5:].decode()) for message in others]
    assert list(decoded.errors) == [len(others[:1])]
    assert re.search(why, decoded.errors[len(others[:1])])


def test_a_guid_names_a_schema_too():
    """Its 16 bytes stand behind a one; messages with ids and with GUIDs may lie side by side."""
    guid = UUID("89791762-2336-4186-9674-299b90a802e2")

    def of_either(schema_id: SchemaId) -> Decoder:
        length = len(id_bytes(schema_id))
        return RowPath(lambda message: (length, message[length:].decode()), TARGET)

    messages = [id_bytes(guid) + b"a", message(1, "b"), id_bytes(guid) + b""]

    assert id_bytes(guid) == b"\x01" + bytes.fromhex("89791762233641869674299b90a802e2")
    assert rows(decoder_by_id(of_either, TARGET).decode(messages)) == [
        (17, "a"),
        (5, "b"),
        (17, ""),
    ]


def test_nothing_at_all():
    """No messages are no rows."""
    assert rows(decoder_by_id(decoder_of, TARGET).decode([])) == []


def test_each_schema_is_compiled_once():
    """Batch after batch, also one that cannot be compiled."""
    compiled = []

    def counted(schema_id: int) -> Decoder:
        compiled.append(schema_id)
        return decoder_of(schema_id)

    decode = decoder_by_id(counted, TARGET).decode
    for _ in range(3):
        decode([message(1), message(90), message(2)])
        decode([message(1)])

    assert compiled == [1, 90, 2]


def test_a_registry_that_is_away_is_no_fault_of_a_message():
    """The error passes, and the schema is asked for again at the next batch."""
    answers = [BrokerError("away"), decoder_of(1)]

    def compile_decoder(schema_id: int) -> Decoder:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    decode = decoder_by_id(compile_decoder, TARGET).decode
    with pytest.raises(BrokerError, match="away"):
        decode([message(1)])

    assert rows(decode([message(1)])) == [(1, "x")]


def test_without_columns_each_message_is_a_row():
    """Rows are counted where there is nothing to show of them."""
    empty = pa.schema([])
    decode = decoder_by_id(lambda _: RowPath(lambda _: (), empty), empty).decode

    decoded = decode([message(1), b"?", message(2)])

    assert (decoded.rows.num_rows, list(decoded.errors)) == (3, [1])


MESSAGES = st.one_of(
    st.builds(message, st.sampled_from([1, 2, 3, 90]), st.sampled_from(["a", "b", "!"])),
    st.binary(max_size=6),
)


@example([])
@example(
    [
        b"",
        message(1),
        message(90),
        message(2, "!"),
        b"\0\0\0\0",
        b"\x01" + message(1),
        message(3),
        b"\0\x80\0\0\1x",
        message(1, "!"),
        message(1, ""),
        message(2),
    ]
)
@given(st.lists(MESSAGES, max_size=12))
def test_a_message_fares_as_it_would_alone(messages: Sequence[bytes]):
    """What becomes of a message does not depend on those around it."""
    decode = decoder_by_id(decoder_of, TARGET).decode
    alone = [decode([each]) for each in messages]

    together = decode(messages)

    assert rows(together) == [row for each in alone for row in rows(each)]
    assert dict(together.errors) == {
        at: each.errors[0] for at, each in enumerate(alone) if each.errors
    }


def test_what_is_kept_is_bounded():
    """A flood of ids that do not exist neither stays in memory nor makes the decoders of good ids be compiled anew."""
    compiled: list[int] = []

    def counted(schema_id: int) -> Decoder:
        compiled.append(schema_id)
        return decoder_of(schema_id)

    decoder = decoder_by_id(counted, TARGET)
    flood = [message(schema_id) for schema_id in range(90, 3_090)]

    for _ in range(2):
        assert len(decoder.decode([message(1), *flood]).errors) == 3_000
    assert compiled.count(1) == 1
    assert compiled.count(90) == 2


def test_an_id_of_eight_bytes():
    """Apicurio's serializers write one by default: it begins with an id 0, which the error explains."""

    def compile_decoder(schema_id):
        raise UnknownSchemaError(f"Schema id {schema_id} is not in the schema registry (x).")

    decode = decoder_by_id(compile_decoder, TARGET).decode
    errors = decode(
        [b"\0" + (7).to_bytes(8, "big") + b"a", message(7), b"\1" + bytes(16) + b"a"]
    ).errors
    assert errors[2].endswith("or else in front of the message")
    assert errors[0].startswith(
        "Schema id 0 is not in the schema registry (x); is it the beginning of an id of 8 bytes, as Apicurio"
    )
    assert errors[1] == "Schema id 7 is not in the schema registry (x)."
