"""A query of Flink's SQL as a query of Spark's, and what of it gives the same in the time zone UTC only.

Names in it: views and ``WITH`` are replaced by their queries, tables by placeholders, and columns stand with their tables.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from pyspark.sql.types import StructType
from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import MappingSchema

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.sql.changelog_calls import ChangelogCall
from pyspark_upsert_kafka.sql.changelog_functions import first_call, with_changelog_functions
from pyspark_upsert_kafka.sql.flink_query import (
    Flink,
    Path,
    Query,
    check_parts,
    place_in_query,
    without_default,
)
from pyspark_upsert_kafka.sql.function_calls import with_functions_of_spark
from pyspark_upsert_kafka.sql.script_tables import Table
from pyspark_upsert_kafka.sql.sql_types import kind_of
from pyspark_upsert_kafka.sql.stream_queries import Streams
from pyspark_upsert_kafka.sql.stream_rows import Rows
from pyspark_upsert_kafka.sql.table_functions import (
    check_unnest,
    group_by_windows,
    is_window,
    unnest,
    with_window_functions,
)
from pyspark_upsert_kafka.sql.value_types import with_types_of_flink

_WINDOW = "windows of time begin elsewhere in Spark than in Flink"
_CALL = (
    "DATE_FORMAT, FLOOR, TIMESTAMPDIFF and CAST(... AS TIMESTAMP(0 or 3)) of a time without a zone give another hour in Spark where "
    "summer time begins"
)
_EVENT_TIME = (
    "column '{}' is a time without a zone, which with its WATERMARK is one in the session's zone in Spark, and is another hour "
    "where summer time begins"
)

_BY_ZONE = {"date_trunc": 1, "date_format": 0, "unix_millis": 0}
"""Functions of Spark that take a time by way of the session's zone, and which argument it is."""


@dataclass(frozen=True)
class OnlyInUtc:
    """A part of a query that is rejected unless the time zone is UTC.

    Args:
        place: Where it stands.
        why: What differs in other time zones, as the beginning of a sentence.
    """

    place: Place
    why: str


@dataclass(frozen=True)
class SparkQuery:
    """A query as Spark runs it.

    Args:
        sql: The query, with ``{name}`` for each of its tables, as ``spark.sql(sql, name=...)`` takes it; without tables, as
            ``spark.sql(sql)`` does.
        tables: Its tables, by these names.
        width: How many columns it has.
        rows: What its rows are in a stream; None = it is a batch.
        only_in_utc: A part that needs the time zone UTC, if there is one.
        changelog: A call of FROM_CHANGELOG or TO_CHANGELOG, which streams alone know, if there is one.
    """

    sql: str
    tables: Mapping[str, Table]
    width: int
    rows: Rows | None = None
    only_in_utc: OnlyInUtc | None = None
    changelog: ChangelogCall | None = None


def view_of(
    query: Query,
    views: Mapping[Path, View],
    tables: Mapping[Path, Table],
    columns: tuple[str, ...] = (),
) -> View:
    """The query of a view; its views are replaced by their queries, and functions of Flink by those of Spark.

    Raises:
        OptionError: Something is not understood; the text gives line and column.
    """
    check_parts(query)
    for node in query.tree.find_all(exp.Unnest):
        check_unnest(node, query)
    windowed = with_window_functions(replace(query, tree=with_changelog_functions(query)))
    tree = with_functions_of_spark(replace(query, tree=windowed))
    return View(inlined(tree, query, views, tables), columns)


def translated(
    query: Query, views: Mapping[Path, View], tables: Mapping[Path, Table], *, batch: bool
) -> SparkQuery:
    """A query as Spark runs it.

    Args:
        query: The query as it was read.
        views: The views that exist at its place in the script.
        tables: The tables that exist there.
        batch: Whether it reads tables as of now, and not as streams.

    Raises:
        OptionError: Something is not understood, or not known to give the same in Spark; the text gives line and column.
        SchemaError: The type of a column does not fit the metadata that it shows.
    """
    named = with_placeholders(view_of(query, views, tables).tree)
    used = {name: tables[path] for name, path in named.tables.items()}
    columns = {path: tables[path].columns(batch=batch) for path in named.tables.values()}
    tree, schema = qualified(named, columns, query)
    group_by_windows(tree)
    unnest(tree, schema, query)
    is_stream = not batch and bool(used)
    if is_stream:  # what a stream cannot do at all is told before which types are wrong
        Streams(used, query).rows(tree.copy())
    tree = with_types_of_flink(tree, schema, query)
    width = _width(tree, query)
    rows = None
    if is_stream:
        streams = Streams(used, query)
        rows = streams.rows(tree)
        used |= {name: replace(used[name], in_order=True) for name in streams.in_order}
    in_utc = _only_in_utc(tree, schema, used, query)
    return SparkQuery(_sql(tree, used), _by_word(used), width, rows, in_utc, first_call(tree))


