"""A query of Flink's SQL as a query of Spark's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from sqlglot import exp

from pyspark_upsert_kafka.sql.argument_types import expect_types
from pyspark_upsert_kafka.sql.changelog_calls import ChangelogCall
from pyspark_upsert_kafka.sql.changelog_functions import first_call, with_changelog_functions
from pyspark_upsert_kafka.sql.flink_query import Query, check_parts, place_in_query
from pyspark_upsert_kafka.sql.functions import FUNCTIONS, OVER_ROWS
from pyspark_upsert_kafka.sql.nested_values import check_unnest, is_map, map_of, row_of, unnest
from pyspark_upsert_kafka.sql.query_names import (
    Path,
    View,
    inlined,
    qualified,
    schema_of,
    with_placeholders,
)
from pyspark_upsert_kafka.sql.rejected_functions import OTHERS, REJECTED
from pyspark_upsert_kafka.sql.signatures import Arguments, field_of_time
from pyspark_upsert_kafka.sql.sql_types import IN_SPARK, spark_cast
from pyspark_upsert_kafka.sql.stream_rows import Rows
from pyspark_upsert_kafka.sql.streams import Streams
from pyspark_upsert_kafka.sql.tables import Table
from pyspark_upsert_kafka.sql.time_windows import group_by_windows, with_window_functions
from pyspark_upsert_kafka.sql.time_zones import OnlyInUtc, only_in_utc
from pyspark_upsert_kafka.sql.value_types import call_by_type, with_types_of_flink

_EXTRACTED = {
    "YEAR": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH", "WEEK": "WEEK", "DAY": "DAY", "HOUR": "HOUR", "MINUTE": "MINUTE",
    "SECOND": "SECOND", "DOW": "DOW", "DOY": "DOY", "ISODOW": "DOW_ISO", "ISOYEAR": "YEAROFWEEK",
}  # fmt: skip
"""The fields of EXTRACT, by their names in Spark."""


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
    tree = _with_functions_of_spark(replace(query, tree=windowed))
    return View(inlined(tree, query, views, [*tables]), columns)


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
    tree = qualified(named, columns, query)
    group_by_windows(tree)
    schema = schema_of(named, columns)
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
    in_utc = only_in_utc(tree, schema, used, query)
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


def _with_functions_of_spark(query: Query) -> exp.Expr:
    """A copy of the query's tree that calls Spark's functions.

    Raises:
        OptionError: A function is not known to be the same, or has other arguments; the text gives line and column.
    """
    tree = query.tree.copy()
    for node in [*tree.walk(bfs=False)][::-1]:
        replaced = _replaced(node, query)
        if replaced is not node:
            replaced.meta.update(node.meta)
            tree = replaced if node is tree else tree
            node.replace(replaced)
    return tree


def _replaced(node: exp.Expr, query: Query) -> exp.Expr:
    for kind, replaced in _REPLACED.items():
        if isinstance(node, kind):
            return replaced(node, query)
    return node


def _field(node: exp.Expr, query: Query) -> exp.Expr:
    unit = node.name.upper()
    if unit not in _EXTRACTED:
        raise place_in_query(node, query).error(
            f"EXTRACT of {unit} is not known to be the same in Spark: expected {', '.join(sorted(_EXTRACTED))}."
        )
    expect_types("EXTRACT", ["time"], [node.expression])
    return field_of_time(_EXTRACTED[unit]).call([node.expression])


def _literal(node: exp.Expr, _: Query) -> exp.Expr:
    """A number with a point is a DECIMAL of all its digits; Spark leaves out a zero before the point."""
    whole, point, fraction = node.name.partition(".")
    if node.is_string or not point or not fraction.isdecimal():
        return node
    return spark_cast(node.copy(), f"DECIMAL({len(whole + fraction)}, {len(fraction)})")


def _column(node: exp.Expr, _: Query) -> exp.Expr:
    """LOCALTIMESTAMP has no brackets."""
    return FUNCTIONS["LOCALTIMESTAMP"].call(()) if node.sql() == "LOCALTIMESTAMP" else node


def _call(node: exp.Expr, query: Query) -> exp.Expr:
    name = node.name.upper()
    if node.meta.get(IN_SPARK):
        return node
    if name == "ROW":
        return row_of(node)
    if name in OVER_ROWS and isinstance(node.parent, exp.Window):
        return node
    return _made(name, node.expressions, node, query)


def _substring(node: exp.Expr, query: Query) -> exp.Expr:
    """``SUBSTRING(text FROM start FOR length)``, or with commas."""
    given = [node.args.get(name) for name in ("this", "start", "length")]
    return _made("SUBSTRING", [each for each in given if each is not None], node, query)


def _made(name: str, arguments: Arguments, node: exp.Expr, query: Query) -> exp.Expr:
    function = FUNCTIONS.get(name)
    place = place_in_query(node, query)
    if function is None:
        raise place.error(f"function {name}: {REJECTED.get(name) or OTHERS + _did_you_mean(name)}")
    if not function.takes(len(arguments)):
        raise place.error(
            f"function {name} takes {function.counts} arguments, not {len(arguments)}."
        )
    try:
        checked = function.check(arguments)
        expect_types(name, function.names(len(checked)), checked)
        return call_by_type(name, checked) if function.by_type else function.call(checked)
    except ValueError as error:
        raise place.error(f"{error}.") from None


def _did_you_mean(name: str) -> str:
    near = get_close_matches(name, FUNCTIONS, n=1, cutoff=0.8)
    return f" Did you mean {near[0]}?" if near else ""


def _map(node: exp.Expr, query: Query) -> exp.Expr:
    return map_of(node, query) if is_map(node) else node


_REPLACED: dict[type[exp.Expr], Callable[[exp.Expr, Query], exp.Expr]] = {
    exp.Anonymous: _call, exp.Literal: _literal, exp.Bracket: _map, exp.Column: _column, exp.Extract: _field,
    exp.StrPosition: lambda node, query: _made("LOCATE", [node.args["substr"], node.this], node, query),
    exp.Substring: _substring,
    exp.Trim: lambda node, _: spark_cast(node.copy(), "STRING"),
}  # fmt: skip
