"""The columns of a table by their role: in the message key, in the message value, metadata; and which may be NOT NULL.

The rules of ``key.fields-prefix`` and ``value.fields-include`` are those of Flink's ``KafkaConnectorOptionsUtil`` and
``DynamicKafkaDeserializationSchema``. Rows that are written get the names, types and order of a DDL, which also says which times have
no zone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from pyspark.sql.types import (
    AtomicType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.metadata import (
    ALL_METADATA,
    CHANGE_TYPE,
    ERROR,
    MetadataColumn,
    metadata_columns,
)
from pyspark_upsert_kafka.core.options.catalog import VIRTUAL
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions, TableOptions, WriteOptions


@dataclass(frozen=True)
class Table:
    """The columns of a table by what they are.

    Args:
        schema: All columns, as the user gave them.
        physical: Columns of the row.
        key: Columns of the message key, in its order, under their names in the table.
        value: Columns of the message value, in its order.
        metadata: Columns that show or set metadata of the message.
        key_prefix: What to strip from key columns for their names in the message key.
        is_keyed: Whether the key is a primary key; an append source has none, and may read columns from the message key.
        ddl_columns: The columns that a DDL declares; None = there is none.
        local_times: Columns without a zone in the messages that are TIMESTAMP in the schema, in the session's
            zone: Spark has no watermarks of others.
    """

    schema: StructType
    physical: tuple[StructField, ...]
    key: tuple[StructField, ...]
    value: tuple[StructField, ...]
    metadata: tuple[MetadataColumn, ...]
    key_prefix: str = ""
    is_keyed: bool = True
    ddl_columns: StructType | None = None
    local_times: frozenset[str] = frozenset()

    @property
    def key_names(self) -> tuple[str, ...]:
        """The primary-key columns, as the table names them."""
        return tuple(field.name for field in self.key)

    @property
    def ddl_not_null(self) -> frozenset[str]:
        """Columns that a DDL declares NOT NULL."""
        return frozenset(field.name for field in self.ddl_columns or () if not field.nullable)

    @property
    def key_message(self) -> StructType:
        """The message key's columns, under their names in the message."""
        return StructType(
            [
                StructField(
                    field.name.removeprefix(self.key_prefix), field.dataType, field.nullable
                )
                for field in self.key
            ]
        )

    @property
    def value_message(self) -> StructType:
        """The message value's columns."""
        return StructType(list(self.value))

    def required(self, side: Literal["key", "value"]) -> frozenset[str]:
        """Columns that are never null, under their names in the message key or value.

        They are those of the primary key, or in a table without one those that are NOT NULL, and those that a
        DDL declares so: where it does, Flink writes them as such.
        """
        if not self.is_keyed:
            columns = self.key_message if side == "key" else self.value
            return frozenset(field.name for field in columns if not field.nullable)
        if side == "key":
            return frozenset(self.key_message.names)
        return self.ddl_not_null.union(self.key_names)

    def metadata_column(self, key: str) -> MetadataColumn | None:
        """The first column for that metadata key."""
        return next((column for column in self.metadata if column.key == key), None)


def table_to_read(schema: StructType, options: ReadOptions) -> Table:
    """The table that a reader shows.

    Raises:
        SchemaError: Columns, key or types do not fit.
        OptionError: An option contradicts the columns.
    """
    is_keyed = options.mode != "append" and not options.shows_images
    table = _table(schema, options.table, reading=True, is_keyed=is_keyed)
    changes = table.metadata_column(CHANGE_TYPE)
    if options.mode == "append" and changes is not None:
        raise SchemaError(
            f"'read.mode' = 'append' has no changes: leave out the column {changes.name!r}."
        )
    if options.mode == "changelog" and options.emit_deletes and changes is None:
        raise SchemaError(
            "A changelog shows deletes in its change column, which the schema does not have: add the column "
            "'_change_type STRING', or leave deletes out with 'scan.deletes' = 'drop'."
        )
    if options.bad_messages_become == "column" and table.metadata_column(ERROR) is None:
        raise SchemaError(
            f"'error-handling.mode' = '{options.error_mode}' needs the column '_error STRUCT<stage: STRING, "
            "message: STRING, key: BINARY, value: BINARY>' in the schema."
        )
    check_not_null(table, options)
    return table


