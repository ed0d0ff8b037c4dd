"""Every option of the connector, declared once. docs/options.md is made from this list."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.delivery.guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.delivery.receipts import call_of_text
from pyspark_upsert_kafka.core.options.option import Option, OptionFamily
from pyspark_upsert_kafka.core.options.parsers import (
    OFFSETS_COMPLAINT,
    addresses,
    any_text,
    boolean,
    column_list,
    duration,
    id_prefix,
    json_topic_list,
    memory_or_auto,
    one_of,
    positive_duration,
    regular_expression,
    specific_offsets,
    text,
    topic_list,
    topic_name,
    whole_number,
    whole_number_or_auto,
)
from pyspark_upsert_kafka.core.table.metadata import ERROR, METADATA, PHYSICAL


@dataclass(frozen=True)
class Section:
    """Options that belong together, and the heading they have in the documentation."""

    title: str
    options: tuple[Option, ...]


DDL = Option(
    "ddl", any_text, None,
    "a Flink `CREATE TABLE` statement: its columns, key and options are taken over, and an option given beside "
    "it wins (see [DDL](ddl.md))",
)  # fmt: skip
"""Read by `core.ddl`, and never as a value: it may hold secrets, and references that are not for it."""

VIRTUAL, EVENT_TIME = "virtual", "event-time"
"""In the metadata of a declared column: it is for reading only; it is that of the watermark."""

METADATA_KEYS = (*(key for key in METADATA if key != ERROR), PHYSICAL)
"""Values of `metadata.<column>`; the last makes a reserved name an ordinary column."""

METADATA_OF_COLUMN = OptionFamily(
    "metadata.<column>", one_of(*METADATA_KEYS), prefix="metadata.",
    help="which metadata of the message a column of the schema shows (see "
         "[below](#metadatacolumn-metadata-under-a-name-of-your-own))",
)  # fmt: skip

_PROPERTIES = OptionFamily(
    "properties.<name>", any_text, prefix="properties.", keeps_references=True,
    help="any other setting of the Kafka client (see [below](#properties-the-kafka-client))",
)  # fmt: skip

_TABLE = Section(
    "The table",
    (
        DDL,
        Option("connector", one_of("upsert-kafka"), None,
               "accepted so that a Flink `WITH (...)` clause can be pasted"),
        Option("topic", topic_list, None,
               'one topic, or a list `a;b`; `load("t")`, `save("t")`, `start("t")` mean the same'),
        Option("topic-pattern", regular_expression, None,
               "reading: a regular expression over topic names"),
        Option("primary-key", column_list(","), None,
               "comma-separated columns, in the order in which they stand in the message key"),
        Option("key.fields", column_list(";"), None,
               "Flink's other spelling of `primary-key`, separated by `;`"),
        Option("properties.bootstrap.servers", addresses, None, "addresses of the brokers; required"),
        Option("properties.allow.auto.create.topics", boolean, False,
               "let the broker create a topic that does not exist, which is an error otherwise",
               "`false`"),
        Option("key.format", text, None, "format of the message key; required but for `append`"),
        Option("value.format", text, None, "format of the message value; required"),
        Option("key.fields-prefix", any_text, "",
               "prefix of key columns in the table, stripped in the message key; needs `EXCEPT_KEY`",
               "none"),
        Option("value.fields-include", one_of("ALL", "EXCEPT_KEY"), "ALL",
               "whether the value holds the key columns too: `ALL` or `EXCEPT_KEY`"),
        Option("kafka.client", one_of("librdkafka", "kafka-python"), "librdkafka",
               "the Kafka client: `librdkafka`, or `kafka-python` (kafka-python-ng or kafka-python 3, "
               "whichever is installed)"),
        METADATA_OF_COLUMN,
        _PROPERTIES,
    ),
)  # fmt: skip

_READING = Section(
    "Reading: what is read",
    (
        Option("read.mode", one_of("snapshot", "changelog", "append"), None,
               "`snapshot` = the table as of now (batch); `changelog` = every change; "
               "`append` = every message is a row, without a key",
               "batch: `snapshot`; stream: `changelog`"),
        Option("scan.deletes", one_of("emit", "drop"), "emit", "changelog: show deletes, or drop them"),
        Option("scan.startup.mode",
               one_of("earliest-offset", "latest-offset", "group-offsets", "timestamp",
                      "specific-offsets"),
               "earliest-offset",
               "where a new query starts: `earliest-offset`, `latest-offset`, `group-offsets`, "
               "`timestamp`, `specific-offsets`"),
        Option("scan.startup.timestamp-millis", whole_number(), None,
               "start at the first message of at least this record timestamp (ms since the epoch)"),
        Option("scan.startup.specific-offsets", specific_offsets, None,
               "start offsets: `partition:0,offset:42;partition:1,offset:300`",
               complaint=OFFSETS_COMPLAINT),
        Option("properties.auto.offset.reset", one_of("earliest", "latest", "none"), "none",
               "with `group-offsets`: where a partition starts of which nothing is committed: "
               "`earliest`, `latest`, `none` (an error)"),
        Option("scan.bounded.mode",
               one_of("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
               None,
               "where reading ends (exclusive, fixed once): `unbounded` (streams), `latest-offset`, "
               "`group-offsets`, `timestamp`, `specific-offsets`",
               "stream: `unbounded`; batch: `latest-offset`"),
        Option("scan.bounded.timestamp-millis", whole_number(), None,
               "end before the first message of at least this record timestamp"),
        Option("scan.bounded.specific-offsets", specific_offsets, None,
               "end offsets: `partition:0,offset:42;partition:1,offset:300`",
               complaint=OFFSETS_COMPLAINT),
        Option("scan.topic-partition-discovery.interval", duration, 300.0,
               "how often a running stream looks for new partitions and topics; `0` = never",
               "`5 min`"),
        Option("scan.outage.timeout", duration, 600.0,
               "streams: how long a query that has run once waits for brokers that are all away, with a warning every 30 "
               "seconds; the first planning of a run, and batches, wait `properties.default.api.timeout.ms` "
               "(see [operating](operating.md#outages-and-restarts))",
               "`10 min`"),
        Option("properties.isolation.level", one_of("read_committed", "read_uncommitted"),
               "read_committed", "whether messages of open and aborted transactions stay unseen"),
    ),
)  # fmt: skip

_BATCHES = Section(
    "Reading: micro-batch limits and Spark partitions",
    (
        Option("minPartitions", whole_number(1), None,
               "split Kafka partitions into at least this many Spark partitions; in a snapshot tasks then share the "
               "keys of a Kafka partition"),
        Option("scan.snapshot.memory", memory_or_auto, None,
               "how much memory one task of a snapshot may use (`512 mb`, `2 gb`); `auto` = half of what a Python worker "
               "has. A larger table is an error that says how many `minPartitions` it takes", "`auto`"),
        Option("scan.parallelism", whole_number_or_auto(1), None,
               "at most this many Spark partitions: a task then reads several Kafka partitions, one "
               "after another; `auto` = one for each 10,000 offsets of a micro-batch or a batch read"),
        Option("maxOffsetsPerTrigger", whole_number(1), None,
               "at most this many offsets per micro-batch, shared among partitions by backlog"),
        Option("minOffsetsPerTrigger", whole_number(1), None,
               "wait until this many offsets are there, or `maxTriggerDelay` has passed"),
        Option("maxTriggerDelay", duration, 900.0,
               "how long `minOffsetsPerTrigger` may hold a micro-batch back", "`15m`"),
        Option("scan.watermark.alignment.max-drift", positive_duration, None,
               "streams: no partition reads further than this, in record timestamps, past the slowest one that has "
               "data: Flink's watermark alignment"),
    ),
)  # fmt: skip

_ERRORS = Section(
    "Reading: when something is wrong",
    (
        Option("failOnDataLoss", boolean, True,
               "fail when offsets are gone; `false` = go on from what is there, with a warning",
               "`true`"),
        Option("error-handling.mode", one_of("fail", "ignore", "log", "column"), "fail",
               "what a message gets that cannot be decoded or has a null key: `fail`, `ignore`, "
               "`log` (to the dead-letter topic), `column` (a row with `_error`)"),
        Option("error-handling.log.target", topic_name, None, "the dead-letter topic"),
        Option("properties.group.id", text, None,
               "streams: offsets of finished batches are committed to this group, for Kafka's own "
               "tools to show the lag; also the group that `group-offsets` asks for"),
    ),
)  # fmt: skip

_WRITING = Section(
    "Writing",
    (
        Option("sink.buffer-flush.max-rows", whole_number(), 0,
               "keep only the last change per key and flush at this many distinct keys", "`0`"),
        Option("sink.buffer-flush.interval", duration, 0.0,
               "flush the buffer when this much time has passed", "`0s`"),
        Option("sink.parallelism", whole_number(1), None,
               "`upsert_sink` only: repartition by primary key to this many tasks first"),
        Option("sequence-by", text, None,
               "`upsert_sink` only: column or expression that orders changes of one key in a batch; the "
               "last one stands, NULL is the earliest; it must be deterministic"),
        Option("sink.delivery-guarantee", one_of(*(each.value for each in DeliveryGuarantee)),
               "at-least-once",
               "`none`, `at-least-once`, or `exactly-once` (`upsert_sink` only)"),
        Option("sink.transactional-id-prefix", id_prefix, None,
               "`exactly-once`: what the names of its transactions and receipts begin with; one for each sink"),
    ),
)  # fmt: skip

SECTIONS = (_TABLE, _READING, _BATCHES, _ERRORS, _WRITING)

OPTIONS = {option.name: option for section in SECTIONS for option in section.options}

FROM_UPSERT_SINK = Option(
    "upsert-sink.order", one_of("in-task", "by-key", "unknown"), None,
    "what `upsert_sink` tells the tasks of a batch: changes of a key follow one another in their order "
    "(`by-key`), or among others (`in-task`), or may be in several tasks (`unknown`)",
)  # fmt: skip
"""An option that no user gives, and so is on no page."""

CALL = Option(
    "upsert-sink.call", call_of_text, None,
    "what `upsert_sink` tells the tasks of an exactly-once batch: which call of it this is, as `Call.to_text` writes it",
)  # fmt: skip
"""Another one."""

NAMES = Option(
    "upsert-sink.names", json.loads, {},
    "what `upsert_sink` tells the tasks of a batch: names of options as they were written, by their lower case, which is all "
    "that Spark passes on; a JSON object",
)  # fmt: skip
"""Another one."""

DDL_COLUMNS = Option(
    "ddl.columns", lambda text: StructType.fromJson(json.loads(text)), None,
    "what takes the place of `ddl` when it was read: the columns that it declares",
)  # fmt: skip
"""Another one."""

INTERNAL = frozenset({FROM_UPSERT_SINK.name, CALL.name, NAMES.name, DDL_COLUMNS.name})
"""Names of the options that no user gives."""

PATHS = (
    Option("path", topic_list, (), '`load("t")`, `save("t")`, `start("t")`'),
    Option("paths", json_topic_list, (), '`load(["a", "b"])`'),
)
"""Spark's own options that mean `topic`."""

SPARKS_OWN = frozenset({"path", "paths", "checkpointlocation", "queryname"})
"""Options that Spark itself puts among ours, in lower case as they arrive."""
