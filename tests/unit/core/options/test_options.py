"""Options of a read and of a write: what they mean, and what is said when they are wrong."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import masked
from pyspark_upsert_kafka.core.options.catalog import OPTIONS, SECTIONS, SPARKS_OWN, Option
from pyspark_upsert_kafka.core.options.frozen_options import (
    BufferFlush,
    FormatChoice,
    Limits,
    Position,
    ReadOptions,
    TableOptions,
    Topics,
    WriteOptions,
)
from pyspark_upsert_kafka.core.options.parsers import boolean, text
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import check_write_options, write_options
from pyspark_upsert_kafka.core.receipts import Call, call_of_text
from tests.table_options import table_options

BASE = table_options(properties__bootstrap__servers="localhost:9092")
KEYLESS = {name: value for name, value in BASE.items() if name not in ("primary-key", "key.format")}
APPEND = {**KEYLESS, "read.mode": "append"}


def formats(name, side):
    """A format with two options, one of them secret; there is none with a letter wrong."""
    if name not in ("json", "x", "y"):
        raise OptionError(f"Unknown {side} format '{name}'")
    return (
        Option("ignore-parse-errors", boolean, False, "skip what cannot be read"),
        Option("bearer-auth.token", text, None, "the token for the registry"),
    )


def changed(more, base=BASE):
    """The base options and more; None takes one away."""
    return {name: value for name, value in {**base, **more}.items() if value is not None}


def batch(base=BASE, /, **more):
    """A batch read."""
    return read_options(changed(more, base), formats, stream=False)


def stream(base=BASE, /, **more):
    """A streaming read."""
    return read_options(changed(more, base), formats, stream=True)


def write(base=BASE, /, **more):
    """A write by ``df.write`` or ``df.writeStream``."""
    return write_options(changed(more, base), formats)


def sink(base=BASE, /, **more):
    """A write by `upsert_sink`."""
    return write_options(changed(more, base), formats, update_mode=True)


DEFAULTS = (("ignore-parse-errors", False), ("bearer-auth.token", None))
TABLE = TableOptions(
    topics=Topics(("t",)),
    primary_key=("id",),
    key_prefix="",
    value_holds_key=True,
    metadata=(),
    key_format=FormatChoice("json", DEFAULTS),
    value_format=FormatChoice("json", DEFAULTS),
    properties=Properties({"bootstrap.servers": "localhost:9092"}),
    client="librdkafka",
)
BATCH = ReadOptions(
    table=TABLE,
    mode="snapshot",
    emit_deletes=True,
    start=Position("earliest-offset"),
    end=Position("latest-offset"),
    discovery_interval_s=300.0,
    outage_timeout_s=0.0,
    min_partitions=None,
    max_partitions=None,
    snapshot_bytes=None,
    limits=Limits(),
    fail_on_data_loss=True,
    error_mode="fail",
    dead_letter_topic=None,
    read_committed=True,
)
STREAM = replace(
    BATCH,
    mode="changelog",
    end=Position("unbounded"),
    outage_timeout_s=600.0,
    limits=Limits(max_delay_s=900.0),
)
WRITE = WriteOptions(table=TABLE, buffer=None, guarantee=DeliveryGuarantee.AT_LEAST_ONCE)


# Defaults


def test_defaults_of_a_batch_read():
    """A batch read is a snapshot of everything committed up to now, and fails when in doubt."""
    assert batch() == BATCH


def test_defaults_of_a_streaming_read():
    """A stream is the changelog since the earliest offset, without end and without limits."""
    assert stream() == STREAM


def test_defaults_of_a_write():
    """A write is acknowledged, at least once, without a buffer; `upsert_sink` likewise."""
    assert (write(), sink()) == (WRITE, WRITE)


def test_an_append_source_has_no_key():
    """`append` needs neither `primary-key` nor `key.format`."""
    keyless = replace(TABLE, primary_key=(), key_format=None)

    assert batch(APPEND) == replace(BATCH, table=keyless, mode="append")
    assert stream(APPEND) == replace(STREAM, table=keyless, mode="append")


# What each option means

TABLE_VALUES = [
    ({"topic": "a;b; c"}, {"topics": Topics(("a", "b", "c"))}),
    ({"topic": None, "path": "a;b"}, {"topics": Topics(("a", "b"))}),
    ({"topic": "a;b", "path": "a;b"}, {"topics": Topics(("a", "b"))}),
    ({"topic": None, "paths": '["a", "b"]'}, {"topics": Topics(("a", "b"))}),
    ({"primary-key": " b , a"}, {"primary_key": ("b", "a")}),
    ({"primary-key": None, "key.fields": "b;a"}, {"primary_key": ("b", "a")}),
    ({"primary-key": "b,a", "key.fields": "b;a"}, {"primary_key": ("b", "a")}),
    ({"value.fields-include": "ALL"}, {}),
    ({"value.fields-include": "except_key"}, {"value_holds_key": False}),
    (
        {"value.fields-include": "EXCEPT_KEY", "key.fields-prefix": "k_"},
        {"value_holds_key": False, "key_prefix": "k_"},
    ),
    ({"key.fields-prefix": ""}, {}),
    ({"key.format": "x"}, {"key_format": FormatChoice("x", DEFAULTS)}),
    ({"value.format": "x"}, {"value_format": FormatChoice("x", DEFAULTS)}),
    (
        {"key.json.ignore-parse-errors": "true"},
        {
            "key_format": FormatChoice(
                "json", (("ignore-parse-errors", True), ("bearer-auth.token", None))
            )
        },
    ),
    (
        {"metadata.at": "Offset", "metadata._offset": "none"},
        {"metadata": (("_offset", "none"), ("at", "offset"))},
    ),
    (
        {"properties.linger.ms": "5", "properties.allow.auto.create.topics": "true"},
        {
            "properties": Properties(
                {
                    "bootstrap.servers": "localhost:9092",
                    "linger.ms": "5",
                    "allow.auto.create.topics": "true",
                }
            )
        },
    ),
    ({"kafka.client": "librdkafka"}, {}),
    ({"kafka.client": "kafka-python"}, {"client": "kafka-python"}),
    (
        {"kafka.client.native": "false"},
        {"properties": Properties(dict(TABLE.properties), native=False)},
    ),
    ({"connector": "upsert-kafka"}, {}),
    ({"checkpointlocation": "/tmp/c", "queryname": "q"}, {}),
]


@pytest.mark.parametrize(("given", "fields"), TABLE_VALUES)
@pytest.mark.parametrize(
    ("planned", "expected"),
    [(batch, BATCH), (stream, STREAM), (write, WRITE), (sink, WRITE)],
    ids=["batch", "stream", "write", "upsert_sink"],
)
def test_options_of_the_table(planned, expected, given, fields):
    """Options of the table mean the same for reading and for writing."""
    assert planned(**given) == replace(expected, table=replace(TABLE, **fields))


GROUP = {"properties.group.id": "g"}
OF_GROUP = replace(
    TABLE, properties=Properties({"bootstrap.servers": "localhost:9092", "group.id": "g"})
)


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"read.mode": "changelog"}, {}),
        ({"scan.deletes": "drop"}, {"emit_deletes": False}),
        ({"scan.startup.mode": "latest-offset"}, {"start": Position("latest-offset")}),
        (
            {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "7"},
            {"start": Position("timestamp", timestamp_ms=7)},
        ),
        (
            {
                "scan.startup.mode": "specific-offsets",
                "scan.startup.specific-offsets": "partition:1,offset:300;partition:0,offset:42",
            },
            {"start": Position("specific-offsets", offsets=((0, 42), (1, 300)))},
        ),
        (
            {"scan.startup.mode": "group-offsets", **GROUP},
            {"start": Position("group-offsets"), "table": OF_GROUP},
        ),
        (
            {
                "scan.startup.mode": "group-offsets",
                "properties.auto.offset.reset": "Latest",
                "scan.bounded.mode": "group-offsets",
                **GROUP,
            },
            {
                "start": Position("group-offsets", reset="latest"),
                "end": Position("group-offsets"),
                "table": OF_GROUP,
            },
        ),
        ({"scan.bounded.mode": "latest-offset"}, {"end": Position("latest-offset")}),
        (
            {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": "7"},
            {"end": Position("timestamp", timestamp_ms=7)},
        ),
        (
            {
                "scan.bounded.mode": "specific-offsets",
                "scan.bounded.specific-offsets": "partition:0,offset:42",
            },
            {"end": Position("specific-offsets", offsets=((0, 42),))},
        ),
        ({"scan.schema-changes": "restart"}, {"new_columns": "restart"}),
        ({"scan.headers": "type=Order"}, {"wanted_headers": (("type", b"Order"),)}),
        ({"scan.record-names": "a.Order; Refund;Refund"}, {"record_names": ("a.Order", "Refund")}),
        ({"scan.topic-partition-discovery.interval": "0"}, {"discovery_interval_s": 0.0}),
        ({"scan.topic-partition-discovery.interval": "1 min"}, {"discovery_interval_s": 60.0}),
        ({"scan.outage.timeout": "0"}, {"outage_timeout_s": 0.0}),
        ({"scan.outage.timeout": "1 min"}, {"outage_timeout_s": 60.0}),
        (
            {"properties.isolation.level": "read_committed"},
            {
                "table": replace(
                    TABLE,
                    properties=Properties(
                        {"bootstrap.servers": "localhost:9092", "isolation.level": "read_committed"}
                    ),
                )
            },
        ),
        ({"minPartitions": "8"}, {"min_partitions": 8}),
        ({"scan.snapshot.memory": "512 mb"}, {"snapshot_bytes": 2**29}),
        ({"scan.snapshot.memory": "AUTO"}, {"snapshot_bytes": None}),
        ({"scan.parallelism": "2"}, {"max_partitions": 2}),
        ({"scan.parallelism": "Auto"}, {"max_partitions": "auto"}),
        (
            {"minPartitions": "8", "scan.parallelism": "8"},
            {"min_partitions": 8, "max_partitions": 8},
        ),
        ({"maxOffsetsPerTrigger": "10"}, {"limits": Limits(max_offsets=10, max_delay_s=900.0)}),
        ({"maxBytesPerTrigger": "1 kb"}, {"limits": Limits(max_bytes=1024, max_delay_s=900.0)}),
        (
            {
                "minOffsetsPerTrigger": "10",
                "maxOffsetsPerTrigger": "10",
                "maxTriggerDelay": "1 min",
            },
            {"limits": Limits(max_offsets=10, min_offsets=10, max_delay_s=60.0)},
        ),
        (
            {"scan.watermark.alignment.max-drift": "5 min"},
            {"limits": Limits(max_delay_s=900.0, max_drift_s=300.0)},
        ),
        ({"scan.filter-pushdown": "one-filter-per-load"}, {"takes_filters": True}),
        ({"scan.key-partitioner": "murmur2"}, {"key_partitioner": "murmur2"}),
        ({"failOnDataLoss": "false"}, {"fail_on_data_loss": False}),
        ({"error-handling.mode": "ignore"}, {"error_mode": "ignore"}),
        ({"error-handling.mode": "column"}, {"error_mode": "column"}),
        (
            {"error-handling.mode": "log", "error-handling.log.target": "bad"},
            {"error_mode": "log", "dead_letter_topic": "bad"},
        ),
        ({"error-handling.log.target": "bad"}, {}),
        (
            {"topic": None, "topic-pattern": "a.*"},
            {"table": replace(TABLE, topics=Topics(pattern=re.compile("a.*")))},
        ),
    ],
)
def test_options_of_a_streaming_read(given, fields):
    """Each option of a read says one thing of the plan; names come in any case."""
    assert stream(**given) == replace(STREAM, **fields)
    assert stream(**{name.lower(): value for name, value in given.items()}) == stream(**given)


def test_read_uncommitted():
    """`properties.isolation.level` decides which messages are seen."""
    assert not batch(**{"properties.isolation.level": "read_uncommitted"}).read_committed


@pytest.mark.parametrize("mode", ["fail", "ignore", "column", "log"])
def test_bad_messages_are_sent_on_in_one_mode(mode):
    """The topic may stand there in any mode, so that a switch of modes is one option."""
    given = {
        "read.mode": "changelog",
        "error-handling.mode": mode,
        "error-handling.log.target": "bad",
    }

    assert batch(**given).sends_dead_letters == (mode == "log")


def test_limits_are_for_streams():
    """A batch read takes the limits of a stream and has no use for them."""
    assert batch(maxOffsetsPerTrigger="10", minOffsetsPerTrigger="1") == BATCH


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"read.mode": "snapshot"}, {}),
        (
            {"read.mode": "changelog", "scan.startup.mode": "latest-offset", "minPartitions": "3"},
            {"mode": "changelog", "start": Position("latest-offset"), "min_partitions": 3},
        ),
        (
            {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": "7"},
            {"end": Position("timestamp", timestamp_ms=7)},
        ),
    ],
)
def test_options_of_a_batch_read(given, fields):
    """A batch read is a snapshot, or the changes from anywhere to an end."""
    assert batch(**given) == replace(BATCH, **fields)


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"sink.buffer-flush.max-rows": "0", "sink.buffer-flush.interval": "0s"}, {}),
        (
            {"sink.buffer-flush.max-rows": "100", "sink.buffer-flush.interval": "2s"},
            {"buffer": BufferFlush(100, 2.0)},
        ),
        ({"sink.delivery-guarantee": "none"}, {"guarantee": DeliveryGuarantee.NONE}),
        ({"sink.delivery-guarantee": "at-least-once"}, {}),
        ({"sink.parallelism": "4"}, {"parallelism": 4}),
        ({"sequence-by": "ts"}, {"sequence_by": "ts"}),
        (
            {
                "sink.delivery-guarantee": "EXACTLY-ONCE",
                "sink.transactional-id-prefix": "p",
                "sink.parallelism": "4",
            },
            {
                "guarantee": DeliveryGuarantee.EXACTLY_ONCE,
                "transactional_id_prefix": "p",
                "parallelism": 4,
            },
        ),
    ],
)
def test_options_of_a_write(given, fields):
    """Each option of a write says one thing of the plan."""
    assert sink(**given) == replace(WRITE, **fields)


# One declaration, accepted on both sides

VALID = {
    "metadata.<column>": {"metadata.at": "timestamp"},
    "properties.<name>": {"properties.linger.ms": "5"},
    "ddl": {
        "ddl": "CREATE TABLE t (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka')"
    },
    "connector": {"connector": "upsert-kafka"},
    "topic": {"topic": "t"},
    "topic-pattern": {"topic": None, "topic-pattern": "t.*"},
    "primary-key": {"primary-key": "id"},
    "key.fields": {"primary-key": None, "key.fields": "id"},
    "key.format": {"key.format": "json"},
    "value.format": {"value.format": "json"},
    "key.fields-prefix": {"key.fields-prefix": "k_", "value.fields-include": "EXCEPT_KEY"},
    "value.fields-include": {"value.fields-include": "ALL"},
    "kafka.client": {"kafka.client": "librdkafka"},
    "kafka.client.native": {"kafka.client.native": "true"},
    "properties.bootstrap.servers": {"properties.bootstrap.servers": "a:1,b:2"},
    "properties.allow.auto.create.topics": {"properties.allow.auto.create.topics": "true"},
    "properties.isolation.level": {"properties.isolation.level": "read_uncommitted"},
    "properties.group.id": {"properties.group.id": "g"},
    "properties.sasl.oauthbearer.token.provider": {
        "properties.sasl.oauthbearer.token.provider": "company"
    },
    "properties.auto.offset.reset": {
        "properties.auto.offset.reset": "earliest",
        "scan.startup.mode": "group-offsets",
        "properties.group.id": "g",
    },
    "read.mode": {"read.mode": "changelog"},
    "scan.deletes": {"scan.deletes": "drop"},
    "scan.startup.mode": {"read.mode": "changelog", "scan.startup.mode": "latest-offset"},
    "scan.startup.timestamp-millis": {
        "scan.startup.mode": "timestamp",
        "scan.startup.timestamp-millis": "1",
    },
    "scan.startup.timestamp": {"scan.startup.timestamp": "-10 min"},
    "scan.startup.specific-offsets": {
        "scan.startup.mode": "specific-offsets",
        "scan.startup.specific-offsets": "partition:0,offset:1",
    },
    "scan.bounded.mode": {"scan.bounded.mode": "latest-offset"},
    "scan.bounded.timestamp-millis": {
        "scan.bounded.mode": "timestamp",
        "scan.bounded.timestamp-millis": "1",
    },
    "scan.bounded.timestamp": {"scan.bounded.timestamp": "-10 min"},
    "scan.bounded.specific-offsets": {
        "scan.bounded.mode": "specific-offsets",
        "scan.bounded.specific-offsets": "partition:0,offset:1",
    },
    "scan.topic-partition-discovery.interval": {"scan.topic-partition-discovery.interval": "1s"},
    "scan.outage.timeout": {"scan.outage.timeout": "1s"},
    "scan.headers": {"scan.headers": "type=Order"},
    "scan.record-names": {"scan.record-names": "com.acme.Order"},
    "scan.schema-changes": {"scan.schema-changes": "restart"},
    "minPartitions": {"minPartitions": "1"},
    "scan.snapshot.memory": {"scan.snapshot.memory": "1 gb"},
    "scan.snapshot.merge-partitions": {
        "scan.snapshot.merge-partitions": "true",
        "scan.startup.mode": "full",
    },
    "scan.parallelism": {"scan.parallelism": "1"},
    "maxOffsetsPerTrigger": {"maxOffsetsPerTrigger": "1"},
    "maxBytesPerTrigger": {"maxBytesPerTrigger": "1"},
    "minOffsetsPerTrigger": {"minOffsetsPerTrigger": "1"},
    "maxTriggerDelay": {"maxTriggerDelay": "2s"},
    "scan.watermark.alignment.max-drift": {"scan.watermark.alignment.max-drift": "2s"},
    "scan.filter-pushdown": {"scan.filter-pushdown": "one-filter-per-load"},
    "scan.key-partitioner": {"scan.key-partitioner": "murmur2"},
    "failOnDataLoss": {"failOnDataLoss": "false"},
    "error-handling.mode": {"error-handling.mode": "ignore"},
    "error-handling.log.target": {"error-handling.log.target": "bad"},
    "sink.buffer-flush.max-rows": {
        "sink.buffer-flush.max-rows": "1",
        "sink.buffer-flush.interval": "1s",
    },
    "sink.buffer-flush.interval": {
        "sink.buffer-flush.max-rows": "1",
        "sink.buffer-flush.interval": "1s",
    },
    "sink.parallelism": {"sink.parallelism": "1"},
    "sequence-by": {"sequence-by": "ts"},
    "sink.delivery-guarantee": {"sink.delivery-guarantee": "none"},
    "sink.transactional-id-prefix": {"sink.transactional-id-prefix": "p"},
}

EXACTLY_ONCE = {
    "sink.delivery-guarantee": "exactly-once",
    "sink.transactional-id-prefix": "p",
    "sink.parallelism": "4",
}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_declared_option_is_accepted_on_both_sides(name):
    """One set of options serves for reading and for writing a table."""
    assert name in VALID, "VALID has no value of it"
    assert isinstance(stream(**VALID[name]), ReadOptions)
    if name != "topic-pattern":
        assert isinstance(sink(**VALID[name]), WriteOptions)


@pytest.mark.parametrize("name", [name for name in OPTIONS if not OPTIONS[name].default])
@pytest.mark.parametrize("planned", [stream, sink], ids=["stream", "upsert_sink"])
def test_no_declared_option_is_overlooked(planned, name):
    """A value of no type is noticed for every option, on the side that has no use for it too."""
    parse = OPTIONS[name].parse
    bad = next((value for value in ("", "(", "\N{SNOWMAN}") if _refuses(parse, value)), None)
    if bad is not None:
        with pytest.raises(OptionError):
            planned(**{**VALID[name], name: bad})


def _refuses(parse, value):
    try:
        parse(value)
    except ValueError:
        return True
    return False


def test_each_option_is_declared_once():
    """No two options have one name, also when the case of letters is forgotten."""
    names = [option.name.lower() for section in SECTIONS for option in section.options]

    assert len(set(names)) == len(names)


def test_each_declared_default_is_a_value():
    """What the documentation shows as a default means the default."""
    for option in OPTIONS.values():
        written = option.shown_default
        if written is not None and re.fullmatch("`[^`]+`", written) and option.default is not None:
            assert option.parse(written.strip("`")) == option.default
        elif isinstance(option.default, str):
            assert option.parse(option.default) == option.default


def test_a_flink_with_clause_can_be_pasted():
    """Flink's names and values are taken as they are."""
    clause = {
        "connector": "upsert-kafka",
        "topic": "pageviews_per_region",
        "properties.bootstrap.servers": "localhost:9092",
        "properties.group.id": "g",
        "key.format": "json",
        "key.json.ignore-parse-errors": "true",
        "key.fields-prefix": "k_",
        "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
        "value.json.fail-on-missing-field": "false",
        "scan.bounded.mode": "latest-offset",
        "scan.topic-partition-discovery.interval": "5 min",
        "sink.buffer-flush.max-rows": "1000",
        "sink.buffer-flush.interval": "2s",
        "sink.delivery-guarantee": "at-least-once",
        "sink.parallelism": "4",
        "primary-key": "k_region",
    }

    read = read_options(clause, format_options, stream=True)
    written = write_options(clause, format_options, update_mode=True)

    assert read.table == written.table
    assert dict(read.table.key_format.options)["ignore-parse-errors"] is True
    assert written.buffer == BufferFlush(1000, 2.0)


