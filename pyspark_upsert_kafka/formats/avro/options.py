"""The options of the Avro format: names, meaning and defaults of Flink's ``AvroFormatOptions``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_upsert_kafka.core.options import Option, boolean, text
from pyspark_upsert_kafka.formats.avro.derive import derived_schema
from pyspark_upsert_kafka.formats.avro.model import Schema
from pyspark_upsert_kafka.formats.avro.schema import parse_schema
from pyspark_upsert_kafka.formats.codec import CodecSpec


def binary(value: str) -> str:
    """``binary``, in any case."""
    if value.strip().lower() != "binary":
        raise ValueError("expected 'binary', the only encoding of Avro that is supported")
    return "binary"


DERIVED = "The schema derived from the columns"
"""Where a schema comes from, for errors."""

LEGACY_TIMESTAMPS = Option(
    "timestamp_mapping.legacy",
    boolean,
    True,
    "Without a schema every timestamp is timestamp-millis, as Flink has it, and a finer one is an "
    "error; if 'false', TIMESTAMP is timestamp-micros, TIMESTAMP_NTZ local-timestamp-micros, and a "
    "given schema must keep the two apart.",
)

OPTIONS = (
    Option(
        "schema",
        text,
        None,
        "The Avro schema of the messages, as JSON.",
        shown_default="the one that Flink derives from the columns",
    ),
    Option("encoding", binary, "binary", "Avro's encoding; 'json' is not supported."),
    LEGACY_TIMESTAMPS,
)


@dataclass(frozen=True)
class Settings:
    """What the options of one side say; see OPTIONS for their meaning.

    Args:
        schema: The one given, or derived.
        legacy_timestamps: The option.
        finer: What to do about a timestamp that a derived schema has no digits for.
    """

    schema: Schema
    legacy_timestamps: bool
    finer: str | None


def settings_of(spec: CodecSpec) -> Settings:
    """The settings of a side; without a schema the one derived from its columns.

    Raises:
        SchemaError: The schema is wrong, or Avro has no type for a column.
    """
    value = spec.options
    legacy = value["timestamp_mapping.legacy"]
    if value["schema"]:
        return Settings(parse_schema(value["schema"], origin_of(spec)), legacy, None)
    derived = parse_schema(schema_of_columns(spec, legacy_timestamps=legacy), DERIVED)
    return Settings(derived, legacy, _finer(spec.side))


def origin_of(spec: CodecSpec) -> str:
    """Where the given schema of a side comes from, for errors."""
    return f"The schema in '{spec.side}.avro.schema'"


def _finer(side: str) -> str:
    return (
        "Flink's Avro has milliseconds there. Cut the column with date_trunc('MILLISECOND', ...), or "
        f"set '{side}.avro.timestamp_mapping.legacy' = 'false' (microseconds but in arrays and maps), "
        f"or give '{side}.avro.schema', with timestamp-micros for it"
    )


def schema_of_columns(spec: CodecSpec, *, legacy_timestamps: bool) -> Mapping[str, object]:
    """The schema derived from the columns of a side.

    Raises:
        SchemaError: Avro has no type for a column.
    """
    return derived_schema(spec.schema, spec.required, legacy_timestamps=legacy_timestamps)
