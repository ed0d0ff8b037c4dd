"""Options as the user gave them -> frozen values, once, when the query is planned.

Below this module there is no option string and no default. Rules and wording follow Flink's
``UpsertKafkaDynamicTableFactory`` and ``KafkaConnectorOptionsUtil`` where Flink has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, cast

from pyspark_upsert_kafka.core.confirmation import confirmation, weak_confirmation
from pyspark_upsert_kafka.core.declared import (
    ELSEWHERE,
    FROM_UPSERT_SINK,
    METADATA_KEYS,
    NOT_YET,
    OPTIONS,
    PATHS,
    SPARKS_OWN,
)
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.option import Option, one_of
from pyspark_upsert_kafka.core.properties import (
    PREFIX,
    Properties,
    client_properties,
    one_spelling,
)
from pyspark_upsert_kafka.core.secrecy import is_secret, literal_secrets, refers
from pyspark_upsert_kafka.core.secrecy import masked as masked  # noqa: PLC0414 - others take it from here

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

PreimageOrder = Literal["in-task", "by-key", "unknown"]
"""In which order a task meets the changes of a key: among others, one after another, or not all of them."""

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

    def __repr__(self) -> str:
        shown = {name: "***" if is_secret(name) else value for name, value in self.options}
        return f"FormatChoice({self.name!r}, {shown})"


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
    """A read, as planned; ``warnings`` is what is to be told then."""

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
    warnings: tuple[str, ...] = ()


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
        order: What `upsert_sink` knows of the order of changes; None = it is not `upsert_sink` that writes.
        warnings: What is to be told when the write is planned.
    """

    table: TableOptions
    buffer: BufferFlush | None
    acknowledged: bool
    parallelism: int | None = None
    sequence_by: str | None = None
    order: PreimageOrder | None = None
    warnings: tuple[str, ...] = ()


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
    mode = cast("ReadMode", OPTIONS["read.mode"].read(given) or default)
    if mode == "snapshot" and stream:
        raise OptionError(
            "'read.mode' = 'snapshot' is for batch reads; a stream reads a 'changelog'."
        )
    if mode == "append":
        _refuse_key(given)
    values = _checked(given, formats, keyed=mode != "append", writing=False)
    table = _table(given, values, formats, keyed=mode != "append")
    _buffer(values)  # of no use here, but what contradicts itself is told on both sides
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
        error_mode=_error_mode(values, mode),
        dead_letter_topic=_dead_letter_topic(values, table.topics),
        read_committed=values["properties.isolation.level"] == "read_committed",
        warnings=tuple(literal_secrets(raw)),
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
    values = _checked(given, formats, keyed=True, writing=True)
    table = _table(given, values, formats, keyed=True)
    if table.topics.pattern is not None:
        raise OptionError("'topic-pattern' is for reading; a sink needs 'topic'.")
    if values["read.mode"] == "append":
        raise OptionError("'read.mode' = 'append' is for reading; a sink needs a primary key.")
    if not update_mode:
        _refuse_distribution(values)
    _check_reading(values, table)
    acknowledged = values["sink.delivery-guarantee"] != "none"
    confirmed = confirmation(table.properties.literal(), acknowledged=acknowledged)
    return WriteOptions(
        table=table,
        buffer=_buffer(values),
        acknowledged=acknowledged,
        parallelism=values["sink.parallelism"],
        sequence_by=values["sequence-by"],
        order=None if update_mode else FROM_UPSERT_SINK.read(given),
        warnings=(*literal_secrets(raw), *weak_confirmation(confirmed, str(table.topics))),
    )


_STAND_INS = {
    "topic": "a-topic", "primary-key": "a_column", "properties.bootstrap.servers": "a-server:9092",
}  # fmt: skip


