"""The jobs of a script: what each of them reads, and the columns of the table that it fills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyspark.sql.types import StructField

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.core.table.metadata import CHANGE_TYPE
from pyspark_upsert_kafka.sql.conflicts import conflict_in_words
from pyspark_upsert_kafka.sql.query_names import with_suggestion
from pyspark_upsert_kafka.sql.script import Insert
from pyspark_upsert_kafka.sql.settings import Settings
from pyspark_upsert_kafka.sql.stream_rows import Rows
from pyspark_upsert_kafka.sql.tables import Table
from pyspark_upsert_kafka.sql.translation import SparkQuery

Mode = Literal["streaming", "batch"]


@dataclass(frozen=True)
class Job:
    """An ``INSERT INTO``, or a ``SELECT`` whose rows are printed.

    Args:
        place: Where its query stands.
        query: What it reads.
        settings: The settings at its place of the script.
        table: The table that it writes; None = its rows are printed.
        columns: The columns of that table that it fills.
    """

    place: Place
    query: SparkQuery
    settings: Settings
    table: Table | None = None
    columns: tuple[StructField, ...] = ()

    @property
    def is_stream(self) -> bool:
        """Whether it is a streaming query."""
        return self.query.rows is not None

    @property
    def is_bounded(self) -> bool:
        """Whether each of its tables has an end."""
        ends = [table.check_read(batch=False).end for table in self.query.tables.values()]
        return all(end.mode != "unbounded" for end in ends)


@dataclass(frozen=True)
class CompiledScript:
    """A script that is understood and checked.

    Args:
        jobs: What it runs, in this order.
        settings: The settings at its end.
        warnings: What is to be logged before it runs.
    """

    jobs: tuple[Job, ...]
    settings: Settings
    warnings: tuple[str, ...] = ()

    @property
    def time_zone(self) -> str | None:
        """The time zone of its jobs; None = that of the session."""
        return self.jobs[0].settings.time_zone if self.jobs else None


def filled_columns(insert: Insert, table: Table, width: int) -> tuple[StructField, ...]:
    """The columns that the query's columns are written to, by position, as in Flink.

    Args:
        insert: The statement.
        table: The table that it writes.
        width: How many columns its query has.

    Raises:
        OptionError: They do not fit; the text gives line and column.
    """
    columns = _listed(insert, table) if insert.columns else table.written
    if len(columns) != width:
        raise insert.query.place.error(
            f"the query has {width} columns, and {_written(table, insert)} "
            f"{len(columns)}: {', '.join(column.name for column in columns)}."
        )
    names = {column.name.lower() for column in columns}
    for name in table.key:
        if name.lower() not in names:
            raise insert.place.error(
                f"column '{name}' of the primary key of '{table.name}' gets no value: name it among the columns."
            )
    for column in table.written:
        if not column.nullable and column.name.lower() not in names:
            raise insert.place.error(
                f"column '{column.name}' of '{table.name}' is NOT NULL and gets no value: name it among the columns."
            )
    return columns


def check_changes(
    rows: Rows, columns: tuple[StructField, ...], insert: Insert, table: Table
) -> None:
    """Raises OptionError where both the query and one of its columns say what a row does; the text gives line and column."""
    kinds = [column.name for column in columns if table.metadata_of(column.name) == CHANGE_TYPE]
    if rows.has_changes and kinds:
        raise insert.query.place.error(
            f"the rows of the query are changes, so that column '{kinds[0]}' of '{table.name}' cannot say what they do: leave it out."
        )


def check_key(rows: Rows, columns: tuple[StructField, ...], table: Table, insert: Insert) -> None:
    """Rejects a query whose rows have another key than the table.

    Args:
        rows: The rows of the query.
        columns: The table's columns that they fill.
        table: The table.
        insert: The statement.

    Raises:
        OptionError: Several rows of the query would become one row of the table, or one row several.
    """
    if rows.key is None:
        return
    key = {name.lower() for name in table.key}
    filling = {at for at, column in enumerate(columns) if column.name.lower() in key}
    known = frozenset().union(*rows.key) | rows.constants
    if all(part & filling for part in rows.key) and filling <= known:
        return
    told = [
        columns[min(part)].name if part else "a column that is not selected" for part in rows.key
    ]
    raise insert.query.place.error(
        f"the rows of the query are told apart by ({', '.join(told)}), and those of '{table.name}' by its primary key "
        f"({', '.join(table.key)}): group by the columns of the key and select them unchanged, or declare another PRIMARY KEY."
        f"{conflict_in_words(insert.on_conflict)}"
    )


def _listed(insert: Insert, table: Table) -> tuple[StructField, ...]:
    by_name = {column.name: column for column in table.written}
    seen: set[str] = set()
    for name in insert.columns:
        if name.text not in by_name:
            sentence = f"'{table.name}' has no column '{name.text}' that can be written"
            raise name.place.error(with_suggestion(sentence, name.text, by_name))
        if name.text in seen:
            raise name.place.error(f"column '{name.text}' is there more than once.")
        seen.add(name.text)
    return tuple(by_name[name.text] for name in insert.columns)


def _written(table: Table, insert: Insert) -> str:
    return "the list of columns" if insert.columns else f"'{table.name}'"
