"""JSON messages that carry their schemas become rows by what these say."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.formats.cdc.connect_json import SchemaDecoder
from pyspark_upsert_kafka.formats.codec import TooManyMessagesError
from pyspark_upsert_kafka.formats.json import FORMAT
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.listed import good_rows
from tools.recorded_debezium import TOPIC, Recorded, record


def schema_decoder(columns: StructType, **options: Any) -> SchemaDecoder:
    """The decoder of payloads in JSON."""
    spec = codec_spec(FORMAT, columns, given=options)
    lenient = spec.options["ignore-parse-errors"]
    return SchemaDecoder(
        columns, lambda physical: FORMAT.decoder(replace(spec, schema=physical)), lenient=lenient
    )


def message(fields: list[dict[str, Any]], payload: Any) -> bytes:
    """A message with the schema of a struct."""
    schema = {"type": "struct", "fields": fields, "optional": False}
    return json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()


ID = {"type": "int64", "field": "id"}
MICROS = {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1, "field": "at"}
MILLIS = {"type": "int64", "name": "io.debezium.time.Timestamp", "version": 1, "field": "at"}
COLUMNS = StructType([StructField("id", LongType()), StructField("at", TimestampNTZType())])


def test_each_message_is_read_by_its_own_schema():
    """The same number in two units, a schema without the column, and none; the order of the messages is kept."""
    decoder = schema_decoder(COLUMNS)
    found = decoder.decode(
        [
            message([ID, MICROS], {"id": 1, "at": 1_000_000}),
            message([ID, MILLIS], {"id": 2, "at": 1_000_000}),
            message([ID], {"id": 3}),
            b'{"schema":null,"payload":{"id":4,"at":"1970-01-01 00:00:00"}}',
            message([ID, MICROS], {"id": 5, "at": None}),
        ]
    )

    assert found.errors == {}
    assert [(row["id"], row["at"]) for row in found.rows.to_pylist()] == [
        (1, datetime(1970, 1, 1, 0, 0, 1)),  # noqa: DTZ001
        (2, datetime(1970, 1, 1, 0, 16, 40)),  # noqa: DTZ001
        (3, None),
        (4, datetime(1970, 1, 1)),  # noqa: DTZ001
        (5, None),
    ]


def test_what_is_wrong_is_said_of_each_message():
    """A schema that does not fit, a bad payload, none, a bad value: the other messages are read.

    One of these has a schema that says nothing.
    """
    columns = StructType([StructField("id", LongType()), StructField("at", DateType())])
    found = schema_decoder(columns).decode(
        [
            message([ID, MICROS], {"id": 1, "at": 0}),
            b'{"schema":{"fields":[]},"payload":{"id":2}}',
            message([ID], {"id": "two"}),
            message([ID], {"id": 3}),
            b"{",
            message([ID], None),
            message(
                [ID, {"type": "string", "name": "io.debezium.time.IsoDate", "field": "at"}],
                {"at": "x"},
            ),
        ]
    )

    assert good_rows(found).to_pylist() == [{"id": 2, "at": None}, {"id": 3, "at": None}]
    assert {at: why[:30] for at, why in found.errors.items()} == {
        0: "Column 'at' has the type date,",
        2: "field 'id': expected a whole n",
        4: "not JSON: Expecting property n",
        5: "field 'payload' is null or mis",
        6: "field 'at': expected a DATE li",
    }


@pytest.mark.parametrize(
    ("tail", "rows"),
    [
        (b',"payload":{"id":2}}', [{"id": 2, "at": None}]),
        (b',"more":{"id":2}}', [{"id": 1, "at": None}]),
        (b"} ", [{"id": 1, "at": None}]),
        (b"}}", []),
    ],
)
def test_a_message_that_only_begins_like_the_others_is_read_exactly(tail, rows):
    """A second payload, another member, a blank at the end; a bracket too much makes the message a bad one."""
    good = message([ID], {"id": 1})

    found = schema_decoder(COLUMNS).decode([good, good[:-1] + tail, good])

    assert good_rows(found).to_pylist()[1:-1] == rows
    assert [*found.errors] == ([] if rows else [1])


def test_messages_that_cannot_be_read_are_skipped_where_errors_are_ignored():
    """As ``ignore-parse-errors`` of JSON: a bad value is NULL, what is no JSON is skipped."""
    decoder = schema_decoder(COLUMNS, **{"ignore-parse-errors": True})

    found = decoder.decode(
        [message([ID, MILLIS], {"id": 1, "at": 1 << 62}), message([ID], {})[:-1] + b"}}", b"{"]
    )

    assert good_rows(found).to_pylist() == [{"id": 1, "at": None}]
    assert (found.errors, found.skipped) == ({}, {1, 2})


def test_vectors_are_read_as_they_are_sent():
    """Arrays of numbers; a map whose keys are numbers is an array of entries in JSON."""
    number = {"type": "double", "optional": False}
    sparse = {
        "type": "struct",
        "name": "io.debezium.data.SparseDoubleVector",
        "fields": [
            {"type": "int16", "field": "dimensions"},
            {"type": "map", "keys": {"type": "int16"}, "values": number, "field": "vector"},
        ],
        "field": "sparse",
    }
    dense = {
        "type": "array",
        "items": number,
        "name": "io.debezium.data.DoubleVector",
        "field": "dense",
    }
    columns = spark_columns(
        "dense ARRAY<DOUBLE>, sparse STRUCT<dimensions: SMALLINT, vector: ARRAY<ARRAY<DOUBLE>>>"
    )
    row = {"dense": [1.5, 2.0], "sparse": {"dimensions": 5, "vector": [[1.0, 0.5], [3.0, 2.5]]}}

    found = schema_decoder(columns).decode([message([dense, sparse], row)])

    assert (found.rows.to_pylist(), found.errors) == ([row], {})


def test_the_schema_can_be_a_column():
    """As JSON, as it was sent; NULL where a message has none."""
    columns = StructType([StructField("id", LongType())])
    decoder = SchemaDecoder(
        columns,
        lambda physical: FORMAT.decoder(codec_spec(FORMAT, physical)),
        lenient=False,
        schema_column="schema",
    )

    found = decoder.decode([message([ID], {"id": 1}), b'{"schema":null,"payload":{"id":2}}', b"{"])

    first, second = good_rows(found).to_pylist()
    assert json.loads(first["schema"]) == {"type": "struct", "fields": [ID], "optional": False}
    assert second == {"id": 2, "schema": None}
    assert [*found.errors] == [2]


def test_no_messages_are_no_rows():
    """An empty batch has the table's columns."""
    found = schema_decoder(COLUMNS).decode(BytesColumn.of([]))

    assert (found.rows.num_rows, found.rows.schema) == (0, arrow_schema(COLUMNS))


