"""What is said of values that only their schema explains."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    DateType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.formats.cdc.connect_json import AdvisedDecoder, without_schema
from pyspark_upsert_kafka.formats.json import FORMAT
from pyspark_upsert_kafka.formats.json.json_document import Number
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.listed import good_rows

SEND = "let the connector send the schema"


@pytest.mark.parametrize("wanted", [TimestampType(), TimestampNTZType(), DateType()])
def test_a_number_in_a_column_of_moments_needs_its_schema(wanted):
    """The advice names the column's type, what to set, and BIGINT."""
    advice = without_schema(wanted, Number("1529507596945104"), SEND)

    assert advice is not None
    assert advice.startswith(f"Debezium sends a {wanted.typeName().upper()} as a number")
    assert f": {SEND}, or declare" in advice
    assert "BIGINT" in advice
    assert "time.precision.mode" in advice


@pytest.mark.parametrize("value", ["AN4=", {"scale": Number("2"), "value": "AN4="}])
def test_bytes_in_a_decimal_column_need_their_schema(value):
    """The advice names Debezium's own option too."""
    advice = without_schema(DecimalType(10, 2), value, SEND)

    assert advice is not None
    assert "'decimal.handling.mode' = 'string'" in advice


@pytest.mark.parametrize(
    ("wanted", "value"),
    [(DateType(), "2005-05-12Z"), (TimestampNTZType(), "2011-01-11T16:40:30.123456789Z")],
)
def test_a_text_in_utc_for_what_has_no_zone_needs_its_schema(wanted, value):
    """That is how Debezium writes ISO texts."""
    advice = without_schema(wanted, value, SEND)

    assert advice is not None
    assert "'isostring'" in advice
    assert "STRING" in advice


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        (TimestampType(), "2011-01-11T16:40:30Z"),
        (DateType(), "2005-05-12"),
        (TimestampType(), "yesterday"),
        (DecimalType(10, 2), Number("12.345")),
        (DecimalType(10, 2), None),
        (LongType(), "x"),
        (StringType(), Number("1")),
    ],
)
def test_where_a_schema_would_not_help_nothing_is_said(wanted, value):
    """The plain format's error is enough."""
    assert without_schema(wanted, value, SEND) is None


def test_errors_of_messages_without_schemas_say_what_to_set():
    """Of the field that an error is about, wherever it stands; other errors stay as they are."""
    row = spark_columns("id INT, created TIMESTAMP, balance DECIMAL(10,2)")
    columns = StructType([StructField("after", row), StructField("op", StringType())])
    decoder = AdvisedDecoder(FORMAT.decoder(codec_spec(FORMAT, columns)), columns, SEND)

    found = decoder.decode(
        [
            b'{"after":{"id":1},"op":"c"}',
            b'{"after":{"created":1529507596945104}}',
            b'{"after":{"balance":"AN4="}}',
            b'{"after":{"id":"x"}}',
            b'{"after":3}',
            b"{",
        ]
    )

    assert good_rows(found).num_rows == 1
    first, second, *others = found.errors.values()
    assert first.startswith("field 'after.created': expected a text like")
    assert ", got 1529507596945104. Debezium sends a TIMESTAMP as a number" in first
    assert second.startswith("field 'after.balance': expected")
    assert "'decimal.handling.mode' = 'string'" in second
    assert not any("Debezium" in each for each in others)
