"""The options that mean the same for reading and for writing: their values, the table that they describe, and what contradicts what.

Which names are unknown or missing is told with what may be meant instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

from pyspark_upsert_kafka.core.clock import now_ms, shown_time
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import (
    CALL,
    DDL_COLUMNS,
    FROM_UPSERT_SINK,
    INTERNAL,
    METADATA_OF_COLUMN,
    OPTIONS,
    PATHS,
    SPARKS_OWN,
    FormatOptions,
    Option,
    OptionFamily,
    where,
)
from pyspark_upsert_kafka.core.options.frozen_options import FormatChoice, TableOptions, Topics
from pyspark_upsert_kafka.core.options.given import missing_options
from pyspark_upsert_kafka.core.options.properties import PREFIX, SPELLINGS, client_properties
from pyspark_upsert_kafka.core.pages import page

_BESIDE = (*PATHS, DDL_COLUMNS, FROM_UPSERT_SINK, CALL)
"""Options that users do not give by these names."""

_IN_THE_FUTURE = {
    "startup": "To read only what is written from now on, use 'scan.startup.mode' = 'latest-offset'.",
    "bounded": "To read up to now, use 'scan.bounded.mode' = 'latest-offset'.",
}
"""What says the same as a time in the future, which is none."""


def table_options(
    given: Mapping[str, str],
    formats: FormatOptions,
    *,
    keyed: bool,
    end: str,
    is_cdc: bool = False,
) -> tuple[TableOptions, dict[str, Any]]:
    """What both sides know of the table, and the value of every option, given or default, by its name as declared.

    A time of a start or an end is one of ``scan.<...>.timestamp-millis`` among the values, with its mode. A reader and a writer both
    check also what only the other one uses.

    Args:
        given: The options as given, names in lower case.
        formats: Looks up what options a format declares.
        keyed: Whether keys of messages are read or written.
        end: Where reading ends, if no option says it.
        is_cdc: Whether messages say what they did to a row, in which the key then is, so that it may have no format.

    Raises:
        OptionError: An option is unknown, missing, malformed or contradicts another, told with Flink's wording where Flink has the
            rule; or a time is in the future.
    """
    declared = known_options(given, formats)
    check_required(given, keyed=keyed and not is_cdc)
    values = {prefix + each.name: each.read(given, prefix) for prefix, each in declared}
    values |= {each.name: each.read(given) for each in _BESIDE}
    planned_ms = now_ms()  # how long ago a time was is counted from now
    for which in _IN_THE_FUTURE:
        if values[f"scan.{which}.timestamp"] is not None:
            values |= _as_millis(which, given, values, planned_ms)
    values["scan.bounded.mode"] = values["scan.bounded.mode"] or end
    prefix = values["key.fields-prefix"]
    holds_key = values["value.fields-include"] == "ALL"
    if prefix and holds_key:
        raise OptionError(
            "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'. Set it "
            "to 'EXCEPT_KEY' instead to avoid field overlaps."
        )
    table = TableOptions(
        topics=_topics(values),
        primary_key=_primary_key(values) if keyed else (),
        key_prefix=prefix,
        value_holds_key=holds_key,
        metadata=tuple((column.lower(), key) for column, key in values[METADATA_OF_COLUMN.name]),
        key_format=_format(values, "key") if keyed and values["key.format"] else None,
        value_format=_format(values, "value"),
        properties=client_properties(
            given,
            group_start=values["scan.startup.mode"] == "group-offsets",
            native=values["kafka.client.native"],
        ),
        client=values["kafka.client"],
        ddl_columns=values[DDL_COLUMNS.name],
    )
    _check_client(given, values)
    _check_buffer(values)
    _check_position(values, table, "startup")
    _check_position(values, table, "bounded")
    _check_limits(values)
    _check_dead_letter_topic(values, table.topics)
    return table, values


def _as_millis(
    which: str, given: Mapping[str, str], values: Mapping[str, Any], planned_ms: int
) -> dict[str, Any]:
    name, mode = f"scan.{which}.timestamp", f"scan.{which}.mode"
    if mode in given and values[mode] != "timestamp":
        raise OptionError(
            f"'{name}' is for '{mode}' = 'timestamp' only, but that is '{values[mode]}'."
        )
    if values[f"{name}-millis"] is not None:
        raise OptionError(f"'{name}' and '{name}-millis' both say a time: remove one of them.")
    at_ms = values[name].at(planned_ms)
    if at_ms > planned_ms:
        raise OptionError(
            f"'{name}' = '{given[name]}' is in the future: it is {shown_time(planned_ms)} now. {_IN_THE_FUTURE[which]}"
        )
    return {mode: "timestamp", f"{name}-millis": at_ms}


def _topics(values: Mapping[str, Any]) -> Topics:
    pattern = values["topic-pattern"]
    names_of = {name: values[name] for name in ("topic", *(each.name for each in PATHS))}
    named = {option: names for option, names in names_of.items() if names}
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


def _format(values: Mapping[str, Any], side: str) -> FormatChoice:
    name = values[f"{side}.format"]
    prefix = f"{side}.{name}."
    options = {
        each.removeprefix(prefix): values[each] for each in values if each.startswith(prefix)
    }
    return FormatChoice(name, tuple(options.items()))


def _check_client(given: Mapping[str, str], values: Mapping[str, Any]) -> None:
    if "kafka.client.native" in given and values["kafka.client"] != "librdkafka":
        raise OptionError(
            f"'kafka.client.native' is for 'kafka.client' = 'librdkafka' only, but that is '{values['kafka.client']}'."
        )


def _check_position(values: Mapping[str, Any], table: TableOptions, which: str) -> None:
    """The mode of a position, ``startup`` or ``bounded``, has what it needs, and nothing else."""
    mode = values[f"scan.{which}.mode"]
    for needed, option, hint in (
        (
            "timestamp",
            f"scan.{which}.timestamp-millis",
            f" A time as text goes into 'scan.{which}.timestamp'.",
        ),
        ("specific-offsets", f"scan.{which}.specific-offsets", ""),
    ):
        if mode == needed and values[option] is None:
            raise OptionError(f"'{option}' is required in '{mode}' {which} mode but missing.{hint}")
        if mode != needed and values[option] is not None:
            raise OptionError(
                f"'{option}' is for 'scan.{which}.mode' = '{needed}' only, but that is '{mode}'."
            )
    if mode == "specific-offsets" and len(table.topics.names) != 1:
        raise OptionError("Currently Kafka source only supports specific offset for single topic.")
    if mode == "group-offsets" and not table.properties.get("group.id"):
        raise OptionError(f"'properties.group.id' is required in 'group-offsets' {which} mode.")


def _check_limits(values: Mapping[str, Any]) -> None:
    """No least number, of offsets in a micro-batch or of Spark partitions, is larger than the greatest one."""
    most, least = values["maxOffsetsPerTrigger"], values["minOffsetsPerTrigger"]
    if most is not None and least is not None and least > most:
        raise OptionError(
            f"The value of 'minOffsetsPerTrigger' ({least}) must not be larger than "
            f"'maxOffsetsPerTrigger' ({most})."
        )
    most, least = values["scan.parallelism"], values["minPartitions"]
    if most == "auto" and least is not None:
        raise OptionError(
            "'minPartitions' is not allowed with 'scan.parallelism' = 'auto': the first splits Kafka partitions "
            "among tasks, the second reads few messages of several partitions in one task. Remove one of them."
        )
    if most is not None and least is not None and least > most:
        raise OptionError(
            f"The value of 'minPartitions' ({least}) must not be larger than 'scan.parallelism' ({most}): "
            "the first is the least number of tasks, the second the greatest."
        )


def _check_dead_letter_topic(values: Mapping[str, Any], topics: Topics) -> None:
    """If bad messages are sent to a topic, that topic is given, and is not one that is read."""
    target = values["error-handling.log.target"]
    if values["error-handling.mode"] != "log":
        return
    if target is None:
        raise OptionError(
            "'error-handling.log.target' is required in 'log' error-handling mode but missing."
        )
    if target in topics.names or (topics.pattern is not None and topics.pattern.fullmatch(target)):
        raise OptionError(
            f"'error-handling.log.target' = '{target}' is one of the topics that are read: each bad "
            "message would be read and sent again without end. Name another topic."
        )


def _check_buffer(values: Mapping[str, Any]) -> None:
    """The buffer has both of its bounds or neither."""
    if (values["sink.buffer-flush.max-rows"] > 0) != (values["sink.buffer-flush.interval"] > 0):
        raise OptionError(
            "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set to be greater "
            "than zero together to enable sink buffer flushing."
        )


_NEAR, _LIKE, _LIKE_A_PREFIX = 0.9, 0.6, 0.75
"""How similar two names must be when one letter is wrong, when a word is wrong, and when the prefix of a family is wrong."""

_RENAMED: dict[str, str | None] = {
    "assign": "topic",
    "subscribe": "topic",
    "subscribepattern": "topic-pattern",
    "startingoffsets": "scan.startup.mode",
    "startingoffsetsbytimestamp": "scan.startup.timestamp-millis",
    "startingtimestamp": "scan.startup.timestamp-millis",
    "endingoffsets": "scan.bounded.mode",
    "endingoffsetsbytimestamp": "scan.bounded.timestamp-millis",
    "endingtimestamp": "scan.bounded.timestamp-millis",
    "sink.partitioner": None,
    "sink.transaction-naming-strategy": None,
    "format": "value.format",
    "kafkaconsumer.polltimeoutms": "properties.default.api.timeout.ms",
    "fetchoffset.numretries": "properties.default.api.timeout.ms",
}
"""Names from Spark's and Flink's ``kafka`` connectors, and what means the same here; None = nothing."""

_NOT_HERE = {
    "includeheaders": "a column '_headers' in the schema shows them",
    "groupidprefix": "the connector joins no consumer group",
    "startingoffsetsbytimestampstrategy": "a start after the last message is the end of the topic",
    "fetchoffset.retryintervalms": "attempts are 0.1 to 1 second apart",
    "maxrecordsperpartition": "'minPartitions' splits partitions",
}
"""Names from Spark's ``kafka`` connector without a name here, and what takes their place."""