# What is wrong

PRIMARY_KEY = (
    "'upsert-kafka' tables require to define a PRIMARY KEY constraint. The PRIMARY KEY specifies "
    "which columns should be read from or write to the Kafka message key. The PRIMARY KEY also "
    "defines records in the 'upsert-kafka' table should update or delete on which keys."
)
MISSING = "One or more required options are missing. Missing required options are: "

ANY = (batch, stream, write, sink)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topic": None}, "Either 'topic' or 'topic-pattern' must be set."),
        ({"topic": " ; "}, "Either 'topic' or 'topic-pattern' must be set."),
        ({"topic-pattern": "t.*"}, "Option 'topic' and 'topic-pattern' shouldn't be set together."),
        (
            {"topic": None, "path": "t", "topic-pattern": "t.*"},
            "Option 'topic' and 'topic-pattern' shouldn't be set together.",
        ),
        (
            {"path": "u"},
            (
                "The topic given by option 'topic' and by the path of load, save or start must be one "
                "and the same: 'topic' is 't', 'path' is 'u'. Leave one out."
            ),
        ),
        (
            {"topic": "a b"},
            (
                "Invalid value for option 'topic': expected a topic's name, of at most 249 letters, "
                "digits, '.', '_' and '-', but is 'a b'."
            ),
        ),
        ({"path": "a b", "topic": None}, "Invalid value for option 'path': "),
        ({"paths": "a", "topic": None}, "Invalid value for option 'paths': "),
        ({"primary-key": None}, PRIMARY_KEY),
        ({"primary-key": " , "}, PRIMARY_KEY),
        (
            {"primary-key": "a,b,A"},
            "Invalid value for option 'primary-key': expected each column once, but is 'a,b,A'.",
        ),
        (
            {"primary-key": "a,b", "key.fields": "b;a"},
            "Options 'primary-key' and 'key.fields' name different columns: leave one out.",
        ),
        ({"key.format": None}, MISSING + "key.format. For example: "),
        ({"value.format": ""}, "Invalid value for option 'value.format': expected a value"),
        ({"properties.bootstrap.servers": " "}, MISSING + "properties.bootstrap.servers. "),
        (
            {"properties.bootstrap.servers": "b:9092,HTTP://c:9092"},
            (
                "Invalid value for option 'properties.bootstrap.servers': expected addresses without 'http', as "
                "in 'host:9092,host2:9092', but is 'b:9092,HTTP://c:9092'."
            ),
        ),
        (
            {"properties.bootstrap.servers": "b:9092;c:9092"},
            (
                "Invalid value for option 'properties.bootstrap.servers': expected addresses separated by ',', as "
                "in 'host:9092,host2:9092', but is 'b:9092;c:9092'."
            ),
        ),
        (
            {"properties.bootstrap.servers": "b:9092, c:kafka"},
            (
                "Invalid value for option 'properties.bootstrap.servers': expected a port from 1 to 65535 after 'c:', "
                "but is 'b:9092, c:kafka'."
            ),
        ),
        (
            {"properties.bootstrap.servers": "b:90920"},
            "Invalid value for option 'properties.bootstrap.servers': expected a port from 1 to 65535 after 'b:'",
        ),
        (
            {"topic": "a,b"},
            "Invalid value for option 'topic': expected topics separated by ';', but is 'a,b'.",
        ),
        (
            {"properties.bootstrap.servers": None, "properties.bootstrap.server": "b:9092"},
            MISSING + "properties.bootstrap.servers ('properties.bootstrap.server' was given). ",
        ),
        (
            {"key.format": None, "value.format": None, "properties.bootstrap.servers": None},
            MISSING
            + "key.format, properties.bootstrap.servers, value.format. For example: "
            + ".option('key.format', 'json')",
        ),
        (
            {"key.format": None, "key.json.ignore-parse-errors": "true"},
            MISSING + "key.format. For example: ",
        ),
        (
            {"key.fields-prefix": "k_"},
            (
                "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'. Set it "
                "to 'EXCEPT_KEY' instead to avoid field overlaps."
            ),
        ),
        (
            {"metadata.at": "offsets"},
            (
                "Invalid value for option 'metadata.at': expected one of 'topic', 'partition', 'offset', "
                "'timestamp', 'timestamp-type', 'headers', 'header-list', 'leader-epoch', 'change-type', "
                "'none', 'value.schema', "
            ),
        ),
        ({"metadata.e": "error"}, "Invalid value for option 'metadata.e': expected one of "),
        (
            {"scan.startup.specific-offsets": "0:1"},
            (
                "Invalid properties 'scan.startup.specific-offsets' should follow the format "
                "'partition:0,offset:42;partition:1,offset:300', but is '0:1'."
            ),
        ),
        (
            {"scan.bounded.specific-offsets": "0:1"},
            (
                "Invalid properties 'scan.bounded.specific-offsets' should follow the format "
                "'partition:0,offset:42;partition:1,offset:300', but is '0:1'."
            ),
        ),
        (
            {"properties.isolation.level": "none"},
            (
                "Invalid value for option 'properties.isolation.level': expected one of "
                "'read_committed', 'read_uncommitted', but is 'none'."
            ),
        ),
        (
            {"properties.allow.auto.create.topics": "yes"},
            (
                "Invalid value for option 'properties.allow.auto.create.topics': expected 'true' or "
                "'false', but is 'yes'."
            ),
        ),
        (
            {"properties.auto.offset.reset": "earliest"},
            (
                "Option 'properties.auto.offset.reset' is for 'scan.startup.mode' = "
                "'group-offsets' only; otherwise 'scan.startup.mode' alone decides where to start."
            ),
        ),
        (
            {"connector": "kafka"},
            "Invalid value for option 'connector': expected one of 'upsert-kafka', but is 'kafka'.",
        ),
        (
            {"error-handling.log.target": "a b"},
            "Invalid value for option 'error-handling.log.target': expected a topic's name",
        ),
        (
            {"scan.startup.mode": "timestamp"},
            "'scan.startup.timestamp-millis' is required in 'timestamp' startup mode but missing.",
        ),
        (
            {"scan.startup.mode": "specific-offsets"},
            (
                "'scan.startup.specific-offsets' is required in 'specific-offsets' startup mode but "
                "missing."
            ),
        ),
        (
            {"scan.bounded.mode": "timestamp"},
            "'scan.bounded.timestamp-millis' is required in 'timestamp' bounded mode but missing.",
        ),
        (
            {"scan.bounded.mode": "specific-offsets"},
            (
                "'scan.bounded.specific-offsets' is required in 'specific-offsets' bounded mode but "
                "missing."
            ),
        ),
        (
            {"scan.startup.timestamp-millis": "1"},
            (
                "'scan.startup.timestamp-millis' is for 'scan.startup.mode' = "
                "'timestamp' only, but that is 'earliest-offset'."
            ),
        ),
        (
            {
                "topic": "a;b",
                "scan.startup.mode": "specific-offsets",
                "scan.startup.specific-offsets": "partition:0,offset:1",
            },
            "Currently Kafka source only supports specific offset for single topic.",
        ),
        (
            {"scan.startup.mode": "group-offsets"},
            "'properties.group.id' is required in 'group-offsets' startup mode.",
        ),
        (
            {
                "scan.startup.mode": "group-offsets",
                "properties.group.id": "g",
                "properties.auto.offset.reset": "smallest",
            },
            (
                "Invalid value for option 'properties.auto.offset.reset': expected one of 'earliest', "
                "'latest', 'none', but is 'smallest'."
            ),
        ),
        (
            {"read.mode": "changelog", "minPartitions": "9", "scan.parallelism": "8"},
            "The value of 'minPartitions' (9) must not be larger than 'scan.parallelism' (8): ",
        ),
        *(
            (
                {"sink.transactional-id-prefix": prefix},
                "Invalid value for option 'sink.transactional-id-prefix': expected at most 200 visible ASCII characters",
            )
            for prefix in (" ", "gr\u00fcn", "a b", "x" * 201)
        ),
        (
            {"read.mode": "changelog", "minPartitions": "9", "scan.parallelism": "auto"},
            "'minPartitions' is not allowed with 'scan.parallelism' = 'auto': ",
        ),
        *(
            (
                {"scan.parallelism": value},
                "Invalid value for option 'scan.parallelism': expected a whole number of at least 1, or 'auto'",
            )
            for value in ("0", "automatic")
        ),
        (
            {"scan.snapshot.memory": "much"},
            "Invalid value for option 'scan.snapshot.memory': expected an amount of memory such as '512 mb' or '1g', or 'auto'",
        ),
        (
            {"scan.snapshot.memory": "0 mb"},
            "Invalid value for option 'scan.snapshot.memory': expected an amount of memory",
        ),
        *(
            (
                {"maxBytesPerTrigger": value},
                "Invalid value for option 'maxBytesPerTrigger': expected an amount of memory such as '512 mb' or '1g'",
            )
            for value in ("0", "much", "-1", "1.5 mb")
        ),
        (
            {"scan.watermark.alignment.max-drift": "soon"},
            "Invalid value for option 'scan.watermark.alignment.max-drift': expected a duration such as",
        ),
        (
            {"scan.watermark.alignment.max-drift": "0 min"},
            "Invalid value for option 'scan.watermark.alignment.max-drift': expected a duration of at least",
        ),
        (
            {"scan.watermark.alignment.max-drift": "106751991167 d"},
            "Invalid value for option 'scan.watermark.alignment.max-drift': expected a duration of at most '36500 d'",
        ),
        (
            {"minOffsetsPerTrigger": "11", "maxOffsetsPerTrigger": "10"},
            (
                "The value of 'minOffsetsPerTrigger' (11) must not be larger than "
                "'maxOffsetsPerTrigger' (10)."
            ),
        ),
        (
            {"error-handling.mode": "log"},
            "'error-handling.log.target' is required in 'log' error-handling mode but missing.",
        ),
        (
            {"topic": "a;b", "error-handling.mode": "log", "error-handling.log.target": "b"},
            "'error-handling.log.target' = 'b' is one of the topics that are read: ",
        ),
        (
            {"sink.buffer-flush.max-rows": "10"},
            (
                "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set to be greater "
                "than zero together to enable sink buffer flushing."
            ),
        ),
        (
            {"sink.buffer-flush.interval": "1s"},
            (
                "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set to be greater "
                "than zero together to enable sink buffer flushing."
            ),
        ),
    ],
)
@pytest.mark.parametrize("planned", ANY, ids=["batch", "stream", "write", "upsert_sink"])
def test_what_is_wrong_on_both_sides(planned, given, message):
    """One set of options serves both sides, so each tells what is wrong, in Flink's words if there are any."""
    with pytest.raises(OptionError, match="^" + re.escape(message)):
        planned(**given)


