"""Which column stands for which field, found when a codec is compiled.

Columns match fields by name. A column that is not a field is refused; a field that is not a column is
checked when read, as the runtime does, and left out when written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.protobuf.descriptors import is_map, is_repeated
from pyspark_upsert_kafka.formats.protobuf.kinds import Kind
from pyspark_upsert_kafka.formats.protobuf.types import fits, mismatch

ADDED = "_added_column_"
"""What the name of a field begins with that stands for a column which the message's writer did not know."""


@dataclass(frozen=True)
class Column:
    """A column, or one inside it, and the field that it stands for.

    Args:
        field: The field's ``FieldDescriptor``.
        type: The Spark type.
        path: Where it stands, for people: ``order.lines[].price``.
        nullable: Whether it may be NULL.
        fills: Whether it is the field's default where a message lacks the field.
        parts: Of a STRUCT its columns, of an ARRAY its element, of a MAP key and value.
    """

    field: Any
    type: DataType
    path: str
    nullable: bool = True
    fills: bool = True
    parts: tuple[Column, ...] = ()

    @property
    def name(self) -> str:
        """The field's name: the column's, but for a field that was added."""
        return str(self.field.name)


def columns_of(
    descriptor: Any, schema: StructType, path: str = "", *, defaults: bool
) -> tuple[Column, ...]:
    """The columns of a message.

    Args:
        descriptor: The message's descriptor.
        schema: The columns.
        path: Where the message stands, with a point behind it.
        defaults: Whether an absent field is its default and not NULL.

    Raises:
        SchemaError: A column is no field, or its type does not fit the field's.
    """
    for name, times in Counter(schema.names).items():
        if times > 1:
            raise SchemaError(f"Field {path + name!r} occurs {times} times.")
        if _field_of(descriptor, name) is None:
            raise SchemaError(
                f"Column {path + name!r} does not exist in the definition of protobuf message "
                f"'{descriptor.full_name}'. Its fields: {', '.join(descriptor.fields_by_name)}."
            )
    return tuple(
        _column(
            _field_of(descriptor, each.name),
            each.dataType,
            path + each.name,
            nullable=each.nullable,
            defaults=defaults,
        )
        for each in schema.fields
    )


def _field_of(descriptor: Any, name: str) -> Any:
    fields = descriptor.fields_by_name
    return fields.get(name) or fields.get(ADDED + name)


def _column(field: Any, kind: DataType, path: str, *, nullable: bool, defaults: bool) -> Column:
    if is_map(field) and isinstance(kind, MapType):
        parts = _map_parts(field, kind, path, defaults=defaults)
        return Column(field, kind, path, nullable, defaults or not nullable, parts)
    if is_repeated(field):
        if is_map(field) or not isinstance(kind, ArrayType):
            raise mismatch(field, kind, path)
        element = _one(field, kind.elementType, f"{path}[]", defaults=defaults)
        return Column(field, kind, path, nullable, defaults or not nullable, (element,))
    one = _one(field, kind, path, defaults=defaults)
    return Column(field, kind, path, nullable, defaults or not field.has_presence, one.parts)


def _map_parts(field: Any, kind: MapType, path: str, *, defaults: bool) -> tuple[Column, Column]:
    """An entry that lacks its key or value has the default of it, in every syntax."""
    key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    return (
        _one(key, kind.keyType, f"{path}{{key}}", defaults=defaults),
        _one(value, kind.valueType, f"{path}{{}}", defaults=defaults),
    )


def _one(field: Any, kind: DataType, path: str, *, defaults: bool) -> Column:
    """One value of a field."""
    if field.type == Kind.MESSAGE and isinstance(kind, StructType):
        parts = columns_of(field.message_type, kind, f"{path}.", defaults=defaults)
        return Column(field, kind, path, parts=parts)
    if not fits(field, kind):
        raise mismatch(field, kind, path)
    return Column(field, kind, path)