def table_to_write(schema: StructType, options: WriteOptions) -> Table:
    """The table that a sink writes, from the columns of the DataFrame.

    Raises:
        SchemaError: Columns, key or types do not fit.
        OptionError: An option contradicts the columns.
    """
    table = _table(as_in_ddl(schema, options.table), options.table, reading=False)
    topics = options.table.topics.names
    counts = Counter(column.key for column in table.metadata if ALL_METADATA[column.key].writable)
    if len(topics) == 1:
        del counts["topic"]  # there is nothing to choose
    if counts["headers"] and counts["header-list"]:
        raise SchemaError(
            "The writable metadata is ambiguous. Please use either metadata key 'headers' or "
            "'header-list'."
        )
    for key, count in counts.items():
        if count > 1:
            raise SchemaError(f"The writable metadata is ambiguous: {count} columns set {key!r}.")
    if len(topics) > 1 and not counts["topic"]:
        raise SchemaError(
            f"The topic of a row is not known: option 'topic' lists {', '.join(topics)}, so the rows need the column "
            "'_topic STRING', which chooses one of them."
        )
    return table


def _table(
    schema: StructType, options: TableOptions, *, reading: bool, is_keyed: bool = True
) -> Table:
    doubled = [
        name for name, count in Counter(n.lower() for n in schema.names).items() if count > 1
    ]
    if doubled:
        raise SchemaError(
            f"The schema has the column {doubled[0]!r} more than once (the case of letters makes no "
            "difference)."
        )
    metadata = metadata_columns(schema, _named(schema, options), reading=reading)
    names = {column.name for column in metadata}
    physical = tuple(field for field in schema if field.name not in names)
    if options.ddl_columns is not None and not reading:
        metadata = without_virtual(metadata, options.ddl_columns)
        physical = in_ddl_order(physical, options)
    local = local_times(physical, options.ddl_columns)
    physical = tuple(
        StructField(each.name, TimestampNTZType(), each.nullable) if each.name in local else each
        for each in physical
    )
    key = tuple(_key_column(name, physical, options.key_prefix) for name in options.primary_key)
    value = physical if options.value_holds_key else tuple(f for f in physical if f not in key)
    if not physical:
        raise SchemaError("The schema has no physical column, only metadata.")
    prefix, in_ddl = options.key_prefix, options.ddl_columns
    return Table(schema, physical, key, value, metadata, prefix, is_keyed, in_ddl, local)


def _named(schema: StructType, options: TableOptions) -> tuple[tuple[str, str], ...]:
    """The options ``metadata.<column>``, but for those of a DDL whose column the schema leaves out."""
    names = {name.lower() for name in schema.names}
    in_ddl = {name.lower() for name in options.ddl_columns.names} if options.ddl_columns else set()
    return tuple(each for each in options.metadata if each[0] in names or each[0] not in in_ddl)


def _key_column(name: str, physical: tuple[StructField, ...], prefix: str) -> StructField:
    field = next((field for field in physical if field.name.lower() == name.lower()), None)
    if field is None:
        raise SchemaError(
            f"Could not find the field '{name}' in the table schema for usage in the key format. A key "
            "field must be a regular, physical column. The following columns can be selected in the "
            f"'key.fields' option: [{', '.join(field.name for field in physical)}] "
            "(Option 'primary-key' means the same.)"
        )
    if not isinstance(field.dataType, AtomicType) or isinstance(field.dataType, VariantType):
        raise SchemaError(
            f"Column {field.name!r} is part of the primary key and has the type "
            f"{field.dataType.simpleString().upper()}; a key column must be of a simple type."
        )
    if not field.name.startswith(prefix):
        raise OptionError(
            f"All fields in 'key.fields' must be prefixed with '{prefix}' when option "
            f"'key.fields-prefix' is set but field '{field.name}' is not prefixed. (Option "
            "'primary-key' means the same as 'key.fields'.)"
        )
    if field.name == prefix:
        raise OptionError(
            f"Column '{field.name}' has no name in the message key: the prefix that option 'key.fields-prefix' removes "
            "is all of its name."
        )
    return field


def check_not_null(table: Table, options: ReadOptions) -> None:
    """Spark relies on NOT NULL, so it is allowed only where a reader never gives NULL.

    Raises:
        SchemaError: A column is NOT NULL, and a reader may give NULL in it.
    """
    metadata = {column.name: column.key for column in table.metadata}
    for field in table.schema:
        if field.nullable:
            continue
        if options.bad_messages_become == "column":
            raise SchemaError(
                f"Column {field.name!r} is NOT NULL, but with 'error-handling.mode' = '{options.error_mode}' a row "
                "with an error shows NULL in it. Make it nullable."
            )
        if options.mode == "changelog" and field.name not in table.key_names:
            raise SchemaError(
                f"Column {field.name!r} is NOT NULL; in a changelog only primary-key columns may be, "
                "since a delete has no other columns. Make it nullable."
            )
        key = metadata.get(field.name)
        if key is not None and ALL_METADATA[key].nullable:
            raise SchemaError(
                f"Column {field.name!r} is NOT NULL, but not every message has the metadata "
                f"{key!r}. Make it nullable."
            )