_FAMILIES = {
    option.prefix: option for option in OPTIONS.values() if isinstance(option, OptionFamily)
}

_OF_CLIENTS = {*SPELLINGS, *SPELLINGS.values()}

_PREFIXES_OF_CLIENTS = ("sasl.", "ssl.", "security.")


def known_options(given: Mapping[str, str], formats: FormatOptions) -> list[tuple[str, Option]]:
    """The options that may be given, those of the chosen formats among them, each with its prefix.

    Raises:
        OptionError: Names are unknown: all of them, what each can mean, and at the end the names that are known.
    """
    declared = [*(("", option) for option in OPTIONS.values()), *_of_formats(given, formats)]
    supported = {
        (prefix + option.name).lower(): prefix + option.name
        for prefix, option in declared
        if not isinstance(option, OptionFamily)
    }
    families = [(prefix, option) for prefix, option in declared if isinstance(option, OptionFamily)]
    known = {*supported, *SPARKS_OWN, *INTERNAL}
    unknown = [
        name
        for name in sorted(given)
        if name not in known
        and not any(family.has(name, prefix) for prefix, family in families)
        and not _is_of_a_later_format(name, given)
    ]
    if unknown:
        raise OptionError(
            "Unsupported options found for 'upsert-kafka': "
            + ", ".join(_told(name, given, supported, formats) for name in unknown)
            + f".\n\nSupported options, which {page('options.md')} explains: "
            + ", ".join(sorted(prefix + option.name for prefix, option in declared))
            + "."
        )
    return declared


