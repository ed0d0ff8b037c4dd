"""CSV and raw against their peers, Jackson (which Flink uses) and Spark, and through a real broker."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, StringType, StructType

from tests.conftest import Broker, options
from tests.spark.batches import arrow_rows, load, refused, save
from tests.spark.conftest import rows
from tests.spark.jackson import JacksonCsv
from tests.unit.formats.csv.codecs import decoder, encoder, exactly
from tests.unit.formats.json.codecs import batch, columns
from tests.unit.formats.listed import good_rows

TEXTS = [
    "", " ", "a", "a b", "a,b", "a;b", 'a"b', '"', '""', "a\nb", "a\r\nb", "#a", "'", "a'b", "a\\b", "\\", "-5",
    "+5", "é" * 24, "é" * 25, "😀" * 12, "😀" * 13, "null", "\t", "~", "a*b", "**", "1E+2", "|", "a|b",
]  # fmt: skip
DIALECTS = [
    ({}, {}),
    ({"field_delimiter": "|"}, {"withColumnSeparator": "|"}),
    ({"field_delimiter": "\t", "escape_character": "\\"},
     {"withColumnSeparator": "\t", "withEscapeChar": "\\"}),
    ({"quote_character": "'", "escape_character": "*"}, {"withQuoteChar": "'", "withEscapeChar": "*"}),
    ({"null_literal": "null"}, {}),
]  # fmt: skip

jvm = pytest.mark.classic("calls Jackson in the JVM of the driver")


@jvm
@pytest.mark.parametrize(("ours", "theirs"), DIALECTS)
def test_jackson_writes_the_same_bytes(spark: SparkSession, ours: dict, theirs: dict) -> None:
    """Texts are quoted, doubled and escaped byte by byte as Flink's Jackson does it."""
    jackson = JacksonCsv(
        spark, {"a": "STRING", "b": "STRING", "c": "NUMBER"}, ours.get("null_literal"), **theirs
    )
    schema = StructType().add("a", "string").add("b", "string").add("c", "long")
    given = [(a, b, 7) for a in TEXTS for b in ("x", a, None)] + [("x", "y", None)]
    expected = jackson.write([dict(zip("abc", row, strict=True)) for row in given])
    assert encoder(schema, **ours).encode(batch(schema, *given)) == expected


MESSAGES = [
    "a,b", "a,", ",", "a,b,", "a,b, ", 'a,"b"', '"a" ,b', ' "a",b', '"a"b,c', '"a,b', '"a""b",c', 'a"b",c', "a",
    "a,b,c", "a,b,,", "a*,b,c", "'a',b", '"a\nb",c', "a,b\n", "a,b\r\n", "\n", "a,*", '"a*"",b', "*n*t*0*x,b",
    '"*n""*"",b"', "é,😀", "a\tb,c", '"",""', "#a,b", "a;b,c;d", '" a ", b ', '"a""",b', '"a"",b',
]  # fmt: skip


@jvm
@pytest.mark.parametrize("escape", [None, "*"])
def test_jackson_reads_the_same_fields(spark: SparkSession, escape: str | None) -> None:
    """What Jackson reads, this reads; what it refuses, and rows too short (as Flink), is an error."""
    changes = {} if escape is None else {"withEscapeChar": escape}
    jackson = JacksonCsv(spark, {"a": "STRING", "b": "STRING"}, **changes)
    decode = exactly(columns(a=StringType(), b=StringType()), escape_character=escape).decode
    for text in MESSAGES:
        found = good_rows(decode([text.encode()])).to_pylist()
        expected = jackson.read(text.encode())
        whole = isinstance(expected, dict) and len(expected) == 2
        assert found == ([expected] if whole else []), text


@jvm
@pytest.mark.parametrize("literal", [None, "null"])
def test_jackson_reads_the_same_elements(spark: SparkSession, literal: str | None) -> None:
    """Elements of an array are split as Jackson does it."""
    jackson = JacksonCsv(spark, {"a": "STRING", "b": "ARRAY"}, literal)
    schema = columns(a=StringType(), b=ArrayType(StringType()))
    decode = exactly(schema, null_literal=literal).decode
    for field in ["", " ", "x", "x;y", ";", "x;", ";x", '"x;y"', " x ; y ", "x;null", "null;null"]:
        message = f"a,{field}".encode()
        (found,) = decode([message]).rows.to_pylist()
        assert found == jackson.read(message), field


DDL = (
    "id BIGINT, tiny TINYINT, name STRING, score DOUBLE, ratio FLOAT, price DECIMAL(10,2), active BOOLEAN, "
    "day DATE, updated TIMESTAMP, local TIMESTAMP_NTZ"
)
NOON = dt.datetime(2024, 1, 31, 12, 30, 0, 123000)  # noqa: DTZ001 - Spark's rows have no zone
VALUES = [
    (1, -1, "plain", 1.5, 0.1, Decimal("123.45"), True, NOON.date(), NOON, NOON),
    (2, 127, 'a,"b" c', -0.0, 2.0, Decimal("0.00"), False, dt.date(1, 1, 1), NOON, NOON),
    (-(2**63), 0, "é😀", 1e300, -1e30, Decimal("-100.00"), True, dt.date(9999, 12, 31), NOON, NOON),
    (4, None, None, None, None, None, None, None, None, None),
]


