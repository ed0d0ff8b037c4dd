"""How a column, or a reader's field, finds the field it is read from."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyspark_upsert_kafka.formats.avro.model import Field, Record


def named(name: str, fields: Iterable[Field], columns: Collection[str]) -> Field | None:
    """The field of a column: of exactly its name, else the only one that differs in case alone.

    A field that another one of the columns has the exact name of belongs to that one.
    """
    alike = [field for field in fields if field.name.lower() == name.lower()]
    exact = [field for field in alike if field.name == name]
    free = [field for field in alike if field.name not in columns]
    return next(iter(exact), free[0] if len(free) == 1 else None)


def written_as(field: Field, writer: Record) -> Field | None:
    """The writer's field that a reader's field is, by its name or else by an alias."""
    fields = {written.name: written for written in writer.fields}
    return next((fields[name] for name in (field.name, *field.aliases) if name in fields), None)


def unqualified(name: str) -> str:
    """A full name without its namespace."""
    return name.rpartition(".")[2]
