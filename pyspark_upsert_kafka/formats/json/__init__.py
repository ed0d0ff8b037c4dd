"""JSON, as Flink's ``json`` format reads and writes it.

Names, meaning and defaults of options are those of Flink's ``JsonFormatOptions``.
What compiles and runs the codecs is imported by the tasks that use them, not where a query is planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StringType,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import any_text, boolean, one_of
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.leaf_types import TEXT_TYPES

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
class JsonSettings:
    """What the options of one side say; see OPTIONS for their meaning. A user writes ``prefix`` before their names."""

    fail_on_missing_field: bool
    ignore_parse_errors: bool
    timestamp_standard: Standard
    map_null_key_mode: str
    map_null_key_literal: str
    plain_decimals: bool
    ignore_null_fields: bool
    prefix: str = ""


def settings_of(spec: CodecSpec) -> JsonSettings:
    """The settings of a side.

    Raises:
        OptionError: Two options contradict each other; the wording is that of Flink's
            ``JsonFormatOptionsUtil``.
    """
    value = spec.options
    if value["fail-on-missing-field"] and value["ignore-parse-errors"]:
        raise OptionError("fail-on-missing-field and ignore-parse-errors shouldn't both be true.")
    return JsonSettings(
        fail_on_missing_field=value["fail-on-missing-field"],
        ignore_parse_errors=value["ignore-parse-errors"],
        timestamp_standard=value["timestamp-format.standard"],
        map_null_key_mode=value["map-null-key.mode"],
        map_null_key_literal=value["map-null-key.literal"],
        plain_decimals=value["encode.decimal-as-plain-number"],
        ignore_null_fields=value["encode.ignore-null-fields"],
        prefix=spec.prefix,
    )


def check(spec: CodecSpec) -> JsonSettings:
    """The settings of one side that can be read and written.

    Raises:
        SchemaError: JSON cannot carry a column.
        OptionError: Two options contradict each other.
    """
    settings = settings_of(spec)
    check_columns(spec.schema)
    return settings


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side. Raises as `check` does."""
    from pyspark_upsert_kafka.formats.decoded_size import BoundedDecoder
    from pyspark_upsert_kafka.formats.decoding import PathsDecoder, RowPath
    from pyspark_upsert_kafka.formats.json.column_paths import (
        compile_column_path,
        compile_vectorised_path,
    )
    from pyspark_upsert_kafka.formats.json.row_path import measure_of, row_reader

    settings = check(spec)
    target = arrow_schema(spec.schema)
    row = row_reader(spec.schema, settings)
    row_path = RowPath(row, target, skip_bad=settings.ignore_parse_errors)
    vectorised = compile_vectorised_path(spec.schema, target, settings)
    paths: Decoder = row_path
    if vectorised is not None:
        by_columns = compile_column_path(spec.schema, target, settings)
        paths = PathsDecoder(vectorised, row_path, by_columns)
    measure = measure_of(spec.schema, target, lenient=settings.ignore_parse_errors)
    return BoundedDecoder(paths, target, measure, skip_bad=settings.ignore_parse_errors)


def _rows(spec: CodecSpec) -> Decoder:
    """The decoder of the format ``json``: of Connect's envelope, in which no column of the row is, an error says so."""
    from pyspark_upsert_kafka.formats.json.json_document import PARTS, WithoutEnvelopes

    rows = decoder(spec)
    is_read = not PARTS.isdisjoint(spec.schema.names)
    if is_read or spec.options["ignore-parse-errors"]:
        return rows
    return WithoutEnvelopes(rows, spec.side)


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side. Raises as `check` does."""
    from pyspark_upsert_kafka.formats.json.json_encoder import JsonEncoder

    return JsonEncoder(spec.schema, check(spec))


def fields(message: bytes) -> Mapping[str, Any]:
    """The fields of a message that can be read. Raises UnreadableError for another."""
    from pyspark_upsert_kafka.formats.json.json_document import parse_object

    return parse_object(message)


FORMAT = Format(
    "json",
    OPTIONS,
    _rows,
    encoder,
    check_decoder=check,
    check_encoder=check,
    fields=fields,
)


_SIMPLE = {*TEXT_TYPES, DayTimeIntervalType, VariantType}


def check_columns(columns: StructType, path: str = "") -> None:
    """Raises SchemaError for a column, or a field inside one, that JSON cannot carry."""
    for name, times in Counter(columns.names).items():
        if times > 1:
            raise SchemaError(
                f"Field {path + name!r} occurs {times} times; the fields of a JSON object need "
                "distinct names."
            )
    for field in columns.fields:
        _check(field.dataType, path + field.name)


def _check(kind: DataType, path: str) -> None:
    if isinstance(kind, StructType):
        check_columns(kind, f"{path}.")
    elif isinstance(kind, ArrayType):
        _check(kind.elementType, f"{path}[]")
    elif isinstance(kind, MapType):
        _check_key(kind, path)
        _check(kind.valueType, f"{path}{{}}")
    elif type(kind) not in _SIMPLE:
        raise SchemaError(_unsupported(kind, path))


def _check_key(kind: MapType, path: str) -> None:
    """Refuses what Flink's ``JsonParserToRowDataConverters`` and ``RowDataToJsonConverters`` refuse."""
    if type(kind.keyType) is not StringType:
        raise SchemaError(
            "JSON format doesn't support non-string as key type of map. The type is: "
            f"{kind.simpleString()} (column {path!r})."
        )


def _unsupported(kind: DataType, path: str) -> str:
    text = f"JSON format doesn't support the type of column {path!r}: {kind.simpleString()}."
    if isinstance(kind, YearMonthIntervalType):
        text += " Spark cannot exchange it with Python; use a number of months or a STRING."
    return text
