"""The options that mean the same for reading and for writing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import METADATA_OF_COLUMN, PATHS
from pyspark_upsert_kafka.core.options.internal import DDL_COLUMNS
from pyspark_upsert_kafka.core.options.names import FormatOptions
from pyspark_upsert_kafka.core.options.properties import client_properties
from pyspark_upsert_kafka.core.options.values import FormatChoice, TableOptions, Topics


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
    return TableOptions(
        topics=_topics(given, values),
        primary_key=_primary_key(values) if keyed else (),
        key_prefix=prefix,
        value_holds_key=holds_key,
        metadata=tuple((column.lower(), key) for column, key in values[METADATA_OF_COLUMN.name]),
        key_format=_key_format(values["key.format"], given, formats) if keyed else None,
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


def _key_format(
    name: str | None, given: Mapping[str, str], formats: FormatOptions
) -> FormatChoice | None:
    """The format of the key; None = it is not given, so that a CDC format finds the key in the row."""
    return None if name is None else _format(name, "key", given, formats)


def _format(name: str, side: str, given: Mapping[str, str], formats: FormatOptions) -> FormatChoice:
    prefix = f"{side}.{name}."
    return FormatChoice(
        name,
        tuple((option.name, option.read(given, prefix)) for option in formats(name, side)),
    )
