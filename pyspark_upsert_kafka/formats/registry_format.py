"""The seam between a format and the schema registry, for formats whose messages name their schema.

Such a format knows its schemas and the bytes after the prefix. The prefix, the subjects and all requests are
the business of ``pyspark_upsert_kafka.registry``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from pyspark_upsert_kafka.core.column_changes import near_name, without_field
from pyspark_upsert_kafka.core.errors import MOST_NAMES, SchemaError, shown_names, warn_once
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.formats.codec import (
    CodecSpec,
    Decoder,
    Encoder,
    Format,
    Records,
)


class NoSchemaError(Exception):
    """A registry has no schema under a subject."""


class UnknownSchemaError(SchemaError):
    """A registry does not know the schema of a message now; it may be there later."""


@dataclass(frozen=True)
class Reference:
    """A schema that another one refers to.

    Args:
        name: The name by which it is referred to.
        text: The schema.
    """

    name: str
    text: str


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema that is in a registry, or that a user gives.

    Args:
        origin: Where it comes from, for errors: ``Schema id 7``.
        type: What the registry calls its kind: ``AVRO``, ``JSON``, ``PROTOBUF``.
        text: The schema.
        references: The schemas that it refers to, and those that they refer to.
        given: Whether a user gives it, so that all messages are read by it. Messages may have older schemas than one in a
            registry.
    """

    origin: str
    type: str
    text: str
    references: tuple[Reference, ...] = ()
    given: bool = False


def of_newest_schema(
    columns: StructType, with_default: Collection[str], required: frozenset[str]
) -> StructType:
    """The columns of the newest schema, as messages of older schemas can be read into them: what these lack is NULL.

    Args:
        columns: The columns as the schema says them.
        with_default: Those that a schema may have gained, since they have a default. Others were in all compatible ones.
        required: Those of the primary key, which no message lacks.
    """
    may_lack = {name.lower() for name in with_default} - {name.lower() for name in required}
    return StructType(
        [
            StructField(
                f.name, _nullable_within(f.dataType), f.nullable or f.name.lower() in may_lack
            )
            for f in columns
        ]
    )


def _nullable_within(kind: DataType) -> DataType:
    """The type with each field in it nullable; what arrays and maps hold is as it was."""
    if isinstance(kind, StructType):
        fields = [StructField(f.name, _nullable_within(f.dataType)) for f in kind]
        return StructType(fields)
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable_within(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _nullable_within(kind.valueType), kind.valueContainsNull)
    return kind


class SeenRecords:
    """Logs a warning, once, when values of several record types are read without being told apart.

    Args:
        spec: The side.
    """

    def __init__(self, spec: CodecSpec) -> None:
        self._spec = spec
        self._names: dict[str, None] = {}
        self._is_told = spec.side != "value" or bool(spec.record_names)

    def add(self, *names: str) -> None:
        """Takes note of record types that messages are of, or may be of; an empty name counts as none."""
        if self._is_told:
            return
        self._names |= dict.fromkeys(filter(None, names))
        if len(self._names) > 1:
            self._is_told = True
            topics = f" in {', '.join(map(repr, self._spec.topics))}" if self._spec.topics else ""
            warn_once(
                f"The values{topics} are of several record types, such as {shown_names(self._names)}, and all of them are read as "
                "rows of the table. To read only some, name them by 'scan.record-names'."
            )


def if_in_envelope(fields: Collection[str]) -> str:
    """What reads a row that stands within an envelope of Debezium; empty = these fields are none.

    >>> if_in_envelope(["id", "name"])
    ''
    """
    if not {"before", "after", "op"}.issubset(fields):
        return ""
    return "The row is within an envelope, as in Debezium's messages: a CDC format reads it, for Avro 'debezium-avro-confluent'."


