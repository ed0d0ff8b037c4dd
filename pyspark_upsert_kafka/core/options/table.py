"""The options that mean the same for reading and for writing: their values, the table that they describe, and what contradicts what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pyspark_upsert_kafka.core.clock import now_ms, shown_time
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import (
    DDL_COLUMNS,
    METADATA_OF_COLUMN,
    OPTIONS,
    PATHS,
)
from pyspark_upsert_kafka.core.options.given import FormatOptions, check_known, check_required
from pyspark_upsert_kafka.core.options.properties import client_properties
from pyspark_upsert_kafka.core.options.values import FormatChoice, TableOptions, Topics

_INSTEAD = {
    "startup": "To read only what is written from now on, use 'scan.startup.mode' = 'latest-offset'.",
    "bounded": "To read up to now, use 'scan.bounded.mode' = 'latest-offset'.",
}
"""What says the same as a time in the future, which is none."""


def option_values(
    given: Mapping[str, str], formats: FormatOptions, *, keyed: bool
) -> dict[str, Any]:
    """The value of every declared option, given or default, by its name as declared.

    A time of a start or an end is one of ``scan.<...>.timestamp-millis`` in it, with its mode.

    Args:
        given: The options as given, names in lower case.
        formats: Looks up what options a format declares.
        keyed: Whether the key's format must be given.

    Raises:
        OptionError: An option is unknown, missing or malformed, or a time is in the future or contradicts another option.
    """
    check_known(given, formats)
    check_required(given, keyed=keyed)
    values = {name: option.read(given) for name, option in OPTIONS.items()}
    planned_ms = now_ms()  # how long ago a time was is counted from now
    for which in _INSTEAD:
        if values[f"scan.{which}.timestamp"] is not None:
            values |= _as_millis(which, given, values, planned_ms)
    return values


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
            f"'{name}' = '{given[name]}' is in the future: it is {shown_time(planned_ms)} now. {_INSTEAD[which]}"
        )
    return {mode: "timestamp", f"{name}-millis": at_ms}


def table_options(
    given: Mapping[str, str], values: Mapping[str, Any], formats: FormatOptions, *, keyed: bool
) -> TableOptions:
    """What both sides know of the table.

    Args:
        given: The options as given, names in lower case.
        values: The value of every declared option.
        formats: Looks up what options a format declares.
        keyed: Whether keys of messages are read or written.

    Raises:
        OptionError: An option is missing, malformed or contradicts another.
    """
    holds_key = values["value.fields-include"] == "ALL"
    prefix = values["key.fields-prefix"]
    if prefix and holds_key:
        raise OptionError(
            "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'. Set it "
            "to 'EXCEPT_KEY' instead to avoid field overlaps."
        )
    key_format = values["key.format"]  # without one a CDC format finds the key in the row
    return TableOptions(
        topics=_topics(given, values),
        primary_key=_primary_key(values) if keyed else (),
        key_prefix=prefix,
        value_holds_key=holds_key,
        metadata=tuple((column.lower(), key) for column, key in values[METADATA_OF_COLUMN.name]),
        key_format=_format(key_format, "key", given, formats) if keyed and key_format else None,
        value_format=_format(values["value.format"], "value", given, formats),
        properties=client_properties(
            given, group_start=values["scan.startup.mode"] == "group-offsets"
        ),
        client=values["kafka.client"],
        ddl_columns=DDL_COLUMNS.read(given),
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


def _format(name: str, side: str, given: Mapping[str, str], formats: FormatOptions) -> FormatChoice:
    prefix = f"{side}.{name}."
    return FormatChoice(
        name,
        tuple((option.name, option.read(given, prefix)) for option in formats(name, side)),
    )


def check_both_sides(values: Mapping[str, Any], table: TableOptions, end: str) -> None:
    """What a reader and a writer both check: also what only the other one uses.

    Args:
        values: The value of every declared option.
        table: What both sides know of the table.
        end: The mode of the end, given or default.

    Raises:
        OptionError: Options contradict each other, told with Flink's wording where Flink has the rule.
    """
    _check_buffer(values)
    _check_position(values, table, "startup", values["scan.startup.mode"])
    _check_position(values, table, "bounded", end)
    _check_limits(values)
    _check_dead_letter_topic(values, table.topics)


def _check_position(values: Mapping[str, Any], table: TableOptions, which: str, mode: str) -> None:
    """The mode of a position has what it needs, and nothing else.

    Args:
        values: The value of every declared option.
        table: What both sides know of the table.
        which: ``startup`` or ``bounded``.
        mode: The mode, given or default.
    """
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
