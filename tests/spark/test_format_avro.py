"""Avro against Spark's own functions on the same rows, and through a real broker."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro, to_avro

from pyspark_upsert_kafka.formats.avro import FORMAT
from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema
from tests.conftest import Broker, options
from tests.spark.batches import arrow_rows, load, refused, save
from tests.spark.conftest import rows
from tests.unit.formats.avro.test_schema_laws import DIFFERENCES, with_field
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.listed import Listed

DDL = (
    "id BIGINT NOT NULL, n INT, name STRING, score DOUBLE, ratio FLOAT, price DECIMAL(20,4), "
    "active BOOLEAN, data BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, "
    "tags ARRAY<ARRAY<STRING>>, attributes MAP<STRING, MAP<STRING, BIGINT>>, "
    "deep STRUCT<a: STRUCT<b: ARRAY<STRUCT<c: STRUCT<d: DOUBLE>, e: STRING>>>, f: BOOLEAN>"
)
AT = dt.datetime(2024, 2, 29, 23, 59, 59, 123456)  # noqa: DTZ001 - Spark's rows have no zone
EARLY = dt.datetime(1899, 1, 1)  # noqa: DTZ001
VALUES = [
    (1, -1, "plain", 1.5, 0.1, Decimal("123.45"), True, b"\x00\xff", AT.date(), AT, AT,
     [["a", None], [], None], {"x": {"y": 1, "z": None}}, ((([((2.5,), "é")]),), True)),
    (2, 2**31 - 1, "q\u2028😀", -0.0, 3.4e38, Decimal("0.0000"), False, b"", dt.date(9999, 12, 31),
     EARLY, EARLY, [], {}, (([],), None)),
    (-(2**63), -(2**31), "", float("nan"), float("-inf"), Decimal("-9999999999999999.9999"), True, b"x" * 300,
     dt.date(1, 1, 1), AT, AT, [[""]], {"é": {}}, ((None,), False)),
    (4, *[None] * 13),
]  # fmt: skip


@pytest.mark.classic("asks the Avro of Java")
def test_which_schemas_java_reads(spark: SparkSession) -> None:
    """Where this differs from Apache's parser in Python, it does what Java does, as far as schemas in use allow."""

    def read(kind: object) -> bool:
        parser = spark._jvm.org.apache.avro.Schema.Parser()
        try:
            parser.parse(json.dumps(with_field(kind)))
        except (Py4JJavaError, IllegalArgumentException):
            return False
        return True

    known = {name: java for name, _, _, _, java in DIFFERENCES if java is not None}

    assert {name: read(kind) for name, kind, *_ in DIFFERENCES if name in known} == known


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("copies", [1, 40])
def test_spark_and_this_read_each_other(spark: SparkSession, legacy: bool, copies: int) -> None:
    """The bytes of to_avro are ours, and from_avro reads the same rows, of every type in common."""
    ddl = DDL.replace("local TIMESTAMP_NTZ", "local TIMESTAMP") if legacy else DDL
    frame = spark.createDataFrame(VALUES, ddl).coalesce(1)
    if legacy:  # which has nothing finer
        cut = {name: F.date_trunc("MILLISECOND", name) for name in ("at", "local")}
        frame = frame.withColumns(cut)
    schema = json.dumps(derived_schema(frame.schema, frozenset(), legacy_timestamps=legacy))
    given = {"timestamp_mapping.legacy": legacy}
    spec = codec_spec(FORMAT, frame.schema, "value", given, required=frozenset({"id"}))
    theirs = [row[0] for row in frame.select(to_avro(F.struct("*"), schema)).collect()]
    wanted = arrow_rows(frame)

    assert Listed(FORMAT.encoder(spec)).encode(wanted) == [bytes(message) for message in theirs]
    decoded = FORMAT.decoder(spec).decode([bytes(message) for message in theirs] * copies)
    assert not decoded.errors
    assert repr(decoded.rows.to_pylist()) == repr(wanted.to_pylist() * copies)
    read = spark.createDataFrame([(message,) for message in theirs], "data BINARY").coalesce(1)
    assert repr(
        arrow_rows(read.select(from_avro("data", schema).alias("row")).select("row.*")).to_pylist()
    ) == repr(wanted.to_pylist())


def test_a_table_through_a_broker(spark: SparkSession, broker: Broker) -> None:
    """Written and read with avro on both sides; the key's schema is that of a NOT NULL column."""
    topic = broker.topic(2, cleanup_policy="compact")
    schema = "id BIGINT, name STRING, deep STRUCT<a: ARRAY<INT>>"
    given = options(broker, topic, **{"key.format": "avro", "value.format": "avro"})
    first = [(1, "old", ([1, None],)), (2, "b", None), (3, "gone", None), (-4, None, (None,))]
    save(spark.createDataFrame(first, schema).coalesce(1), given)
    changed = [(1, "a b", None, "upsert"), (3, None, None, "delete")]
    save(spark.createDataFrame(changed, f"{schema}, _change_type STRING").coalesce(1), given)

    assert (b"\x02", b"\x02\x02\x06a b\x00") in broker.pairs(topic)
    assert (b"\x06", None) in broker.pairs(topic)
    table = [(1, "a b", None), (2, "b", None), (-4, None, (None,))]
    assert rows(load(spark, schema, given)) == sorted(table, key=repr)


def test_bytes_do_not_depend_on_the_query(spark: SparkSession, broker: Broker) -> None:
    """Columns that Spark knows to hold no nulls are written like those of which it does not know."""
    topic = broker.topic()
    given = options(broker, topic, **{"key.format": "avro", "value.format": "avro"})
    known = spark.range(1).selectExpr("id", "'a' AS name", "array(struct(1 AS x)) AS list")
    assert not known.schema["name"].nullable
    save(known, given)
    save(spark.createDataFrame([(0, "a", [(1,)])], known.schema.toNullable()), given)

    first, second = broker.pairs(topic)
    assert first == second
    assert rows(load(spark, "id BIGINT, name STRING, list ARRAY<STRUCT<x: INT>>", given)) == [
        (0, "a", [(1,)])
    ]


def test_a_given_schema_gives_the_columns(spark: SparkSession, broker: Broker) -> None:
    """Without .schema(...): those of the value's Avro schema, and the kind of change."""
    topic = broker.topic()
    avro = {
        "type": "record",
        "name": "user",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "mail", "type": ["null", "string"], "default": None},
        ],
    }
    given = options(
        broker,
        topic,
        **{"key.format": "json", "value.format": "avro", "value.avro.schema": json.dumps(avro)},
    )
    save(spark.createDataFrame([(1, "a@b")], "id BIGINT, mail STRING"), given)

    reader = spark.read.format("upsert-kafka").options(**given)
    assert rows(reader.load()) == [(1, "a@b", "upsert")]
    assert rows(reader.option("read.mode", "snapshot").load()) == [(1, "a@b")]


def test_bad_messages_are_blamed(spark: SparkSession, broker: Broker) -> None:
    """A message that cannot be decoded is named with topic, partition and offset, and why."""
    topic = broker.topic()
    broker.produce(
        topic, (b"\x02", b"\x02\x02\x06a b"), (b"\x04", b"\x04\x02\x06a"), (b"\x06", b"")
    )
    given = options(broker, topic, **{"key.format": "avro", "value.format": "avro"})

    text = refused(load(spark, "id BIGINT, name STRING", given).collect)

    assert f"topic '{topic}', partition 0, offset 1" in text
    assert "'name'" in text
    ignored = {**given, "error-handling.mode": "ignore"}
    assert rows(load(spark, "id BIGINT, name STRING", ignored)) == [(1, "a b")]
