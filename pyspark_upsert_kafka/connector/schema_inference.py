"""The columns of a table whose user gives none: those that the newest schema of its formats gives, or the newest messages.

A stream may lack columns that come later: whether it has to be started again to have them is decided by asking once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql.types import (
    DataType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.format_catalog import (
    FORMATS,
    format_named,
    format_options,
    side_of,
)
from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.column_changes import lacking, united
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError, shown_names
from pyspark_upsert_kafka.core.metadata import (
    ALL_METADATA,
    CHANGE_TYPE,
    ERROR,
    METADATA,
    PHYSICAL,
    Detail,
    metadata_columns,
    with_reserved_names,
)
from pyspark_upsert_kafka.core.options.catalog import DDL, DDL_COLUMNS, EVENT_TIME, OPTIONS
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions, TableOptions
from pyspark_upsert_kafka.core.options.given import given_options
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.formats.codec import Format, Side
from pyspark_upsert_kafka.formats.registry_format import if_in_envelope
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client

_NO_SCHEMA = (
    "The table has no schema: a Kafka topic does not say what its columns are. Give one, for "
    "example .schema('id BIGINT, name STRING, _change_type STRING'), or schema='id BIGINT, name STRING' for read_table."
)


_LOOKED_AT = (10, 1_000, 100_000)
"""So many offsets at the end of each partition are searched for messages that say their columns; more, if there are none."""

_FRESH_MS = 600_000
"""Columns that were inferred longer ago are those of a DataFrame that was not made for this start of the query.