@pytest.mark.parametrize(
    ("planned", "given", "message"),
    [
        (
            stream,
            {"read.mode": "snapshot"},
            "'read.mode' = 'snapshot' is for batch reads; a stream reads a 'changelog'.",
        ),
        (
            batch,
            {"read.mode": "table"},
            (
                "Invalid value for option 'read.mode': expected one of 'snapshot', 'changelog', "
                "'append', but is 'table'."
            ),
        ),
        (
            batch,
            {"scan.startup.mode": "latest-offset"},
            "'scan.startup.mode' = 'latest-offset' is not allowed with 'read.mode' = 'snapshot': ",
        ),
        (
            batch,
            {"error-handling.mode": "column"},
            "'error-handling.mode' = 'column' is for 'changelog' and 'append' reads.",
        ),
        (
            batch,
            {"scan.bounded.mode": "unbounded"},
            "'scan.bounded.mode' = 'unbounded' is for streams; a batch read has an end.",
        ),
        (
            batch,
            {"scan.schema-changes": "restart"},
            "'scan.schema-changes' = 'restart' is for streams. A batch read has the columns of the newest schema when it begins: ",
        ),
        (
            stream,
            {
                "scan.schema-changes": "restart",
                "ddl": "CREATE TABLE t (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka')",
            },
            "'scan.schema-changes' = 'restart' is for columns that come from a schema: ",
        ),
        (
            batch,
            {"kafka.client": "kafka-python", "kafka.client.native": "false"},
            "'kafka.client.native' is for 'kafka.client' = 'librdkafka' only, but that is 'kafka-python'.",
        ),
        (
            stream,
            {"scan.bounded.specific-offsets": "partition:0,offset:1"},
            (
                "'scan.bounded.specific-offsets' is for 'scan.bounded.mode' = "
                "'specific-offsets' only, but that is 'unbounded'."
            ),
        ),
        (
            stream,
            {
                "topic": None,
                "topic-pattern": "a",
                "scan.bounded.mode": "specific-offsets",
                "scan.bounded.specific-offsets": "partition:0,offset:1",
            },
            "Currently Kafka source only supports specific offset for single topic.",
        ),
        (
            stream,
            {
                "topic": None,
                "topic-pattern": "orders.*",
                "error-handling.mode": "log",
                "error-handling.log.target": "orders-bad",
            },
            "'error-handling.log.target' = 'orders-bad' is one of the topics that are read: ",
        ),
        (
            write,
            {"topic": None, "topic-pattern": "t.*"},
            "'topic-pattern' is for reading; a sink needs 'topic'.",
        ),
        (
            sink,
            {"read.mode": "append"},
            "'read.mode' = 'append' is for reading; a sink needs a primary key.",
        ),
        (
            write,
            {"sink.parallelism": "2"},
            (
                "Option 'sink.parallelism' works with upsert_sink only, since a Python writer "
                "cannot control how Spark distributes rows: use .foreachBatch(upsert_sink(options)), "
                "or df.repartition(n, key columns) first."
            ),
        ),
        (write, {"sequence-by": "ts"}, "Option 'sequence-by' works with upsert_sink only, "),
        *(
            (
                write,
                given,
                (
                    "'sink.delivery-guarantee' = 'exactly-once' works with upsert_sink only, since Spark "
                    "does not tell a Python writer the number of tasks: use "
                    ".foreachBatch(upsert_sink(options)) with 'sink.parallelism' and "
                    "'sink.transactional-id-prefix'."
                ),
            )
            for given in (EXACTLY_ONCE, {"sink.delivery-guarantee": "exactly-once"})
        ),
        (
            sink,
            {"sink.delivery-guarantee": "exactly-once", "sink.parallelism": "4"},
            (
                "sink.transactional-id-prefix must be specified when using "
                "DeliveryGuarantee.EXACTLY_ONCE: "
            ),
        ),
        (
            sink,
            {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "p"},
            "'sink.parallelism' is required with 'sink.delivery-guarantee' = 'exactly-once' ",
        ),
        *(
            (
                sink,
                {**EXACTLY_ONCE, **weaker},
                "'sink.delivery-guarantee' = 'exactly-once' needs 'properties.acks' = 'all' and ",
            )
            for weaker in ({"properties.acks": "1"}, {"properties.enable.idempotence": "false"})
        ),
    ],
)
def test_what_is_wrong_with_one_side(planned, given, message):
    """What contradicts itself, or lacks a part, is refused in Flink's words where Flink has them."""
    with pytest.raises(OptionError, match="^" + re.escape(message)):
        planned(**given)


