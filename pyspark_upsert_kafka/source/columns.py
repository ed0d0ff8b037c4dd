"""The columns of a table whose user gives none: those of an Avro schema.

That is one given by an option, or the newest one in the schema registry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from pyspark.sql.types import StringType, StructField, StructType

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.options import (
    OPTIONS,
    FormatChoice,
    ReadOptions,
    TableOptions,
    read_options,
)
from pyspark_upsert_kafka.formats import format_options
from pyspark_upsert_kafka.formats.avro.columns import columns_of
from pyspark_upsert_kafka.formats.avro.model import Record
from pyspark_upsert_kafka.formats.avro.schema import parse_schema
from pyspark_upsert_kafka.formats.avro_confluent import registered_schema
from pyspark_upsert_kafka.formats.codec import CodecSpec

_AVRO = ("avro", "avro-confluent")
_NO_SCHEMA = (
    "The table has no schema: a Kafka topic does not say what its columns are. Give one, for "
    "example .schema('id BIGINT, name STRING, _change_type STRING')."
)


def known_columns(raw: Mapping[str, str]) -> StructType:
    """The columns of the table that a reader's options describe.

    Spark asks before it says whether a batch or a stream is read. So it is a changelog unless an option
    says otherwise, and in a changelog only columns of the primary key keep their NOT NULL.

    Raises:
        SchemaError: Nothing says what the columns are.
        OptionError: An option is wrong.
        BrokerError: The schema registry does not answer, or refuses.
    """
    given = {name.lower(): value for name, value in raw.items()}
    if OPTIONS["value.format"].read(given) not in _AVRO:
        raise SchemaError(_NO_SCHEMA)
    stream = OPTIONS["read.mode"].read(given) != "snapshot"
    options = read_options(raw, format_options, stream=stream)
    schema = _avro_schema(options.table.value_format, "value", options.table)
    if schema is None:
        raise SchemaError(_NO_SCHEMA)
    value = columns_of(schema)
    key = _key_columns(options.table, value)
    of_key = {field.name.lower() for field in key}
    columns = [*key, *(field for field in value if field.name.lower() not in of_key)]
    columns = [_with_nulls(field, options) for field in columns]
    if options.mode == "changelog" and options.emit_deletes:
        columns.append(StructField("_change_type", StringType()))
    return StructType(columns)


def _avro_schema(
    choice: FormatChoice, side: Literal["key", "value"], table: TableOptions
) -> str | None:
    """The Avro schema of one side; None when it has none."""
    spec = CodecSpec(StructType(), side, dict(choice.options), table.topics.names)
    if choice.name == "avro-confluent":
        return registered_schema(spec)
    if choice.name == "avro":
        return spec.options.get("schema")
    return None


def _key_columns(table: TableOptions, value: StructType) -> list[StructField]:
    """Columns of the primary key that the value does not hold, in the order of the key."""
    in_value = {field.name.lower(): field for field in value}
    wanted = [
        name
        for name in table.primary_key
        if name.lower() not in in_value or not table.value_holds_key
    ]
    if not wanted:
        return []
    in_key = _columns_in_key(table)
    # A key of another format has no types of its own; the value may know of the column.
    known = {**in_value, **in_key}
    for name in wanted:
        if name.lower() not in known:
            raise SchemaError(
                f"Column {name!r} of the primary key is in no Avro schema. Columns of the key: "
                f"[{_names(in_key)}]; columns of the value: [{_names(in_value)}]. Give the columns by "
                ".schema(...)."
            )
    return [known[name.lower()] for name in wanted]


def _columns_in_key(table: TableOptions) -> dict[str, StructField]:
    """Columns that the key's schema says, under their names in the table, by these in lower case."""
    schema = _avro_schema(table.key_format, "key", table) if table.key_format else None
    if schema is None:
        return {}
    if len(table.primary_key) == 1 and not isinstance(parse_schema(schema).type, Record):
        only = table.primary_key[0].removeprefix(table.key_prefix)
        field = {"name": only, "type": json.loads(schema)}
        schema = json.dumps({"type": "record", "name": "key", "fields": [field]})
    return {
        (table.key_prefix + field.name).lower(): StructField(
            table.key_prefix + field.name, field.dataType, field.nullable
        )
        for field in columns_of(schema)
    }


def _names(fields: Mapping[str, StructField]) -> str:
    return ", ".join(field.name for field in fields.values())


def _with_nulls(field: StructField, options: ReadOptions) -> StructField:
    """The column, NOT NULL only where a reader can keep that promise; see ``table_to_read``."""
    key = {name.lower() for name in options.table.primary_key}
    kept = options.mode != "changelog" or field.name.lower() in key
    nullable = field.nullable or not kept or options.error_mode == "column"
    return StructField(field.name, field.dataType, nullable)
