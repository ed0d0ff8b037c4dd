"""How a column, or a reader's field, finds the field it is read from."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.model import AvroType, Field, Record


def columns_of_fields(
    writer: Record, reader: Record | None, columns: pa.StructType
) -> tuple[dict[str, tuple[int, AvroType | None]], dict[int, Field | None]]:
    """Which column each of the writer's fields is read into, and the columns that nobody wrote.

    Returns:
        By a written field's name its column, and its type in the reader's schema when there is one; and the
        columns left over, each with its field in the reader's schema.

    Raises:
        SchemaError: Two columns are the same field.
    """
    names = [column.name for column in columns]
    found: dict[str, tuple[int, AvroType | None]] = {}
    unwritten: dict[int, Field | None] = {}
    for slot, name in enumerate(names):
        field = _field_of_column(name, (reader or writer).fields, names)
        written = _written_field(field, writer) if field and reader else field
        if written is None:
            unwritten[slot] = field
        elif written.name in found:
            raise SchemaError(f"field {written.name!r} is read into two columns")
        else:
            found[written.name] = slot, field.type if field and reader else None
    return found, unwritten


def _field_of_column(name: str, fields: Iterable[Field], columns: Collection[str]) -> Field | None:
    """The field of a column: of exactly its name, else the only one that differs in case alone.

    A field that another one of the columns has the exact name of belongs to that one.
    """
    alike = [field for field in fields if field.name.lower() == name.lower()]
    same = [field for field in alike if field.name == name]
    free = [field for field in alike if field.name not in columns]
    return next(iter(same), free[0] if len(free) == 1 else None)


def _written_field(field: Field, writer: Record) -> Field | None:
    """The writer's field that a reader's field is, by its name or else by an alias."""
    fields = {written.name: written for written in writer.fields}
    return next((fields[name] for name in (field.name, *field.aliases) if name in fields), None)


def unqualified(name: str) -> str:
    """A full name without its namespace."""
    return name.rpartition(".")[2]
