"""A query of Flink's SQL as a query of Spark's, and what of it gives the same in the time zone UTC only.

``UNNEST`` is here as well: rows of the elements of an array, the fields of its rows, or the entries of a map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import MappingSchema

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.sql.changelog_calls import ChangelogCall
from pyspark_upsert_kafka.sql.changelog_functions import first_call, with_changelog_functions
from pyspark_upsert_kafka.sql.flink_query import Query, check_parts, place_in_query, shown
from pyspark_upsert_kafka.sql.function_calls import with_functions_of_spark
from pyspark_upsert_kafka.sql.query_names import (
    Path,
    View,
    inlined,
    qualified,
    with_placeholders,
)
from pyspark_upsert_kafka.sql.script_tables import Table
from pyspark_upsert_kafka.sql.sql_types import IN_SPARK, kind_of, parts_of, spark_cast
from pyspark_upsert_kafka.sql.stream_queries import Streams
from pyspark_upsert_kafka.sql.stream_rows import Rows
from pyspark_upsert_kafka.sql.time_windows import (
    group_by_windows,
    is_window,
    with_window_functions,
)
from pyspark_upsert_kafka.sql.value_types import with_types_of_flink


def check_unnest(node: exp.Expr, query: Query) -> None:
    """Rejects an ``UNNEST`` whose columns have no names.

    Raises:
        OptionError: The columns have no names; the text gives line and column.
    """
    if not node.alias or not node.args["alias"].columns:
        raise place_in_query(node, query).error(
            "UNNEST needs names for its rows and their columns: UNNEST(xs) AS u (x)."
        )
    if node.args.get("offset"):
        raise place_in_query(node, query).error(
            "WITH ORDINALITY is not supported: UNNEST gives the elements alone."
        )


def unnest(tree: exp.Expr, schema: MappingSchema, query: Query) -> None:
    """Writes ``CROSS JOIN UNNEST`` as Spark's ``LATERAL VIEW``; the query is changed.

    Args:
        tree: The query, each of its columns with its table.
        schema: The columns of its tables.
        query: The query as it was read.

    Raises:
        OptionError: What is unnested is no array or map, or has other columns; the text gives line and column.
    """
    for node in [*tree.find_all(exp.Unnest)]:
        join = node.parent
        if not isinstance(join, exp.Join) or join.parent is None:
            raise place_in_query(node, query).error(
                "UNNEST stands behind the table whose array it takes: FROM t CROSS JOIN UNNEST(t.xs) AS u (x)."
            )
        _check_order(join, query)
        annotate_types(tree, schema=schema, dialect="spark", overwrite_types=True)
        view, select = _view(node, join, query), join.parent
        join.pop()
        select.append("laterals", view)


def _check_order(join: exp.Join, query: Query) -> None:
    """Rejects a join behind ``UNNEST``: in Spark, lateral views stand behind all joins."""
    joins = join.parent.args["joins"] if join.parent else []
    behind = joins[next(at for at, each in enumerate(joins) if each is join) :]
    if not all(isinstance(each.this, exp.Unnest) for each in behind):
        raise place_in_query(join, query).error(
            "a JOIN behind UNNEST is not supported: write the UNNEST last."
        )


def _view(node: exp.Unnest, join: exp.Join, query: Query) -> exp.Lateral:
    (value,) = node.expressions
    parts = _columns(value, query)
    alias = node.args["alias"]
    if len(alias.columns) != len(parts):
        raise place_in_query(node, query).error(
            f"UNNEST names {len(alias.columns)} columns, and gives {len(parts)}."
        )
    is_rows = value.type.this.name == "ARRAY" and parts != value.type.expressions
    if isinstance(value, (exp.Column, exp.Dot)) or value.meta.get(IN_SPARK):
        _tell_types(join, alias, parts)
    made = exp.Inline if is_rows else exp.Explode
    return exp.Lateral(
        this=made(this=value.copy()), view=True, outer=_is_outer(join, query), alias=alias.copy()
    )


def _columns(value: exp.Expr, query: Query) -> list[exp.DataType]:
    """The types of the columns that ``UNNEST`` gives: an element, the fields of a row, or a key and a value."""
    if value.type is None or kind_of(value) not in ("ARRAY", "MAP"):
        raise place_in_query(value, query).error(
            f"UNNEST takes an array or a map, and '{shown(value)}' is not known to be one: CAST it AS ARRAY<...>."
        )
    parts = parts_of(value.type)
    is_rows = kind_of(value) == "ARRAY" and parts[0].this.name == "STRUCT"
    return parts_of(parts[0]) if is_rows else parts


def _tell_types(join: exp.Join, alias: exp.TableAlias, kinds: list[exp.DataType]) -> None:
    """Casts columns of rows and maps to the types that they have, which sqlglot does not know."""
    by_name = {name.name: kind for name, kind in zip(alias.columns, kinds, strict=True)}
    for column in [*join.parent.find_all(exp.Column)] if join.parent else []:
        if column.table == alias.name and column.name in by_name:
            column.replace(spark_cast(column.copy(), by_name[column.name].sql("spark")))


def _is_outer(join: exp.Join, query: Query) -> bool:
    """Whether a row without elements is kept: ``LEFT JOIN UNNEST(...) ON TRUE``."""
    on = join.args.get("on")
    is_left = join.side == "LEFT" and isinstance(on, exp.Boolean) and on.this
    if not is_left and (join.side or on is not None or join.args.get("using")):
        raise place_in_query(join, query).error(
            "UNNEST is joined by CROSS JOIN, or by LEFT JOIN ... ON TRUE."
        )
    return bool(is_left)


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
