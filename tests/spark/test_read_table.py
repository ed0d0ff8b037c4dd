"""`read_table` beside ``spark.read``: the same columns, types and rows with the same options.

What needs no comparison, as each CDC format, end and refusal, is in ``tests/kafka/test_read_table.py``.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka import read_table
from tests.conftest import Broker, options
from tests.local_registry import Registry
from tests.spark.batches import load, refused, save
from tests.spark.test_format_protobuf import formats as protobuf  # noqa: F401 - a fixture

PLAIN = "id BIGINT, name STRING"
CHANGES = f"{PLAIN}, _change_type STRING"
T0 = 1_700_000_000_000

WIDE = (
    "id BIGINT NOT NULL, tiny TINYINT, small SMALLINT, n INT, name STRING, score DOUBLE, ratio FLOAT, "
    "price DECIMAL(38,10), active BOOLEAN, data BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, "
    "tags ARRAY<ARRAY<STRING>>, attributes MAP<STRING, MAP<STRING, BIGINT>>, "
    "deep STRUCT<a: STRUCT<b: ARRAY<STRUCT<c: STRUCT<d: DOUBLE>, e: STRING>>>, f: BOOLEAN>, "
    "span INTERVAL DAY TO SECOND"
)
AVRO = WIDE.replace("tiny TINYINT, small SMALLINT, ", "")
CSV = WIDE.partition(", data BINARY")[0] + ", day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, tags ARRAY<STRING>"  # fmt: skip

VALUES = {
    "tiny": "CAST(id % 100 AS TINYINT)",
    "small": "CAST(id AS SMALLINT)",
    "n": "CAST(id AS INT)",
    "name": "IF(id % 7 = 0, NULL, concat('n \"', id, '\u00e9'))",
    "score": "CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN double('-Infinity') ELSE id / 3 END",
    "ratio": "CAST(id / 7 AS FLOAT)",
    "price": "CAST(id / 3 AS DECIMAL(38,10))",
    "active": "id % 2 = 0",
    "data": "IF(id % 3 = 0, NULL, CAST(concat('b', id) AS BINARY))",
    "day": "date_add(date'2024-02-28', CAST(id AS INT))",
    "at": "timestamp_micros(1700000000000000 + id)",
    "local": "to_timestamp_ntz(concat('2024-02-29 23:59:59.', 100 + id))",
    "tags": "array(array(name, NULL), array(), NULL)",
    "attributes": "map('x', map('y', id), 'z', NULL)",
    "deep": (
        "named_struct('a', named_struct('b', array(named_struct('c', named_struct('d', score), 'e', name))), "
        "'f', active)"
    ),
    "span": "make_dt_interval(id, 1, 2, 3.5)",
}


def check(spark: SparkSession, given: dict[str, str], schema: str | None = None) -> pa.Table:
    """Reads a table by both, which must agree; returns it."""
    reader = spark.read.format("upsert-kafka").options(**given)
    frame = (reader if schema is None else reader.schema(schema)).load()
    theirs = frame.toArrow()
    ours = read_table(given, schema=schema).read_all()

    assert ours.schema == theirs.schema
    assert [field.nullable for field in ours.schema] == [f.nullable for f in frame.schema]
    assert shown(ours) == shown(theirs)
    return ours


def shown(table: pa.Table) -> list[str]:
    """The rows as texts, in which one NaN is like another, sorted."""
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


def fill(spark: SparkSession, given: dict[str, str], schema: str) -> None:
    """Writes rows, changes of some of them, and deletes of others."""
    written = wide_rows(spark, 60, schema)
    save(written, given)
    changed = written.where("id < 20").selectExpr(
        *[name if name == "id" else f"IF(id % 4 = 0, NULL, {name}) AS {name}" for name in written.columns],
        "IF(id % 3 = 0, 'delete', 'upsert') AS _change_type",
    )  # fmt: skip
    save(changed, given)


def wide_rows(spark: SparkSession, count: int, schema: str) -> DataFrame:
    """Rows of every type that the columns have."""
    numbers = spark.range(count)
    names = [field.name for field in spark.createDataFrame([], schema).schema]
    for name, value in VALUES.items():
        if name in names:
            simple = name == "tags" and "tags ARRAY<STRING>" in schema
            numbers = numbers.selectExpr(
                "*", f"{'array(name, NULL)' if simple else value} AS {name}"
            )
    return numbers.selectExpr(*names)


@pytest.mark.parametrize(
    ("format_", "schema", "more"),
    [
        ("json", WIDE, {"value.json.timestamp-format.standard": "ISO-8601"}),
        ("csv", CSV, {}),
        ("avro", AVRO, {"value.avro.timestamp_mapping.legacy": "false"}),
        ("raw", "id BIGINT, name STRING", {"value.fields-include": "EXCEPT_KEY"}),
    ],
)
def test_formats(
    spark: SparkSession, broker: Broker, format_: str, schema: str, more: dict[str, str]
) -> None:
    """Every type that a format carries, with NULLs, updates and deletes, in several partitions."""
    topic = broker.topic(2)
    given = options(broker, topic, key__format=format_, value__format=format_, **more)
    if format_ == "raw":
        broker.produce(topic, *((bytes(7) + bytes([id_]), f"n{id_}") for id_ in range(30)))
        broker.produce(topic, *((bytes(7) + bytes([id_]), None) for id_ in range(5)))
    else:
        fill(spark, given, schema)

    assert check(spark, given, schema).num_rows == (25 if format_ == "raw" else 53)


def test_variants(spark: SparkSession, broker: Broker) -> None:
    """They are in Arrow as Spark has them: their two parts; Spark's own toArrow takes none that is NULL."""
    topic = broker.topic()
    broker.produce(topic, ('{"id":1}', '{"v":{"a":[1,null]}}'), ('{"id":2}', '{"v":true}'))

    check(spark, options(broker, topic), "id BIGINT, v VARIANT")


