"""What the arguments of ``show`` ask for: a table, and how it is read."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from pyspark_upsert_kafka.cli.raw_messages import raw_messages
from pyspark_upsert_kafka.cli.show.arguments import prints_changes
from pyspark_upsert_kafka.cli.table_request import (
    UnknownColumnsError,
    checked_options,
    checked_table,
    table_options,
)
from pyspark_upsert_kafka.core.errors import OptionError, shown
from pyspark_upsert_kafka.core.options.properties import client_properties
from pyspark_upsert_kafka.without_spark.request import Request


def request_of(given: argparse.Namespace) -> Request:
    """What the arguments ask for.

    Raises:
        OptionError: An option is wrong, or columns or key are missing; then the error shows the topic's first message.
        SchemaError: Columns, key or types do not fit.
    """
    raw = connector_options(given)
    try:
        options = checked_options(given, raw)
    except UnknownColumnsError as error:
        raise OptionError(f"{error}\n{_first_message(raw)}") from None
    return checked_table(given, raw, options)


def connector_options(given: argparse.Namespace) -> dict[str, str]:
    """The connector's options."""
    end = {}
    if given.at is not None:
        end = {
            "scan.bounded.mode": "timestamp",
            "scan.bounded.timestamp-millis": str(given.at),
        }
    return table_options(given, "changelog" if prints_changes(given) else "snapshot", end)


def _first_message(raw: Mapping[str, str]) -> str:
    """The first message of the topic, as a hint about its columns."""
    topic = raw.get("topic")
    if topic is None:
        return "And name the topic: --topic."
    first = next(raw_messages(client_properties(dict(raw), group_start=False), topic), None)
    if first is None:
        return f"Topic {topic!r} has no message yet."
    return (
        f"The first message of topic {topic!r}:\n"
        f"  key    {shown(first.key)}\n  value  {shown(first.value)}"
    )