def test_a_task_of_upsert_sink_knows_its_call():
    """What `upsert_sink` prepared on the driver reaches each task as it was."""
    told = {name: value for name, value in EXACTLY_ONCE.items() if name != "sink.parallelism"}
    call = Call("p/é", "7d0c", 1, 12, 4, ("t", "s"), "1f3b", "90ab")

    assert call_of_text(call.to_text()) == call
    assert write(**told, **{"upsert-sink.call": call.to_text()}).call == call
    assert write().call is None


@pytest.mark.parametrize(
    "given",
    [
        {"primary-key": "id"},
        {"key.fields": "id"},
        {"key.format": "json"},
        {"key.fields-prefix": "k_"},
        {"key.json.ignore-parse-errors": "true"},
    ],
)
@pytest.mark.parametrize("planned", [batch, stream], ids=["batch", "stream"])
def test_an_append_source_refuses_a_key(planned, given):
    """`append` names the option about a key that has no place in it."""
    with pytest.raises(
        OptionError, match=f"'append'.* has no primary key: leave out '{next(iter(given))}'"
    ):
        planned(APPEND, **given)


FULL = {"scan.startup.mode": "full"}


def test_a_stream_may_begin_with_the_table():
    """It is read from the earliest offset on; a sink takes the option too, as it does all others."""
    assert stream(**FULL) == replace(STREAM, table_first=True)
    assert write(**FULL) == WRITE