def test_protobuf(spark: SparkSession, broker: Broker, protobuf: dict[str, str]) -> None:  # noqa: F811
    """By descriptors."""
    given = options(broker, broker.topic(2), **protobuf)
    schema = "id BIGINT, name STRING, tags ARRAY<STRING>, at TIMESTAMP"
    rows = [(id_, f"n{id_}", ["a", str(id_)], None) for id_ in range(10)]
    save(spark.createDataFrame(rows, schema), given)

    assert check(spark, given, schema).num_rows == 10


@pytest.mark.parametrize(
    "name",
    [
        "avro-confluent",
        *(
            pytest.param(name, marks=pytest.mark.long("the same by another format of a registry"))
            for name in ("avro-registry", "json-registry", "proto-registry")
        ),
    ],
)
def test_formats_of_a_registry(
    spark: SparkSession, broker: Broker, registry: Registry, name: str
) -> None:
    """With the columns that the registry has; the change column is among them unless the mode is given."""
    given = options(
        broker,
        broker.topic(2),
        **{f"{side}.format": name for side in ("key", "value")},
        **{f"{side}.{name}.url": registry.url for side in ("key", "value")},
    )
    first = [(id_, f"n{id_}", "upsert") for id_ in range(10)]
    save(
        spark.createDataFrame(first, "id BIGINT NOT NULL, name STRING, _change_type STRING"), given
    )
    save(spark.createDataFrame([(3, None, "delete")], "id BIGINT NOT NULL, name STRING, _change_type STRING"), given)  # fmt: skip

    assert check(spark, given).column_names == ["id", "name", "_change_type"]
    assert check(spark, {**given, "read.mode": "snapshot"}).column_names == ["id", "name"]
    assert check(spark, given, PLAIN).num_rows == 9


ADA, ALAN, MOVED = {"id": 1, "name": "Ada"}, {"id": 2, "name": "Alan"}, {"id": 3, "name": "Ada"}


@pytest.mark.parametrize("pieces", [None, 3])
def test_a_cdc_format(spark: SparkSession, broker: Broker, pieces: int | None) -> None:
    """With a primary key such a topic is a table, also where its keys are read in pieces."""
    topic = broker.topic()
    changes = [("c", None, ADA), ("r", None, ALAN), ("u", ADA, MOVED), ("d", ALAN, None)]
    values = [json.dumps({"op": op, "before": old, "after": new}) for op, old, new in changes]
    broker.produce(topic, *((None, value) for value in values))
    given = options(
        broker, topic, key__format=None, value__format="debezium-json", minPartitions=pieces
    )

    assert check(spark, given, PLAIN).to_pylist() == [MOVED]


def test_debezium_in_avro(spark: SparkSession, broker: Broker, registry: Registry) -> None:
    """Its envelope names its schema."""
    given = options(
        broker, broker.topic(), value__format="avro-confluent",
        **{"value.fields-include": "EXCEPT_KEY", "value.avro-confluent.url": registry.url},
    )  # fmt: skip
    row = "STRUCT<id: BIGINT, name: STRING>"
    changes = [(1, None, (1, "Ada"), "c"), (2, None, (2, "Alan"), "c"), (2, (2, "Alan"), None, "d")]
    written = spark.createDataFrame(changes, f"id BIGINT, before {row}, after {row}, op STRING")
    save(written.coalesce(1), given)
    read = options(
        broker, given["topic"], value__format="debezium-avro-confluent", key__format=None,
        **{"value.debezium-avro-confluent.url": registry.url},
    )  # fmt: skip

    assert check(spark, read, PLAIN).to_pylist() == [ADA]


GOOD = [(f'{{"id":{id_}}}', f'{{"id":{id_},"name":"n{id_}"}}') for id_ in range(8)]
BAD = [('{"id":1}', "no JSON"), ("no JSON", "{}"), (None, "{}"), ('{"id":2}', "")]


@pytest.fixture(scope="module")
def with_bad_messages(broker: Broker) -> str:
    """Good messages, and bad ones of every kind."""
    topic = broker.topic(2)
    broker.produce(topic, *GOOD)
    broker.produce(topic, *BAD, partition=0)
    return topic