class LackedColumns:
    """Logs warnings when messages of a schema have no field for a column of a value, or for none, so that these are NULL.

    Columns that are inferred are those of the newest schema: older ones may lack them, and nothing is said. A side has a watch
    exactly where they are inferred.

    Args:
        spec: The side.
        alike: What names have in common that are the same.
    """

    def __init__(self, spec: CodecSpec, alike: Callable[[str], str] = str) -> None:
        self._spec, self._alike = spec, alike
        self._is_inferred = spec.watch is not None
        self._told: set[tuple[str, ...]] = {(name,) for name in spec.required}

    def look(self, what: str, fields: Collection[str], columns: Callable[[], StructType]) -> None:
        """Takes a schema.

        Args:
            what: The messages' type and schema, for people.
            fields: The names of its fields; none = it may have any.
            columns: The columns that it gives. With a SchemaError, as Spark has no type for one, no column within another is looked at.
        """
        names = self._spec.schema.names
        if self._spec.side != "value" or not names or not fields:
            return
        topics = f" in {', '.join(map(repr, self._spec.topics))}" if self._spec.topics else ""
        if {*map(self._alike, fields)}.isdisjoint(map(self._alike, names)):
            advice = if_in_envelope(fields) or (
                "Give each table a topic of its own, or read only its messages: by 'scan.record-names', or 'scan.headers'."
            )
            warn_once(
                f"{what} has none of the columns {shown_names(names)}: its messages{topics} are rows of NULL. It has the fields "
                f"{shown_names(fields)}. {advice}"
            )
        elif not self._is_inferred:
            try:
                found = columns()
            except SchemaError:
                found = StructType([StructField(name, NullType()) for name in fields])
            self._look_at_each(what, found, topics)

    def _look_at_each(self, what: str, found: StructType, topics: str) -> None:
        lacking = {
            path: free
            for path, free in without_field(self._spec.schema, found, self._alike)
            if path not in self._told
        }
        self._told |= lacking.keys()
        if not lacking:
            return
        # Those that are shown: many names take long to be compared.
        near = [
            ".".join((*path[:-1], name))
            for path, free in islice(lacking.items(), MOST_NAMES)
            if (name := near_name(path[-1], free)) is not None
        ]
        has = (
            f"It has {shown_names(near)}"
            if near
            else f"It has the fields {shown_names(found.names)}"
        )
        warn_once(
            f"{what} has no field for {shown_names(['.'.join(path) for path in lacking])}, NULL in its messages{topics}. {has}. A "
            "column must have the name of its field; if the field is newer than this schema, all is well."
        )


@dataclass(frozen=True)
class SchemaEncoder:
    """One side of a table, ready to be written once its schema is registered.

    Args:
        schema: The schema of the messages, to be registered.
        with_prefix: Compiles the encoder whose messages all begin with these bytes.
        after_id: What stands behind the schema's id, wherever that is.
    """

    schema: str
    with_prefix: Callable[[bytes], Encoder]
    after_id: bytes = b""


SchemaDecoder = Callable[[RegisteredSchema, int], Decoder]
"""Compiles the decoder of messages of one schema, behind a prefix of that length; raises SchemaError where they cannot be read."""


@dataclass(frozen=True)
class RegistryFormat:
    """A format whose messages begin with the id of their schema.

    ``decoder`` and ``encoder`` are called while a query is planned, and refuse there what no message could be
    read into or written from. What they return is called when a schema and its id are known.

    Args:
        name: As in ``key.format`` and ``value.format``.
        schema_type: What a registry calls the kind of its schemas.
        schema_name: What one of them is called in errors, with its article: ``a JSON Schema``.
        decoder: From a side, and the schema that the user gives (None = none).
        encoder: From a side, and the schema that the user gives (None = none).
        columns: The columns that a schema gives; see ``Format.columns``; the side is one without columns.
        records: The record types of the messages of a schema; raises SchemaError where it cannot be understood.
        options: Its own options, beside those of the registry.
        fields: As in ``Format.fields``; the message is one without its prefix.
        complete: Makes the whole format of the one with its registry, where rows are not all that messages hold; None = it is
            whole.
        registry: The kind of its registry.
        is_after_id: Whether these bytes are what stands behind a schema's id in a header.
        id_is_seen: Whether nothing that it writes begins with the byte 0 or 1, as an id does.
    """

    name: str
    schema_type: str
    schema_name: str
    decoder: Callable[[CodecSpec, RegisteredSchema | None], SchemaDecoder]
    encoder: Callable[[CodecSpec, RegisteredSchema | None], SchemaEncoder]
    columns: Callable[[RegisteredSchema, CodecSpec, str | None], StructType]
    records: Callable[[RegisteredSchema], Records]
    options: tuple[Option, ...] = ()
    fields: Callable[[bytes], Mapping[str, Any]] | None = None
    complete: Callable[[Format], Format] | None = None
    registry: str = "confluent"
    is_after_id: Callable[[bytes], bool] = operator.not_
    id_is_seen: bool = False

    def given(self, side: str, text: str | None) -> RegisteredSchema | None:
        """The schema that a user gives for a side; None = none."""
        if text is None:
            return None
        origin = f"The schema in '{side}.{self.name}.schema'"
        return RegisteredSchema(origin, self.schema_type, text, given=True)

    def check_type(self, schema: RegisteredSchema) -> None:
        """Raises SchemaError when a schema is one of another format."""
        if schema.type != self.schema_type:
            raise SchemaError(
                f"{schema.origin} is of the type {schema.type}, not {self.schema_name}."
            )