@pytest.mark.parametrize(
    ("planned", "given", "message"),
    [
        (batch, {}, "is for streams, which begin with the table and go on with its changes. A batch"),
        (batch, {"read.mode": "changelog"}, "is for streams"),
        (
            stream,
            {"read.mode": "append", "primary-key": None, "key.format": None},
            "is not allowed with 'read.mode' = 'append': a topic that is read so is no table",
        ),
        (
            stream,
            {"scan.watermark.alignment.max-drift": "1 min"},
            "is not allowed with 'scan.watermark.alignment.max-drift': the first batch is the whole",
        ),
        (
            stream,
            {"error-handling.mode": "column"},
            "is not allowed with 'error-handling.mode' = 'column': a message that cannot be decoded",
        ),
        (
            stream,
            {"scan.startup.timestamp-millis": "7"},
            None,
        ),
    ],
)  # fmt: skip
def test_what_does_not_begin_with_the_table(planned, given, message):
    """One sentence says why."""
    text = f"'scan.startup.mode' = 'full' {message}"
    if message is None:
        text = "'scan.startup.timestamp-millis' is for 'scan.startup.mode' = 'timestamp' only, but that is 'full'."
    with pytest.raises(OptionError, match="^" + re.escape(text)):
        planned(**FULL, **given)