def _told(
    name: str, given: Mapping[str, str], supported: Mapping[str, str], formats: FormatOptions
) -> str:
    """An unknown option, where it stands, and what it can mean."""
    why = _of_another_format(name, given, formats) or hint(name, supported)
    return f"'{name}'{where(name, given)}{why}"


def _of_another_format(name: str, given: Mapping[str, str], formats: FormatOptions) -> str:
    """Says that the option belongs to a format that the side does not have, if it does."""
    side, _, rest = name.partition(".")
    format_ = given.get(f"{side}.format") if side in ("key", "value") else None
    other = rest.partition(".")[0]
    if format_ is None or other == format_ or not _is_format(other, side, formats):
        return ""
    return f" (it belongs to the format '{other}', and '{side}.format' is '{format_}')"


def _is_format(name: str, side: str, formats: FormatOptions) -> bool:
    try:
        return bool(formats(name, side))
    except OptionError:
        return False


def _of_formats(given: Mapping[str, str], formats: FormatOptions) -> Iterator[tuple[str, Option]]:
    """The options of the formats that are chosen, each with its prefix."""
    for side in ("key", "value"):
        name = OPTIONS[f"{side}.format"].read(given)
        if name is not None:
            yield from ((f"{side}.{name}.", option) for option in formats(name, side))


