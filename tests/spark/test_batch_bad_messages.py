"""Messages that cannot be decoded: fail, ignore, log and column."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.conftest import Broker, options
from tests.raw_produce import produce_raw
from tests.spark.batches import load, refused
from tests.spark.conftest import rows

T0 = 1_700_000_000_000
CHANGELOG = {"read.mode": "changelog"}
SCHEMA = "id BIGINT, name STRING, _change_type STRING"

GOOD = b'{"id":1,"name":"a"}'
MESSAGES = [
    (b'{"id":1}', GOOD),
    (b"no json", GOOD),
    (b'{"id":1}', b"null"),
    (None, GOOD),
    (b'{"id":1}', b'{"id":1,"name":"a"}{"id":2,"name":"b"}'),
    (b'{"id":1}', b""),
    (b'{"id":1}', b"[1]"),
    (b"no json", None),
    (b'{"id":2}', b'{"id":2,"name":"b"}'),
    (b'{"id":2}', b'{"id":"text"}'),
    (b'{"id":3}', b'{"id":3,"name":"c"}'),
    (b'{"id":3}', None),
]
STAGES = {
    1: "key", 2: "value", 3: "null-key", 4: "value", 5: "value", 6: "value", 7: "key", 9: "value",
}  # fmt: skip


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """Good and bad messages of every kind."""
    name = broker.topic(1, retention_ms="-1")
    producer = broker.producer()
    for at, (key, value) in enumerate(MESSAGES):
        producer.produce(
            name, key=key, value=value, timestamp=T0 + at, headers=[("mine", b"%d" % at)]
        )
    assert producer.flush(60) == 0
    return name


@pytest.mark.parametrize(
    ("offset", "stage"), [(1, "key"), (2, "value"), (3, "null-key"), (7, "key")]
)
def test_fail_names_topic_partition_offset_and_stage(
    spark: SparkSession, broker: Broker, topic: str, offset: int, stage: str
) -> None:
    """``fail`` is the default: the query fails and says which message it was, and what to do."""
    one = options(
        broker, topic, **CHANGELOG,
        **{
            "scan.startup.mode": "specific-offsets",
            "scan.startup.specific-offsets": f"partition:0,offset:{offset}",
        },
    )  # fmt: skip
    text = refused(load(spark, SCHEMA, one).collect)
    assert (
        f"DecodeError: The message at topic '{topic}', partition 0, offset {offset} cannot be decoded "
        f"(stage: {stage}): " in text
    )
    assert "'error-handling.mode'" in text


def test_ignore_skips_and_the_last_decodable_change_stands(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    """``ignore`` leaves bad messages out: in a snapshot the last decodable change of a key stands."""
    ignore = {"error-handling.mode": "ignore"}
    assert rows(load(spark, "id BIGINT, name STRING", options(broker, topic, **ignore))) == [
        (1, "a"), (2, "b"),
    ]  # fmt: skip
    assert rows(load(spark, SCHEMA, options(broker, topic, **CHANGELOG, **ignore))) == [
        (1, "a", "upsert"), (2, "b", "upsert"), (3, "c", "upsert"), (3, None, "delete"),
    ]  # fmt: skip
    text = refused(load(spark, "id BIGINT", options(broker, topic)).collect)
    assert "DecodeError" in text


def test_log_sends_the_message_to_the_dead_letter_topic(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    """``log``: key, value and headers as they were, and what was wrong in headers of its own."""
    letters = broker.topic(1)
    given = {"error-handling.mode": "log", "error-handling.log.target": letters}
    table = load(spark, "id BIGINT, name STRING", options(broker, topic, **given))
    assert rows(table) == [(1, "a"), (2, "b")]
    found = broker.messages(letters)
    assert [(m.key, m.value) for m in found] == [MESSAGES[offset] for offset in STAGES]
    for letter, (offset, stage) in zip(found, STAGES.items(), strict=True):
        names = [name for name, _ in letter.headers]
        prefixed = [
            f"__error.{n}"
            for n in ("topic", "partition", "offset", "timestamp", "stage", "message")
        ]
        assert names == ["mine", *prefixed]
        headers = {name: (value or b"").decode() for name, value in letter.headers}
        assert headers["mine"] == str(offset)
        assert headers["__error.topic"] == topic
        assert headers["__error.partition"] == "0"
        assert headers["__error.offset"] == str(offset)
        assert headers["__error.timestamp"] == str(T0 + offset)
        assert headers["__error.stage"] == stage
        assert headers["__error.message"]
    table.count()
    assert len(broker.messages(letters)) == 2 * len(STAGES), "each action writes them again"


@pytest.mark.long("waits whether the topic appears")
def test_log_needs_a_topic_that_exists(spark: SparkSession, broker: Broker, topic: str) -> None:
    """A dead-letter topic that does not exist is an error before anything is read."""
    text = refused(
        load(
            spark, "id BIGINT", options(broker, topic, **{"error-handling.mode": "log"})
        ).collect
    )  # fmt: skip
    assert "OptionError: 'error-handling.log.target' is required" in text
    given = {"error-handling.mode": "log", "error-handling.log.target": "no-such-letters"}
    good = broker.topic(1)
    text = refused(load(spark, "id BIGINT", options(broker, good, **given)).collect)
    assert "BrokerError: Topic 'no-such-letters' does not exist" in text


ERROR = "_error STRUCT<stage: STRING, message: STRING, key: BINARY, value: BINARY>"


def test_column_shows_bad_messages_as_rows(spark: SparkSession, broker: Broker, topic: str) -> None:
    """``column``: ``_error`` and the metadata filled, NULL elsewhere, key and kind too."""
    given = options(broker, topic, **CHANGELOG, **{"error-handling.mode": "column"})
    table = load(spark, f"{SCHEMA}, {ERROR}, _offset BIGINT", given)
    found = {row["_offset"]: row for row in table.collect()}
    assert sorted(found) == list(range(len(MESSAGES)))
    for offset, row in found.items():
        if offset not in STAGES:
            assert row["_error"] is None
            continue
        key, value = MESSAGES[offset]
        assert row[:3] == (None, None, None)
        assert (row["_error"]["stage"], row["_error"]["key"], row["_error"]["value"]) == (
            STAGES[offset], key, value,
        )  # fmt: skip
        assert row["_error"]["message"]
    assert table.where("_error.stage = 'null-key'").count() == 1
    text = refused(load(spark, SCHEMA, given).collect)
    assert "SchemaError" in text
    assert "_error" in text
    snapshot = options(broker, topic, **{"error-handling.mode": "column"})
    text = refused(load(spark, f"id BIGINT, {ERROR}", snapshot).collect)
    assert "OptionError: 'error-handling.mode' = 'column'" in text


def test_column_in_an_append_source(spark: SparkSession, broker: Broker, topic: str) -> None:
    """An append source shows bad values, nulls among them, and cares for no key."""
    plain = {"read.mode": "append", "primary-key": None, "key.format": None}
    given = options(broker, topic, **plain, **{"error-handling.mode": "column"})
    table = load(spark, f"id BIGINT, {ERROR}, _offset BIGINT", given)
    bad = {row["_offset"] for row in table.collect() if row["_error"] is not None}
    assert bad == {2, 4, 5, 6, 7, 9, 11}


def test_ignore_parse_errors_of_a_format_acts_first(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    """What a format passes over never reaches ``error-handling.mode``; a null key does."""
    letters = broker.topic(1)
    given = options(
        broker, topic, **CHANGELOG,
        **{
            "error-handling.mode": "log", "error-handling.log.target": letters,
            "value.json.ignore-parse-errors": "true", "key.json.ignore-parse-errors": "true",
        },
    )  # fmt: skip
    assert len(load(spark, SCHEMA, given).collect()) == 5, "a field of the wrong type is NULL"
    assert [key for key, _ in broker.pairs(letters)] == [None]


HEADERS = "_headers ARRAY<STRUCT<key: STRING, value: BINARY>>, _offset BIGINT"


def test_headers_that_are_not_utf_8_are_a_bad_message(spark: SparkSession, broker: Broker) -> None:
    """In all four modes, where headers are shown or sent on; elsewhere nothing is wrong with the message."""
    topic, letters = broker.topic(1), broker.topic(1)
    produce_raw(broker.servers, topic, b'{"id":1}', GOOD, [(b"mine", b"1"), (b"\xff\xfe", b"2")])
    produce_raw(broker.servers, topic, b'{"id":2}', b'{"id":2,"name":"b"}', [(b"\xc3\xa9", None)])
    given = options(broker, topic, **CHANGELOG)
    assert rows(load(spark, SCHEMA, given)) == [(1, "a", "upsert"), (2, "b", "upsert")]

    def table(mode: str, schema: str = f"{SCHEMA}, {HEADERS}", **more: str) -> DataFrame:
        return load(spark, schema, {**given, "error-handling.mode": mode, **more})

    text = refused(table("fail").collect)
    assert f"topic '{topic}', partition 0, offset 0 cannot be decoded (stage: headers)" in text
    assert [(row.id, row["_headers"]) for row in table("ignore").collect()] == [(2, [("é", None)])]
    shown = {
        row["_offset"]: row for row in table("column", f"{SCHEMA}, {HEADERS}, {ERROR}").collect()
    }
    assert (shown[0].id, shown[0]["_error"]["stage"], shown[1].id) == (None, "headers", 2)
    assert shown[0]["_error"]["value"] == GOOD
    log = table("log", SCHEMA, **{"error-handling.log.target": letters})
    assert rows(log) == [(2, "b", "upsert")]
    assert broker.pairs(letters) == [(b'{"id":1}', GOOD)]