@pytest.mark.parametrize(
    "start",
    [
        {"scan.startup.mode": "latest-offset"},
        {"scan.startup.mode": "group-offsets", "properties.group.id": "g"},
        VALID["scan.startup.timestamp-millis"],
        VALID["scan.startup.specific-offsets"],
    ],
)
def test_a_snapshot_starts_at_the_beginning(start):
    """The table is all changes since the earliest offset, so no other start is taken."""
    with pytest.raises(
        OptionError, match=f"^'scan.startup.mode' = '{start['scan.startup.mode']}' is not allowed"
    ):
        batch(**start)


# What a sink asks of the brokers


@pytest.mark.parametrize("planned", [write, sink], ids=["write", "upsert_sink"])
@pytest.mark.parametrize("name", ["acks", "request.required.acks", "Request.Required.Acks"])
def test_no_confirmation_contradicts_the_guarantee(planned, name):
    """`acks` = 0 under each of its names is refused when planned, unless the guarantee is none."""
    given = {f"properties.{name}": "0", "properties.enable.idempotence": "false"}
    with pytest.raises(
        OptionError, match=r"'properties\.acks' = '0'.*means that no message is confirmed"
    ):
        planned(**given)
    planned = planned(**given, **{"sink.delivery-guarantee": "none"})
    assert planned.guarantee is DeliveryGuarantee.NONE


def test_a_property_is_known_by_its_one_name():
    """A setting given by librdkafka's name is that of the Java client's name, the servers too."""
    others = {
        "properties.bootstrap.servers": None,
        "properties.metadata.broker.list": "a:1",
        "properties.message.timeout.ms": "5",
    }
    assert write(**others).table.properties == Properties(
        {"bootstrap.servers": "a:1", "delivery.timeout.ms": "5"}
    )


@pytest.mark.parametrize("planned", [batch, stream, write, sink])
def test_what_is_told_when_planned(planned):
    """A literal secret is told on every side, a weak confirmation by a sink; references are not."""
    secret = {"properties.ssl.key.pem": "geheim"}
    (text,) = planned(**secret).warnings
    assert "'properties.ssl.key.pem'" in text
    assert planned(**{"properties.ssl.key.pem": "${env:KEY}"}).warnings == ()
    told = planned(**{"properties.acks": "1"}).warnings
    assert len(told) == (1 if planned in (write, sink) else 0)
    assert planned(**{"properties.acks": "${env:ACKS}"}).warnings == ()


# References where they mean nothing


