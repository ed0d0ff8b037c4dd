"""NOT NULL in columns that are read by a derived schema."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.core.errors import SchemaError


def refuse_not_null(columns: StructType, required: frozenset[str], side: str) -> None:
    """Refuses NOT NULL where a message cannot tell whether its writer had it too.

    A column that may be NULL has a byte more in the message; nothing else says which it is. This
    connector writes every column so but the primary key, since whether Spark knows a column to hold no
    nulls is an accident of the query that made it.

    Args:
        columns: The columns to read by a derived schema.
        required: Those that no writer leaves NULL.
        side: ``key`` or ``value``, for the error.

    Raises:
        SchemaError: A column, or what is within one, is NOT NULL.
    """
    if side == "key":
        return
    for field in columns.fields:
        sure = field.nullable or field.name in required
        path = _first_not_null(field.dataType, field.name) if sure else field.name
        if path is not None:
            raise SchemaError(
                f"Column {path!r} is NOT NULL, and a message of format 'avro' does not tell whether its "
                "writer knew that: it could be read wrong. Make it nullable, as this connector and "
                f"Flink write it by default, or say what the messages are with '{side}.avro.schema'."
            )


def _first_not_null(kind: DataType, path: str) -> str | None:
    """The path of the first thing within a type that is NOT NULL; None = there is none."""
    if isinstance(kind, StructType):
        within = [(field.nullable, field.dataType, f"{path}.{field.name}") for field in kind.fields]
    elif isinstance(kind, ArrayType):
        within = [(kind.containsNull, kind.elementType, f"{path}[]")]
    elif isinstance(kind, MapType):
        within = [(kind.valueContainsNull, kind.valueType, f"{path}{{}}")]
    else:
        return None
    for nullable, inner, name in within:
        found = _first_not_null(inner, name) if nullable else name
        if found is not None:
            return found
    return None
