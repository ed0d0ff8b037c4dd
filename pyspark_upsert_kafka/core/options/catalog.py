"""What an option is, and every option of the connector, declared once. docs/options.md is made from this list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, get_args

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.error_modes import ERROR_MODES
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import is_secret, resolve
from pyspark_upsert_kafka.core.metadata import ERROR, METADATA, METADATA_OF_FORMATS, PHYSICAL
from pyspark_upsert_kafka.core.options.frozen_options import NewColumnsMode, ReadMode
from pyspark_upsert_kafka.core.options.parsers import (
    OFFSETS_COMPLAINT,
    TIME_COMPLAINT,
    Parser,
    addresses,
    any_text,
    boolean,
    column_list,
    duration,
    header_values,
    id_prefix,
    json_topic_list,
    memory_or_auto,
    memory_size,
    names_as_written,
    one_of,
    positive_duration,
    record_names,
    regular_expression,
    specific_offsets,
    text,
    time_or_ago,
    topic_list,
    topic_name,
    whole_number,
    whole_number_or_auto,
)
from pyspark_upsert_kafka.core.receipts import call_of_text


class Given(dict[str, str]):
    """The options that were given, names in lower case.

    Args:
        options: The options.
        places: Where those stand that are in a statement.
        spelt: Names as they were written, by their lower case, of those that have capital letters.
        warnings: What is to be told of them where Spark shows them.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        places: Mapping[str, Place] = MappingProxyType({}),
        spelt: Mapping[str, str] = MappingProxyType({}),
        warnings: tuple[str, ...] = (),
    ) -> None:
        super().__init__(options)
        self.places = dict(places)
        self.spelt = dict(spelt)
        self.warnings = warnings


@dataclass(frozen=True)
class Option:
    """One declared option.

    Args:
        name: Its full name, or for an option of a format the part after ``value.<format>.``.
        parse: Text to value; raises ValueError with what was expected.
        default: Value when it is not given; None = not set.
        help: One line for docs/options.md.
        shown_default: How the documentation writes the default, when not as ``default``.
        complaint: What is said of a text that is not a value of this option.
        keeps_references: Whether references in the value are replaced later, where it is used.
    """

    name: str
    parse: Parser
    default: Any
    help: str
    shown_default: str | None = None
    complaint: str = "Invalid value for option '{name}': {expected}, but is {seen}."
    keeps_references: bool = False

    def read(self, given: Mapping[str, str], prefix: str = "") -> Any:
        """The value among the ``given`` options (names in lower case), or the default.

        A reference is replaced here, but for a secret, which stays one until it is used.

        Raises:
            OptionError: The text is not a value of this option, or refers to nothing; it names the place if that is
                in a statement.
        """
        name = prefix + self.name
        text = given.get(name.lower())
        return self.default if text is None else self._value(name, text, given)

    def _value(self, name: str, text: str, given: Mapping[str, str]) -> Any:
        secret, place = is_secret(name), where(name.lower(), given)
        try:
            resolved = text if secret or self.keeps_references else resolve(name, text)
        except OptionError as error:
            raise OptionError(f"{error}{place}") from None
        try:
            return self.parse(resolved)
        except ValueError as error:
            why = self.complaint.format(name=name, expected=error, seen=repr(text))
        if secret:
            why = (
                f"Invalid value for option '{name}'; it is not shown here, since it may be "
                f"secret. The option says: {self.help}"
            )
        raise OptionError(f"{why}{place}") from None


FormatOptions = Callable[[str, str], tuple[Option, ...]]
"""Name of a format and side (``key``, ``value``) -> the options that the format declares."""


