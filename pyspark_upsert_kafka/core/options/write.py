"""The options of a write: from texts to frozen values, and what contradicts what. A check raises OptionError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_upsert_kafka.core.delivery_guarantee import (
    DeliveryGuarantee,
    required_acks,
    weak_acks,
)
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import is_secret, literal_secrets, refers
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.core.options.catalog import (
    CALL,
    FROM_UPSERT_SINK,
    OPTIONS,
    FormatOptions,
)
from pyspark_upsert_kafka.core.options.frozen_options import BufferFlush, TableOptions, WriteOptions
from pyspark_upsert_kafka.core.options.given import given_options
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.core.options.table import check_required, known_options, table_options

_PLACEHOLDERS = {
    "topic": "a-topic", "primary-key": "a_column", "properties.bootstrap.servers": "a-server:9092",
}  # fmt: skip


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
    given = given_options(raw)
    _refuse_append(given)
    _check_not_written(OPTIONS["value.format"].read(given))
    table, values = table_options(given, formats, keyed=True, end="unbounded")
    call = None if update_mode else values[CALL.name]
    _check(values, table, update_mode=update_mode, of_a_call=call is not None)
    guarantee = DeliveryGuarantee(values["sink.delivery-guarantee"])
    max_rows = values["sink.buffer-flush.max-rows"]
    required = required_acks(table.properties.literal(), guarantee)
    return WriteOptions(
        table=table,
        buffer=BufferFlush(max_rows, values["sink.buffer-flush.interval"]) if max_rows else None,
        guarantee=guarantee,
        parallelism=values["sink.parallelism"],
        sequence_by=values["sequence-by"],
        order=None if update_mode else values[FROM_UPSERT_SINK.name],
        transactional_id_prefix=values["sink.transactional-id-prefix"],
        call=call,
        warnings=(*given.warnings, *weak_acks(required, str(table.topics))),
    )


def _refuse_append(given: Mapping[str, str]) -> None:
    """Checked first: otherwise the error would be about a missing key."""
    if OPTIONS["read.mode"].read(given) == "append":
        raise OptionError(
            "'read.mode' = 'append' is for reading; a sink needs a primary key. (In a DDL, 'connector' = 'kafka' "
            "means 'append': give 'connector' = 'upsert-kafka' for a table to write.)"
        )


def _check(
    values: Mapping[str, Any], table: TableOptions, *, update_mode: bool, of_a_call: bool
) -> None:
    if table.topics.pattern is not None:
        raise OptionError("'topic-pattern' is for reading; a sink needs 'topic'.")
    if update_mode:
        _check_exactly_once(values)
    elif not of_a_call:
        _check_from_upsert_sink(values)


def check_write_options(raw: Mapping[str, str], formats: FormatOptions) -> tuple[str, ...]:
    """Checks the options of `upsert_sink` where they are given, and returns the warnings about them.

    That may be the client of a Spark Connect server, and a reference (``${env:NAME}``) may have a value on the
    server only. So references are not replaced here: their values are checked where they are used.

    Raises:
        OptionError: As `write_options` does.
    """
    everything = given_options(raw)
    given = {name: value for name, value in everything.items() if not _resolved_later(name, value)}
    later = everything.keys() - given.keys()
    given.update({name: value for name, value in _PLACEHOLDERS.items() if name in later})
    if later <= _PLACEHOLDERS.keys():
        return write_options(given, formats, update_mode=True).warnings
    # Options whose values are not known here are compared with others later.
    _refuse_append(given)
    _check_not_written(OPTIONS["value.format"].read(given))
    unknown_formats = {"key.format", "value.format"} & later
    known_options({**dict.fromkeys(later - unknown_formats, ""), **given}, formats)
    check_required({**dict.fromkeys(later, "later"), **given}, keyed=True)
    for option in OPTIONS.values():
        option.read(given)
    return tuple(literal_secrets(given))


def _resolved_later(name: str, value: str) -> bool:
    """Whether the value refers to something that `write_options` would look up."""
    looked_up = name in OPTIONS or not name.startswith(PREFIX)
    return looked_up and refers(value) and not is_secret(name)


def _check_exactly_once(values: Mapping[str, Any]) -> None:
    """Transactions have a name and a fixed number of tasks."""
    if values["sink.delivery-guarantee"] != DeliveryGuarantee.EXACTLY_ONCE.value:
        return
    if values["sink.transactional-id-prefix"] is None:
        raise OptionError(
            "sink.transactional-id-prefix must be specified when using DeliveryGuarantee.EXACTLY_ONCE: "
            "'sink.delivery-guarantee' = 'exactly-once' names its transactions by it. Give each sink a "
            "prefix of its own."
        )
    if values["sink.parallelism"] is None:
        raise OptionError(
            "'sink.parallelism' is required with 'sink.delivery-guarantee' = 'exactly-once' but missing: "
            "each of that many tasks writes in a transaction of its own, and a batch that is written again "
            "needs the same tasks."
        )


def _check_from_upsert_sink(values: Mapping[str, Any]) -> None:
    """Only `upsert_sink` can write exactly once, and distribute rows."""
    if values["sink.delivery-guarantee"] == DeliveryGuarantee.EXACTLY_ONCE.value:
        raise OptionError(
            "'sink.delivery-guarantee' = 'exactly-once' works with upsert_sink only, since Spark does not "
            "tell a Python writer the number of tasks: use .foreachBatch(upsert_sink(options)) with "
            "'sink.parallelism' and 'sink.transactional-id-prefix'."
        )
    for name in ("sink.parallelism", "sequence-by"):
        if values[name] is not None:
            raise OptionError(
                f"Option '{name}' works with upsert_sink only, since a Python writer cannot control "
                "how Spark distributes rows: use .foreachBatch(upsert_sink(options)), or "
                "df.repartition(n, key columns) first."
            )


def _check_not_written(name: str | None) -> None:
    """A sink writes no CDC format.

    Args:
        name: The value of ``value.format``; None = it is not given.
    """
    if name in CDC_FORMATS:
        raise OptionError(
            f"'value.format' = '{name}' is for reading only. Write the table with 'json' or 'avro-confluent', where a row is an "
            "upsert of its key and a null value is a delete."
        )