def test_spark_reads_what_is_written(spark: SparkSession) -> None:
    """Spark's from_csv reads the messages, given the null literal and how timestamps are spelled."""
    frame = spark.createDataFrame(VALUES, DDL).coalesce(1)
    written = encoder(frame.schema, null_literal="NULL").encode(arrow_rows(frame))
    texts = spark.createDataFrame([(message.decode(),) for message in written], "text STRING")
    given = {
        "nullValue": "NULL",
        "escape": '"',
        "timestampFormat": "yyyy-MM-dd HH:mm:ss[.SSSSSS][.SSS]XXX",
        "timestampNTZFormat": "yyyy-MM-dd HH:mm:ss[.SSSSSS][.SSS]",
    }
    read = texts.select(F.from_csv("text", DDL, given).alias("row")).select("row.*")
    assert rows(read) == rows(frame)


def test_what_spark_writes_is_read(spark: SparkSession) -> None:
    """What Spark's to_csv writes, with its own defaults but for the escape, reads as the same rows."""
    frame = spark.createDataFrame(VALUES, DDL).coalesce(1)
    given = {"escape": '"', "nullValue": "NULL"}
    texts = frame.select(F.to_csv(F.struct("*"), given)).collect()
    messages = [row[0].encode() for row in texts]
    for copies in (1, 30):
        decoded = decoder(frame.schema, null_literal="NULL").decode(messages * copies)
        assert not decoded.errors
        assert decoded.rows.to_pylist() == arrow_rows(frame).to_pylist() * copies


PAIRS = [
    ({"key.format": "raw", "value.format": "csv"}, (1).to_bytes(8, "big"), b'1,"a b",'),
    ({"key.format": "csv", "value.format": "csv", "value.csv.field-delimiter": "\\t"},
     b"1", b'1\t"a b"\t'),
    ({"key.format": "raw", "key.raw.endianness": "little-endian", "value.format": "json"},
     (1).to_bytes(8, "little"), b'{"id":1,"name":"a b","score":null}'),
    ({"key.format": "csv", "value.format": "csv", "value.fields-include": "EXCEPT_KEY",
      "value.csv.null-literal": "n/a"}, b"1", b'"a b",n/a'),
]  # fmt: skip


OTHER_PAIR = pytest.mark.long("tests/unit/formats holds what the others are read and written as")


@pytest.mark.parametrize(
    ("formats", "key", "value"),
    [*PAIRS[:1], *(pytest.param(*pair, marks=OTHER_PAIR) for pair in PAIRS[1:])],
)
def test_tables_through_a_broker(
    spark: SparkSession, broker: Broker, formats: dict[str, str], key: bytes, value: bytes
) -> None:
    """A table is written and read with raw and csv on either side; deletes are tombstones."""
    topic = broker.topic(2, cleanup_policy="compact")
    schema = "id BIGINT, name STRING, score DOUBLE"
    given = options(broker, topic, **formats)
    first = [(1, "old", 0.5), (2, "b", 1.5), (3, "gone", None), (-4, 'q"r,\n', -0.0)]
    save(spark.createDataFrame(first, schema).coalesce(1), given)
    changed = [(1, "a b", None, "upsert"), (3, None, None, "delete")]
    save(spark.createDataFrame(changed, f"{schema}, _change_type STRING").coalesce(1), given)
    assert (key, value) in broker.pairs(topic)
    assert [pair[1] for pair in broker.pairs(topic)].count(None) == 1
    table = [(1, "a b", None), (2, "b", 1.5), (-4, 'q"r,\n', -0.0)]
    assert rows(load(spark, schema, given)) == sorted(table, key=repr)


def test_raw_on_both_sides(spark: SparkSession, broker: Broker) -> None:
    """Raw keys and values: EXCEPT_KEY leaves the one column; NULL cannot be written."""
    topic = broker.topic()
    raw = {"key.format": "raw", "value.format": "raw", "value.fields-include": "EXCEPT_KEY"}
    given = options(broker, topic, **raw, **{"key.raw.charset": "UTF-16"})
    schema = "id STRING, data BINARY"
    table = [("a", b"\x00\xff"), ("é", b"")]
    save(spark.createDataFrame([Row(*row) for row in table], schema).coalesce(1), given)
    assert ("a".encode("utf-16-be"), b"\x00\xff") in [
        (key.removeprefix(b"\xfe\xff"), value) for key, value in broker.pairs(topic)
    ]
    found = [(row.id, bytes(row.data)) for row in load(spark, schema, given).collect()]
    assert sorted(found) == table
    nothing = spark.createDataFrame([("b", None)], schema)
    text = refused(lambda: save(nothing, given))
    assert "EncodeError: Column 'data' cannot be written: NULL" in text


def test_bad_messages_are_blamed(spark: SparkSession, broker: Broker) -> None:
    """A message that cannot be decoded is named with topic, partition and offset, and why."""
    topic = broker.topic()
    broker.produce(topic, ("1", "1,a"), ("2", "2,a\n3,b"), ("3", b""))
    given = options(broker, topic, **{"key.format": "csv", "value.format": "csv"})
    text = refused(load(spark, "id BIGINT, name STRING", given).collect)
    assert f"topic '{topic}', partition 0, offset 1" in text
    assert "one message is one record" in text
    ignored = {**given, "error-handling.mode": "ignore"}
    assert rows(load(spark, "id BIGINT, name STRING", ignored)) == [(1, "a")]
    assert "EXCEPT_KEY" in refused(
        load(spark, "id BIGINT, name STRING", {**given, "value.format": "raw"}).collect
    )
