"""Writing a batch: what stands in the topic afterwards, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from tests.conftest import Broker, Message, options
from tests.spark.batches import load, refused, save
from tests.spark.conftest import rows


def murmur2(key: bytes) -> int:
    """The hash of the Java client, as ``org.apache.kafka.common.utils.Utils`` has it."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = h * m & mask ^ k
    rest = key[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF


def test_murmur2_is_javas() -> None:
    """The test's own hash agrees with the values in Kafka's ``UtilsTest``."""
    known = {
        b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829, b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8":
        -58897971, b"abc": 479470107,
    }  # fmt: skip
    assert {key: murmur2(key) for key in known} == {
        key: value & 0x7FFFFFFF for key, value in known.items()
    }


def test_every_kind_of_change_in_any_case(spark: SparkSession, broker: Broker) -> None:
    """Kinds write values and tombstones; a tombstone is a null value; preimages wait for their key."""
    topic = broker.topic(1)
    kinds = [
        (1, "insert"), (2, "UPDATE_POSTIMAGE"), (3, "Upsert"), (4, "+I"), (5, "+u"), (6, "delete"),
        (7, "-D"), (8, "update_preimage"), (8, "update_postimage"), (9, "-U"), (10, "-u"), (10, "-d"),
    ]  # fmt: skip
    frame = spark.createDataFrame(kinds, "id BIGINT, _change_type STRING").selectExpr(
        "id", "concat('n', id) AS name", "_change_type"
    )
    save(frame.coalesce(1), options(broker, topic))
    live = [1, 2, 3, 4, 5, 8]
    expected = [
        (b'{"id":%d}' % n, b'{"id":%d,"name":"n%d"}' % (n, n) if n in live else None)
        for n in (1, 2, 3, 4, 5, 6, 7, 8, 10, 9)
    ]
    assert broker.pairs(topic) == expected


def test_each_key_lies_where_java_puts_it(spark: SparkSession, broker: Broker) -> None:
    """One key, one partition: the Java client's murmur2 of the key bytes, for deletes too."""
    topic = broker.topic(7)
    frame = spark.range(0, 3000, numPartitions=3).selectExpr(
        "concat('key ', id % 500, 'ü') AS id", "id AS v",
        "IF(id % 10 = 0, 'delete', 'upsert') AS _change_type",
    )  # fmt: skip
    save(frame, options(broker, topic))
    found = broker.messages(topic)
    assert len(found) == 3000
    assert {(m.key, m.partition) for m in found} == {
        (key, murmur2(key) % 7) for key in {m.key or b"" for m in found}
    }
    assert len({m.key for m in found}) == 500
    assert sum(m.value is None for m in found) == 300


def test_keys_of_several_columns_prefix_and_except_key(spark: SparkSession, broker: Broker) -> None:
    """Keys stand in primary-key order without the prefix; a value of nothing but NULL is a live row."""
    topic = broker.topic(2)
    given = options(
        broker, topic, primary_key="k_b,k_a",
        **{"key.fields-prefix": "k_", "value.fields-include": "EXCEPT_KEY"},
    )  # fmt: skip
    schema = "k_a BIGINT, a STRING, k_b STRING, _change_type STRING"
    data = [
        (1, "one", "x", "+I"), (2, None, "x", "+I"), (3, "gone", "x", "+I"), (3, None, "x", "-D"),
    ]  # fmt: skip
    save(spark.createDataFrame(data, schema).coalesce(1), given)
    assert Counter(broker.pairs(topic)) == Counter(
        [
            (b'{"b":"x","a":1}', b'{"a":"one"}'), (b'{"b":"x","a":2}', b'{"a":null}'),
            (b'{"b":"x","a":3}', b'{"a":"gone"}'), (b'{"b":"x","a":3}', None),
        ]
    )  # fmt: skip
    snapshot = load(spark, "a STRING, k_a BIGINT, k_b STRING", given)
    assert rows(snapshot) == [("one", 1, "x"), (None, 2, "x")]
    changelog = load(spark, schema, {**given, "read.mode": "changelog"}).where("k_a = 3")
    assert rows(changelog) == [(3, "gone", "x", "upsert"), (3, None, "x", "delete")]


def shown(message: Message) -> tuple[Any, ...]:
    """What a copy of a message must have like the original."""
    return (message.key, message.value, message.partition, message.timestamp, message.headers)


METADATA = (
    "_topic STRING, _partition INT, _offset BIGINT, _timestamp TIMESTAMP, _timestamp_type STRING, "
    "_headers ARRAY<STRUCT<key: STRING, value: BINARY>>, _leader_epoch INT, _change_type STRING"
)


def test_a_table_read_can_be_written_back_as_it_is(spark: SparkSession, broker: Broker) -> None:
    """With all its metadata columns: values, tombstones, timestamps and headers arrive as they were."""
    here, there = (broker.topic(3, retention_ms="-1") for _ in range(2))
    producer = broker.producer()
    for at in range(30):
        producer.produce(
            here, key=b'{"id":%d}' % (at % 10),
            value=None if at % 7 == 3 else b'{"id":%d,"name":"n%d"}' % (at % 10, at),
            timestamp=1_600_000_000_000 + at, headers=[("n", b"%d" % at), ("n", None)][: at % 3],
        )  # fmt: skip
    assert producer.flush(60) == 0
    schema = f"id BIGINT, name STRING, {METADATA}"
    changelog = load(spark, schema, options(broker, here, **{"read.mode": "changelog"}))
    save(changelog, options(broker, there))
    assert [shown(m) for m in broker.messages(there)] == [shown(m) for m in broker.messages(here)]
    table = load(spark, schema, options(broker, here))
    save(table, options(broker, there))
    again = load(spark, "id BIGINT, name STRING", options(broker, there))
    assert rows(again) == rows(table.select("id", "name"))


def test_timestamps_and_headers_are_written(spark: SparkSession, broker: Broker) -> None:
    """``_timestamp`` is the record's, NULL is now; ``_headers`` keep order and duplicates."""
    topic = broker.topic(1, retention_ms="-1")
    at = datetime(2020, 2, 2, 3, 4, 5, 678_000, timezone.utc)
    header = [("h", b"1"), ("h", None), ("i", b"")]
    frame = spark.createDataFrame(
        [(1, at, header), (2, None, []), (3, at, None)],
        "id BIGINT, _timestamp TIMESTAMP, _headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
    )
    before = datetime.now(timezone.utc).timestamp() * 1000 - 1000
    save(frame.coalesce(1), options(broker, topic))
    # A NULL timestamp beside a null value: now, too. A MAP of headers and a name of the user's own.
    mapped = spark.sql(
        "SELECT 4L AS id, map('m', X'01') AS h, timestamp_millis(1600000000123) AS at, "
        "'delete' AS op"
    )
    names = {"metadata.h": "headers", "metadata.at": "timestamp", "metadata.op": "change-type"}
    save(mapped, options(broker, topic, **names))
    found = broker.messages(topic)
    assert [m.value for m in found] == [b'{"id":1}', b'{"id":2}', b'{"id":3}', None]
    assert [m.headers for m in found] == [tuple(header), (), (), (("m", b"\x01"),)]
    millis = int(at.timestamp() * 1000)
    assert [m.timestamp for m in found if m.value != b'{"id":2}'] == [millis, millis, 1600000000123]
    assert found[1].timestamp >= before


def test_rows_choose_among_the_topics_of_the_list(spark: SparkSession, broker: Broker) -> None:
    """With a list ``_topic`` chooses; a name outside it, NULL too, is an error; so is no ``_topic``."""
    one, other = broker.topic(1), broker.topic(1)
    frame = spark.sql(f"SELECT id, IF(id % 2 = 0, '{one}', '{other}') AS _topic FROM range(4)")
    given = options(broker, [one, other])
    save(frame.coalesce(1), given)
    assert [key for key, _ in broker.pairs(one)] == [b'{"id":0}', b'{"id":2}']
    assert [key for key, _ in broker.pairs(other)] == [b'{"id":1}', b'{"id":3}']
    outside = spark.sql("SELECT 1L AS id, 'elsewhere' AS _topic")
    text = refused(lambda: save(outside, given))
    assert f"Expected topic to be in: [{one}, {other}] but was: elsewhere" in text
    assert "EncodeError: Column '_topic' cannot be written" in text
    assert "but was: null" in refused(
        lambda: save(outside.selectExpr("id", "CAST(NULL AS STRING) AS _topic"), given)
    )
    text = refused(lambda: save(spark.sql("SELECT 1L AS id"), given))
    assert "SchemaError: The topic of a row is not known" in text
    assert len(broker.pairs(one)) == len(broker.pairs(other)) == 2


NULL_KEY = (
    "EncodeError: Column 'id' cannot be written: it is NOT NULL, however, a null value is "
    "being written into it"
)
UNKNOWN_KIND = (
    "EncodeError: Column '_change_type' cannot be written: 'replace' is not a kind of change; known kinds: "
    "insert, update_postimage, upsert, +I, +U, delete, -D, update_preimage, -U"
)


def test_a_row_that_cannot_be_written(spark: SparkSession, broker: Broker) -> None:
    """A NULL key and an unknown kind are errors naming the column; nothing is written of the rows."""
    topic = broker.topic(1)
    for row, words in {
        "(CAST(NULL AS BIGINT), 'n', 'insert')": NULL_KEY,
        "(CAST(NULL AS BIGINT), 'n', 'delete')": NULL_KEY,
        "(2L, 'n', 'replace')": UNKNOWN_KIND,
        "(2L, 'n', CAST(NULL AS STRING))": "NULL is not a kind of change",
    }.items():
        frame = spark.sql(
            f"SELECT * FROM VALUES (1L, 'n', 'insert'), {row} AS t(id, name, _change_type)"
        )
        text = refused(lambda frame=frame: save(frame.coalesce(1), options(broker, topic)))
        assert words in text
    assert broker.pairs(topic) == []


def test_a_key_split_over_arrow_batches(spark: SparkSession, broker: Broker) -> None:
    """A preimage waits for its key's next change over the borders of Arrow batches."""
    topic = broker.topic(1)
    data = [
        (1, "a", "-U"), (2, "b", "+I"), (3, "c", "-U"), (1, "d", "+U"), (4, "e", "-U"),
        (5, "f", "+I"), (4, "g", "-U"), (2, "h", "-U"), (2, "i", "-D"),
    ]  # fmt: skip
    frame = spark.createDataFrame(data, "id BIGINT, name STRING, _change_type STRING").coalesce(1)
    given = options(broker, topic, **{"value.fields-include": "EXCEPT_KEY"})
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "2")
    try:
        save(frame, given)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    found = [(json.loads(key or b"")["id"], value) for key, value in broker.pairs(topic)]
    in_order, at_the_end = found[:4], found[4:]
    assert in_order == [(2, b'{"name":"b"}'), (1, b'{"name":"d"}'), (5, b'{"name":"f"}'), (2, None)]
    assert sorted(at_the_end) == [(3, None), (4, None)]


