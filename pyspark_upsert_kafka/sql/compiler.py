"""Compiles a script: its statements are understood and checked one after another, before any of them is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark_upsert_kafka.core.delivery.guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.sql.conflicts import check_on_conflict
from pyspark_upsert_kafka.sql.flink_query import Query, depth_refused
from pyspark_upsert_kafka.sql.jobs import (
    CompiledScript,
    Job,
    Mode,
    check_changes,
    check_key,
    filled_columns,
)
from pyspark_upsert_kafka.sql.query_names import Path, View, with_suggestion
from pyspark_upsert_kafka.sql.script import (
    CreateTable,
    CreateView,
    Drop,
    Insert,
    Select,
    Set,
    ShowSettings,
    Statement,
    read_script,
)
from pyspark_upsert_kafka.sql.settings import Settings, settings_in_words, with_setting
from pyspark_upsert_kafka.sql.stream_rows import Rows
from pyspark_upsert_kafka.sql.tables import Table
from pyspark_upsert_kafka.sql.translation import SparkQuery, translated, view_of


def compile_script(
    script: str,
    *,
    mode: Mode | None = None,
    settings: Settings | None = None,
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
    begin = settings or Settings()
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

    begin: Settings
    settings: Settings
    mode: Mode | None
    options: dict[str, str]
    tables: dict[Path, Table] = field(default_factory=dict)
    views: dict[Path, View] = field(default_factory=dict)
    unused: list[Table] = field(default_factory=list)
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
            self.warnings.append(settings_in_words(self.settings, statement.place))
        elif isinstance(statement, Insert):
            self._insert(statement)
        else:
            self._select(statement)

    def check_unused(self) -> None:
        for table in self.unused:
            table.check_unused(batch=self.settings.batch)

    def _create_table(self, statement: CreateTable) -> None:
        if self._is_new(statement):
            self.tables[statement.path] = table = Table(statement, self.options)
            self.unused.append(table)

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
        self.settings, warning = with_setting(self.settings, statement, self.begin)
        if self.mode is not None:
            self.settings = replace(self.settings, batch=self.mode == "batch")
        if warning is not None:
            self.warnings.append(warning)

    def _insert(self, statement: Insert) -> None:
        table = self._written(statement)
        query = self._query(statement.query)
        columns = filled_columns(statement, table, query.width)
        self._use(table)
        is_exactly_once = table.check_written().guarantee is DeliveryGuarantee.EXACTLY_ONCE
        if query.rows is None and is_exactly_once:
            raise statement.place.error(
                f"'{table.name}' is written exactly once by streams only: a batch that fails and is run again would be another "
                "one. Set 'sink.delivery-guarantee' to 'at-least-once' for it."
            )
        if query.rows is not None:
            check_key(query.rows, columns, table, statement)
            check_changes(query.rows, columns, statement, table)
            self._warn_of_key(query.rows, table, statement)
            if table in query.tables.values():
                raise statement.place.error(
                    f"'{table.name}' is read and written by one stream, which would never end."
                )
        check_on_conflict(statement.on_conflict, query.rows, table.name)
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
        zones = {each.settings.time_zone for each in (*self.jobs, job)}
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
        self.unused = [table for table in self.unused if table.statement is not used.statement]


def _shown(path: Path) -> str:
    return ".".join(path)
