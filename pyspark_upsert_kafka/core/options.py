"""Options as the user gave them -> frozen values, once, when the query is planned.

Below this module there is no option string and no default. Rules and wording follow Flink's
``UpsertKafkaDynamicTableFactory`` and ``KafkaConnectorOptionsUtil`` where Flink has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, cast

from pyspark_upsert_kafka.core.declared import ELSEWHERE, OPTIONS, SPARKS_OWN
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.option import Option
from pyspark_upsert_kafka.core.properties import PREFIX, Properties, client_properties, is_secret

ReadMode = Literal["snapshot", "changelog", "append"]
ErrorMode = Literal["fail", "ignore", "log", "column"]
PositionKind = Literal[
    "earliest-offset",
    "latest-offset",
    "group-offsets",
    "timestamp",
    "specific-offsets",
    "unbounded",
]

METADATA = "metadata."

FormatOptions = Callable[[str, str], tuple[Option, ...]]
"""Name of a format and side (``key``, ``value``) -> the options that the format declares."""


@dataclass(frozen=True)
class Topics:
    """The topics of a table: a list of names, or a pattern."""

    names: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None

    def __str__(self) -> str:
        return ";".join(self.names) if self.pattern is None else f"pattern {self.pattern.pattern!r}"


@dataclass(frozen=True)
class FormatChoice:
    """A chosen format and the values of its options, by their unprefixed names."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class TableOptions:
    """What both sides know of the table.

    Args:
        topics: Where its changes are.
        primary_key: Key columns in the order of the message key; empty for an append source.
        key_prefix: Prefix of the key columns, stripped in the message key.
        value_holds_key: Whether the value holds the key columns too (``ALL``).
        metadata: Metadata key by column name in lower case (``metadata.<column>``).
        key_format: Format of the key; None for an append source.
        value_format: Format of the value.
        properties: The client's properties.
        client: Which Kafka client.
    """

    topics: Topics
    primary_key: tuple[str, ...]
    key_prefix: str
    value_holds_key: bool
    metadata: tuple[tuple[str, str], ...]
    key_format: FormatChoice | None
    value_format: FormatChoice
    properties: Properties
    client: str = "librdkafka"


@dataclass(frozen=True)
class Position:
    """A place in every partition, before the broker was asked where that is.

    Args:
        kind: The mode's name.
        timestamp_ms: For ``timestamp``.
        offsets: For ``specific-offsets``: (partition, offset) pairs.
        reset: For ``group-offsets``: what to do where nothing is committed.
    """

    kind: PositionKind
    timestamp_ms: int | None = None
    offsets: tuple[tuple[int, int], ...] = ()
    reset: Literal["earliest", "latest", "none"] = "none"


