"""How messages begin that name a version of a schema in AWS Glue, and what they may hold compressed: hostile ones are blamed alone."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, SchemaError
from pyspark_upsert_kafka.formats import decoded_size
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder, TooManyMessagesError
from pyspark_upsert_kafka.formats.decoding import RowPath, UnreadableError
from pyspark_upsert_kafka.registry import glue_framing
from pyspark_upsert_kafka.registry.glue_framing import decoder_by_version, header_of
from tests.unit.formats.json.codecs import batch, columns
from tests.unit.formats.listed import Listed, good_rows
from tests.unit.registry.glue_codecs import NAMES, side

TARGET = pa.schema([("id", pa.int64()), ("text", pa.string())])
ROW = columns(id=LongType(), name=StringType())
EACH = pytest.mark.parametrize("name", NAMES)


def decoder_of(version: UUID, prefix_length: int) -> Decoder:
    """Reads what is behind the prefix as text, and shows which version it was; from 90 on they are bad."""
    if version.int >= 90:
        raise SchemaError(f"no version {version.int}")

    def row(message: bytes) -> tuple[int, str]:
        if message.endswith(b"!"):
            raise UnreadableError("a bad one")
        return version.int, message[prefix_length:].decode("latin-1")

    return RowPath(row, TARGET)


DECODE = decoder_by_version(decoder_of, TARGET).decode


def message(version: int, text: str = "x") -> bytes:
    """A message of that version."""
    return header_of(UUID(int=version)) + text.encode()


def packed(version: int, text: str = "x") -> bytes:
    """The same, compressed."""
    return header_of(UUID(int=version), compressed=True) + zlib.compress(text.encode())


def rows(decoded: Decoded) -> list[tuple[int, str]]:
    """The rows as tuples."""
    assert decoded.rows.schema == TARGET
    return [tuple(row.values()) for row in good_rows(decoded).to_pylist()]


def test_versions_and_compressions_in_one_topic():
    """Each message says what it is; the order stays."""
    messages = [packed(1, "a"), message(2, "b"), message(1, "c"), packed(2, ""), packed(1, "e")]

    assert rows(DECODE(messages)) == [(1, "a"), (2, "b"), (1, "c"), (2, ""), (1, "e")]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"", r"does not begin with the byte 3, .* it begins with ''"),
        (message(1)[:17], "does not begin with the byte 3"),
        (b"\x02" + message(1)[1:], "does not begin with the byte 3"),
        (b"\x03\x01" + message(1)[2:], "does not begin with the byte 3"),
        (b"\0\0\0\0\x07abcdefghijklmnop", "does not begin with the byte 3"),
        (b'{"id": 1, "name": "a"}', r"it begins with '\{\"id\": 1, "),
        (message(90), "no version 90"),
        (packed(90), "no version 90"),
        (message(1, "!"), "a bad one"),
        (packed(1, "!"), "a bad one"),
        (packed(1)[:18], "has no end: the message is cut"),
        (packed(1, "abc" * 100)[:-1], "has no end: the message is cut"),
        (b"\x03\x05" + message(1, "abc")[2:], "is not compressed by zlib as it says: Error -3"),
        (packed(1, "abc")[:-1] + b"\0", "incorrect data check"),
        (header_of(UUID(int=1), compressed=True) + b"x\xbb\0\0\0\1", "zlib as it says: Error 2"),
    ],
)
@pytest.mark.parametrize("others", [[message(1, "a"), packed(1, "b")], [packed(1, "b")] * 2, []])
def test_a_bad_message_is_blamed_alone(bad, why, others):
    """Its neighbours are read, in their order."""
    messages = [*others[:1], bad, *others[1:]]

    decoded = DECODE(messages)

    assert rows(decoded) == [row for each in others for row in rows(DECODE([each]))]
    assert list(decoded.errors) == [len(others[:1])]
    assert re.search(why, decoded.errors[len(others[:1])])


def test_what_follows_the_compressed_bytes():
    """It is passed over, as by Java's clients."""
    assert rows(DECODE([packed(1, "a") + b"more"])) == [(1, "a")]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand bytes are held together, and two thousand of one message."""
    monkeypatch.setattr(decoded_size, "MAX_HELD_BYTES", 1_000)
    monkeypatch.setattr(decoded_size, "MAX_ROW_BYTES", 2_000)
    monkeypatch.setattr(glue_framing, "MAX_ROW_BYTES", 2_000)


@pytest.mark.usefixtures("small")
def test_a_bomb():
    """A message that becomes too large is bad alone, and is not inflated further; beside others it is asked for alone."""
    bomb = packed(1, "x" * 1_000_000)

    with pytest.raises(TooManyMessagesError) as raised:
        DECODE([packed(1, "a"), bomb, packed(1, "b")])
    assert raised.value.most == 1

    errors = DECODE([bomb]).errors
    assert list(errors) == [0]
    assert re.fullmatch("it is larger than 0 MiB when it is inflated, .*", errors[0])
    assert rows(DECODE([packed(1, "a" * 2_000)])) == [(1, "a" * 2_000)]
    assert list(DECODE([packed(1, "a" * 2_001)]).errors) == [0]


@pytest.mark.usefixtures("small")
def test_many_that_are_too_large_together():
    """So many are decoded at once as fit."""
    with pytest.raises(TooManyMessagesError) as raised:
        DECODE([packed(1, "a" * 100)] * 40)
    assert 5 <= raised.value.most <= 20
    assert len(rows(DECODE([packed(1, "a" * 100)] * raised.value.most))) == raised.value.most


MESSAGES = st.one_of(
    st.builds(message, st.sampled_from([1, 2, 90]), st.sampled_from(["a", "b", "!"])),
    st.builds(packed, st.sampled_from([1, 2, 90]), st.sampled_from(["a", "b", "!"])),
    st.binary(max_size=30).map(lambda tail: b"\x03\x05" + bytes(15) + b"\1" + tail),
    st.binary(max_size=20),
)


@example([])
@example([b"", packed(1), message(90), packed(2, "!"), packed(1)[:20], message(1), packed(90)])
@given(st.lists(MESSAGES, max_size=10))
def test_a_message_fares_as_it_would_alone(messages: Sequence[bytes]):
    """What becomes of a message does not depend on those around it."""
    alone = [DECODE([each]) for each in messages]

    together = DECODE(messages)

    assert rows(together) == [row for each in alone for row in rows(each)]
    assert dict(together.errors) == {
        at: each.errors[0] for at, each in enumerate(alone) if each.errors
    }


@EACH
def test_what_is_written_is_read(glue, name):
    """Compressed or not, whatever the reader's own option says; the version is asked for once."""
    kind = {"a": "AVRO", "j": "JSON", "p": "PROTOBUF"}[name[0]]
    version = UUID(int=7)
    messages = []
    for compression in ("NONE", "ZLIB"):
        glue.answers["GetSchemaByDefinition"] = [
            (200, {"SchemaVersionId": str(version), "Status": "AVAILABLE"})
        ]
        encoder = Listed(side(name, ROW, glue.url, compression=compression).encoder())
        messages += encoder.encode(batch(ROW, (1, "a"), (2, None)))
    asked = dict(glue.asked)["GetSchemaByDefinition"]
    assert asked["SchemaId"] == {"RegistryName": "default-registry", "SchemaName": "orders"}
    glue.schema(version, kind, asked["SchemaDefinition"])
    decoder = side(name, ROW, glue.url).decoder()

    for _ in range(2):
        decoded = decoder.decode(messages)
        expected = [{"id": 1, "name": "a"}, {"id": 2, "name": None}] * 2
        assert (decoded.rows.to_pylist(), decoded.errors) == (expected, {})
    assert glue.actions() == ["GetSchemaByDefinition", "GetSchemaVersion"]


