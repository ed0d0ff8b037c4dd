"""Kafka Connect's envelope in plain JSON: it is named, and no column is NULL because of it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.formats.json import FORMAT
from tests.unit.formats.json.codecs import columns, decoder, spec
from tests.unit.formats.listed import good_rows

ROW = columns(id=LongType(), name=StringType())
SCHEMA = '{"type":"struct","fields":[{"field":"id","type":"int64"}],"optional":false}'
WRAPPED = f'{{"schema":{SCHEMA},"payload":{{"id":1,"name":"a"}}}}'.encode()


@pytest.mark.parametrize(
    "message",
    [
        WRAPPED,
        WRAPPED.replace(b'"schema":', b' "schema" : '),
        b'{"payload":{"id":1},"schema":null}',
        b'{"schema":{"type":"string"},"payload":"1"}',
        b'{"schema":null,"payload":null}',
    ],
)
@pytest.mark.parametrize("copies", [1, 100])
def test_an_envelope_is_named(message: bytes, copies: int) -> None:
    """Whatever its schema, and whether messages are read one by one or many at once."""
    found = decoder(ROW).decode([message, b'{"id":2}'] * copies)

    assert good_rows(found).to_pylist() == [{"id": 2, "name": None}] * copies
    assert [*found.errors] == [*range(0, 2 * copies, 2)]
    assert "it is the envelope of Kafka Connect's JSON converter" in found.errors[0]
    assert "'value.converter.schemas.enable' = 'false'" in found.errors[0]
    assert "'value.debezium-json.schema-include' = 'true'" in found.errors[0]


def test_a_key_in_an_envelope_is_not_null() -> None:
    """The setting is that of keys."""
    key = columns(id=LongType())
    found = FORMAT.decoder(spec(key, "key")).decode([WRAPPED])

    assert "'key.converter.schemas.enable' = 'false'" in found.errors[0]


@pytest.mark.parametrize(
    "message",
    [
        b'{"schema":"public","payload":{"id":1}}',
        b'{"schema":{"type":"struct"},"payload":{},"id":1}',
        b'{"schema":{"type":"struct"}}',
        b'{"name":"\\"schema\\" \\"payload\\""}',
        b'{"payload":1}',
    ],
)
def test_other_messages_with_such_names_are_rows(message: bytes) -> None:
    """An envelope has these two fields, the first of which is a schema or null, and no other."""
    assert decoder(ROW).decode([message]).errors == {}


def test_columns_of_these_names_read_an_envelope() -> None:
    """Who declares them knows what the messages are."""
    payload = StructType([StructField("payload", ROW)])

    found = decoder(payload).decode([WRAPPED])

    assert found.rows.to_pylist() == [{"payload": {"id": 1, "name": "a"}}]


def test_with_ignore_parse_errors_nothing_is_an_error() -> None:
    """Then a warning about missing columns names the fields."""
    assert decoder(ROW, ignore_parse_errors=True).decode([WRAPPED]).errors == {}