def test_the_buffer_keeps_the_last_change_of_each_key(spark: SparkSession, broker: Broker) -> None:
    """With both flush options a flush holds each key once: its last change."""
    frame = spark.range(1000, numPartitions=1).selectExpr(
        "id % 10 AS id", "id AS v", "IF(id >= 998, 'delete', 'upsert') AS _change_type"
    )
    last = {
        b'{"id":%d}' % n: None if n >= 8 else b'{"id":%d,"v":%d}' % (n, 990 + n) for n in range(10)
    }
    for max_rows, count in ((500, 10), (10, 1000), (1, 1000)):
        topic = broker.topic(1)
        flush = {"sink.buffer-flush.max-rows": max_rows, "sink.buffer-flush.interval": "10 min"}
        save(frame, options(broker, topic, **flush))
        found = broker.pairs(topic)
        assert len(found) == count
        assert dict(found) == last


def test_overwrite_is_refused_and_the_default_mode_too(spark: SparkSession, broker: Broker) -> None:
    """A topic has no truncate: ``overwrite`` is refused; so are Spark's other modes, by Spark."""
    topic = broker.topic(1)
    writer = spark.sql("SELECT 1L AS id").write.format("upsert-kafka")
    writer = writer.options(**options(broker, topic))
    text = refused(lambda: writer.mode("overwrite").save())
    assert (
        "OptionError: Mode 'overwrite' is not possible: a Kafka topic cannot be truncated." in text
    )
    for mode in ("error", "ignore"):
        assert "UNSUPPORTED_DATA_SOURCE_SAVE_MODE" in refused(writer.mode(mode).save)
    assert broker.pairs(topic) == []


