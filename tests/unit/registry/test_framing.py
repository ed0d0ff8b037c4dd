"""Any format can be framed: here one whose schema is the name of its only column, and whose messages are text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Records, RecordType
from pyspark_upsert_kafka.formats.decoding import RowPath
from pyspark_upsert_kafka.formats.registry_format import (
    RegisteredSchema,
    RegistryFormat,
    SchemaDecoder,
    SchemaEncoder,
    UnknownSchemaError,
)
from pyspark_upsert_kafka.registry.framing import REGISTRY, decoder_by_id, id_bytes
from tests.unit.formats.json.codecs import batch
from tests.unit.formats.listed import Listed, good_rows
from tests.unit.registry.fake_registry import FakeRegistry

NAME = StructType([StructField("name", StringType())])
INDEXES = b"\0"
"""A format may put bytes of its own behind the prefix, as Protobuf's message indexes."""


def text_decoder(spec: CodecSpec, given: RegisteredSchema | None) -> SchemaDecoder:
    """Refuses, while planning, a given schema that is no column; and later one that the writer had."""
    known(given.text if given else spec.schema.names[0], spec)

    def of_schema(writer: RegisteredSchema, prefix_length: int) -> Decoder:
        known(writer.text, spec)
        start = prefix_length + len(INDEXES)
        return RowPath(lambda message: (message[start:].decode(),), arrow_schema(spec.schema))

    return of_schema


def known(schema: str, spec: CodecSpec) -> None:
    """Refuses a schema that is no column."""
    if schema not in spec.schema.names:
        raise SchemaError(f"no column {schema}")


@dataclass(frozen=True)
class TextEncoder:
    """Writes the prefix and the text."""

    prefix: bytes

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One message a row."""
        messages = [self.prefix + text.encode() for text in rows.column(0).to_pylist()]
        return pa.array(messages, pa.large_binary())


def text_encoder(spec: CodecSpec, given: RegisteredSchema | None) -> SchemaEncoder:
    """Refuses a given schema that is no column."""
    schema = given.text if given else spec.schema.names[0]
    known(schema, spec)
    return SchemaEncoder(schema, TextEncoder, after_id=INDEXES)


def text_columns(schema: RegisteredSchema, _: CodecSpec, only: str | None) -> StructType:
    """The schema is the name; the only column of a key has a name already."""
    return StructType([StructField(only or schema.text, StringType())])


def text_records(schema: RegisteredSchema) -> Records:
    """The schema is the name of the only record type."""
    return Records((RecordType(schema.text),))


FORMAT = REGISTRY.completed(
    RegistryFormat(
        "text-registry", "TEXT", "a text", text_decoder, text_encoder, text_columns, text_records
    )
)


def spec(registry: FakeRegistry, columns: StructType = NAME, **given: Any) -> CodecSpec:
    """The value of the topic ``orders``."""
    prefix = "value.text-registry."
    texts = {f"{prefix}{name}": text for name, text in {"url": registry.url, **given}.items()}
    options = {option.name: option.read(texts, prefix) for option in FORMAT.options}
    return CodecSpec(columns, "value", options, ("orders",))


def test_messages_are_framed(registry):
    """The prefix names the id of the schema, which is registered with its type when a row is written."""
    registry.answers["/subjects/orders-value/versions"] = [(200, {"id": 7})]
    registry.schema(7, "name", schemaType="TEXT")
    encoder, decoder = Listed(FORMAT.encoder(spec(registry))), FORMAT.decoder(spec(registry))
    assert registry.asked == []

    messages = encoder.encode(batch(NAME, ("a",), ("b",)))

    assert messages == [b"\0\0\0\0\7\0a", b"\0\0\0\0\7\0b"]
    assert registry.asked[0].body == {"schema": "name", "schemaType": "TEXT"}
    assert decoder.decode(messages).rows.to_pylist() == [{"name": "a"}, {"name": "b"}]


def test_a_schema_that_does_not_fit(registry):
    """A given one is refused while planning; a writer's is the fault of its messages alone."""
    for compiled in (FORMAT.decoder, FORMAT.encoder):
        with pytest.raises(SchemaError, match="no column other"):
            compiled(spec(registry, schema="other"))
    registry.schema(1, "name", schemaType="TEXT")
    registry.schema(2, "other", schemaType="TEXT")

    decoded = FORMAT.decoder(spec(registry)).decode([b"\0\0\0\0\2\0a", b"\0\0\0\0\1\0b"])

    assert good_rows(decoded).to_pylist() == [{"name": "b"}]
    assert decoded.errors == {0: "no column other"}


@pytest.mark.parametrize(
    ("given", "only", "expected"),
    [({}, None, "newest"), ({"schema": "given"}, None, "given"), ({}, "id", "id")],
)
def test_columns_of_a_schema(registry, given, only, expected):
    """They are those of the given schema, or else of the newest; nothing is asked for a given one."""
    registry.version("orders-value", "latest", "newest", schemaType="TEXT")

    found = FORMAT.columns(spec(registry, StructType(), **given), only)

    assert found.names == [expected]
    assert len(registry.asked) == (0 if given else 1)


def test_options_have_the_name_of_the_format():
    """Errors name them with it."""
    with pytest.raises(OptionError, match=r"value\.text-registry\.url"):
        FORMAT.decoder(CodecSpec(NAME, "value", {option.name: None for option in FORMAT.options}))


def test_a_schema_that_is_registered_after_a_message_named_it():
    """It is asked for again by the same decoder; what is wrong with a schema stays wrong, and is not compiled again."""
    asked: list[int] = []

    def of_id(schema_id: int) -> Decoder:
        asked.append(schema_id)
        if schema_id == 2:
            raise SchemaError("no column x")
        if asked.count(schema_id) < 3:
            raise UnknownSchemaError("not there")
        return RowPath(lambda message: (message[5:].decode(),), arrow_schema(NAME))

    decoder = decoder_by_id(of_id, arrow_schema(NAME))
    messages = [id_bytes(1) + b"one", id_bytes(2) + b"two"]

    for _ in range(2):
        assert decoder.decode(messages).errors == {0: "not there", 1: "no column x"}
    found = decoder.decode(messages)

    assert good_rows(found).to_pylist() == [{"name": "one"}]
    assert found.errors == {1: "no column x"}
    assert asked.count(2) == 1