def test_only_the_last_schemas_are_kept():
    """A topic with a new schema in each message does not fill the memory."""
    decoder = schema_decoder(StructType([StructField("id", LongType())]))
    fields = [[ID, {"type": "string", "field": f"f{at}"}] for at in range(100)]

    found = decoder.decode([message(each, {"id": at}) for at, each in enumerate(fields)])

    assert found.rows.column("id").to_pylist() == [*range(100)]
    assert len(decoder._by_schema) <= 16
    assert len(decoder._by_columns) <= 16


@pytest.mark.parametrize("replica_identity", ["default", "full"])
def test_a_recorded_topic_becomes_its_rows(replica_identity):
    """Each image of each change of a Debezium topic has the values that the database had."""
    recording = record(Recorded(3, rows=40, transactions=80, replica_identity=replica_identity))
    row = spark_columns(recording.ddl)
    envelope = StructType(
        [StructField("before", row), StructField("after", row), StructField("op", StringType())]
    )
    values = [each.value for each in recording.messages if each.topic == TOPIC and each.value]

    found = schema_decoder(envelope).decode(BytesColumn.of(values))

    assert found.errors == {}
    table: dict[int, dict[str, Any]] = {}
    for change in found.rows.to_pylist():
        if change["op"] == "d":
            del table[change["before"]["id"]]
        else:
            table[change["after"]["id"]] = change["after"]
    assert table == {key: exact(sent) for key, sent in recording.as_sent.items()}