@dataclass(frozen=True)
class Limits:
    """How many offsets a micro-batch may or must have; None = no limit."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_s: float = 900.0

    def __bool__(self) -> bool:
        return self.max_offsets is not None or self.min_offsets is not None


@dataclass(frozen=True)
class ReadOptions:
    """A read, as planned."""

    table: TableOptions
    mode: ReadMode
    emit_deletes: bool
    start: Position
    end: Position
    discovery_interval_s: float
    min_partitions: int | None
    limits: Limits
    fail_on_data_loss: bool
    error_mode: ErrorMode
    dead_letter_topic: str | None
    read_committed: bool


@dataclass(frozen=True)
class BufferFlush:
    """When the keyed buffer is flushed: at that many distinct keys, or after that many seconds."""

    max_rows: int
    interval_s: float


@dataclass(frozen=True)
class WriteOptions:
    """A write, as planned.

    Args:
        table: What both sides know.
        buffer: When the keyed buffer is flushed; None = no buffer.
        acknowledged: Whether the broker must confirm each message (all guarantees but ``none``).
        parallelism: `upsert_sink` only: number of tasks.
        sequence_by: `upsert_sink` only: what orders the changes of one key.
    """

    table: TableOptions
    buffer: BufferFlush | None
    acknowledged: bool
    parallelism: int | None = None
    sequence_by: str | None = None


def read_options(raw: Mapping[str, str], formats: FormatOptions, *, stream: bool) -> ReadOptions:
    """The options of a read.

    Args:
        raw: Options by name; the case of names does not matter.
        formats: Looks up what options a format declares.
        stream: Whether this is a streaming read.

    Raises:
        OptionError: An option is unknown, missing, malformed or contradicts another.
    """
    given = _lowered(raw)
    default: ReadMode = "changelog" if stream else "snapshot"
    mode = cast(ReadMode, _value(given, "read.mode") or default)
    values = _checked(given, formats, keyed=mode != "append")
    if mode == "snapshot" and stream:
        raise OptionError(
            "'read.mode' = 'snapshot' is for batch reads; a stream reads a 'changelog'."
        )
    _no_key_in_append(mode, given)
    table = _table(given, values, formats, keyed=mode != "append")
    error_mode, target = values["error-handling.mode"], values["error-handling.log.target"]
    if error_mode == "log" and target is None:
        raise OptionError(
            "'error-handling.log.target' is required in 'log' error-handling mode but missing."
        )
    if error_mode == "column" and mode == "snapshot":
        raise OptionError("'error-handling.mode' = 'column' is for 'changelog' and 'append' reads.")
    return ReadOptions(
        table=table,
        mode=mode,
        emit_deletes=values["scan.deletes"] == "emit",
        start=_start(values, table, mode),
        end=_end(values, table, stream=stream),
        discovery_interval_s=values["scan.topic-partition-discovery.interval"],
        min_partitions=_min_partitions(values, mode),
        limits=_limits(values, stream=stream),
        fail_on_data_loss=values["failOnDataLoss"],
        error_mode=error_mode,
        dead_letter_topic=target if error_mode == "log" else None,
        read_committed=_isolation(table.properties) == "read_committed",
    )


def write_options(
    raw: Mapping[str, str], formats: FormatOptions, *, update_mode: bool = False
) -> WriteOptions:
    """The options of a write.

    Args:
        raw: Options by name; the case of names does not matter.
        formats: Looks up what options a format declares.
        update_mode: Whether `upsert_sink` asks, which alone can repartition.

    Raises:
        OptionError: An option is unknown, missing, malformed or contradicts another.
    """
    given = _lowered(raw)
    values = _checked(given, formats, keyed=True)
    table = _table(given, values, formats, keyed=True)
    if table.topics.pattern is not None:
        raise OptionError("'topic-pattern' is for reading; a sink needs 'topic'.")
    if values["read.mode"] == "append":
        raise OptionError("'read.mode' = 'append' is for reading; a sink needs a primary key.")
    if values["sink.delivery-guarantee"] == "exactly-once":
        raise OptionError(
            "'sink.delivery-guarantee' = 'exactly-once' is not available in this version; "
            "'at-least-once' leaves the right table too, since a repeated upsert changes nothing."
        )
    if not update_mode:
        for name in ("sink.parallelism", "sequence-by"):
            if values[name] is not None:
                raise OptionError(
                    f"Option '{name}' works with upsert_sink only, since Spark gives a Python writer "
                    "no say in how rows are distributed: use "
                    ".foreachBatch(upsert_sink(options)), or df.repartition(n, key columns) first."
                )
    return WriteOptions(
        table=table,
        buffer=_buffer(values["sink.buffer-flush.max-rows"], values["sink.buffer-flush.interval"]),
        acknowledged=values["sink.delivery-guarantee"] != "none",
        parallelism=values["sink.parallelism"],
        sequence_by=values["sequence-by"],
    )


def masked(raw: Mapping[str, str]) -> dict[str, str]:
    """Options as they may be shown: what may be secret is starred out.

    >>> masked({"topic": "t", "properties.sasl.password": "s3cret"})
    {'topic': 't', 'properties.sasl.password': '***'}
    """
    return {name: "***" if is_secret(name) else value for name, value in raw.items()}


def _lowered(raw: Mapping[str, str]) -> dict[str, str]:
    if not raw:
        raise OptionError(
            "No options arrived. Spark hands the options of a CREATE TABLE statement to no Python "
            "source: give them with the query, as in SELECT * FROM t WITH ('topic' = '...', "
            "'properties.bootstrap.servers' = '...', 'primary-key' = '...', 'key.format' = 'json', "
            "'value.format' = 'json')."
        )
    return {name.lower(): value for name, value in raw.items()}


def _value(given: Mapping[str, str], name: str) -> Any:
    return OPTIONS[name].read(given)


def _checked(given: Mapping[str, str], formats: FormatOptions, *, keyed: bool) -> dict[str, Any]:
    """Every declared option's value, after each given name was recognised."""
    required = ["value.format", *(["key.format"] if keyed else [])]
    missing = [name for name in required if name not in given]
    known = [*OPTIONS, *_format_option_names(given, formats)]
    _refuse_unknown(given, known)
    if missing:
        raise OptionError(
            "One or more required options are missing.\n\nMissing required options are:\n\n"
            + "\n".join(sorted(missing))
        )
    return {name: option.read(given) for name, option in OPTIONS.items()}