_WIDENING: tuple[tuple[type[DataType], ...], ...] = (
    (ByteType, ShortType, IntegerType, LongType),
    (FloatType, DoubleType),
)
"""Each type holds every value of those before it."""


def as_in_ddl(rows: StructType, options: TableOptions) -> StructType:
    """The columns of rows with the names and types that they have in the DDL, in the order of the rows.

    Those that show or set metadata stay as they are, and without a DDL all do.

    Raises:
        SchemaError: A column is not in the DDL, or the type that it has there cannot hold its values.
    """
    in_ddl = options.ddl_columns
    if in_ddl is None:
        return rows
    metadata = _metadata_names(rows, options)
    known = {field.name.lower(): field for field in in_ddl}
    columns = []
    for field in rows:
        wanted = field if field.name.lower() in metadata else known.get(field.name.lower())
        if wanted is None:
            raise SchemaError(
                f"Column {field.name!r} is not in the DDL, whose columns are: {', '.join(in_ddl.names)}. Leave it "
                "out with drop."
            )
        if not (_holds(field.dataType, wanted.dataType) or _is_local_time(field, wanted)):
            raise SchemaError(
                f"Column {field.name!r} has the type {_shown(field.dataType)}, and in the DDL "
                f"{_shown(wanted.dataType)}: cast it."
            )
        type_ = field.dataType if _is_local_time(field, wanted) else wanted.dataType
        columns.append(StructField(wanted.name, type_))
    return StructType(columns)


def without_virtual(
    metadata: tuple[MetadataColumn, ...], in_ddl: StructType
) -> tuple[MetadataColumn, ...]:
    """The metadata columns but for those that the DDL declares for reading only."""
    virtual = {field.name.lower() for field in in_ddl if field.metadata.get(VIRTUAL)}
    return tuple(column for column in metadata if column.name.lower() not in virtual)


def in_ddl_order(
    physical: tuple[StructField, ...], options: TableOptions
) -> tuple[StructField, ...]:
    """The physical columns in the order of the DDL; one that the rows do not have is NULL in each of them.

    Raises:
        SchemaError: A column is missing that is NOT NULL, or part of the key.
    """
    in_ddl = options.ddl_columns or StructType()
    metadata = _metadata_names(in_ddl, options)
    given = {field.name: field for field in physical}
    columns = [field for field in in_ddl if field.name.lower() not in metadata]
    key = {name.lower() for name in options.primary_key}
    for field in columns:
        if field.name not in given and (not field.nullable or field.name.lower() in key):
            raise SchemaError(
                f"Column {field.name!r} is NOT NULL in the DDL, or part of its key, and the rows do not have it."
            )
    return tuple(given.get(field.name, field) for field in columns)


def local_times(physical: tuple[StructField, ...], in_ddl: StructType | None) -> frozenset[str]:
    """The columns that are TIMESTAMP, and in the messages without a zone."""
    known = {field.name.lower(): field for field in in_ddl or ()}
    return frozenset(
        field.name
        for field in physical
        if field.name.lower() in known and _is_local_time(field, known[field.name.lower()])
    )


def _is_local_time(field: StructField, in_ddl: StructField) -> bool:
    return isinstance(field.dataType, TimestampType) and isinstance(
        in_ddl.dataType, TimestampNTZType
    )


def _metadata_names(schema: StructType, options: TableOptions) -> set[str]:
    """Those of the columns that show or set metadata, in lower case."""
    columns = metadata_columns(schema, options.metadata, reading=False)
    return {column.name.lower() for column in columns}


def _holds(type_: DataType, wanted: DataType) -> bool:
    if _without_not_null(type_) == _without_not_null(wanted):
        return True
    return any(
        type(type_) in types and type(wanted) in types[types.index(type(type_)) :]
        for types in _WIDENING
    )


def _without_not_null(type_: DataType) -> DataType:
    return StructType([StructField("it", type_)]).toNullable()


def _shown(type_: DataType) -> str:
    return type_.simpleString().upper()
