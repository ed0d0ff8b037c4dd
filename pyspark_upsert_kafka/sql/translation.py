"""A query of Flink's SQL as a query of Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from pyspark_upsert_kafka.sql.expressions import check_parts
from pyspark_upsert_kafka.sql.inlining import (
    View,
    inlined,
    qualified,
    schema_of,
    with_placeholders,
)
from pyspark_upsert_kafka.sql.spark_calls import with_functions_of_spark
from pyspark_upsert_kafka.sql.statements import Path, Query
from pyspark_upsert_kafka.sql.streams import Rows, Streams
from pyspark_upsert_kafka.sql.tables import Table
from pyspark_upsert_kafka.sql.time_zones import OnlyInUtc, only_in_utc
from pyspark_upsert_kafka.sql.unnesting import check_unnest, unnest
from pyspark_upsert_kafka.sql.value_types import with_types_of_flink
from pyspark_upsert_kafka.sql.windows import (
    group_by_windows,
    with_window_functions,
)


@dataclass(frozen=True)
class SparkQuery:
    """A query as Spark runs it.

    Args:
        sql: The query, with ``{name}`` for each of its tables, as ``spark.sql(sql, name=...)`` takes it; without tables, as
            ``spark.sql(sql)`` does.
        tables: Its tables, by these names.
        width: How many columns it has.
        rows: What its rows are in a stream; None = it is a batch.
        only_in_utc: A part that is not run in another time zone, if there is one.
    """

    sql: str
    tables: Mapping[str, Table]
    width: int
    rows: Rows | None = None
    only_in_utc: OnlyInUtc | None = None


def view_of(
    query: Query,
    views: Mapping[Path, View],
    tables: Mapping[Path, Table],
    columns: tuple[str, ...] = (),
) -> View:
    """The query of a view, in which neither views nor functions of Flink stand any more.

    Raises:
        OptionError: Something is not understood; it names line and column.
    """
    check_parts(query)
    for node in query.tree.find_all(exp.Unnest):
        check_unnest(node, query)
    windowed = with_window_functions(query)
    tree = with_functions_of_spark(replace(query, tree=windowed))
    return View(inlined(tree, query, views, [*tables]), columns)


def translated(
    query: Query, views: Mapping[Path, View], tables: Mapping[Path, Table], *, batch: bool
) -> SparkQuery:
    """A query as Spark runs it.

    Args:
        query: The query as it was read.
        views: The views at its place of the script.
        tables: The tables there.
        batch: Whether it reads tables as of now, and not as streams.

    Raises:
        OptionError: Something is not understood, or not known to give the same in Spark; it names line and column.
        SchemaError: A column has a type that cannot hold what it shows.
    """
    named = with_placeholders(view_of(query, views, tables).tree)
    used = {name: tables[path] for name, path in named.tables.items()}
    columns = {path: tables[path].columns(batch=batch) for path in named.tables.values()}
    tree = qualified(named, columns, query)
    group_by_windows(tree)
    schema = schema_of(named, columns)
    unnest(tree, schema, query)
    tree = with_types_of_flink(tree, schema, query)
    width = _width(tree, query)
    streams = not batch and bool(used)
    rows = Streams(used, query).rows(tree) if streams else None
    return SparkQuery(
        _sql(tree, used), _by_word(used), width, rows, only_in_utc(tree, schema, used, query)
    )


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