def _width(tree: exp.Expr, query: Query) -> int:
    """How many columns a query has."""
    if not isinstance(tree, exp.Values):
        return len(tree.selects) if isinstance(tree, exp.Query) else 0
    widths = {
        len(each.expressions) if isinstance(each, exp.Tuple) else 1 for each in tree.expressions
    }
    if len(widths) > 1:
        raise query.place.error("the rows of VALUES have different numbers of columns.")
    return widths.pop()


def _sql(tree: exp.Expr, used: Mapping[str, Table]) -> str:
    text = tree.sql("spark", comments=False)
    if not used:  # PySpark formats a query only when tables are given with it
        return text
    text = text.replace("{", "{{").replace("}", "}}")
    for name in used:
        text = text.replace(f"`{name}`", f"{{{name.strip('_')}}}")
    return text


def _by_word(used: Mapping[str, Table]) -> dict[str, Table]:
    return {name.strip("_"): table for name, table in used.items()}


def _only_in_utc(
    tree: exp.Expr, schema: MappingSchema, tables: Mapping[str, Table], query: Query
) -> OnlyInUtc | None:
    """The first part that needs UTC of a query that has functions and types of Spark, if there is one."""
    for node in tree.find_all(exp.Anonymous):
        if is_window(node):
            return OnlyInUtc(place_in_query(node, query), _WINDOW)
    for call in _calls(tree, schema):
        return OnlyInUtc(place_in_query(call, query), _CALL)
    for column in _event_times(tree, tables):
        return OnlyInUtc(place_in_query(column, query), _EVENT_TIME.format(column.name))
    return None


def _calls(tree: exp.Expr, schema: MappingSchema) -> Iterator[exp.Expr]:
    """The calls that truncate, format or subtract a time without a zone.

    Spark converts such a time to the session's zone first. There, a time in the hour that summer time skips becomes one in the next hour.
    """
    calls = [each for each in tree.find_all(exp.Anonymous) if each.name.lower() in _BY_ZONE]
    if calls:
        annotate_types(tree, schema=schema, dialect="spark", overwrite_types=True)
    for call in calls:
        time = call.expressions[_BY_ZONE[call.name.lower()]]
        if kind_of(time) not in ("TIMESTAMPTZ", "TIMESTAMPLTZ"):
            yield call


def _event_times(tree: exp.Expr, tables: Mapping[str, Table]) -> Iterator[exp.Column]:
    """The columns of a WATERMARK that have no zone, where they are used."""
    columns = {name: table.event_time_without_zone for name, table in tables.items()}
    if not any(columns.values()):
        return
    # Without what a view or a * shows and nothing uses.
    used = pushdown_projections(tree.copy())
    for scope in traverse_scope(used):
        for column in scope.columns:
            source = scope.sources.get(column.table)
            if isinstance(source, exp.Table) and columns.get(source.name) == column.name:
                yield column


@dataclass(frozen=True)
class View:
    """A view: its query, in which other views are replaced by their queries.

    Args:
        tree: The query.
        columns: Names of its columns; empty = the names in the query.
    """

    tree: exp.Expr
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """A query whose tables are placeholders.

    Args:
        tree: The query.
        tables: The table of each placeholder.
    """

    tree: exp.Expr
    tables: Mapping[str, Path]


def inlined(
    tree: exp.Expr, query: Query, views: Mapping[Path, View], tables: Collection[Path]
) -> exp.Expr:
    """Replaces the names of views and of ``WITH`` in a query by their queries; the tree is changed.

    Raises:
        OptionError: A table or view does not exist; the text gives line and column.
    """
    _inline_with(tree, query)
    for table in [*tree.find_all(exp.Table)]:
        path = path_of(table)
        if path in views:
            table.replace(_in_place(table, views[path].tree, views[path].columns))
        elif path not in tables:
            name = ".".join(path)
            known = [".".join(each) for each in (*tables, *views)]
            sentence = f"there is no table or view '{name}' at this place of the script"
            raise place_in_query(table, query).error(with_suggestion(sentence, name, known))
    return tree


def path_of(table: exp.Table) -> Path:
    """A table's name, without Flink's default catalog and database."""
    return without_default(tuple(part.name for part in table.parts))