def _format_option_names(given: Mapping[str, str], formats: FormatOptions) -> Iterable[str]:
    for side in ("key", "value"):
        name = given.get(f"{side}.format")
        if name:
            yield from (f"{side}.{name}.{option.name}" for option in formats(name, side))


def _refuse_unknown(given: Mapping[str, str], known: Iterable[str]) -> None:
    by_lower = {name.lower(): name for name in known}
    for name in given:
        if name in by_lower or name in SPARKS_OWN or name.startswith((PREFIX, METADATA)):
            continue
        near = ELSEWHERE.get(name) or by_lower.get(
            next(iter(get_close_matches(name, by_lower, n=1, cutoff=0.6)), "")
        )
        hint = f" Did you mean '{near}'?" if near else ""
        raise OptionError(
            f"Unsupported option '{name}' for 'upsert-kafka'.{hint}\n\nSupported options:\n\n"
            + "\n".join(sorted([*by_lower.values(), "properties.*", "metadata.<column>"]))
        )


def _no_key_in_append(mode: ReadMode, given: Mapping[str, str]) -> None:
    for name in ("primary-key", "key.fields", "key.format", "key.fields-prefix"):
        if mode == "append" and name in given:
            raise OptionError(
                f"'read.mode' = 'append' reads every message as a row of its own and knows no key: "
                f"leave out '{name}'."
            )


def _table(
    given: Mapping[str, str], values: Mapping[str, Any], formats: FormatOptions, *, keyed: bool
) -> TableOptions:
    holds_key = values["value.fields-include"] == "ALL"
    prefix = values["key.fields-prefix"]
    if prefix and holds_key:
        raise OptionError(
            "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'. Set it "
            "to 'EXCEPT_KEY' instead to avoid field overlaps."
        )
    return TableOptions(
        topics=_topics(given, values),
        primary_key=_primary_key(values) if keyed else (),
        key_prefix=prefix,
        value_holds_key=holds_key,
        metadata=tuple(
            (name.removeprefix(METADATA), value.strip().lower())
            for name, value in sorted(given.items())
            if name.startswith(METADATA)
        ),
        key_format=_format(given, "key", formats) if keyed else None,
        value_format=_format(given, "value", formats),
        properties=client_properties(
            given, group_start=values["scan.startup.mode"] == "group-offsets"
        ),
        client=values["kafka.client"],
    )


def _topics(given: Mapping[str, str], values: Mapping[str, Any]) -> Topics:
    named = {name for name in (values["topic"], _path(given)) if name}
    if len(named) > 1:
        raise OptionError(
            f"Option 'topic' is {values['topic']!r}, but the path given to load, save or start is "
            f"{_path(given)!r}: give one of them."
        )
    pattern = values["topic-pattern"]
    if named and pattern is not None:
        raise OptionError("Option 'topic' and 'topic-pattern' shouldn't be set together.")
    if pattern is not None:
        return Topics(pattern=pattern)
    names = tuple(
        part.strip() for part in (named.pop() if named else "").split(";") if part.strip()
    )
    if not names:
        raise OptionError("Either 'topic' or 'topic-pattern' must be set.")
    for name in names:
        if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in (".", ".."):
            raise OptionError(
                f"Invalid value for option 'topic': expected topic names of letters, digits, '.', '_' "
                f"and '-' (several separated by ';'), but is {name!r}."
            )
    return Topics(names=tuple(dict.fromkeys(names)))


def _path(given: Mapping[str, str]) -> str:
    if "paths" in given:
        return ";".join(json.loads(given["paths"]))
    return given.get("path", "")