def _is_of_a_later_format(name: str, given: Mapping[str, str]) -> bool:
    """Whether the name belongs to a format that is yet to be named."""
    side, _, rest = name.partition(".")
    return side in ("key", "value") and "." in rest and f"{side}.format" not in given


def check_required(given: Mapping[str, str], *, keyed: bool) -> None:
    """Raises OptionError with every required name that is missing."""
    examples = {"properties.bootstrap.servers": "localhost:9092", "value.format": "json"}
    if keyed:
        examples["key.format"] = "json"
    missing = sorted(name for name in examples if not given.get(name, "").strip())
    if missing:
        said = ", ".join(f"{name}{meant_by(name, given)}" for name in missing)
        raise missing_options(said, missing[0], examples[missing[0]])


def hint(name: str, supported: Mapping[str, str]) -> str:
    """The names that can be meant, as the end of what is said of a name; empty when there are none.

    Args:
        name: The name that was given, in lower case.
        supported: Names as declared, by their lower case.

    >>> hint("subscribe", {"topic": "topic"}), hint("header", {"topic": "topic"})
    (" (Did you mean 'topic'?)", '')
    """
    if name in _NOT_HERE:
        return f" ({_NOT_HERE[name]})"
    meant = " or ".join(f"'{each}'" for each in _meant(name, supported))
    return f" (Did you mean {meant}?)" if meant else ""


def meant_by(required: str, given: Iterable[str]) -> str:
    """The given name by which a required one can be meant; empty when there is none.

    >>> meant_by("properties.bootstrap.servers", ["topic", "properties.bootstrap.server"])
    " ('properties.bootstrap.server' was given)"
    """
    others = [name for name in given if name != required]
    near = get_close_matches(required, others, n=1, cutoff=_NEAR)
    return f" ('{near[0]}' was given)" if near else ""


def _meant(name: str, supported: Mapping[str, str]) -> Sequence[str]:
    if name in _RENAMED:
        meant = _RENAMED[name]
        return [] if meant is None else [meant]
    for_sides = [f"{side}.{name}" for side in ("key", "value")]
    return (
        [supported[each] for each in for_sides if each in supported]
        or _nearest(name, supported, 1, _NEAR)
        or _of_the_client(name, supported)
        or _in_a_family(name)
        or _nearest(name, _of_its_side(name, supported), 3, _LIKE)
    )


def _of_the_client(name: str, supported: Mapping[str, str]) -> Sequence[str]:
    """A property of the Kafka client, under no prefix or under that of Spark's connector."""
    bare = name.removeprefix("kafka.")
    if bare != name or PREFIX + bare in supported or bare in _OF_CLIENTS:
        return [PREFIX + bare]
    return [PREFIX + bare] if bare.startswith(_PREFIXES_OF_CLIENTS) else []


def _of_its_side(name: str, supported: Mapping[str, str]) -> Mapping[str, str]:
    """The names that can be meant by one of the key or of the value."""
    side = name.partition(".")[0] + "."
    return {each: name for each, name in supported.items() if each.startswith(side)} or supported


def _in_a_family(name: str) -> Sequence[str]:
    """A name behind a misspelt prefix, or a prefix alone."""
    for prefix, family in _FAMILIES.items():
        parts = name.split(".", prefix.count("."))
        rest = parts[prefix.count(".") :]
        begin = ".".join(parts[: prefix.count(".")]) + "."
        if get_close_matches(begin, [prefix], cutoff=_LIKE_A_PREFIX):
            return [f"{prefix}{rest[0]}" if any(rest) else family.name]
    return []


def _nearest(name: str, supported: Mapping[str, str], most: int, likeness: float) -> Sequence[str]:
    return [supported[found] for found in get_close_matches(name, supported, most, likeness)]