def check_write_options(raw: Mapping[str, str], formats: FormatOptions) -> tuple[str, ...]:
    """Checks the options of `upsert_sink` where they are given, and says what is to be told of them.

    That may be the client of a Spark Connect server, and a reference (``${env:NAME}``) may mean something on the
    server only. So none is resolved: what an option refers to is checked where it is used, and all else here.

    Raises:
        OptionError: As `write_options` does.
    """
    given = {
        name: value for name, value in _lowered(raw).items() if not _resolved_later(name, value)
    }
    later = _lowered(raw).keys() - given.keys()
    given.update({name: value for name, value in _STAND_INS.items() if name in later})
    if later <= _STAND_INS.keys():
        return write_options(given, formats, update_mode=True).warnings
    # What contradicts something that is not known here is told later.
    _refuse_not_yet(given, of_no_concern="scan.")
    unknown_formats = {"key.format", "value.format"} & later
    _refuse_unknown({**dict.fromkeys(later - unknown_formats, ""), **given}, formats)
    _refuse_missing({**dict.fromkeys(later, "later"), **given}, keyed=True)
    for option in OPTIONS.values():
        option.read(given)
    return tuple(literal_secrets(given))


def _resolved_later(name: str, value: str) -> bool:
    """Whether the value refers to something that `write_options` would look up."""
    looked_up = name in OPTIONS or not name.startswith(PREFIX)
    return looked_up and refers(value) and not is_secret(name)


def _lowered(raw: Mapping[str, str]) -> dict[str, str]:
    given = one_spelling({name.lower(): value for name, value in raw.items()})
    if given.keys() <= {"checkpointlocation", "queryname"}:
        raise OptionError(
            "No options arrived. Spark hands the options of a CREATE TABLE statement to no Python "
            "source: give them with the query, as in SELECT * FROM t WITH ('topic' = '...', "
            "'properties.bootstrap.servers' = '...', 'primary-key' = '...', 'key.format' = 'json', "
            "'value.format' = 'json')."
        )
    return given


def _refuse_key(given: Mapping[str, str]) -> None:
    for name in given:
        if name == "primary-key" or name.startswith("key."):
            raise OptionError(
                "'read.mode' = 'append' reads every message as a row of its own and knows no key: "
                f"leave out '{name}'."
            )


def _checked(
    given: Mapping[str, str], formats: FormatOptions, *, keyed: bool, writing: bool
) -> dict[str, Any]:
    """Every declared option's value, after each given name was recognised."""
    _refuse_not_yet(given, of_no_concern="scan." if writing else "sink.")
    _refuse_unknown(given, formats)
    _refuse_missing(given, keyed=keyed)
    return {name: option.read(given) for name, option in OPTIONS.items()}


def _refuse_not_yet(given: Mapping[str, str], *, of_no_concern: str) -> None:
    for (name, planned), instead in NOT_YET.items():
        value = given.get(name, "").strip().lower()
        if name.startswith(of_no_concern) or name not in given or planned not in (None, value):
            continue
        what = f"Option '{name}'" if planned is None else f"'{name}' = '{planned}'"
        raise OptionError(
            f"{what} is not available in this version of pyspark_upsert_kafka: {instead}."
        )


def _refuse_unknown(given: Mapping[str, str], formats: FormatOptions) -> None:
    supported = {name.lower(): name for name in (*OPTIONS, *_format_option_names(given, formats))}
    known = {*supported, *SPARKS_OWN, FROM_UPSERT_SINK.name, *(name for name, _ in NOT_YET)}
    unknown = [name for name in sorted(given) if name not in known and not _open(name, given)]
    if unknown:
        raise OptionError(
            "Unsupported options found for 'upsert-kafka'.\n\nUnsupported options:\n\n"
            + "\n".join(name + _hint(name, supported) for name in unknown)
            + "\n\nSupported options:\n\n"
            + "\n".join(sorted([*supported.values(), "properties.*", "metadata.<column>"]))
        )


