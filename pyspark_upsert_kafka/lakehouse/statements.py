"""The statements that `merge_sink` runs, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.table.ddl_text import type_as_ddl
from pyspark_upsert_kafka.core.table.names import quoted
from pyspark_upsert_kafka.lakehouse.column_types import AddedColumn
from pyspark_upsert_kafka.lakehouse.settings import Deletes

PLACE = ("partition", "topic")
"""The fields of the flags that say where a change lies, in the order in which places are compared."""


@dataclass(frozen=True)
class Merge:
    """What a MERGE statement merges.

    Args:
        table: The table, in SQL.
        changes: The view of the changes, in SQL: one row for each key, with the table's columns of the same names, and
            the column ``flags`` of `changes_by_key`.
        keys: The columns of the key.
        columns: All columns that are written; those of the key are among them.
        deletes: What a delete does.
        deleted_column: The column that says that a row is deleted; None unless such rows stay.
        unavailable: The columns whose value may be one that was not sent, and the place of each in ``flags``.
        flags: The name of that column.
        timestamp: The column that has the timestamp of the row's last change; None = the table does not say when and where
            that was.
        place: The columns that have the partition of the row's last change, and its topic if both sides tell it.
    """

    table: str
    changes: str
    keys: Sequence[str]
    columns: Sequence[str]
    deletes: Deletes
    deleted_column: str | None
    unavailable: Mapping[str, int]
    flags: str
    timestamp: str | None = None
    place: Sequence[str] = ()


def merge_statement(merge: Merge) -> str:
    """The MERGE statement, a clause a line."""
    on = " AND ".join(f"t.{quoted(key)} = s.{quoted(key)}" for key in merge.keys)
    return "\n".join(
        [f"MERGE INTO {merge.table} AS t USING {merge.changes} AS s ON {on}", *_clauses(merge)]
    )


def _clauses(merge: Merge) -> Iterator[str]:
    has_row = f"s.{quoted(merge.flags)}.has_row"
    newer = "" if merge.timestamp is None else f" AND NOT {_is_older(merge, merge.timestamp)}"
    matched = f"WHEN MATCHED{newer}"
    columns = [(quoted(name), _new_value(name, merge)) for name in merge.columns]
    inserted = [(name, f"s.{name}") for name, _ in columns]
    if merge.deletes is Deletes.HARD:
        yield f"{matched} AND NOT {has_row} THEN DELETE"
    if merge.deleted_column is not None:
        deleted = quoted(merge.deleted_column)
        is_deleted = (deleted, f"s.{quoted(merge.flags)}.is_deleted")
        columns, inserted = [*columns, is_deleted], [*inserted, is_deleted]
        yield f"{matched} AND NOT {has_row} THEN UPDATE SET t.{deleted} = true"
    yield f"{matched} THEN UPDATE SET {', '.join(f't.{name} = {value}' for name, value in columns)}"
    names, values = (", ".join(each) for each in zip(*inserted, strict=True))
    yield f"WHEN NOT MATCHED AND {has_row} THEN INSERT ({names}) VALUES ({values})"  # noqa: S608


def _is_older(merge: Merge, timestamp: str) -> str:
    """Whether the change is older than the row of the table, which a change in another partition has made.

    The rule is that of ``changelog/order.py``; a row that does not say when and where it was changed is older than all.
    """
    time, time_of_row = f"s.{quoted(merge.flags)}.time", f"t.{quoted(timestamp)}"
    places = [
        (f"s.{quoted(merge.flags)}.{part}", f"t.{quoted(column)}")
        for part, column in zip(PLACE, merge.place, strict=False)
    ]
    differs = " OR ".join(f"{place} <> {of_row}" for place, of_row in places)
    return (
        f"coalesce(({differs}) AND ({time} < {time_of_row} OR ({time} <=> {time_of_row} AND "
        f"({_is_lower(places)})) OR ({time} IS NULL AND {time_of_row} IS NOT NULL)), false)"
    )


def _is_lower(places: Sequence[tuple[str, str]]) -> str:
    """Whether the first of these that differs is lower than that of the row."""
    (place, of_row), *others = places
    if not others:
        return f"{place} < {of_row}"
    return f"{place} < {of_row} OR ({place} = {of_row} AND {_is_lower(others)})"


def _new_value(name: str, merge: Merge) -> str:
    value = f"s.{quoted(name)}"
    if name not in merge.unavailable:
        return value
    stays = f"s.{quoted(merge.flags)}.unavailable[{merge.unavailable[name]}]"
    return f"CASE WHEN {stays} THEN t.{quoted(name)} ELSE {value} END"


def create_statement(
    table: str, columns: StructType, provider: str, properties: Mapping[str, str]
) -> str:
    """The statement that makes a table unless it is there; no column of it is NOT NULL."""
    nullable = columns.toNullable()
    declared = ", ".join(
        f"{quoted(field.name)} {type_as_ddl(field.dataType)}" for field in nullable
    )
    made = f"CREATE TABLE IF NOT EXISTS {table} ({declared}) USING {provider}"
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    return f"{made} TBLPROPERTIES ({listed})" if listed else made


def add_statement(table: str, columns: Iterable[AddedColumn]) -> str:
    """The statement that adds columns to a table."""
    added = ", ".join(f"{_path(each.path)} {type_as_ddl(each.type)}" for each in columns)
    return f"ALTER TABLE {table} ADD COLUMNS ({added})"


def widen_statement(table: str, path: Sequence[str], type_: str) -> str:
    """The statement that gives a column another type."""
    return f"ALTER TABLE {table} ALTER COLUMN {_path(path)} TYPE {type_}"


def _path(path: Sequence[str]) -> str:
    return ".".join(map(quoted, path))