def test_bad_messages_that_are_sent_away(
    spark: SparkSession, broker: Broker, with_bad_messages: str
) -> None:
    """The last row of a key that can be read is the one that is shown, and each of both sends its own dead letters."""
    letters = broker.topic()
    log = {"error-handling.mode": "log", "error-handling.log.target": letters}

    assert check(spark, options(broker, with_bad_messages, **log), PLAIN).num_rows == len(GOOD)
    sent = [letter.value for letter in broker.messages(letters)]
    assert sent == [value.encode() for _, value in BAD] * 2


def test_a_bad_message_that_fails(
    spark: SparkSession, broker: Broker, with_bad_messages: str
) -> None:
    """Both fail with the same words."""
    given = options(broker, with_bad_messages)

    ours = refused(read_table(given, schema=PLAIN).read_all)
    assert "cannot be decoded (stage: " in ours
    assert ours in refused(load(spark, PLAIN, given).collect)


@pytest.mark.parametrize(
    ("given", "schema"),
    [
        ({"read.mode": "table"}, PLAIN),
        ({"primary-key": "nr"}, PLAIN),
        ({}, "id BIGINT, m MAP<STRING, STRING> NOT NULL, _offset STRING"),
    ],
)
def test_what_is_refused(
    spark: SparkSession, broker: Broker, given: dict[str, str], schema: str
) -> None:
    """Both refuse it with the same words; here the call does."""
    it = {**options(broker, broker.topic()), **given}

    ours = refused(lambda: read_table(it, schema=schema))
    assert ours in refused(load(spark, schema, it).collect)


@pytest.fixture(scope="module")
def history(broker: Broker) -> str:
    """Changes a second apart in two partitions."""
    topic = broker.topic(2, retention_ms="-1")
    producer = broker.producer()
    for at in range(40):
        key = f'{{"id":{at % 7}}}'
        value = None if at % 11 == 0 else f'{{"id":{at % 7},"name":"n{at}"}}'
        producer.produce(
            topic, key=key, value=value, partition=at % 2, timestamp=T0 + at * 1000,
            headers=[("at", b"%d" % at)],
        )  # fmt: skip
    assert producer.flush(60) == 0
    return topic


def test_a_past_time(spark: SparkSession, broker: Broker, history: str) -> None:
    """``at`` means ``scan.bounded.timestamp-millis``."""
    at = datetime.fromtimestamp(T0 / 1000 + 17, timezone.utc)
    given = options(broker, history)
    bounded = {
        "scan.bounded.mode": "timestamp",
        "scan.bounded.timestamp-millis": str(T0 + 17 * 1000),
    }

    wanted = shown(check(spark, {**given, **bounded}, PLAIN))
    assert shown(read_table(given, schema=PLAIN, at=at).read_all()) == wanted


METADATA = (
    "_topic STRING, _partition INT, _offset BIGINT, _timestamp TIMESTAMP, _timestamp_type STRING, "
    "_headers ARRAY<STRUCT<key: STRING, value: BINARY>>, _leader_epoch INT, _change_type STRING"
)
NAMED = {
    "b": ("partition", "BIGINT"), "d": ("timestamp", "TIMESTAMP_NTZ"), "f": ("headers", "MAP<STRING, BINARY>"),
    "h": ("leader-epoch", "BIGINT"), "i": ("change-type", "STRING"),
}  # fmt: skip


def test_metadata_columns(spark: SparkSession, broker: Broker, history: str) -> None:
    """Under reserved names, and under the user's own."""
    check(spark, options(broker, history), f"{PLAIN}, {METADATA}")
    named = {f"metadata.{name}": key for name, (key, _) in NAMED.items()}
    columns = ", ".join(f"{name} {type_}" for name, (_, type_) in NAMED.items())
    check(spark, options(broker, history, **named), f"{columns}, {PLAIN}")


def test_several_topics_in_pieces(spark: SparkSession, broker: Broker, history: str) -> None:
    """By a pattern; each topic has its own row of a key."""
    other = broker.topic(3)
    broker.produce(other, *GOOD)
    given = {**options(broker, history, minPartitions=5), "topic-pattern": f"{history}|{other}"}
    del given["topic"]

    found = check(spark, given, f"{PLAIN}, _topic STRING")
    assert set(found["_topic"].to_pylist()) == {history, other}


def test_a_statement(spark: SparkSession, broker: Broker, history: str) -> None:
    """Flink's CREATE TABLE gives columns, key and options; its watermark's column is Spark's TIMESTAMP."""
    ddl = f"""
        CREATE TABLE users (
          id BIGINT, name STRING NOT NULL, seen TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL,
          WATERMARK FOR seen AS seen - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED
        ) WITH (
          'connector' = 'upsert-kafka', 'topic' = '{history}', 'properties.bootstrap.servers' = '{broker.servers}',
          'key.format' = 'json', 'value.format' = 'json'
        )"""

    assert "_change_type" in check(spark, {"ddl": ddl}).column_names
    assert check(spark, {"ddl": ddl, "read.mode": "snapshot"}).column_names == [
        "id",
        "name",
        "seen",
    ]
    assert check(spark, {"ddl": ddl}, "id BIGINT, seen TIMESTAMP").column_names == ["id", "seen"]
