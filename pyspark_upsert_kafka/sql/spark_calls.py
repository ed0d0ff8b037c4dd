"""The calls and literals of a query as Spark has them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from pyspark_upsert_kafka.sql.expressions import place_in_query
from pyspark_upsert_kafka.sql.functions import (
    FUNCTIONS,
    IN_SPARK,
    MANY,
    OVER_ROWS,
    Arguments,
    extract,
    located,
    spark_cast,
)
from pyspark_upsert_kafka.sql.nested_values import is_map, map_of, row_of
from pyspark_upsert_kafka.sql.statements import Query

_EXTRACTED = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})

_INSTEAD = {
    "PROCTIME": "Spark has no column of processing time: use CURRENT_TIMESTAMP.",
    "CURRENT_WATERMARK": "Spark shows no watermark to a query.",
    "FIRST_VALUE": "which row is the first differs from run to run: use MIN of what orders them.",
    "LAST_VALUE": "which row is the last differs from run to run: use MAX of what orders them.",
    "LISTAGG": "the order of its parts differs from run to run.",
    "UNIX_TIMESTAMP": "use EXTRACT, or TO_TIMESTAMP_LTZ the other way round.",
}


def with_functions_of_spark(query: Query) -> exp.Expr:
    """A copy of the query's tree that calls Spark's functions.

    Raises:
        OptionError: A function is not known to be the same, or has other arguments; it names line and column.
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
    return extract(unit, node.expression)


def _literal(node: exp.Expr, _: Query) -> exp.Expr:
    """A number with a point is a DECIMAL of all its digits; Spark leaves out a zero before the point."""
    whole, point, fraction = node.name.partition(".")
    if node.is_string or not point or not fraction.isdecimal():
        return node
    return spark_cast(node.copy(), f"DECIMAL({len(whole + fraction)}, {len(fraction)})")


def _column(node: exp.Expr, _: Query) -> exp.Expr:
    """LOCALTIMESTAMP has no brackets."""
    return FUNCTIONS["LOCALTIMESTAMP"].make(()) if node.sql() == "LOCALTIMESTAMP" else node


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
        instead = _INSTEAD.get(
            name, "it is not run, since it is not known to give the same in Spark as in Flink."
        )
        raise place.error(f"function {name}: {instead}")
    if not function.least <= len(arguments) <= function.most:
        wanted = str(function.least)
        if function.most != function.least:
            wanted += " or more" if function.most == MANY else f" to {function.most}"
        raise place.error(f"function {name} takes {wanted} arguments, not {len(arguments)}.")
    try:
        return function.make(arguments)
    except ValueError as error:
        raise place.error(f"{error}.") from None


def _map(node: exp.Expr, query: Query) -> exp.Expr:
    return map_of(node, query) if is_map(node) else node


_REPLACED: dict[type[exp.Expr], Callable[[exp.Expr, Query], exp.Expr]] = {
    exp.Anonymous: _call, exp.Literal: _literal, exp.Bracket: _map, exp.Column: _column, exp.Extract: _field,
    exp.StrPosition: lambda node, _: located([node.args["substr"], node.this]),
    exp.Substring: _substring,
    exp.Trim: lambda node, _: spark_cast(node.copy(), "STRING"),
}  # fmt: skip
