"""Avro without a header, as Flink's ``avro`` format reads and writes it: a message is one datum.

Its options have the names, meaning and defaults of Flink's ``AvroFormatOptions``.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import boolean, text
from pyspark_upsert_kafka.formats.avro.avro_columns import DERIVED, columns_of, derived_schema
from pyspark_upsert_kafka.formats.avro.avro_decoder import datum_decoder, resolve_columns
from pyspark_upsert_kafka.formats.avro.avro_schema import parse_schema
from pyspark_upsert_kafka.formats.avro.avro_types import Schema
from pyspark_upsert_kafka.formats.avro.resolved_schema import Skipper, least_bytes
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format


def _binary(value: str) -> str:
    """``binary``, in any case."""
    if value.strip().lower() != "binary":
        raise ValueError("expected 'binary', the only encoding of Avro that is supported")
    return "binary"


_LEGACY_TIMESTAMPS = Option(
    "timestamp_mapping.legacy",
    boolean,
    True,
    "Without a schema, all timestamps are timestamp-millis, as in Flink, and a finer value is an error. `false`: "
    "TIMESTAMP is timestamp-micros, TIMESTAMP_NTZ is local-timestamp-micros, and a schema that is given must keep the "
    "two apart too.",
)

_OPTIONS = (
    Option(
        "schema",
        text,
        None,
        "The Avro schema of the messages, as JSON.",
        shown_default="the one that Flink derives from the columns",
    ),
    Option("encoding", _binary, "binary", "Avro's encoding; 'json' is not supported."),
    _LEGACY_TIMESTAMPS,
)


@dataclass(frozen=True)
class _AvroSettings:
    """What the options of one side say.

    Args:
        schema: The given one; else the one that is derived from the columns.
        legacy_timestamps: The option ``timestamp_mapping.legacy``.
        remedy: What the error of a timestamp that is finer than its type advises; None = it is rounded down.
    """

    schema: Schema
    legacy_timestamps: bool
    remedy: str | None


def _settings_of(spec: CodecSpec) -> _AvroSettings:
    """The settings of a side.

    Raises:
        SchemaError: The schema is wrong, or Avro has no type for a column.
    """
    value = spec.options
    legacy = value["timestamp_mapping.legacy"]
    if value["schema"]:
        return _AvroSettings(parse_schema(value["schema"], _origin_of(spec)), legacy, None)
    schema = derived_schema(spec.schema, spec.required, legacy_timestamps=legacy)
    return _AvroSettings(parse_schema(schema, DERIVED), legacy, _remedy(spec.side))


def _origin_of(spec: CodecSpec) -> str:
    """Where the given schema of a side comes from, for errors."""
    return f"The schema in '{spec.side}.avro.schema'"


def _remedy(side: str) -> str:
    return (
        "Flink's Avro has milliseconds there. Cut the column with date_trunc('MILLISECOND', ...), or "
        f"set '{side}.avro.timestamp_mapping.legacy' = 'false' (microseconds but in arrays and maps), "
        f"or give '{side}.avro.schema', with timestamp-micros for it"
    )


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side.

    Raises:
        SchemaError: The schema is wrong, or the columns do not fit it.
    """
    settings = _settings_to_read(spec)
    return datum_decoder(settings.schema, spec.schema, legacy_timestamps=settings.legacy_timestamps)


def check_decoder(spec: CodecSpec) -> None:
    """Raises what `decoder` raises."""
    settings = _settings_to_read(spec)
    resolve_columns(settings.schema, spec.schema, legacy_timestamps=settings.legacy_timestamps)


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side.

    Raises:
        SchemaError: The schema is wrong, or the columns do not fit it.
    """
    from pyspark_upsert_kafka.formats.avro.avro_encoder import datum_encoder

    settings = _settings_of(spec)
    _check_some_bytes(settings.schema)
    return datum_encoder(
        settings.schema,
        spec.schema,
        legacy_timestamps=settings.legacy_timestamps,
        remedy=settings.remedy,
    )


def columns(spec: CodecSpec, only: str | None) -> StructType | None:
    """The columns that the given schema gives; None = none is given.

    Raises:
        SchemaError: The schema is wrong, or Spark has no type for a field.
    """
    schema = spec.options["schema"]
    return None if schema is None else columns_of(parse_schema(schema, _origin_of(spec)), only)


def _settings_to_read(spec: CodecSpec) -> _AvroSettings:
    settings = _settings_of(spec)
    _check_some_bytes(settings.schema)
    if not spec.options["schema"]:
        _refuse_not_null(spec.schema, spec.required, spec.side)
    return settings


def _refuse_not_null(columns: StructType, required: frozenset[str], side: str) -> None:
    """Refuses NOT NULL where a message cannot tell whether its writer had it too.

    A column that may be NULL takes one byte more in a message, and nothing else in the message tells the two apart.
    This connector writes all columns but the primary key as columns that may be NULL: whether Spark knows that a column
    has no nulls depends on the query that made it.

    Args:
        columns: The columns that are read with a derived schema.
        required: Those that no writer leaves NULL.
        side: ``key`` or ``value``, for the error.

    Raises:
        SchemaError: A column, or what is within one, is NOT NULL.
    """
    if side == "key":
        return
    for field in columns.fields:
        sure = field.nullable or field.name in required
        path = _first_not_null(field.dataType, field.name) if sure else field.name
        if path is not None:
            raise SchemaError(
                f"Column {path!r} is NOT NULL, and a message of format 'avro' does not tell whether its "
                "writer knew that: it could be read wrong. Make it nullable, as this connector and "
                f"Flink write it by default, or say what the messages are with '{side}.avro.schema'."
            )


def _first_not_null(column: DataType, path: str) -> str | None:
    """The path of the first thing within a type that is NOT NULL; None = there is none."""
    if isinstance(column, StructType):
        within = [
            (field.nullable, field.dataType, f"{path}.{field.name}") for field in column.fields
        ]
    elif isinstance(column, ArrayType):
        within = [(column.containsNull, column.elementType, f"{path}[]")]
    elif isinstance(column, MapType):
        within = [(column.valueContainsNull, column.valueType, f"{path}{{}}")]
    else:
        return None
    for nullable, inner, name in within:
        found = _first_not_null(inner, name) if nullable else name
        if found is not None:
            return found
    return None


def _check_some_bytes(schema: Schema) -> None:
    """Refuses a schema whose messages would be empty: an empty message is refused as no datum."""
    if not least_bytes(Skipper(schema).node(schema.type, "")):
        raise SchemaError(
            "The 'avro' format needs at least one column or field that takes bytes: a message of this "
            "schema would be empty, which nobody can read."
        )


FORMAT = Format("avro", _OPTIONS, decoder, encoder, columns, check_decoder=check_decoder)