On a busy machine minutes may pass between the two, and an error that ends a supervisor would be wrong then."""

_PINNED = ("schema", "schema-registry.schema")
"""Options of a format that give the schema by which all messages are read."""


def inferred_schema(raw: Mapping[str, str]) -> StructType:
    """The columns of the table that a reader's options describe, given by a user or by `given_options`.

    Spark asks before it says whether a batch or a stream is read. So it is a changelog unless an option
    says otherwise, and in a changelog only columns of the primary key keep their NOT NULL.

    Raises:
        SchemaError: Nothing says what the columns are.
        OptionError: An option is wrong.
        BrokerError: The schema registry does not answer, or refuses.
    """
    given = {name.lower(): value for name, value in raw.items()}
    if not given.keys().isdisjoint({DDL.name, DDL_COLUMNS.name}):
        return ddl_schema(given_options(raw))
    name = OPTIONS["value.format"].read(given)
    if name not in FORMATS or not _says_columns(format_named(name, "value")):
        raise SchemaError(_NO_SCHEMA)
    stream = OPTIONS["read.mode"].read(given) != "snapshot"
    options = read_options(raw, format_options, stream=stream)
    columns = newest_columns(options)
    _check_names(columns, options)
    return _as_read([*columns, *_shown_metadata(columns, options.table)], options)


def _check_names(columns: StructType, options: ReadOptions) -> None:
    """Raises SchemaError for fields of the messages in whose place there would be metadata."""
    hidden = with_reserved_names(columns, options.table.metadata)
    if options.bad_messages_become == "column":
        # It is asked for, and a schema's field is all that declares it here.
        hidden = {name: key for name, key in hidden.items() if key != ERROR}
    if hidden:
        name, key = next(iter(hidden.items()))
        reading = ", ".join(f"'metadata.{each}' = '{PHYSICAL}'" for each in hidden)
        raise SchemaError(
            f"The schema of the messages has fields whose names are reserved for metadata of messages: {shown_names(hidden)}. To read "
            f"the fields, give {reading}. To have metadata too, name a column of its own, as by 'metadata.kafka{name.lower()}' = '{key}'."
        )


def _shown_metadata(columns: StructType, table: TableOptions) -> list[StructField]:
    """The columns that options name for metadata, where the schema has none of their names: nobody else can declare them."""
    names = {name.lower() for name in columns.names}
    return [
        StructField(column, ALL_METADATA[key].types[0])
        for column, key in table.metadata
        if key != PHYSICAL and column not in names
    ]


def newest_columns(options: ReadOptions) -> StructType:
    """The columns of the row that the newest schema gives, or the newest messages.

    Raises:
        SchemaError: Nothing says what the columns are.
        BrokerError: The schema registry does not answer, or refuses; or no broker does.
    """
    table = options.table
    side = side_of(table, "value", StructType(), frozenset(table.primary_key))
    side = replace(side, spec=replace(side.spec, record_names=options.record_names))
    if side.format.columns is not None:
        value = side.format.columns(side.spec, None)
    else:
        value = _columns_in_messages(side, options)
    if value is None:
        raise SchemaError(_NO_SCHEMA)
    key = _key_columns(table, value)
    of_key = {field.name.lower() for field in key}
    return StructType([*key, *(field for field in value if field.name.lower() not in of_key)])


def watching(options: ReadOptions, read: StructType, inferred_ms: int | None) -> ReadOptions:
    """The options of a stream, once it is sure that it can do what they say of columns that come later.

    Args:
        options: Those that were given.
        read: The columns of the stream.
        inferred_ms: When these were inferred, in ms since the epoch; None = they were given.

    Raises:
        OptionError: A query that is started again would have the same columns.
        SchemaError: The columns were inferred long ago, and there are others by now.
    """
    is_inferred = inferred_ms is not None and options.table.ddl_columns is None
    if options.new_columns == "restart":
        _check_restart(options.table, is_inferred=is_inferred)
        if inferred_ms is not None and now_ms() - inferred_ms > _FRESH_MS:
            _check_fresh(options, read)
    return replace(options, is_inferred=is_inferred)


def _check_restart(table: TableOptions, *, is_inferred: bool) -> None:
    restart, format_ = "'scan.schema-changes' = 'restart'", table.value_format
    found = format_named(format_.name, "value")
    if found.newest_schema is None and found.columns_of_message is None:
        raise OptionError(
            f"{restart} is for formats with a schema registry, or with schemas in their messages, and not for '{format_.name}': "
            "leave it out."
        )
    if not is_inferred:
        raise OptionError(
            f"{restart} is for columns that come from a schema, and not from .schema(...), with which a query that is started "
            "again has the same columns. Leave one of them out."
        )
    given = dict(format_.options)
    for name in _PINNED:
        if given.get(name) is not None:
            raise OptionError(
                f"{restart} is for columns of the newest schema, but 'value.{format_.name}.{name}' gives them: a query that is "
                "started again has the same columns. Leave one of them out."
            )


def _check_fresh(options: ReadOptions, read: StructType) -> None:
    lacks = lacking(newest_columns(options), read, options.table.primary_key)
    if lacks:
        raise SchemaError(
            f"The DataFrame's columns were inferred by a load() some time ago, and the schema has others by now: {', '.join(lacks.values())}. "
            "Call load() where the query is started, so that a query that is started again has the columns of the newest schema."
        )


def _says_columns(format_: Format) -> bool:
    return format_.columns is not None or format_.columns_of_message is not None


def _columns_in_messages(side: Side, options: ReadOptions) -> StructType | None:
    """The columns that the schemas of the newest messages give together; None = no message has one.

    Writers need not agree, so no message alone counts.
    """
    says = side.format.columns_of_message
    if says is None:
        return None
    says(side.spec, b"")  # which refuses options with which messages have no schemas
    for most in _LOOKED_AT:
        found: StructType | None = None
        for message in _newest_messages(options, most):
            columns = says(side.spec, message)
            if columns is not None:
                older = columns if found is None else united(found, columns)
                found = older if isinstance(older, StructType) else found
        if found is not None:
            return found
    raise SchemaError(
        f"The columns of the table are not known: no message at the end of {options.table.topics} has a schema that says them. Give "
        "the columns by .schema(...)."
    )


def _newest_messages(options: ReadOptions, most: int) -> list[bytes]:
    """The values of the last messages of each partition, the newest first."""
    client, table = load_client(options.table.client), options.table
    with closing(client.cluster(table.properties, "driver")) as cluster:
        view = cluster.view(cluster.topics(table.topics), read_committed=options.read_committed)
    settings = ReadSettings.of(
        replace(options, fail_on_data_loss=False), frozenset({Detail.TIMESTAMP})
    )
    reader = client.reader(settings)
    found: list[tuple[int, bytes]] = []
    for place, bounds in view.bounds.items():
        begin = max(bounds.earliest, bounds.latest - most)
        if begin < bounds.latest:
            range_ = Range(*place, begin, bounds.latest, view.topic_ids[place.topic])
            last: deque[tuple[int, bytes]] = deque(maxlen=_LOOKED_AT[0])
            with closing(reader.read(range_)) as batches:  # type: ignore[type-var]
                for batch in batches:
                    known = zip(batch.timestamps, batch.values, strict=True)
                    last.extend((time, value) for time, value in known if value is not None)
            found += last
    return [value for _, value in sorted(found, key=lambda each: each[0], reverse=True)]


def ddl_schema(given: Mapping[str, str]) -> StructType:
    """The columns of a table that a statement defines, as a reader shows them.

    Args:
        given: The options, with those of the statement among them.

    Raises:
        OptionError: An option is wrong.
        SchemaError: A metadata column has a type that cannot hold it.
    """
    stream = OPTIONS["read.mode"].read(given) != "snapshot"
    options = read_options(given, format_options, stream=stream)
    in_ddl = options.table.ddl_columns or StructType()
    columns = metadata_columns(in_ddl, options.table.metadata, reading=True)
    missing = {column.name for column in columns if ALL_METADATA[column.key].nullable}
    changes = any(column.key == CHANGE_TYPE for column in columns)
    fields = [
        StructField(field.name, _shown_type(field), field.nullable or field.name in missing)
        for field in in_ddl
    ]
    return _as_read(fields, options, shows_changes=changes)


def _shown_type(field: StructField) -> DataType:
    """Its declared type, but for the watermark's column: Spark has watermarks of TIMESTAMP only."""
    is_local = isinstance(field.dataType, TimestampNTZType) and EVENT_TIME in field.metadata
    return TimestampType() if is_local else field.dataType


