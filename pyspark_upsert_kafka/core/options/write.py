"""The options of a write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.delivery.guarantee import (
    DeliveryGuarantee,
    required_acks,
    weak_acks,
)
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import OPTIONS
from pyspark_upsert_kafka.core.options.cdc_checks import check_not_written
from pyspark_upsert_kafka.core.options.checks import (
    check_buffer,
    check_dead_letter_topic,
    check_exactly_once,
    check_from_upsert_sink,
    check_limits,
    check_position,
)
from pyspark_upsert_kafka.core.options.given import given_options, secret_warnings
from pyspark_upsert_kafka.core.options.internal import CALL, FROM_UPSERT_SINK
from pyspark_upsert_kafka.core.options.names import (
    FormatOptions,
    check_known,
    check_required,
    option_values,
)
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.core.options.table import table_options
from pyspark_upsert_kafka.core.options.times import with_times
from pyspark_upsert_kafka.core.options.values import BufferFlush, TableOptions, WriteOptions
from pyspark_upsert_kafka.core.secrets.masking import is_secret, literal_secrets, refers

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
    check_not_written(OPTIONS["value.format"].read(given))
    values = with_times(given, option_values(given, formats, keyed=True), now_ms())
    table = table_options(given, values, formats, keyed=True)
    call = None if update_mode else CALL.read(given)
    _check(values, table, update_mode=update_mode, of_a_call=call is not None)
    guarantee = DeliveryGuarantee(values["sink.delivery-guarantee"])
    required = required_acks(table.properties.literal(), guarantee)
    return WriteOptions(
        table=table,
        buffer=_buffer(values),
        guarantee=guarantee,
        parallelism=values["sink.parallelism"],
        sequence_by=values["sequence-by"],
        order=None if update_mode else FROM_UPSERT_SINK.read(given),
        transactional_id_prefix=values["sink.transactional-id-prefix"],
        call=call,
        warnings=(*secret_warnings(raw), *weak_acks(required, str(table.topics))),
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
        check_exactly_once(values)
    elif not of_a_call:
        check_from_upsert_sink(values)
    check_position(values, table, "startup", values["scan.startup.mode"])
    check_position(values, table, "bounded", values["scan.bounded.mode"] or "unbounded")
    check_limits(values)
    check_dead_letter_topic(values, table.topics)
    check_buffer(values)


def _buffer(values: Mapping[str, Any]) -> BufferFlush | None:
    max_rows = values["sink.buffer-flush.max-rows"]
    return BufferFlush(max_rows, values["sink.buffer-flush.interval"]) if max_rows else None


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
    check_not_written(OPTIONS["value.format"].read(given))
    unknown_formats = {"key.format", "value.format"} & later
    check_known({**dict.fromkeys(later - unknown_formats, ""), **given}, formats)
    check_required({**dict.fromkeys(later, "later"), **given}, keyed=True)
    for option in OPTIONS.values():
        option.read(given)
    return tuple(literal_secrets(given))


def _resolved_later(name: str, value: str) -> bool:
    """Whether the value refers to something that `write_options` would look up."""
    looked_up = name in OPTIONS or not name.startswith(PREFIX)
    return looked_up and refers(value) and not is_secret(name)