def exact(row: Any) -> dict[str, Any]:
    """A row as columns hold it: decimals with the digits of their type."""
    digits = {"balance": Decimal("0.01"), "credit": Decimal(1).scaleb(-18)}
    return {
        name: value.quantize(digits[name]) if isinstance(value, Decimal) else value
        for name, value in row.items()
    }


def test_a_row_of_the_recording_is_as_spark_has_it():
    """The test above compares what Spark's users see: dates, moments, decimals."""
    recording = record(Recorded())
    row = next(row for row in recording.table.values() if row["seen"] and row["born"])

    assert isinstance(row["born"], date)
    assert row["seen"].tzinfo is timezone.utc
    assert isinstance(row["balance"], Decimal)
    assert spark_columns(recording.ddl)["id"].dataType == IntegerType()


DATE = {"type": "string", "name": "io.debezium.time.IsoDate", "field": "at"}
SCHEMAS = [[ID, MICROS], [ID, MILLIS], [ID], [ID, DATE], [], [{"type": "int64"}]]
payloads = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | st.integers(-(1 << 65), 1 << 65) | st.text(max_size=3),
        "at": st.none() | st.integers(-(1 << 64), 1 << 64) | st.sampled_from(["2005-05-12Z", "x"]),
    },
)
tails = st.sampled_from([b"", b" ", b"}", b"]", b',"payload":{"id":7}}', b',"schema":null}'])
written = st.builds(
    lambda fields, payload, tail: (
        message(fields, payload)[: -1 if tail[:1] == b"," else None] + tail
    ),
    st.sampled_from(SCHEMAS),
    payloads,
    tails,
)


@pytest.mark.parametrize("lenient", [False, True])
@given(st.lists(written | st.binary(max_size=30), max_size=7))
def test_messages_are_read_together_as_each_alone(lenient, messages):
    """Good, odd and bad messages in one batch: rows, errors and skipped ones are those of each message for itself."""
    options = {"ignore-parse-errors": lenient}
    together = schema_decoder(COLUMNS, **options).decode(BytesColumn.of(messages))

    alone = [schema_decoder(COLUMNS, **options).decode([each]) for each in messages]

    # As columns: Python has no datetime after the year 9999, and messages have such times.
    rows = [together.rows.slice(0, 0), *(each.rows for each in alone)]
    assert pa.Table.from_batches([together.rows]).equals(pa.Table.from_batches(rows))
    assert dict(together.errors) == {
        at: each.errors[0] for at, each in enumerate(alone) if each.errors
    }
    assert together.skipped == {at for at, each in enumerate(alone) if each.skipped}


def decimals(places: int, *numbers: str) -> Any:
    """A payload with decimals of some places that say their scale themselves."""
    return {"d": [{"scale": places, "value": number} for number in numbers]}


DECIMALS = {
    "type": "array",
    "items": {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": []},
    "field": "d",
}


def test_decimals_whose_texts_are_far_longer_than_their_messages():
    """Messages of 100 bytes that become texts of 200 KB are decoded in parts, and one of too many of them is bad."""
    decode = schema_decoder(spark_columns("d ARRAY<STRING>")).decode
    small = message([DECIMALS], decimals(200_000, "AQ=="))
    with pytest.raises(TooManyMessagesError) as error:
        decode([small] * 1_000)
    assert 100 < error.value.most <= 500
    assert decode([small] * 10).rows.nbytes > 2_000_000
    decoded = decode([message([DECIMALS], decimals(-200_000, *["AQ=="] * 1_000))])
    assert "the texts of the message take more than 128 MiB" in decoded.errors[0]
