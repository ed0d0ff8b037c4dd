"""``UNNEST``: rows of the elements of an array, the fields of its rows, or the entries of a map."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from pyspark_upsert_kafka.sql.flink_query import Query, place_in_query, shown
from pyspark_upsert_kafka.sql.sql_types import IN_SPARK, kind_of, parts_of, spark_cast


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