def _format_option_names(given: Mapping[str, str], formats: FormatOptions) -> Iterable[str]:
    for side in ("key", "value"):
        name = OPTIONS[f"{side}.format"].read(given)
        if name is not None:
            yield from (f"{side}.{name}.{option.name}" for option in formats(name, side))


def _open(name: str, given: Mapping[str, str]) -> bool:
    """Whether the name is free to choose, or belongs to a format that is yet to be named."""
    if name.startswith((PREFIX, METADATA)):
        return name not in (PREFIX, METADATA)
    side, _, rest = name.partition(".")
    return side in ("key", "value") and "." in rest and f"{side}.format" not in given


def _hint(name: str, supported: Mapping[str, str]) -> str:
    """The name that can be meant, when there is one."""
    bare = name.removeprefix("kafka.")
    meant: str | None
    if name in ELSEWHERE:
        meant = ELSEWHERE[name]
    elif near := _nearest(name, supported, 0.9):
        meant = near
    elif bare != name or PREFIX + bare in supported:
        meant = PREFIX + bare
    else:
        meant = _nearest(name, supported, 0.6)
    return f" (Did you mean '{meant}'?)" if meant else ""


def _nearest(name: str, supported: Mapping[str, str], likeness: float) -> str | None:
    found = get_close_matches(name, supported, n=1, cutoff=likeness)
    return supported[found[0]] if found else None


def _refuse_missing(given: Mapping[str, str], *, keyed: bool) -> None:
    needed = {"properties.bootstrap.servers": "localhost:9092", "value.format": "json"}
    if keyed:
        needed["key.format"] = "json"
    missing = sorted(name for name in needed if not given.get(name, "").strip())
    if missing:
        raise OptionError(
            "One or more required options are missing.\n\nMissing required options are:\n\n"
            + "\n".join(missing)
            + f"\n\nFor example: .option('{missing[0]}', '{needed[missing[0]]}')"
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
        metadata=_metadata(given),
        key_format=_format(values["key.format"], "key", given, formats) if keyed else None,
        value_format=_format(values["value.format"], "value", given, formats),
        properties=client_properties(
            given, group_start=values["scan.startup.mode"] == "group-offsets"
        ),
        client=values["kafka.client"],
    )


def _topics(given: Mapping[str, str], values: Mapping[str, Any]) -> Topics:
    pattern = values["topic-pattern"]
    named = {"topic": values["topic"], **{option.name: option.read(given) for option in PATHS}}
    named = {option: names for option, names in named.items() if names}
    if pattern is not None and named:
        raise OptionError("Option 'topic' and 'topic-pattern' shouldn't be set together.")
    if pattern is not None:
        return Topics(pattern=pattern)
    if not named:
        raise OptionError("Either 'topic' or 'topic-pattern' must be set.")
    if len(set(named.values())) > 1:
        shown = ", ".join(f"{option!r} is {';'.join(names)!r}" for option, names in named.items())
        raise OptionError(
            "The topic given by option 'topic' and by the path of load, save or start must be one and "
            f"the same: {shown}. Leave one out."
        )
    return Topics(names=next(iter(named.values())))


def _primary_key(values: Mapping[str, Any]) -> tuple[str, ...]:
    spellings = {values[name] for name in ("primary-key", "key.fields") if values[name]}
    if len(spellings) > 1:
        raise OptionError(
            "Options 'primary-key' and 'key.fields' name different columns: leave one out."
        )
    if not spellings:
        raise OptionError(
            "'upsert-kafka' tables require to define a PRIMARY KEY constraint. The PRIMARY KEY "
            "specifies which columns should be read from or write to the Kafka message key. The "
            "PRIMARY KEY also defines records in the 'upsert-kafka' table should update or delete on "
            "which keys. Set it by option 'primary-key', for example .option('primary-key', 'id')."
        )
    return cast("tuple[str, ...]", spellings.pop())


