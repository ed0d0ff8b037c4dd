"""Which column gives which field of a record, by name."""

from __future__ import annotations

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.model import Record


def columns_by_field(record: Record, columns: StructType, path: str) -> dict[str, int]:
    """The position of the column for each field that has one.

    Names match exactly, else in any case when only one pair does.

    Args:
        record: The record to be written.
        columns: The columns, all of which need a field.
        path: Where these columns stand, for errors: empty, or a name and a dot.

    Raises:
        SchemaError: A column has no field, or shares it with another.
    """
    names = [field.name for field in record.fields]
    found: dict[str, int] = {}
    for at, column in enumerate(columns.names):
        name = _field(column, names, path)
        if name in found:
            raise SchemaError(
                f"Columns {path + columns.names[found[name]]!r} and {path + column!r} both give the "
                f"field {name!r} of the Avro schema."
            )
        found[name] = at
    return found


def _field(column: str, names: list[str], path: str) -> str:
    alike = [column] if column in names else [n for n in names if n.lower() == column.lower()]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise SchemaError(
            f"Column {path + column!r} may be any of the fields {', '.join(alike)} of the Avro "
            "schema; write its name as one of them."
        )
    raise SchemaError(
        f"The Avro schema has no field for column {path + column!r}; its fields there: "
        f"{', '.join(names)}."
    )