def _primary_key(values: Mapping[str, Any]) -> tuple[str, ...]:
    spellings = {
        tuple(part.strip() for part in values[name].split(separator) if part.strip())
        for name, separator in (("primary-key", ","), ("key.fields", ";"))
        if values[name]
    }
    if len(spellings) > 1:
        raise OptionError(
            "Options 'primary-key' and 'key.fields' name different columns: give one."
        )
    columns = spellings.pop() if spellings else ()
    if not columns:
        raise OptionError(
            "'upsert-kafka' tables require to define a PRIMARY KEY constraint. The PRIMARY KEY "
            "specifies which columns should be read from or write to the Kafka message key. The "
            "PRIMARY KEY also defines records in the 'upsert-kafka' table should update or delete on "
            "which keys. Set it by option 'primary-key', for example .option('primary-key', 'id')."
        )
    if len(set(columns)) < len(columns):
        raise OptionError(f"Option 'primary-key' names a column twice: {', '.join(columns)}.")
    return columns


def _format(given: Mapping[str, str], side: str, formats: FormatOptions) -> FormatChoice:
    name = given[f"{side}.format"]
    prefix = f"{side}.{name}."
    return FormatChoice(
        name, tuple((option.name, option.read(given, prefix)) for option in formats(name, side))
    )


def _start(values: Mapping[str, Any], table: TableOptions, mode: ReadMode) -> Position:
    start = _position(values, table, "startup", values["scan.startup.mode"])
    if mode == "snapshot" and start.kind != "earliest-offset":
        raise OptionError(
            f"'scan.startup.mode' = '{start.kind}' is not allowed with 'read.mode' = 'snapshot': the "
            "table is what all changes since the earliest offset add up to. Use 'read.mode' = "
            "'changelog' to read from elsewhere."
        )
    return start


def _end(values: Mapping[str, Any], table: TableOptions, *, stream: bool) -> Position:
    default = "unbounded" if stream else "latest-offset"
    end = _position(values, table, "bounded", values["scan.bounded.mode"] or default)
    if end.kind == "unbounded" and not stream:
        raise OptionError(
            "'scan.bounded.mode' = 'unbounded' is for streams; a batch read has an end."
        )
    return end


def _position(values: Mapping[str, Any], table: TableOptions, which: str, kind: str) -> Position:
    timestamp = values[f"scan.{which}.timestamp-millis"]
    offsets = values[f"scan.{which}.specific-offsets"]
    for needed, found, option in (
        ("timestamp", timestamp, f"scan.{which}.timestamp-millis"),
        ("specific-offsets", offsets, f"scan.{which}.specific-offsets"),
    ):
        if kind == needed and found is None:
            raise OptionError(f"'{option}' is required in '{kind}' {which} mode but missing.")
        if kind != needed and found is not None:
            raise OptionError(
                f"'{option}' has a meaning only with 'scan.{which}.mode' = '{needed}', which is '{kind}'."
            )
    if kind == "specific-offsets" and len(table.topics.names) != 1:
        raise OptionError("Currently Kafka source only supports specific offset for single topic.")
    if kind == "group-offsets" and not table.properties.get("group.id"):
        raise OptionError(f"'properties.group.id' is required in 'group-offsets' {which} mode.")
    reset = cast("Any", table.properties.get("auto.offset.reset", "none"))
    return Position(cast("PositionKind", kind), timestamp, offsets or (), reset)


def _min_partitions(values: Mapping[str, Any], mode: ReadMode) -> int | None:
    wanted = cast("int | None", values["minPartitions"])
    if wanted is not None and mode == "snapshot":
        raise OptionError(
            "'minPartitions' is not allowed with 'read.mode' = 'snapshot': the changes of a key must "
            "be read by one task."
        )
    return wanted


def _limits(values: Mapping[str, Any], *, stream: bool) -> Limits:
    most, least = values["maxOffsetsPerTrigger"], values["minOffsetsPerTrigger"]
    if most is not None and least is not None and least > most:
        raise OptionError(
            f"The value of 'minOffsetsPerTrigger' ({least}) must not be larger than "
            f"'maxOffsetsPerTrigger' ({most})."
        )
    return Limits(most, least, values["maxTriggerDelay"]) if stream else Limits()


def _isolation(properties: Properties) -> str:
    level = properties.get("isolation.level", "read_committed")
    if level not in ("read_committed", "read_uncommitted"):
        raise OptionError(
            "Invalid value for option 'properties.isolation.level': expected 'read_committed' or "
            f"'read_uncommitted', but is {level!r}."
        )
    return level


def _buffer(max_rows: int, interval_s: float) -> BufferFlush | None:
    if (max_rows > 0) != (interval_s > 0):
        raise OptionError(
            "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set to be greater "
            "than zero together to enable sink buffer flushing."
        )
    return BufferFlush(max_rows, interval_s) if max_rows > 0 else None
