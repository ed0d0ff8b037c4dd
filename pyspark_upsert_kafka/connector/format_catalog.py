"""Which formats there are, and the sides of a table, key and value, each with its format, as they are read and as they are written.

A format whose messages name their schema gets its registry here. What no task could read or write is refused here.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from typing import Literal

from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import (
    CDC_FORMATS,
    DEBEZIUM_FORMATS,
    ID_IS_SEEN,
    METADATA_OF_FORMATS,
    SCHEMA_IDS,
    Detail,
    check_metadata,
)
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions, TableOptions, WriteOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.codec import ChangeSpec, CodecSpec, Format, Side
from pyspark_upsert_kafka.formats.registry_format import RegistryFormat

MODULES = {
    "avro": "avro",
    "avro-confluent": "avro_confluent",
    "avro-glue": "avro_confluent",
    "avro-registry": "avro_confluent",
    "canal-json": "cdc.canal_json",
    "csv": "csv",
    "debezium-avro-confluent": "cdc.debezium_avro",
    "debezium-json": "cdc.debezium_json",
    "json": "json",
    "json-glue": "json_registry",
    "json-registry": "json_registry",
    "maxwell-json": "cdc.maxwell_json",
    "ogg-json": "cdc.ogg_json",
    "proto-registry": "proto_registry",
    "protobuf": "protobuf",
    "protobuf-glue": "proto_registry",
    "raw": "raw",
}
"""Where each format is in ``formats/``, by its name: a new one gets a line here; ``formats/codec.py`` says what it has."""

_ALIASES = {
    "avro-registry": "AVRO_REGISTRY",
    "avro-glue": "AVRO_GLUE",
    "json-glue": "JSON_GLUE",
    "protobuf-glue": "PROTOBUF_GLUE",
}
"""Other names of a format, and what its module calls it under them; all others it calls FORMAT."""

_KEYS_OF_CONNECT = {
    "json": ("cdc.debezium_json", "KEYS"),
    "avro-confluent": ("cdc.debezium_avro", "KEYS"),
    "avro-registry": ("cdc.debezium_avro", "REGISTRY_KEYS"),
}
"""Formats of keys that mean more beside Debezium's values: where each is, and what it is called there."""

_REGISTRIES = {
    "confluent": ("framing", "REGISTRY"),
    "glue": ("glue_framing", "REGISTRY"),
    "glue beside glue": ("glue_framing", "OF_KEYS"),
}
"""Where each kind of registry is in ``registry/``, and what it is called there."""

_GLUE = ("avro-glue", "json-glue", "protobuf-glue")
"""Formats whose schema has the topic's name, if nothing else is said: of key and value only one can."""

FORMATS = tuple(sorted(MODULES))
"""Names for ``key.format`` and ``value.format``."""