def with_placeholders(tree: exp.Expr) -> Named:
    """Replaces each table of a query by a placeholder, with the name of the table as its alias; the tree is changed."""
    placeholders: dict[Path, str] = {}
    for table in tree.find_all(exp.Table):
        path = path_of(table)
        name = placeholders.setdefault(path, f"__table_{len(placeholders)}__")
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(path[-1], quoted=True)))
        for part in ("db", "catalog"):
            table.set(part, None)
        table.this.set("this", name)
    return Named(tree, {name: path for path, name in placeholders.items()})


def qualified(
    named: Named, columns: Mapping[Path, StructType], query: Query
) -> tuple[exp.Expr, MappingSchema]:
    """The query with every ``*`` written out, and every column with its table; and what these columns are for sqlglot.

    Args:
        named: The query; it is changed.
        columns: The columns of each table.
        query: The query as it was read.

    Raises:
        OptionError: A column does not exist, or is in more than one table; the text gives line and column.
    """
    try:
        tree = qualify(
            named.tree,
            dialect=Flink,
            schema=_schema_of(named, columns),
            validate_qualify_columns=False,
        )
    except OptimizeError as error:
        raise _not_qualified(str(error), query) from None
    except SqlglotError as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise query.place.error(f"the query is not understood: {why}.") from None
    _check_columns(tree, query)
    return tree, _schema_of(named, columns)


def _schema_of(named: Named, columns: Mapping[Path, StructType]) -> MappingSchema:
    """The columns of the placeholders, with the types that Spark has for them."""
    kinds: dict[str, object] = {
        name: {
            field.name: exp.DataType.build(field.dataType.simpleString(), dialect="spark")
            for field in columns[path]
        }
        for name, path in named.tables.items()
    }
    return MappingSchema(kinds, dialect=Flink, normalize=False)


def _inline_with(tree: exp.Expr, query: Query) -> None:
    """Replaces the names of ``WITH``, the innermost first, so that an inner name hides an outer one."""
    holders = [node for node in tree.walk(bfs=False) if node.args.get("with_")]
    for holder in holders[::-1]:
        parts = holder.args["with_"].expressions
        holder.set("with_", None)
        for at, part in enumerate(parts):
            if part.alias in {later.alias for later in parts[at + 1 :]}:
                raise place_in_query(part, query).error(
                    f"WITH names '{part.alias}' more than once."
                )
            names = tuple(column.name for column in part.args["alias"].columns)
            for place in (*(later.this for later in parts[at + 1 :]), holder):
                for table in [*place.find_all(exp.Table)]:
                    if [name.name for name in table.parts] == [part.alias]:
                        table.replace(_in_place(table, part.this, names))


def _in_place(table: exp.Table, tree: exp.Expr, columns: tuple[str, ...]) -> exp.Subquery:
    """A query in the place of a name, under that name or the alias that it has there."""
    alias = table.args.get("alias")
    name = alias.this.copy() if alias else exp.to_identifier(path_of(table)[-1], quoted=True)
    own = [column.copy() for column in alias.columns] if alias else []
    names = own or [exp.to_identifier(column, quoted=True) for column in columns]
    return exp.Subquery(this=tree.copy(), alias=exp.TableAlias(this=name, columns=names))


def _check_columns(tree: exp.Expr, query: Query) -> None:
    for scope in traverse_scope(tree):
        for column in scope.columns:
            if not column.table:
                _refuse(column, "is in none of the query's tables, or in more than one", query)
            elif column.table not in scope.selected_sources and not scope.is_correlated_subquery:
                _refuse(column, f"names '{column.table}', which is no table of the query", query)


def _not_qualified(text: str, query: Query) -> Exception:
    """The error about a column that does not exist, with its place, which sqlglot does not know."""
    found = re.match(r"Unknown column: (\S+?)\.?$", text.splitlines()[0])
    for column in query.tree.find_all(exp.Column) if found else ():
        if found and column.name == found[1]:
            return place_in_query(column, query).error(f"there is no column '{column.name}'.")
    return query.place.error(f"{text.splitlines()[0].rstrip('.')}.")


def _refuse(column: exp.Column, why: str, query: Query) -> None:
    raise place_in_query(column, query).error(f"column '{column.name}' {why}.")


def with_suggestion(sentence: str, name: str, known: Iterable[str]) -> str:
    """Adds to a sentence about a name that does not exist: the name that may be meant, or all names.

    >>> with_suggestion("there is no table 'pageview'", "pageview", ["pageviews", "users"])
    "there is no table 'pageview'; did you mean 'pageviews'?"
    >>> with_suggestion("there is no view 'v'", "v", [])
    "there is no view 'v'."
    """
    known = list(known)
    if found := get_close_matches(name, known, n=1):
        return f"{sentence}; did you mean '{found[0]}'?"
    return f"{sentence}; there are: {', '.join(known)}." if known else f"{sentence}."
