"""Compiles a script into jobs: its statements are understood and checked one after another, before any of them is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pyspark.sql.types import StructField

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.metadata import CHANGE_TYPE
from pyspark_upsert_kafka.sql.flink_query import Path, Query, depth_refused
from pyspark_upsert_kafka.sql.query_translation import (
    SparkQuery,
    View,
    translated,
    view_of,
    with_suggestion,
)
from pyspark_upsert_kafka.sql.script import (
    CreateTable,
    CreateView,
    Drop,
    Insert,
    OnConflict,
    Select,
    Set,
    ShowSettings,
    Statement,
    read_script,
)
from pyspark_upsert_kafka.sql.script_settings import ScriptSettings
from pyspark_upsert_kafka.sql.script_tables import Table
from pyspark_upsert_kafka.sql.stream_rows import Rows

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
    settings: ScriptSettings
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
    settings: ScriptSettings
    warnings: tuple[str, ...] = ()

    @property
    def time_zone(self) -> str | None:
        """The time zone of its jobs; None = that of the session."""
        return self.jobs[0].settings.time_zone if self.jobs else None


def compile_script(
    script: str,
    *,
    mode: Mode | None = None,
    settings: ScriptSettings | None = None,
    options: Mapping[str, str] | None = None,
) -> CompiledScript:
    """The jobs of a script; no table is read or written for it, and no Spark is needed.

    Args:
        script: The script.
        mode: The mode; it replaces ``SET 'execution.runtime-mode'``.
        settings: The settings at the beginning of the script.
        options: Options for each table; they win over its own options.

    Raises:
        OptionError: A statement is not understood, or cannot be done right; the text gives line and column.
        SchemaError: A format cannot carry a column of a table that is read or written.
    """
    begin = settings or ScriptSettings()
    if mode is not None:
        begin = replace(begin, batch=mode == "batch")
    compiler = _Compiler(begin, begin, mode, dict(options or {}))
    for statement in read_script(script):
        compiler.add(statement)
    compiler.check_unused()
    return CompiledScript(tuple(compiler.jobs), compiler.settings, tuple(compiler.warnings))


@dataclass
class _Compiler:
    """The tables, views, settings and jobs after the statements so far."""

    begin: ScriptSettings
    settings: ScriptSettings
    mode: Mode | None
    options: dict[str, str]
    tables: dict[Path, Table] = field(default_factory=dict)
    views: dict[Path, View] = field(default_factory=dict)
    unused: dict[Place, Table] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, statement: Statement) -> None:
        if isinstance(statement, CreateTable):
            self._create_table(statement)
        elif isinstance(statement, CreateView):
            self._create_view(statement)
        elif isinstance(statement, Drop):
            self._drop(statement)
        elif isinstance(statement, Set):
            self._set(statement)
        elif isinstance(statement, ShowSettings):
            self.warnings.append(self.settings.in_words(statement.place))
        elif isinstance(statement, Insert):
            self._insert(statement)
        else:
            self._select(statement)

    def check_unused(self) -> None:
        for table in self.unused.values():
            table.check_unused(batch=self.settings.batch)

    def _create_table(self, statement: CreateTable) -> None:
        if self._is_new(statement):
            self.tables[statement.path] = table = Table(statement, self.options)
            self.unused[statement.place] = table

    def _create_view(self, statement: CreateView) -> None:
        if not self._is_new(statement):
            return
        view, width = self._view(statement)
        if view.columns and len(view.columns) != width:
            raise statement.columns[0].place.error(
                f"the view names {len(view.columns)} columns, and its query has {width}."
            )
        self.views[statement.path] = view

    def _view(self, statement: CreateView) -> tuple[View, int]:
        # As a batch: whether it can be a stream is seen where it is used.
        names = tuple(column.text for column in statement.columns)
        with depth_refused(statement.query.place):
            query = translated(statement.query, self.views, self.tables, batch=True)
            return view_of(statement.query, self.views, self.tables, names), query.width

    def _is_new(self, statement: CreateTable | CreateView) -> bool:
        if statement.path not in self.tables and statement.path not in self.views:
            return True
        if not statement.unless_exists:
            raise statement.place.error(
                f"there is a table or view '{_shown(statement.path)}' already: DROP it before, or add IF NOT EXISTS."
            )
        return False

    def _drop(self, statement: Drop) -> None:
        known: dict[Path, Table] | dict[Path, View] = (
            self.tables if statement.kind == "TABLE" else self.views
        )
        if statement.path not in known and not statement.if_exists:
            name = _shown(statement.path)
            sentence = f"there is no {statement.kind.lower()} '{name}' to drop"
            raise statement.place.error(with_suggestion(sentence, name, map(_shown, known)))
        known.pop(statement.path, None)

    def _set(self, statement: Set) -> None:
        self.settings, warning = self.settings.after(statement, self.begin)
        if self.mode is not None:
            self.settings = replace(self.settings, batch=self.mode == "batch")
        if warning is not None:
            self.warnings.append(warning)

    def _insert(self, statement: Insert) -> None:
        table = self._written(statement)
        query = self._query(statement.query)
        columns = _filled_columns(statement, table, query.width)
        self._use(table)
        is_exactly_once = table.check_written().guarantee is DeliveryGuarantee.EXACTLY_ONCE
        if query.rows is None and is_exactly_once:
            raise statement.place.error(
                f"'{table.name}' is written exactly once by streams only: a batch that fails and is run again would be another "
                "one. Set 'sink.delivery-guarantee' to 'at-least-once' for it."
            )
        if query.rows is not None:
            _check_key(query.rows, columns, table, statement)
            _check_changes(query.rows, columns, statement, table)
            self._warn_of_key(query.rows, table, statement)
            if table in query.tables.values():
                raise statement.place.error(
                    f"'{table.name}' is read and written by one stream, which would never end."
                )
        _check_on_conflict(statement.on_conflict, query.rows, table.name)
        self._add(Job(statement.query.place, query, self.settings, table, columns))

    def _warn_of_key(self, rows: Rows, table: Table, statement: Insert) -> None:
        if rows.has_changes and rows.key is None:
            self.warnings.append(
                f"{statement.query.place}: changes without a key are written to '{table.name}', whose primary key "
                f"({', '.join(table.key)}) must tell their rows apart: of two rows with one key the last is written, and a delete "
                "of either deletes it."
            )

    def _written(self, statement: Insert) -> Table:
        path = statement.path
        if path in self.views:
            raise statement.place.error(f"'{_shown(path)}' is a view: rows are written to tables.")
        if path not in self.tables:
            name = _shown(path)
            sentence = f"there is no table '{name}' at this place of the script"
            raise statement.place.error(with_suggestion(sentence, name, map(_shown, self.tables)))
        table = self.tables[path]
        if table.is_append:
            raise statement.place.error(
                f"'{table.name}' has 'connector' = 'kafka', which is read here and not written. Declare "
                "'connector' = 'upsert-kafka' with a PRIMARY KEY, or write to it in Python with Spark's own format kafka."
            )
        return table

    def _select(self, statement: Select) -> None:
        self._add(Job(statement.query.place, self._query(statement.query), self.settings))

    def _add(self, job: Job) -> None:
        zones = {each.settings.time_zone for each in (*self.jobs[:1], job)}
        if len(zones) > 1:
            shown = " and ".join(sorted(zone or "default" for zone in zones))
            raise job.place.error(
                f"the statements of a script have one time zone here, not {shown}: SET 'table.local-time-zone' once, before the "
                "first of them, or run them as two scripts."
            )
        self.jobs.append(job)

    def _query(self, query: Query) -> SparkQuery:
        batch = self.settings.batch
        with depth_refused(query.place):
            made = translated(query, self.views, self.tables, batch=batch)
        if made.changelog is not None and made.rows is None:
            raise made.changelog.place.error(
                f"{made.changelog.name} is for streams, as in Flink: a batch has no changes. Leave it out, or run the script in "
                "streaming mode."
            )
        for table in made.tables.values():
            table.check_read(batch=batch)
            self._use(table)
        return made

    def _use(self, used: Table) -> None:
        self.unused.pop(used.statement.place, None)


def _shown(path: Path) -> str:
    return ".".join(path)


def _filled_columns(insert: Insert, table: Table, width: int) -> tuple[StructField, ...]:
    """The columns that the query's columns are written to, by position, as in Flink; ``width`` is how many these are."""
    columns = _listed(insert, table) if insert.columns else table.written
    if len(columns) != width:
        raise insert.query.place.error(
            f"the query has {width} columns, and {_named(table, insert)} "
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


def _check_changes(
    rows: Rows, columns: tuple[StructField, ...], insert: Insert, table: Table
) -> None:
    """Rejects a query that says what a row does, if one of its columns does too."""
    kinds = [column.name for column in columns if table.metadata_of(column.name) == CHANGE_TYPE]
    if rows.has_changes and kinds:
        raise insert.query.place.error(
            f"the rows of the query are changes, so that column '{kinds[0]}' of '{table.name}' cannot say what they do: leave it out."
        )


def _check_key(rows: Rows, columns: tuple[StructField, ...], table: Table, insert: Insert) -> None:
    """Rejects a query whose rows have another key than the table: several would become one row of it, or one several."""
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
        f"the rows of the query are distinguished by ({', '.join(told)}), and those of '{table.name}' by its primary key "
        f"({', '.join(table.key)}): group by the columns of the key and select them unchanged, or declare another PRIMARY KEY."
        f"{_conflict_in_words(insert.on_conflict)}"
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


def _named(table: Table, insert: Insert) -> str:
    return "the list of columns" if insert.columns else f"'{table.name}'"


_TO_DO = {
    "ERROR": "to fail where a second row has the key of another",
    "NOTHING": "to leave out the second row of a key",
    "DEDUPLICATE": "to go back to the row before, where one of two rows with one key is deleted",
}
"""What each strategy would have to keep rows for."""


def _check_on_conflict(clause: OnConflict | None, rows: Rows | None, table: str) -> None:
    """Rejects a clause that would need more than the last row of each key.

    In Flink, rows of a query are in conflict if they have different keys in the query, and the same key in the table.
    Rows with a key are not: `_check_key` has found that it is the table's.
    """
    if clause is None or (rows is not None and rows.key is not None):
        return
    if rows is not None and rows.has_changes:
        raise clause.place.error(
            f"{_not_done(clause)}: the key of the changes is not known. If the primary key of '{table}' is that of the table they "
            "come from, there are no conflicts: leave the clause out, or declare that key where the changes are read."
        )
    if clause.strategy != "DEDUPLICATE":
        raise clause.place.error(
            f"{_not_done(clause)}. Write DO DEDUPLICATE, or leave the clause out: the last row of each key is the table's."
        )


def _conflict_in_words(clause: OnConflict | None) -> str:
    """What is added to the error about a query that has another key than the table."""
    return "" if clause is None else f" {_not_done(clause)}."


def _not_done(clause: OnConflict) -> str:
    return (
        f"ON CONFLICT DO {clause.strategy} is not done here, since all rows would have to be kept "
        f"{_TO_DO[clause.strategy]}"
    )
