"""The format ``avro`` as a table has it: options, the schema of each side, both codecs."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from pyspark.sql.types import (
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import EncodeError, OptionError, SchemaError
from pyspark_upsert_kafka.formats.avro import FORMAT
from pyspark_upsert_kafka.formats.codec import CodecSpec
from tests.unit.formats.avro.writing import by_fastavro, field, logical, record
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.json.codecs import batch, columns
from tests.unit.formats.listed import Listed

INT, TEXT = IntegerType(), StringType()
TABLE = columns(id=INT, name=TEXT)
ROW = (1, "a")


def spec(schema=TABLE, side="value", required=(), **given):
    """What the codecs of a side are compiled from; options by their names with underscores."""
    texts = {
        "timestamp_mapping.legacy" if name == "legacy" else name: given[name] for name in given
    }
    values = {option.name: option.read(texts) for option in FORMAT.options}
    required = schema.names if side == "key" else required
    return CodecSpec(schema, side, values, required=frozenset(required))


def written(*rows, schema=TABLE, **how):
    """Rows as one side writes them."""
    return Listed(FORMAT.encoder(spec(schema, **how))).encode(batch(schema, *rows))


def test_a_key_is_never_null():
    """The derived schema of a key has no unions, as Flink's primary key is NOT NULL."""
    assert written(ROW, side="key") == [b"\x02\x02a"]


def test_the_key_within_a_value():
    """In a value the columns of the primary key have no unions, and the others have."""
    assert written(ROW, required=["id"]) == [b"\x02" + b"\x02\x02a"]
    assert written(ROW) == [b"\x02\x02" + b"\x02\x02a"]


@pytest.mark.parametrize("side", ["key", "value"])
def test_both_codecs_have_one_schema(side):
    """What one side writes, the same side reads."""
    how = {"side": side, "required": ["id"]}

    decoded = FORMAT.decoder(spec(**how)).decode(written(ROW, **how))

    assert decoded.rows.to_pylist() == [{"id": 1, "name": "a"}]


def test_a_schema_that_is_given():
    """The schema of the messages is the one that the option gives."""
    given = {"schema": json.dumps(record(field("name", "string"), field("id", "long")))}
    encode = Listed(FORMAT.encoder(codec_spec(FORMAT, TABLE, "value", given))).encode
    decode = FORMAT.decoder(codec_spec(FORMAT, columns(name=TEXT), "value", given)).decode

    messages = encode(batch(TABLE, ROW))

    assert messages == [b"\x02a\x02"]
    assert decode(messages).rows.to_pylist() == [{"name": "a"}]


def test_a_schema_that_is_none():
    """A schema that cannot be parsed is refused when the query is planned."""
    for compiled in (FORMAT.encoder, FORMAT.decoder):
        with pytest.raises(SchemaError, match=r"The schema in 'value.avro.schema' is not JSON"):
            compiled(codec_spec(FORMAT, TABLE, "value", {"schema": "{"}))


@pytest.mark.parametrize(("legacy", "fits"), [("true", True), ("false", False)])
def test_the_mapping_of_timestamps(legacy, fits):
    """Without the legacy mapping a local timestamp neither goes into a zoned one nor comes out."""
    kind = columns(c=TimestampNTZType())
    schema = json.dumps(record(field("c", logical("long", "timestamp-micros"))))
    given = {"schema": schema, "timestamp_mapping.legacy": legacy == "true"}

    for compiled in (FORMAT.encoder, FORMAT.decoder):
        if fits:
            compiled(codec_spec(FORMAT, kind, "value", given))
        else:
            with pytest.raises(SchemaError):
                compiled(codec_spec(FORMAT, kind, "value", given))


MOMENT = dt.datetime(2020, 3, 8, 13, 12, 0, 123000)  # noqa: DTZ001 - a local one
MILLIS = 1583673120123
TIMESTAMPS = [TimestampNTZType(), TimestampType()]


@pytest.mark.parametrize("kind", TIMESTAMPS)
@pytest.mark.parametrize(("legacy", "number"), [("true", MILLIS), ("false", MILLIS * 1000)])
@pytest.mark.parametrize("side", ["key", "value"])
def test_timestamps_of_a_derived_schema(kind, legacy, number, side):
    """They are milliseconds, as Flink writes and reads them; microseconds without the legacy mapping."""
    schema = columns(c=kind)
    how = {"schema": schema, "side": side, "legacy": legacy}
    zone = dt.timezone.utc if isinstance(kind, TimestampType) else None
    row = (MOMENT.replace(tzinfo=zone),)

    (message,) = written(row, **how)
    (found,) = FORMAT.decoder(spec(**how)).decode([message]).rows.column(0)

    assert (
        message.removeprefix(b"\x02" if side == "value" else b"") == by_fastavro("long", number)[0]
    )
    assert found.value == MILLIS * 1000


FINER = MOMENT.replace(microsecond=123456)


@pytest.mark.parametrize("side", ["key", "value"])
def test_a_timestamp_finer_than_milliseconds(side):
    """It is refused, with the option that keeps its digits; that option keeps them."""
    schema = columns(c=TimestampNTZType())

    with pytest.raises(EncodeError) as refused:
        written((FINER,), schema=schema, side=side)
    (message,) = written((FINER,), schema=schema, side=side, legacy="false")

    assert str(refused.value).startswith(
        "Column 'c' cannot be written: 2020-03-08 13:12:00.123456 is finer than milliseconds; "
    )
    assert f"'{side}.avro.timestamp_mapping.legacy' = 'false'" in str(refused.value)
    assert by_fastavro("long", MILLIS * 1000 + 456)[0] in message


def test_a_given_schema_decides_about_digits():
    """A schema of milliseconds that is given rounds down, as before."""
    schema = columns(c=TimestampNTZType())
    given = json.dumps(record(field("c", logical("long", "timestamp-millis"))))

    encode = Listed(FORMAT.encoder(codec_spec(FORMAT, schema, "value", {"schema": given}))).encode

    assert encode(batch(schema, (FINER,))) == by_fastavro("long", MILLIS)


def test_the_encoding_is_binary():
    """Flink's option is taken where it says what is done anyway."""
    assert spec(encoding="Binary").options["encoding"] == "binary"
    with pytest.raises(OptionError, match="expected 'binary', the only encoding of Avro"):
        spec(encoding="json")


EMPTY = [
    (StructType(), {}),
    (StructType([StructField("c", StructType(), nullable=False)]), {}),
    (columns(c=INT), {"schema": json.dumps(record())}),
]


@pytest.mark.parametrize(("schema", "given"), EMPTY)
@pytest.mark.parametrize("compiled", [FORMAT.encoder, FORMAT.decoder])
def test_a_message_is_never_empty(schema, given, compiled):
    """An empty message cannot be read, so a schema whose data take no bytes is refused."""
    with pytest.raises(SchemaError, match="a message of this schema would be empty"):
        compiled(codec_spec(FORMAT, schema, "value", given))
