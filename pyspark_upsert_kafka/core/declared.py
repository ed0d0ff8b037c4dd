"""Every option of the connector, declared once. docs/options.md is made from this list."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark_upsert_kafka.core.option import (
    Option,
    any_text,
    boolean,
    duration,
    one_of,
    text,
    whole_number,
)


def regular_expression(value: str) -> re.Pattern[str]:
    """A regular expression over whole topic names."""
    try:
        return re.compile(value)
    except re.error as error:
        raise ValueError(f"expected a regular expression ({error})") from None


def specific_offsets(value: str) -> tuple[tuple[int, int], ...]:
    """``partition:0,offset:42;partition:1,offset:300`` as pairs, sorted by partition.

    The form and the wording are those of Flink's ``KafkaConnectorOptionsUtil``.
    """
    pairs: dict[int, int] = {}
    for part in value.strip().removesuffix(";").split(";"):
        match = re.fullmatch(r"\s*partition:(\d{1,9}),offset:(\d{1,18})\s*", part)
        if not match or int(match[1]) in pairs:
            raise ValueError(
                "should follow the format 'partition:0,offset:42;partition:1,offset:300'"
            )
        pairs[int(match[1])] = int(match[2])
    return tuple(sorted(pairs.items()))


@dataclass(frozen=True)
class Section:
    """Options that belong together, and the heading they have in the documentation."""

    title: str
    options: tuple[Option, ...]


_TABLE = Section(
    "The table",
    (
        Option("connector", one_of("upsert-kafka"), None,
               "accepted so that a Flink `WITH (...)` clause can be pasted"),
        Option("topic", text, None,
               'one topic, or a list `a;b`; `load("t")`, `save("t")`, `start("t")` mean the same'),
        Option("topic-pattern", regular_expression, None,
               "reading: a regular expression over topic names"),
        Option("primary-key", text, None,
               "comma-separated columns, in the order in which they stand in the message key"),
        Option("key.fields", text, None, "Flink's other spelling of `primary-key`, separated by `;`"),
        Option("key.format", text, None, "format of the message key; required but for `append`"),
        Option("value.format", text, None, "format of the message value; required"),
        Option("key.fields-prefix", any_text, "",
               "prefix of key columns in the table, stripped in the message key; needs `EXCEPT_KEY`",
               "none"),
        Option("value.fields-include", one_of("ALL", "EXCEPT_KEY"), "ALL",
               "whether the value holds the key columns too: `ALL` or `EXCEPT_KEY`"),
        Option("kafka.client", one_of("librdkafka"), "librdkafka", "the Kafka client: `librdkafka`"),
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
               "start offsets: `partition:0,offset:42;partition:1,offset:300`"),
        Option("scan.bounded.mode",
               one_of("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
               None,
               "where reading ends (exclusive, fixed once): `unbounded` (streams), `latest-offset`, "
               "`group-offsets`, `timestamp`, `specific-offsets`",
               "stream: `unbounded`; batch: `latest-offset`"),
        Option("scan.bounded.timestamp-millis", whole_number(), None,
               "end before the first message of at least this record timestamp"),
        Option("scan.bounded.specific-offsets", specific_offsets, None,
               "end offsets: `partition:0,offset:42;partition:1,offset:300`"),
        Option("scan.topic-partition-discovery.interval", duration, 300.0,
               "how often a running stream looks for new partitions and topics; `0` = never",
               "`5 min`"),
    ),
)  # fmt: skip

_SHARING = Section(
    "Reading: who reads how much",
    (
        Option("minPartitions", whole_number(1), None,
               "split Kafka partitions into at least this many Spark partitions (not for snapshots)"),
        Option("maxOffsetsPerTrigger", whole_number(1), None,
               "at most this many offsets per micro-batch, shared among partitions by backlog"),
        Option("minOffsetsPerTrigger", whole_number(1), None,
               "wait until this many offsets are there, or `maxTriggerDelay` has passed"),
        Option("maxTriggerDelay", duration, 900.0,
               "how long `minOffsetsPerTrigger` may hold a micro-batch back", "`15m`"),
    ),
)  # fmt: skip

_TROUBLE = Section(
    "Reading: when something is wrong",
    (
        Option("failOnDataLoss", boolean, True,
               "fail when offsets are gone; `false` = go on from what is there, with a warning",
               "`true`"),
        Option("error-handling.mode", one_of("fail", "ignore", "log", "column"), "fail",
               "what a message gets that cannot be decoded or has a null key: `fail`, `ignore`, "
               "`log` (to the dead-letter topic), `column` (a row with `_error`)"),
        Option("error-handling.log.target", text, None, "the dead-letter topic"),
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
               "`upsert_sink` only: column or expression that orders changes of one key in a batch"),
        Option("sink.delivery-guarantee", one_of("none", "at-least-once", "exactly-once"),
               "at-least-once", "`none` or `at-least-once`"),
    ),
)  # fmt: skip

SECTIONS = (_TABLE, _READING, _SHARING, _TROUBLE, _WRITING)

OPTIONS = {option.name: option for section in SECTIONS for option in section.options}

SPARKS_OWN = frozenset({"path", "paths", "checkpointlocation", "queryname"})
"""Options that Spark itself puts among ours, in lower case as they arrive."""

ELSEWHERE = {
    "kafka.bootstrap.servers": "properties.bootstrap.servers",
    "bootstrap.servers": "properties.bootstrap.servers",
    "subscribe": "topic",
    "subscribepattern": "topic-pattern",
    "startingoffsets": "scan.startup.mode",
    "endingoffsets": "scan.bounded.mode",
    "startingtimestamp": "scan.startup.timestamp-millis",
    "endingtimestamp": "scan.bounded.timestamp-millis",
    "kafka.group.id": "properties.group.id",
    "format": "value.format",
}
"""Names from Spark's and Flink's ``kafka`` connectors, and what means the same here."""
