"""The parts of a query that give the same in Spark as in Flink only if the session's time zone is UTC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import MappingSchema

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.sql.flink_query import Query, place_in_query
from pyspark_upsert_kafka.sql.sql_types import kind_of
from pyspark_upsert_kafka.sql.tables import Table
from pyspark_upsert_kafka.sql.time_windows import is_window

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


def only_in_utc(
    tree: exp.Expr, schema: MappingSchema, tables: Mapping[str, Table], query: Query
) -> OnlyInUtc | None:
    """The first part of a query that needs UTC, if there is one.

    Args:
        tree: The query, with functions and types of Spark.
        schema: The columns of its tables.
        tables: The table of each placeholder.
        query: The query as it was read.
    """
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