@pytest.mark.parametrize(
    "given",
    [
        {"topic": "${env:NOT_SET}"},
        {"properties.bootstrap.servers": "${env:NOT_SET}", "primary-key": "${file:/nowhere:key}"},
        {"properties.bootstrap.servers": None, "properties.metadata.broker.list": "${env:NOT_SET}"},
        {"sink.parallelism": "${env:NOT_SET}", "value.format": "${env:NOT_SET}"},
        {"key.format": "${env:NOT_SET}", "key.json.ignore-parse-errors": "true"},
        {"value.json.ignore-parse-errors": "${env:NOT_SET}"},
        {"properties.acks": "${env:NOT_SET}", "properties.sasl.password": "${env:NOT_SET}"},
    ],
)
def test_a_sink_is_checked_where_references_mean_nothing(monkeypatch, given):
    """What a reference stands for is for the server to know; it is not looked up before."""
    monkeypatch.delenv("NOT_SET", raising=False)
    assert check_write_options(changed(given), formats) == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"topic": "${env:NOT_SET}", "properties.acks": "0"}, "means that no message is confirmed"),
        ({"topic": "${env:NOT_SET}", "sink.buffer-flush.max-rows": "5"}, "together"),
        ({"topic": "${env:NOT_SET}", "topic-pattern": "t.*"}, "shouldn't be set together"),
        (
            {
                "topic": "${env:NOT_SET}",
                "primary-key": "${env:NOT_SET}",
                "properties.bootstrap.servers": "${env:NOT_SET}",
                "sink.buffer-flush.max-rows": "5",
            },
            "together",
        ),
        ({"sink.parallelism": "${env:NOT_SET}", "read.mode": "append"}, "is for reading"),
        (
            {"sink.parallelism": "${env:NOT_SET}", "value.format": "debezium-avro-confluent"},
            "is for reading only",
        ),
        ({"sink.parallelism": "${env:NOT_SET}", "topik": "t"}, "(Did you mean 'topic'?)"),
        ({"topik": "${env:NOT_SET}"}, "(Did you mean 'topic'?)"),
        ({"sink.parallelism": "${env:NOT_SET}", "failOnDataLoss": "maybe"}, "'failOnDataLoss'"),
        ({"value.format": "${env:NOT_SET}", "key.format": None}, "key.format"),
        ({}, None),
    ],
)
def test_all_else_is_checked_at_once(given, message):
    """One reference leaves no other mistake for later."""
    if message is None:
        assert check_write_options(changed(given), formats) == ()
        return
    with pytest.raises(OptionError, match=re.escape(message)):
        check_write_options(changed(given), formats)


# Names that nobody knows


def suggestion(name, planned=stream):
    """What is said of an unknown option besides its name."""
    with pytest.raises(OptionError) as error:
        planned(**{name: "x"})

    first, second = str(error.value).split("\n\n")
    begin = f"Unsupported options found for 'upsert-kafka': '{name.lower()}'"
    assert first.startswith(begin)
    assert second.startswith(
        "Supported options, which https://github.com/pyspark-upsert-kafka/pyspark-upsert-kafka/tree/main/docs/options.md explains: connector, ddl, "
    )
    return first.removeprefix(begin).removesuffix(".").strip()


@pytest.mark.parametrize(
    "name", [name for name in OPTIONS if "<" not in name and not name.startswith("properties.")]
)
def test_a_misspelt_option_gets_the_nearest_name(name):
    """Whichever letter is left out, the option that was meant is suggested, as it is declared."""
    for at in range(len(name)):
        misspelt = name[:at] + name[at + 1 :]
        if misspelt.lower() not in {*OPTIONS, *SPARKS_OWN}:
            assert suggestion(misspelt) == f"(Did you mean '{name}'?)"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bootstrap.servers", "properties.bootstrap.servers"),
        ("kafka.bootstrap.servers", "properties.bootstrap.servers"),
        ("property.bootstrap.servers", "properties.bootstrap.servers"),
        ("group.id", "properties.group.id"),
        ("kafka.group.id", "properties.group.id"),
        ("kafka.client.id", "properties.client.id"),
        ("kafka.sasl.mechanism", "properties.sasl.mechanism"),
        ("subscribe", "topic"),
        ("assign", "topic"),
        ("subscribePattern", "topic-pattern"),
        ("startingOffsets", "scan.startup.mode"),
        ("endingOffsets", "scan.bounded.mode"),
        ("startingTimestamp", "scan.startup.timestamp-millis"),
        ("startingOffsetsByTimestamp", "scan.startup.timestamp-millis"),
        ("endingTimestamp", "scan.bounded.timestamp-millis"),
        ("endingOffsetsByTimestamp", "scan.bounded.timestamp-millis"),
        ("format", "value.format"),
        ("value.json.ignore-parse-error", "value.json.ignore-parse-errors"),
        ("maxOffsetsPerTriger", "maxOffsetsPerTrigger"),
        ("sasl.mechanism", "properties.sasl.mechanism"),
        ("kafkaConsumer.pollTimeoutMs", "properties.default.api.timeout.ms"),
        ("fetchOffset.numRetries", "properties.default.api.timeout.ms"),
        ("security.protocol", "properties.security.protocol"),
        ("linger.ms", "properties.linger.ms"),
    ],
)
def test_names_of_other_connectors_get_a_hint(name, hint):
    """Names of Spark's and Flink's kafka connectors lead to ours."""
    assert suggestion(name) == f"(Did you mean '{hint}'?)"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("propertis.ssl.ca.location", "'properties.ssl.ca.location'"),
        ("property.linger.ms", "'properties.linger.ms'"),
        ("propertys.bootstrap.server", "'properties.bootstrap.servers'"),
        ("properties", "'properties.<name>'"),
        ("properties.", "'properties.<name>'"),
        ("metadta.at", "'metadata.at'"),
        ("metadatas.at", "'metadata.at'"),
        ("metadata.", "'metadata.<column>'"),
        ("metadata-at", "'metadata.<column>'"),
        ("value.jsn.ignore-parse-errors", "'value.json.ignore-parse-errors'"),
        ("values.json.ignore-parse-errors", "'value.json.ignore-parse-errors'"),
        ("value.json.ignore-errors", "'value.json.ignore-parse-errors'"),
        (
            "json.ignore-parse-errors",
            "'key.json.ignore-parse-errors' or 'value.json.ignore-parse-errors'",
        ),
        ("error-handling", "'error-handling.mode' or 'error-handling.log.target'"),
        (
            "scan.startup.time",
            "'scan.startup.mode' or 'scan.startup.timestamp' or 'scan.startup.timestamp-millis'",
        ),
    ],
)
def test_a_misspelt_part_of_a_family_gets_a_hint(name, hint):
    """Before a name that is free to choose the prefix can be wrong, as can each part of a format's option."""
    assert suggestion(name) == f"(Did you mean {hint}?)"


@pytest.mark.parametrize("name", ["value.csv.null-literal", "value.csv.nul-literal"])
def test_an_option_of_another_format_says_so(name):
    """It is told which format it belongs to, and which one there is."""
    with pytest.raises(OptionError) as error:
        read_options({**BASE, name: "x"}, format_options, stream=False)

    assert str(error.value).startswith(
        f"Unsupported options found for 'upsert-kafka': '{name}' "
        "(it belongs to the format 'csv', and 'value.format' is 'json').\n"
    )


def test_a_name_that_sparks_source_has_and_this_one_needs_not():
    """It says what takes its place."""
    assert suggestion("includeHeaders") == "(a column '_headers' in the schema shows them)"


