"""The format ``avro`` as a table has it: options, the schema of each side, both codecs."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import (
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.formats.avro import FORMAT
from pyspark_upsert_kafka.formats.codec import CodecSpec
from tests.unit.avro_writing import field, logical, record
from tests.unit.json_codecs import batch, columns

INT, TEXT = IntegerType(), StringType()
TABLE = columns(id=INT, name=TEXT)
ROW = (1, "a")


def spec(schema=TABLE, side="value", required=(), **given):
    """What the codecs of a side are compiled from; options by their names with underscores."""
    texts = {
        "timestamp_mapping.legacy" if name == "legacy" else name: given[name] for name in given
    }
    values = {option.name: option.read(texts) for option in FORMAT.options}
    return CodecSpec(schema, side, values, required=frozenset(required))


def written(*rows, schema=TABLE, **how):
    """Rows as one side writes them."""
    return FORMAT.encoder(spec(schema, **how))(batch(schema, *rows))


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

    decoded = FORMAT.decoder(spec(**how))(written(ROW, **how))

    assert decoded.rows.to_pylist() == [{"id": 1, "name": "a"}]


def test_a_schema_that_is_given():
    """The schema of the messages is the one that the option gives."""
    given = {"schema": json.dumps(record(field("name", "string"), field("id", "long")))}
    encode = FORMAT.encoder(CodecSpec(TABLE, "value", given))
    decode = FORMAT.decoder(CodecSpec(columns(name=TEXT), "value", given))

    messages = encode(batch(TABLE, ROW))

    assert messages == [b"\x02a\x02"]
    assert decode(messages).rows.to_pylist() == [{"name": "a"}]


def test_a_schema_that_is_none():
    """A schema that cannot be parsed is refused when the query is planned."""
    for compiled in (FORMAT.encoder, FORMAT.decoder):
        with pytest.raises(SchemaError, match="not JSON"):
            compiled(CodecSpec(TABLE, "value", {"schema": "{"}))


@pytest.mark.parametrize(("legacy", "fits"), [("true", True), ("false", False)])
def test_the_mapping_of_timestamps(legacy, fits):
    """Without the legacy mapping a local timestamp neither goes into a zoned one nor comes out."""
    kind = columns(c=TimestampNTZType())
    schema = json.dumps(record(field("c", logical("long", "timestamp-micros"))))
    given = {"schema": schema, "timestamp_mapping.legacy": legacy == "true"}

    for compiled in (FORMAT.encoder, FORMAT.decoder):
        if fits:
            compiled(CodecSpec(kind, "value", given))
        else:
            with pytest.raises(SchemaError):
                compiled(CodecSpec(kind, "value", given))


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
        compiled(CodecSpec(schema, "value", given))
