"""The SQL that makes a real Postgres do what is recorded: ``make test-debezium`` compares what its connector writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.recorded_debezium.columns import STATES, Column

Row = Mapping[str, Any]


def create_table(columns: Sequence[Column], replica_identity: str) -> str:
    """The table and its type."""
    states = ", ".join(literal(state) for state in STATES)
    listed = ", ".join(f"{column.name} {column.postgres}" for column in columns)
    return (
        f"CREATE TYPE state AS ENUM ({states}); CREATE TABLE customers ({listed}); "
        f"ALTER TABLE customers REPLICA IDENTITY {replica_identity.upper()};"
    )


def add_column(column: Column) -> str:
    """A column more."""
    return f"ALTER TABLE customers ADD COLUMN {column.name} {column.postgres};"


def insert(row: Row) -> str:
    """A row more."""
    values = ", ".join(literal(value) for value in row.values())
    return f"INSERT INTO customers ({', '.join(row)}) VALUES ({values});"


def update(key: int, column: str, value: Any) -> str:
    """Another value of a column, which may be the key."""
    return f"UPDATE customers SET {column} = {literal(value)} WHERE id = {key};"


def delete(key: int) -> str:
    """A row less."""
    return f"DELETE FROM customers WHERE id = {key};"


def literal(value: Any) -> str:
    """A value; Postgres makes of the text what the column is."""
    if value is None:
        return "NULL"
    text = f"{value[0]:08b}" if isinstance(value, bytes) else str(value)
    return "'{}'".format(text.replace("'", "''"))