@EACH
def test_a_version_of_another_kind(glue, name):
    """Its messages are bad, and say of what kind it is."""
    kind = "JSON" if name == "avro-glue" else "AVRO"
    glue.schema(7, kind, '"long"')

    [error] = side(name, ROW, glue.url).decoder().decode([message(7)]).errors.values()

    assert f"The schema version {UUID(int=7)} is of the type {kind}, not a" in error


def test_columns_and_their_newest_version(glue):
    """Columns are those of the newest version, which doctor asks for too."""
    text = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}'
    glue.schema(7, "AVRO", text)
    glue.answers["GetSchemaVersion"] = [(200, glue.versions[str(UUID(int=7))])]
    it = side("avro-glue", columns(), glue.url, registry_name="shop", schema_name="Order")

    assert it.format.columns(it.spec, None) == StructType([StructField("id", LongType(), False)])
    assert it.format.newest_schema(side("avro-glue", ROW, glue.url).spec) == "orders"
    assert glue.asked[0][1] == {
        "SchemaId": {"RegistryName": "shop", "SchemaName": "Order"},
        "SchemaVersionNumber": {"LatestVersion": True},
    }


def test_fields_of_compressed_messages():
    """For the warning about messages without any of the columns."""
    fields = format_named("json-glue", "value").fields
    assert fields is not None
    assert {*fields(packed(1, '{"a": 1}'))} == {*fields(message(1, '{"a": 1}'))} == {"a"}


def test_whose_schema_has_the_topics_name(glue):
    """A value's has it, and a key's where the value has no such registry; of both only one can."""
    for where in ({"of": "value"}, {"of": "key"}, {"of": "key", "beside": "json"}):
        side("avro-glue", ROW, glue.url, **where).encoder()
    with pytest.raises(OptionError, match=r"'key\.avro-glue\.schema\.name' is required: .*own\."):
        side("avro-glue", ROW, glue.url, of="key", beside="json-glue").encoder()
    side("avro-glue", ROW, glue.url, of="key", beside="json-glue", schema_name="k").encoder()
    side("avro-glue", ROW, glue.url, of="key", beside="json-glue").decoder()
    with pytest.raises(OptionError, match=r"'value\.avro-glue\.schema\.name' is required for more"):
        side("avro-glue", ROW, glue.url, topics=("a", "b")).encoder()
    assert glue.asked == []


def test_keys_are_not_compressed(glue):
    """Equal keys must be equal bytes; they are read, since others may have written them."""
    it = side("json-glue", ROW, glue.url, of="key", compression="ZLIB")
    with pytest.raises(OptionError, match=r"'key\.json-glue\.compression' = 'ZLIB' is for values"):
        it.encoder()
    glue.schema(1, "JSON", "{}")
    assert it.decoder().decode([packed(1, '{"id": 1}')]).rows.to_pylist() == [
        {"id": 1, "name": None}
    ]


def test_a_registry_that_is_away_is_no_fault_of_a_message(glue):
    """The query fails; when it goes on the version is asked for again."""
    glue.schema(1, "JSON", "{}")
    glue.answers["GetSchemaVersion"] = [(400, {"__type": "UnrecognizedClientException"})]
    decoder = side("json-glue", ROW, glue.url).decoder()
    with pytest.raises(BrokerError):
        decoder.decode([message(1, '{"id": 1}')])
    del glue.answers["GetSchemaVersion"]

    assert decoder.decode([message(1, '{"id": 1}')]).errors == {}