@pytest.mark.parametrize("name", ["multiline", "value.cvs.null-literal", "sink.partitioner"])
@pytest.mark.parametrize("planned", ANY, ids=["batch", "stream", "write", "upsert_sink"])
def test_an_unknown_name_without_a_likeness_gets_no_hint(planned, name):
    """Nothing is suggested that has nothing to do with it."""
    assert suggestion(name, planned) == ""


def test_a_prefix_alone_is_no_option():
    """`properties.` and `metadata.` need a name behind them."""
    with pytest.raises(OptionError, match=r"'metadata\.' .* 'properties\.' "):
        batch(**{"properties.": "x", "metadata.": "topic"})


def test_all_unknown_names_are_told_at_once():
    """Every unknown option is listed, sorted, before what is supported."""
    with pytest.raises(OptionError) as error:
        batch(zzz="1", topics="2")

    text_ = str(error.value)
    assert text_.startswith(
        "Unsupported options found for 'upsert-kafka': 'topics' (Did you mean 'topic'?), 'zzz'.\n\n"
        "Supported options, which https://github.com/pyspark-upsert-kafka/pyspark-upsert-kafka/tree/main/docs/options.md explains: connector, ddl, "
    )
    supported = text_.split("explains: ")[1].removesuffix(".").split(", ")
    assert {*OPTIONS, "properties.<name>", "metadata.<column>", "key.json.ignore-parse-errors"} <= {
        *supported
    }


@pytest.mark.parametrize("given", [{}, {"checkpointLocation": "/tmp/c", "queryName": "q"}])
@pytest.mark.parametrize("planned", ANY, ids=["batch", "stream", "write", "upsert_sink"])
def test_without_options_the_error_shows_with(planned, given):
    """Spark hands over no options of CREATE TABLE: the error says so and shows WITH."""
    with pytest.raises(
        OptionError, match=r"CREATE TABLE .* SELECT \* FROM t WITH \('topic' = '\.\.\.', "
    ):
        planned({}, **given)


# Formats


def test_an_unknown_format_is_told_with_the_nearest():
    """As an unknown option is."""
    with pytest.raises(
        OptionError, match=r"format 'Jsn' in .* Did you mean 'json'\? Known formats: "
    ):
        format_options("Jsn", "value")


def test_a_cdc_format_of_keys_is_refused_as_flink_does():
    """Keys say nothing of what was done to a row."""
    given = changed({"key.format": "debezium-json"})

    with pytest.raises(OptionError) as error:
        read_options(given, format_options, stream=True)

    assert str(error.value) == (
        "'upsert-kafka' connector doesn't support 'debezium-json' as key format, because "
        "'debezium-json' is not in insert-only mode."
    )


# Secrets and references

SECRETS = {
    "properties.sasl.jaas.config": "geheim",
    "properties.sasl.password": "geheim",
    "properties.ssl.key.pem": "geheim",
    "properties.ssl.key.password": "geheim",
    "properties.ssl.keystore.key": "geheim",
    "properties.ssl.keystore.password": "geheim",
    "properties.ssl.truststore.password": "geheim",
    "properties.sasl.oauthbearer.client.secret": "geheim",
    "properties.sasl.oauthbearer.assertion.private.key.pem": "geheim",
    "properties.sasl.oauthbearer.assertion.private.key.passphrase": "geheim",
    "properties.basic.auth.user.info": "geheim",
    "value.json.bearer-auth.token": "geheim",
}


@pytest.mark.parametrize("show", [repr, str, "{}".format], ids=["repr", "str", "format"])
def test_no_secret_is_shown(show):
    """Neither options nor any part of them show a secret."""
    read, written = stream(**SECRETS), sink(**SECRETS)
    parts = [read, written, read.table, read.table.properties, read.table.value_format]

    for part in [*parts, masked({**BASE, **SECRETS})]:
        assert "geheim" not in show(part)
    assert "***" in show(read)


def test_a_secret_is_there_when_it_is_used():
    """Masking is for showing only; options keep their values on the way to a worker."""
    again = pickle.loads(pickle.dumps(stream(**SECRETS)))

    assert again == stream(**SECRETS)
    assert again.table.properties["sasl.password"] == "geheim"
    assert dict(again.table.value_format.options)["bearer-auth.token"] == "geheim"


@pytest.mark.parametrize(
    "given",
    [
        {"topic": None},
        {"topics": "t"},
        {"primary-key": None},
        {"key.format": None},
        {"value.json.bearer-auth.token": ""},
        {"properties.enable.auto.commit": "true"},
        {"scan.startup.mode": "never"},
        {"path": "u"},
    ],
)
@pytest.mark.parametrize("planned", ANY, ids=["batch", "stream", "write", "upsert_sink"])
def test_no_error_shows_a_secret(planned, given):
    """Whatever is wrong, the error tells no secret."""
    with pytest.raises(OptionError) as error:
        planned(**{**SECRETS, **given})

    assert "geheim" not in repr(error.value) + str(error.value)


def test_values_may_be_references(monkeypatch, tmp_path):
    """What the connector itself reads is looked up when planned; properties and secrets later."""
    monkeypatch.setenv("THE_TOPIC", "orders")
    (tmp_path / "kafka.properties").write_text("format=json\n")
    given = {
        "topic": "${env:THE_TOPIC};t",
        "value.format": f"${{file:{tmp_path}/kafka.properties:format}}",
        "properties.sasl.username": "${env:THE_TOPIC}",
        "value.json.bearer-auth.token": "${env:THE_TOKEN}",
    }

    table = stream(**given).table

    assert table.topics == Topics(("orders", "t"))
    assert table.value_format == FormatChoice(
        "json", (("ignore-parse-errors", False), ("bearer-auth.token", "${env:THE_TOKEN}"))
    )
    assert table.properties["sasl.username"] == "${env:THE_TOPIC}"


@pytest.mark.parametrize(
    ("topics", "shown"),
    [
        (Topics(("a", "b")), "a;b"),
        (Topics(pattern=re.compile("a.*")), "pattern 'a.*'"),
    ],
)
def test_topics_are_shown_as_they_were_given(topics, shown):
    """In a sentence, topics look like the option."""
    assert str(topics) == shown


@pytest.mark.parametrize(
    ("limits", "any_"),
    [
        (Limits(), False),
        (Limits(1), True),
        (Limits(None, 1), True),
        (Limits(max_drift_s=1.0), True),
        (Limits(max_bytes=1), True),
    ],
)
def test_limits_are_true_when_there_is_one(limits, any_):
    """Without a limit there is nothing that an old PySpark could not do."""
    assert bool(limits) is any_


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"read.mode": "snapshot", "scan.parallelism": "2"},
            "'scan.parallelism' is not allowed with 'scan.snapshot.merge-partitions': ",
        ),
        ({"read.mode": "changelog"}, "'scan.snapshot.merge-partitions' is for snapshots, and for "),
    ],
)
def test_partitions_are_merged_in_tables_by_so_many_tasks(given, message):
    """Each task reads all partitions, so that their number is not limited by them."""
    merged = {"scan.snapshot.merge-partitions": "true"}
    with pytest.raises(OptionError, match="^" + re.escape(message)):
        read_options(table_options(**merged, **given), format_options, stream=False)

    read_options(table_options(**merged), format_options, stream=False)
    read_options(table_options(**given), format_options, stream=False)