def test_a_message_larger_than_the_topic_allows(spark: SparkSession, broker: Broker) -> None:
    """A message too large for the topic fails the task with topic, key and reason."""
    topic = broker.topic(1, max_message_bytes="20000")
    frame = spark.sql(
        "SELECT id, concat_ws('', transform(sequence(1, IF(id = 7, 500, 1)), n -> sha2(string(n), 512))) AS v "
        "FROM range(20)"
    )
    text = refused(lambda: save(frame.coalesce(1), options(broker, topic)))
    assert f"DeliveryError: A message to topic '{topic}', partition" in text
    assert 'key {"id":7}' in text
    assert "max.message.bytes" in text
    assert b'{"id":7}' not in {key for key, _ in broker.pairs(topic)}


def test_a_message_that_the_broker_refuses(spark: SparkSession, broker: Broker) -> None:
    """A refused message fails the batch, with topic, partition, key and the broker's reason."""
    topic = broker.topic(1, message_timestamp_before_max_ms="60000")
    frame = spark.sql("SELECT 5L AS id, timestamp_millis(1600000000000) AS _timestamp")
    text = refused(lambda: save(frame, options(broker, topic)))
    assert (
        f"DeliveryError: A message to topic '{topic}', partition 0, key {{\"id\":5}} was not"
        in text
    )
    assert "timestamp" in text
    assert "The batch is not done" in text
    assert broker.pairs(topic) == []


def test_delivery_guarantee_none(spark: SparkSession, broker: Broker) -> None:
    """Guarantee ``none`` asks the broker for no confirmation and writes all the same."""
    topic = broker.topic(2)
    given = options(broker, topic, **{"sink.delivery-guarantee": "none"})
    save(spark.range(100), given)
    assert len(broker.pairs(topic)) == 100


def test_frames_of_any_shape(spark: SparkSession, broker: Broker) -> None:
    """No rows, empty tasks, columns in any order and names in any case are written as they are."""
    topic = broker.topic(1)
    given = options(broker, topic)
    save(spark.range(0), given)
    save(spark.range(5).where("id = 3").repartition(4), given)
    cased = spark.sql("SELECT 'x' AS name, 4L AS ID, 'DELETE' AS _CHANGE_TYPE")
    save(cased, given, None)
    del given["topic"]
    save(spark.sql("SELECT 6L AS id"), given, topic)
    assert broker.pairs(topic) == [
        (b'{"id":3}', b'{"id":3}'), (b'{"ID":4}', None), (b'{"id":6}', b'{"id":6}'),
    ]  # fmt: skip