def _metadata(given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Column in lower case and metadata key, for each ``metadata.<column>``."""
    options = [
        Option(name, one_of(*METADATA_KEYS), None, "a metadata key")
        for name in sorted(given)
        if name.startswith(METADATA)
    ]
    return tuple((option.name.removeprefix(METADATA), option.read(given)) for option in options)


def _format(name: str, side: str, given: Mapping[str, str], formats: FormatOptions) -> FormatChoice:
    prefix = f"{side}.{name}."
    return FormatChoice(
        name, tuple((option.name, option.read(given, prefix)) for option in formats(name, side))
    )


def _start(values: Mapping[str, Any], table: TableOptions, mode: ReadMode) -> Position:
    start = _position(values, table, "startup")
    if mode == "snapshot" and start.kind != "earliest-offset":
        raise OptionError(
            f"'scan.startup.mode' = '{start.kind}' is not allowed with 'read.mode' = 'snapshot': the "
            "table is what all changes since the earliest offset add up to. Use 'read.mode' = "
            "'changelog' to read from elsewhere."
        )
    return replace(start, reset=values["properties.auto.offset.reset"] or "none")


def _end(values: Mapping[str, Any], table: TableOptions, *, stream: bool) -> Position:
    end = _position(values, table, "bounded", "unbounded" if stream else "latest-offset")
    if end.kind == "unbounded" and not stream:
        raise OptionError(
            "'scan.bounded.mode' = 'unbounded' is for streams; a batch read has an end."
        )
    return end


def _check_reading(values: Mapping[str, Any], table: TableOptions) -> None:
    """A sink has no use for these, but what contradicts itself is told on both sides."""
    _position(values, table, "startup")
    _position(values, table, "bounded", "unbounded")
    _limits(values, stream=True)
    _dead_letter_topic(values, table.topics)


def _position(
    values: Mapping[str, Any], table: TableOptions, which: str, default: str = ""
) -> Position:
    kind = values[f"scan.{which}.mode"] or default
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
    return Position(cast("PositionKind", kind), timestamp, offsets or ())


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


def _error_mode(values: Mapping[str, Any], mode: ReadMode) -> ErrorMode:
    error_mode = cast("ErrorMode", values["error-handling.mode"])
    if error_mode == "column" and mode == "snapshot":
        raise OptionError("'error-handling.mode' = 'column' is for 'changelog' and 'append' reads.")
    return error_mode


def _dead_letter_topic(values: Mapping[str, Any], topics: Topics) -> str | None:
    """The topic for messages that cannot be decoded; None when they are not sent anywhere."""
    target = cast("str | None", values["error-handling.log.target"])
    if values["error-handling.mode"] != "log":
        return None
    if target is None:
        raise OptionError(
            "'error-handling.log.target' is required in 'log' error-handling mode but missing."
        )
    if target in topics.names or (topics.pattern is not None and topics.pattern.fullmatch(target)):
        raise OptionError(
            f"'error-handling.log.target' = '{target}' is one of the topics that are read: each bad "
            "message would be read and sent again without end. Name another topic."
        )
    return target


def _refuse_distribution(values: Mapping[str, Any]) -> None:
    for name in ("sink.parallelism", "sequence-by"):
        if values[name] is not None:
            raise OptionError(
                f"Option '{name}' works with upsert_sink only, since Spark gives a Python writer no say "
                "in how rows are distributed: use .foreachBatch(upsert_sink(options)), or "
                "df.repartition(n, key columns) first."
            )


def _buffer(values: Mapping[str, Any]) -> BufferFlush | None:
    max_rows, interval_s = (
        values["sink.buffer-flush.max-rows"],
        values["sink.buffer-flush.interval"],
    )
    if (max_rows > 0) != (interval_s > 0):
        raise OptionError(
            "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set to be greater "
            "than zero together to enable sink buffer flushing."
        )
    return BufferFlush(max_rows, interval_s) if max_rows > 0 else None
