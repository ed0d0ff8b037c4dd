"""Which column of a DataFrame of changes is what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.metadata import CHANGE_TYPE, METADATA

_NESTED = (ArrayType, MapType, StructType, VariantType)
_RESERVED = frozenset(each.column for each in METADATA.values() if each.column is not None)
# What errors about a kind of change say to do.
PUT_ASIDE = (
    "Rows of bad messages have NULL there: leave them out first, with df.where('_error IS NULL')."
)
_MAY_BE_KEYS = {"_topic", "_partition"}


@dataclass(frozen=True)
class ChangeColumns:
    """The columns of a DataFrame of changes, each as the DataFrame spells it.

    Args:
        all: All columns, in order.
        keys: The columns of the key.
        row: The columns of the table's rows, in order; those of the key are among them.
        metadata: The other columns, which show metadata of a message.
        change_type: The column of the kinds of change.
        partition: The column of the message's partition.
        offset: The column of its offset.
        topic: The column of its topic; None = there is none, or it is part of the key.
        timestamp: The column of its timestamp; None = there is none, or a key lies in one partition, which is part of it.
    """

    all: tuple[str, ...]
    keys: tuple[str, ...]
    row: tuple[str, ...]
    metadata: tuple[str, ...]
    change_type: str
    partition: str
    offset: str
    topic: str | None = None
    timestamp: str | None = None

    @property
    def place(self) -> tuple[str, ...]:
        """The columns that say in which partition of which topic a message lies."""
        return (self.partition,) if self.topic is None else (self.partition, self.topic)


def change_columns(schema: StructType, keys: Sequence[str] | str, function: str) -> ChangeColumns:
    """The columns of a DataFrame of changes, checked.

    Args:
        schema: Its columns.
        keys: The columns of the key; their case does not matter.
        function: For whom it is, for messages.

    Raises:
        SchemaError: A column is missing, or cannot be what it is to be.
    """
    fields: dict[str, StructField] = {}
    for field in schema:
        if field.name.lower() in fields:
            raise SchemaError(f"{function}: there are two columns of the name {field.name!r}.")
        fields[field.name.lower()] = field
    change_type, partition, offset = (
        _needed(fields, name, function) for name in ("_change_type", "_partition", "_offset")
    )
    key_names = _keys(_names_of(keys, function), fields, function)
    lower_keys = {name.lower() for name in key_names}
    row = tuple(
        field.name
        for name, field in fields.items()
        if name not in _RESERVED or field.name in key_names
    )
    return ChangeColumns(
        tuple(schema.names),
        key_names,
        row,
        tuple(name for name in schema.names if name not in {*row, change_type.name}),
        change_type.name,
        partition.name,
        offset.name,
        None if "_topic" in lower_keys else _shown_by(fields, "topic"),
        None if "_partition" in lower_keys else _shown_by(fields, "timestamp"),
    )


def _shown_by(fields: dict[str, StructField], key: str) -> str | None:
    """The column that shows some metadata; None = there is none of its name and type."""
    metadata = METADATA[key]
    field = fields.get(str(metadata.column))
    if field is None or not isinstance(field.dataType, tuple(map(type, metadata.types))):
        return None
    return field.name


def _needed(fields: dict[str, StructField], name: str, function: str) -> StructField:
    metadata = next(each for each in METADATA.values() if each.column == name)
    if name not in fields:
        why = (
            "It says what is an upsert and what a delete"
            if metadata.key == CHANGE_TYPE
            else "Changes of a key are ordered by _partition and _offset"
        )
        raise SchemaError(
            f"{function} needs the column {name!r}, and there is none. {why}: add it to the schema of the "
            f"changelog that is read, or, if columns are not declared there, by 'metadata.{name}' = '{metadata.key}'. The columns: "
            f"{_names(fields)}."
        )
    field = fields[name]
    if not isinstance(field.dataType, tuple(type(each) for each in metadata.types)):
        raise SchemaError(
            f"{function}: column {field.name!r} must be {_shown(metadata.types[0])}, but is {_shown(field.dataType)}."
        )
    return field


def _names_of(keys: Sequence[str] | str, function: str) -> list[str]:
    names = [keys] if isinstance(keys, str) else list(keys or ())
    for name in names:
        if not isinstance(name, str):
            raise SchemaError(
                f"{function}: the columns of the key are given by name, and {name!r} is none."
            )
    return names


def _keys(keys: list[str], fields: dict[str, StructField], function: str) -> tuple[str, ...]:
    if not keys:
        raise SchemaError(f"{function} needs the columns of the key: none are given.")
    found: list[str] = []
    for key in keys:
        field = fields.get(key.lower())
        if field is None:
            raise SchemaError(
                f"{function}: the key {key!r} is no column. The columns: {_names(fields)}."
            )
        if field.name in found:
            raise SchemaError(f"{function}: the key {key!r} is given twice.")
        if key.lower() in _RESERVED - _MAY_BE_KEYS:
            raise SchemaError(
                f"{function}: {key!r} belongs to a message and differs from change to change, so it "
                "cannot be part of the key."
            )
        if isinstance(field.dataType, _NESTED):
            raise SchemaError(
                f"{function}: the key {key!r} is {_shown(field.dataType)}; columns of a key have a simple type."
            )
        found.append(field.name)
    return tuple(found)


def _names(fields: dict[str, StructField]) -> str:
    return ", ".join(field.name for field in fields.values())


def _shown(type_: DataType) -> str:
    return type_.simpleString().upper()
