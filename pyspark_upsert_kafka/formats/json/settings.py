"""The options of the JSON format: names, meaning and defaults of Flink's ``JsonFormatOptions``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import any_text, boolean, one_of
from pyspark_upsert_kafka.formats.codec import CodecSpec

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.timestamp_text import Standard

OPTIONS = (
    Option(
        "fail-on-missing-field",
        boolean,
        False,
        "Whether a field that is missing in a message is an error; otherwise it is NULL.",
    ),
    Option(
        "ignore-parse-errors",
        boolean,
        False,
        "A field that cannot be read is NULL, and a message that is not JSON is skipped.",
    ),
    Option(
        "timestamp-format.standard",
        one_of("SQL", "ISO-8601"),
        "SQL",
        "'2024-01-31 12:30:00.123' (SQL) or '2024-01-31T12:30:00.123' (ISO-8601).",
    ),
    Option(
        "map-null-key.mode",
        one_of("FAIL", "DROP", "LITERAL"),
        "FAIL",
        "Writing a map with a NULL key: `FAIL` = an error, `DROP` = the entry is left out, `LITERAL` = the literal is the key.",
    ),
    Option(
        "map-null-key.literal",
        any_text,
        "null",
        "With `map-null-key.mode` = `LITERAL`: the key that is written for NULL.",
    ),
    Option(
        "encode.decimal-as-plain-number",
        boolean,
        False,
        "Write decimals in full (100.00), not in the shortest form (1E+2).",
    ),
    Option("encode.ignore-null-fields", boolean, False, "Leave out fields that are NULL."),
)


@dataclass(frozen=True)
class Settings:
    """What the options of one side say; see OPTIONS for their meaning."""

    fail_on_missing_field: bool
    ignore_parse_errors: bool
    timestamp_standard: Standard
    map_null_key_mode: str
    map_null_key_literal: str
    plain_decimals: bool
    ignore_null_fields: bool
    is_key: bool


def settings_of(spec: CodecSpec) -> Settings:
    """The settings of a side.

    Raises:
        OptionError: Two options contradict each other; the wording is that of Flink's
            ``JsonFormatOptionsUtil``.
    """
    value = spec.options
    if value["fail-on-missing-field"] and value["ignore-parse-errors"]:
        raise OptionError("fail-on-missing-field and ignore-parse-errors shouldn't both be true.")
    return Settings(
        fail_on_missing_field=value["fail-on-missing-field"],
        ignore_parse_errors=value["ignore-parse-errors"],
        timestamp_standard=value["timestamp-format.standard"],
        map_null_key_mode=value["map-null-key.mode"],
        map_null_key_literal=value["map-null-key.literal"],
        plain_decimals=value["encode.decimal-as-plain-number"],
        ignore_null_fields=value["encode.ignore-null-fields"],
        is_key=spec.side == "key",
    )