@dataclass(frozen=True)
class OptionFamily(Option):
    """Options with a prefix, such as ``metadata.<column>``, behind which users choose the name.

    Declared like any option: in ``core/options/catalog.py``, or among the options of a format. Its value has a pair for
    each option that was given, sorted: what stands behind the prefix, and the value. The case of what stands behind the
    prefix is kept in ``upsert_sink(options)`` and in a DDL. ``.option(...)`` of Spark gives lower case.

    Args:
        prefix: What stands before the name that users choose, in lower case, with the dot.
    """

    default: tuple[tuple[str, Any], ...] = ()
    help: str = ""
    shown_default: str | None = ""
    prefix: str = ""

    def has(self, name: str, prefix: str = "") -> bool:
        """Whether a name (in lower case) is that of one of these options."""
        begin = prefix + self.prefix
        return name.startswith(begin) and name != begin

    def read(self, given: Mapping[str, str], prefix: str = "") -> tuple[tuple[str, Any], ...]:
        """The pairs of the options among the ``given`` ones (names in lower case).

        Raises:
            OptionError: As `Option.read` does.
        """
        spelt = given.spelt if isinstance(given, Given) else {}
        begin = len(prefix + self.prefix)
        return tuple(
            (spelt.get(name, name)[begin:], self._value(name, given[name], given))
            for name in sorted(given)
            if self.has(name, prefix)
        )


def where(name: str, given: Mapping[str, str]) -> str:
    """Where an option (in lower case) stands, as the end of what is said of it; empty when it is in no statement."""
    place = given.places.get(name) if isinstance(given, Given) else None
    return f" ({place})" if place else ""


@dataclass(frozen=True)
class Section:
    """Options that belong together, and the heading they have in the documentation."""

    title: str
    options: tuple[Option, ...]


DDL = Option(
    "ddl", any_text, None,
    "a Flink `CREATE TABLE` statement, which gives the columns, the key and the options; an option that is given "
    "separately takes precedence (see [DDL](ddl.md))",
)  # fmt: skip
"""`core.ddl` reads it. Its text is no value of its own: it may hold secrets, and references that belong to its options."""

VIRTUAL, EVENT_TIME = "virtual", "event-time"
"""Names in the metadata of a DDL's column: it is for reading only; the watermark is on it."""

TABLE_FIRST = "full"
"""The value of `scan.startup.mode` with which a stream begins with the table."""

METADATA_KEYS = (*(key for key in METADATA if key != ERROR), PHYSICAL)
"""Values of `metadata.<column>` with every format; the last one makes a column with a reserved name an ordinary column."""

METADATA_OF_COLUMN = OptionFamily(
    "metadata.<column>", one_of(*METADATA_KEYS, *METADATA_OF_FORMATS), prefix="metadata.",
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
               "only `upsert-kafka`; it has no effect, so that a Flink `WITH (...)` clause can be pasted"),
        Option("topic", topic_list, None,
               'one topic, or a list `a;b`; `load("t")`, `save("t")`, `start("t")` mean the same'),
        Option("topic-pattern", regular_expression, None,
               "reading: a regular expression over topic names"),
        Option("primary-key", column_list(","), None,
               "columns of the key, separated by commas, in the order that they have in the message key"),
        Option("key.fields", column_list(";"), None,
               "Flink's name for `primary-key`; the columns are separated by `;`"),
        Option("properties.bootstrap.servers", addresses, None, "addresses of the brokers; required"),
        Option("properties.allow.auto.create.topics", boolean, False,
               "whether the broker may create a topic that does not exist; otherwise that is an error",
               "`false`"),
        Option("properties.sasl.oauthbearer.token.provider", text, None,
               "logins by token: who gives the tokens, as the name of an entry point, or `<module>:<function>` where the environment "
               "allows it (see [security](security.md#tokens-of-your-own))"),
        Option("key.format", text, None, "format of the message key; required, except with `read.mode` = `append` and with a CDC format"),
        Option("value.format", text, None, "format of the message value; required"),
        Option("key.fields-prefix", any_text, "",
               "prefix that key columns have in the table, but not in the message key; needs `value.fields-include` = `EXCEPT_KEY`",
               "none"),
        Option("value.fields-include", one_of("ALL", "EXCEPT_KEY"), "ALL",
               "whether the message value contains the key columns too: `ALL` or `EXCEPT_KEY`"),
        Option("kafka.client", one_of("librdkafka", "kafka-python"), "librdkafka",
               "the Kafka client: `librdkafka`, or `kafka-python` (kafka-python-ng or kafka-python 3, "
               "whichever is installed)"),
        Option("kafka.client.native", boolean, True,
               "with `librdkafka`: whether its own functions are called behind confluent-kafka, for speed; `false` turns them off for "
               "this query or table (see [librdkafka's own functions](native-calls.md))"),
        METADATA_OF_COLUMN,
        _PROPERTIES,
    ),
)  # fmt: skip