def format_named(name: str, side: str) -> Format:
    """The format of that name; its module is loaded only now.

    Raises:
        OptionError: There is no such format, or it is a CDC format, which keys have none of. The wording for this is that
            of Flink's ``UpsertKafkaDynamicTableFactory``.
    """
    if name in CDC_FORMATS and side == "key":
        raise OptionError(
            f"'upsert-kafka' connector doesn't support '{name}' as {side} format, because '{name}' "
            "is not in insert-only mode."
        )
    if name not in MODULES:
        near = get_close_matches(name.lower(), FORMATS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise OptionError(
            f"Unknown {side} format '{name}' in option '{side}.format'.{hint} "
            f"Known formats: {', '.join(FORMATS)}."
        )
    return _loaded(MODULES[name], _ALIASES.get(name, "FORMAT"))


def _loaded(module: str, name: str, kind: str | None = None) -> Format:
    loaded = import_module(f"pyspark_upsert_kafka.formats.{module}")
    declared: Format | RegistryFormat = getattr(loaded, name)
    if isinstance(declared, RegistryFormat):
        from pyspark_upsert_kafka.registry.registered_format import Registry

        place, called = _REGISTRIES[kind or declared.registry]
        found = import_module(f"pyspark_upsert_kafka.registry.{place}")
        registry: Registry = getattr(found, called)
        return registry.completed(declared)
    return declared


def key_format_beside(value_format: str, name: str) -> Format:
    """The format of keys that stand beside values of a format. Raises as `format_named` does."""
    if name in _GLUE and value_format in _GLUE:
        return _loaded(MODULES[name], _ALIASES[name], "glue beside glue")
    if name not in _KEYS_OF_CONNECT or value_format not in DEBEZIUM_FORMATS:
        return format_named(name, "key")
    return _loaded(*_KEYS_OF_CONNECT[name])


def format_options(name: str, side: str) -> tuple[Option, ...]:
    """The options that a format declares.

    Raises:
        OptionError: There is no such format.
    """
    return format_named(name, side).options


def read_key_side(table: Table, options: ReadOptions) -> Side | None:
    """The key's format and columns; None = the key is not read."""
    if options.table.key_format is None:
        return None
    return side_of(options.table, "key", table.key_message, table.required("key"))


def read_value_side(table: Table, options: ReadOptions) -> Side:
    """The value's format and columns; a key column may be missing there, since the key has it."""
    schema = StructType(
        [
            StructField(field.name, field.dataType, field.nullable or field in table.key)
            for field in table.value
        ]
    )
    side = side_of(options.table, "value", schema, table.required("value"))
    return replace(side, spec=replace(side.spec, record_names=options.record_names))


def change_spec(table: Table, options: ReadOptions) -> ChangeSpec | None:
    """What the value's decoder is compiled from where it has a CDC format; None = it has another one."""
    if not options.table.is_cdc:
        return None
    shown = tuple(column.key for column in table.metadata if column.key in METADATA_OF_FORMATS)
    return ChangeSpec(
        read_value_side(table, options).spec,
        is_keyed=table.is_keyed,
        key=tuple(field.name for field in table.key if field in table.value),
        reads_key=options.table.key_format is not None,
        metadata=tuple(dict.fromkeys(shown)),
    )


def written_side(table: Table, options: WriteOptions, side: Literal["key", "value"]) -> Side:
    """The format and the columns of a side."""
    schema = table.key_message if side == "key" else table.value_message
    # Whether Spark knows a column to hold no nulls is an accident of the query that made it, and the
    # same rows must become the same bytes: only the primary key is sure, and what a DDL declares.
    if table.ddl_columns is None:
        schema = schema.toNullable()
    return side_of(options.table, side, schema, table.required(side))


def check_read_sides(table: Table, options: ReadOptions) -> None:
    """Refuses what no task could read, while the query is planned.

    Raises:
        SchemaError: A format cannot carry a column, or does not have the metadata that one shows.
        OptionError: Two options contradict each other.
    """
    check_metadata(table.metadata, options.table.value_format.name)
    if options.record_names and read_value_side(table, options).format.record_types is None:
        raise OptionError(
            f"'scan.record-names' is for values whose messages name their schema, as 'avro-confluent' does, and "
            f"'{options.table.value_format.name}' is no such format. Headers may say which record type a message is of: "
            "'scan.headers'."
        )
    for side in (read_key_side(table, options), read_value_side(table, options)):
        if side is not None:
            side.check_decoder()
    # After the formats: of a type that Spark cannot take from Python, their error says more.
    arrow_schema(table.schema)


def check_written_sides(table: Table, options: WriteOptions) -> None:
    """Refuses what no task could write, while the query is planned.

    Raises:
        SchemaError: A format cannot carry a column.
        OptionError: Two options contradict each other.
    """
    written_side(table, options, "key").check_encoder()
    written_side(table, options, "value").check_encoder()
    arrow_schema(table.schema)


def side_of(
    options: TableOptions,
    side: Literal["key", "value"],
    schema: StructType,
    required: frozenset[str] = frozenset(),
) -> Side:
    """A side of a table with the format that the options choose for it.

    Args:
        options: Those of the table.
        side: Which side.
        schema: Its columns.
        required: Those of them that no writer leaves NULL.

    Raises:
        OptionError: No format is chosen, or there is no such format.
    """
    choice = options.key_format if side == "key" else options.value_format
    if choice is None:
        raise OptionError(f"'{side}.format' is missing.")
    spec = CodecSpec(
        schema, side, dict(choice.options), options.topics.names, required, options.properties,
        prefix=f"{side}.{choice.name}.",
    )  # fmt: skip
    if side == "key":
        return Side(key_format_beside(options.value_format.name, choice.name), spec)
    return Side(format_named(choice.name, side), spec)


def seen_ids(*sides: Side | None) -> frozenset[Detail]:
    """What tells a client that it need not look for the header of each message of these sides."""
    return frozenset(
        ID_IS_SEEN[SCHEMA_IDS[side.spec.side]]
        for side in sides
        if side is not None and side.format.with_schema_ids is not None and side.format.id_is_seen
    )


def wanted_schema_ids(*sides: Side | None) -> frozenset[Detail]:
    """The headers in which the messages of these sides may name their schemas."""
    return frozenset(
        SCHEMA_IDS[side.spec.side]
        for side in sides
        if side is not None and side.format.with_schema_ids is not None
    )