def _as_read(
    columns: list[StructField], options: ReadOptions, *, shows_changes: bool = False
) -> StructType:
    """The columns with NULL where a reader cannot promise more, and the change column where one is needed."""
    columns = [_with_nulls(field, options) for field in columns]
    shows_changes |= any(key == CHANGE_TYPE for _, key in options.table.metadata)
    if options.mode == "changelog" and options.emit_deletes and not shows_changes:
        name = str(METADATA[CHANGE_TYPE].column)
        if name in {field.name.lower() for field in columns}:
            raise SchemaError(
                f"The column {name!r} is one of the row, so the column that tells deletes from upserts needs another name. Give it "
                f"by 'metadata.<column>' = '{CHANGE_TYPE}', or leave deletes out with 'scan.deletes' = 'drop'."
            )
        columns.append(StructField(name, StringType()))
    return StructType(columns)


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
                f"Column {name!r} of the primary key is in no schema. Columns of the key: "
                f"[{_names(in_key)}]; columns of the value: [{_names(in_value)}]. "
                f"{if_in_envelope(in_value) or 'Give the columns by .schema(...).'}"
            )
    return [known[name.lower()] for name in wanted]


def _columns_in_key(table: TableOptions) -> dict[str, StructField]:
    """Columns that the key's schema says, under their names in the table, by these in lower case."""
    if table.key_format is None:
        return {}
    names = [name.removeprefix(table.key_prefix) for name in table.primary_key]
    only = names[0] if len(names) == 1 else None
    side = side_of(table, "key", StructType(), frozenset(names))
    columns = None if side.format.columns is None else side.format.columns(side.spec, only)
    return {
        (table.key_prefix + field.name).lower(): StructField(
            table.key_prefix + field.name, field.dataType, field.nullable
        )
        for field in columns or ()
    }


def _names(fields: Mapping[str, StructField]) -> str:
    return ", ".join(field.name for field in fields.values())


def _with_nulls(field: StructField, options: ReadOptions) -> StructField:
    """The column, NOT NULL only where a reader can keep that promise; see ``table_to_read``."""
    key = {name.lower() for name in options.table.primary_key}
    kept = options.mode != "changelog" or field.name.lower() in key
    nullable = field.nullable or not kept or options.bad_messages_become == "column"
    return StructField(field.name, field.dataType, nullable)
