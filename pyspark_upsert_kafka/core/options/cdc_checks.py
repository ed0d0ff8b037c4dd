"""Options that contradict a CDC format, whose messages say what they did to a row. Each check raises OptionError.

With a primary key such a topic is an upsert table; without one its rows are shown as before and after each change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.core.options.catalog import TABLE_FIRST
from pyspark_upsert_kafka.core.options.values import ReadMode, TableOptions


def check_names(given: Mapping[str, str], name: str, mode: ReadMode) -> None:
    """The read mode fits the format, and options of the key are given only where the key is read.

    Args:
        given: The options as given, names in lower case.
        name: The CDC format.
        mode: The read mode.
    """
    if mode == "append":
        raise OptionError(
            f"'read.mode' = 'append' reads every message as a new row, but messages of '{name}' update and delete rows: use "
            "'read.mode' = 'changelog'."
        )
    has_key = not {"primary-key", "key.fields"}.isdisjoint(given)
    if mode == "snapshot" and not has_key:
        raise OptionError(
            f"A snapshot needs a primary key: give 'primary-key', so that messages of '{name}' are changes of its rows, or read "
            "the rows before and after each change with 'read.mode' = 'changelog'."
        )
    needed = "key.format" if has_key else "primary-key"
    if needed in given:
        return
    for option in sorted(given):
        if option.startswith("key.") and option != "key.fields":
            raise OptionError(
                f"'{option}' needs '{needed}': without it the key of messages is not read, and the columns of '{name}' all come "
                "from the value."
            )


def check_values(values: Mapping[str, Any], table: TableOptions) -> None:
    """Values that need a primary key, or the key of messages, where that is not read."""
    name = table.value_format.name
    if not table.primary_key and values["scan.deletes"] == "drop":
        raise OptionError(
            f"'scan.deletes' = 'drop' needs 'primary-key': without it '{name}' gives rows before and after each change, which "
            "only the column '_change_type' tells apart."
        )
    if not table.primary_key and values["scan.startup.mode"] == TABLE_FIRST:
        raise OptionError(
            f"'scan.startup.mode' = '{TABLE_FIRST}' needs 'primary-key': without it messages of '{name}' are no changes of a "
            "table with which a stream could begin. Use 'earliest-offset' to read all of them."
        )
    if table.primary_key and table.key_format is None and not table.value_holds_key:
        raise OptionError(
            f"'value.fields-include' = 'EXCEPT_KEY' needs 'key.format': without it the key columns of '{name}' come from the "
            "value."
        )


def check_not_written(name: str | None) -> None:
    """A sink writes no CDC format.

    Args:
        name: The value of ``value.format``; None = it is not given.
    """
    if name in CDC_FORMATS:
        raise OptionError(
            f"'value.format' = '{name}' is for reading only. Write the table with 'json' or 'avro-confluent', where a row is an "
            "upsert of its key and a null value is a delete."
        )