_READING = Section(
    "Reading: what is read",
    (
        Option("read.mode", one_of(*get_args(ReadMode)), None,
               "`snapshot` = the table as of now (batch); `changelog` = every change; "
               "`append` = every message is a row, without a key",
               "batch: `snapshot`; stream: `changelog`"),
        Option("scan.deletes", one_of("emit", "drop"), "emit", "with `changelog`: deletes are rows (`emit`), or are left out (`drop`)"),
        Option("scan.schema-changes", one_of(*get_args(NewColumnsMode)), "ignore",
               "streams whose columns come from a schema: what is done when messages have columns that the query lacks, or wider "
               "types: `ignore` (they are read with the query's columns, and a warning is logged), or `restart` (the query ends "
               "with `SchemaChangedError`, and has these columns when it is started again; see "
               "[columns that come and go](columns-that-change.md))"),
        Option("scan.startup.mode",
               one_of("earliest-offset", "latest-offset", "group-offsets", "timestamp",
                      "specific-offsets", TABLE_FIRST),
               "earliest-offset",
               "where a new query starts: `earliest-offset`, `latest-offset`, `group-offsets`, "
               "`timestamp`, `specific-offsets`; `full` (streams) = with the table as of now, then its changes "
               "(see [streaming](streaming.md#the-table-first))"),
        Option("scan.startup.timestamp-millis", whole_number(), None,
               "start at the first message of at least this record timestamp (ms since the epoch)"),
        Option("scan.startup.timestamp", time_or_ago, None,
               "the same as a time with a zone (`2026-01-31T12:00:00Z`), or as how long before the first start of the "
               "query (`-10 min`); `scan.startup.mode` is then `timestamp`",
               complaint=TIME_COMPLAINT),
        Option("scan.startup.specific-offsets", specific_offsets, None,
               "start offsets: `partition:0,offset:42;partition:1,offset:300`",
               complaint=OFFSETS_COMPLAINT),
        Option("properties.auto.offset.reset", one_of("earliest", "latest", "none"), "none",
               "with `group-offsets`: where a partition starts for which the group has committed no offset: "
               "`earliest`, `latest`, or `none` (an error)"),
        Option("scan.bounded.mode",
               one_of("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
               None,
               "where reading ends: `unbounded` (streams), `latest-offset`, `group-offsets`, `timestamp`, `specific-offsets`; "
               "the end is exclusive, and is fixed when the query first starts",
               "stream: `unbounded`; batch: `latest-offset`"),
        Option("scan.bounded.timestamp-millis", whole_number(), None,
               "end before the first message of at least this record timestamp (ms since the epoch)"),
        Option("scan.bounded.timestamp", time_or_ago, None,
               "the same as a time with a zone (`2026-01-31T12:00:00Z`), or as how long before the first start of the "
               "query (`-10 min`); `scan.bounded.mode` is then `timestamp`",
               complaint=TIME_COMPLAINT),
        Option("scan.bounded.specific-offsets", specific_offsets, None,
               "end offsets: `partition:0,offset:42;partition:1,offset:300`",
               complaint=OFFSETS_COMPLAINT),
        Option("scan.topic-partition-discovery.interval", duration, 300.0,
               "how often a running stream looks for new partitions and topics; `0` = never",
               "`5 min`"),
        Option("scan.outage.timeout", duration, 600.0,
               "streams: how long a running query waits while no broker answers; a warning is logged every 30 seconds. "
               "When a query starts, and in batch reads, the limit is `properties.default.api.timeout.ms` "
               "(see [operating](operating.md#outages-and-restarts))",
               "`10 min`"),
        Option("properties.isolation.level", one_of("read_committed", "read_uncommitted"),
               "read_committed", "`read_committed` = messages of open and aborted transactions are not read; `read_uncommitted` = they are"),
        Option("scan.headers", header_values, None,
               "only messages that have all of these headers with these values (UTF-8) are read: `type=Order;tenant=7` "
               "(see [filters](filters.md#only-messages-with-certain-headers))"),
        Option("scan.record-names", record_names, None,
               "of a topic of several record types, only messages of these are read: `com.acme.Order;com.acme.Refund`; for "
               "values whose format has a schema registry (see [record types](record-types.md))"),
    ),
)  # fmt: skip

_BATCHES = Section(
    "Reading: micro-batch limits and Spark partitions",
    (
        Option("minPartitions", whole_number(1), None,
               "split Kafka partitions into at least this many Spark partitions; in a snapshot, and in the first batch of "
               "`full`, several tasks then share the keys of a Kafka partition"),
        Option("scan.snapshot.memory", memory_or_auto, None,
               "how much memory one task of a snapshot, or of the first batch of `full`, may use (`512 mb`, `2 gb`); `auto` = half of the memory of a Python "
               "worker. If a table needs more, the error says which value of `minPartitions` is enough", "`auto`"),
        Option("scan.snapshot.merge-partitions", boolean, False,
               "in a snapshot, and in the first batch of `full`, a key that lies in several partitions, as after partitions were "
               "added, gives one row: each task reads all partitions, and keeps its share of the keys (`minPartitions`, by "
               "default 1; see [snapshots](snapshots.md#a-key-in-several-partitions))"),
        Option("scan.parallelism", whole_number_or_auto(1), None,
               "at most this many Spark partitions: a task then reads several Kafka partitions, one "
               "after another; `auto` = one for each 10,000 offsets of a micro-batch or a batch read"),
        Option("maxOffsetsPerTrigger", whole_number(1), None,
               "at most this many offsets per micro-batch, divided among partitions in proportion to their backlog "
               "(PySpark 4.2 or newer)"),
        Option("maxBytesPerTrigger", memory_size, None,
               "at most about so many bytes of keys and values per micro-batch (`64 mb`), by the sizes of messages seen so far "
               "(PySpark 4.2 or newer; see [micro-batches](micro-batches.md#limit-the-size-of-batches))"),
        Option("minOffsetsPerTrigger", whole_number(1), None,
               "wait until this many new offsets are available, or `maxTriggerDelay` has passed (PySpark 4.2 or newer)"),
        Option("maxTriggerDelay", duration, 900.0,
               "how long `minOffsetsPerTrigger` may delay a micro-batch", "`15m`"),
        Option("scan.watermark.alignment.max-drift", positive_duration, None,
               "streams: how far a partition may be read ahead of the slowest partition that has data, measured in record "
               "timestamps: Flink's watermark alignment (PySpark 4.2 or newer)"),
    ),
)  # fmt: skip

_ERRORS = Section(
    "Reading: when something is wrong",
    (
        Option("failOnDataLoss", boolean, True,
               "fail when offsets to be read no longer exist; `false` = log a warning, and continue at the next offset that exists",
               "`true`"),
        Option("error-handling.mode", one_of(*ERROR_MODES), "fail",
               "what happens to a message that cannot be decoded or has a null key: "
               + ", ".join(f"`{mode}` ({meaning.in_words})" for mode, meaning in ERROR_MODES.items())),
        Option("error-handling.log.target", topic_name, None, "the dead-letter topic; required with `error-handling.mode` = `log`"),
        Option("properties.group.id", text, None,
               "streams: offsets of finished batches are committed to this consumer group, so that Kafka's own "
               "tools can show the lag; also the group whose offsets `group-offsets` reads"),
    ),
)  # fmt: skip

_FILTERS = Section(
    "Reading: only what is asked for",
    (
        Option("scan.filter-pushdown", one_of("one-filter-per-load"), None,
               "batch: `one-filter-per-load` = read only what the filters of the query (`WHERE`) leave; each `load()` is then "
               "for queries with one and the same filter (see [filters](filters.md#only-what-a-filter-leaves))"),
        Option("scan.key-partitioner", one_of("murmur2"), None,
               "`murmur2` = each key has one spelling and is in the partition that Java's producer chooses for it, so that a "
               "filter on all key columns leaves only the partitions of these keys (see "
               "[filters](filters.md#rows-of-some-keys))"),
    ),
)  # fmt: skip

_WRITING = Section(
    "Writing",
    (
        Option("sink.buffer-flush.max-rows", whole_number(), 0,
               "keep only the last change of each key in a buffer, and flush it at this many distinct keys; `0` = no buffer", "`0`"),
        Option("sink.buffer-flush.interval", duration, 0.0,
               "flush the buffer after this time; needed with `sink.buffer-flush.max-rows`", "`0s`"),
        Option("sink.parallelism", whole_number(1), None,
               "`upsert_sink` only: the number of tasks; rows are first repartitioned by primary key"),
        Option("sequence-by", text, None,
               "`upsert_sink` only: column or deterministic expression that orders the changes of a key within a batch; NULL "
               "comes first, and the last change is the one that remains"),
        Option("sink.delivery-guarantee", one_of(*(each.value for each in DeliveryGuarantee)),
               "at-least-once",
               "`none` (messages may be lost), `at-least-once`, or `exactly-once` (`upsert_sink` only)"),
        Option("sink.transactional-id-prefix", id_prefix, None,
               "with `exactly-once`: prefix of its transactional ids and of the consumer groups that hold its receipts; each "
               "sink needs a prefix of its own"),
    ),
)  # fmt: skip

SECTIONS = (_TABLE, _READING, _BATCHES, _FILTERS, _ERRORS, _WRITING)

OPTIONS = {option.name: option for section in SECTIONS for option in section.options}

PATHS = (
    Option("path", topic_list, (), '`load("t")`, `save("t")`, `start("t")`'),
    Option("paths", json_topic_list, (), '`load(["a", "b"])`'),
)
"""Spark's own options that mean `topic`."""

SPARKS_OWN = frozenset({"path", "paths", "checkpointlocation", "queryname"})
"""Options that Spark itself puts among ours, in lower case as they arrive."""


FROM_UPSERT_SINK = Option(
    "upsert-sink.order", one_of("in-task", "by-key", "unknown"), None,
    "set by `upsert_sink` for the tasks of a batch: the changes of a key come in order, one after another (`by-key`), "
    "or in order with changes of other keys between them (`in-task`), or may be in several tasks (`unknown`)",
)  # fmt: skip

CALL = Option(
    "upsert-sink.call", call_of_text, None,
    "set by `upsert_sink` for the tasks of an exactly-once batch: the call, as `Call.to_text` writes it",
)  # fmt: skip

NAMES = Option(
    "upsert-sink.names", names_as_written, {},
    "set by `upsert_sink` for the tasks of a batch, since Spark passes on names in lower case: names of options as they were "
    "written, by their lower case, as a JSON object",
)  # fmt: skip

DDL_COLUMNS = Option(
    "ddl.columns", lambda text: StructType.fromJson(json.loads(text)), None,
    "set when `ddl` is read, in its place: its columns, as Spark's JSON of a schema",
)  # fmt: skip

INTERNAL = frozenset({FROM_UPSERT_SINK.name, CALL.name, NAMES.name, DDL_COLUMNS.name})
"""Names of the internal options."""
