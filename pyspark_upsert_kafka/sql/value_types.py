"""What depends on the types of values: division, rounding to a whole number, casts, and some functions.

In Flink a whole number divided by another is a whole number, ``SUM`` and ``AVG`` have the type of what they sum, and a boolean
as text is ``TRUE``; in Spark all of that is different.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from pyspark_upsert_kafka.sql.aggregates import with_type_of_average, with_type_of_sum
from pyspark_upsert_kafka.sql.argument_types import check_types, expect_the_same
from pyspark_upsert_kafka.sql.casts import cast_of_flink
from pyspark_upsert_kafka.sql.flink_query import Query, place_in_query, shown
from pyspark_upsert_kafka.sql.functions import FUNCTIONS
from pyspark_upsert_kafka.sql.nested_values import check_array, take_element
from pyspark_upsert_kafka.sql.signatures import Arguments
from pyspark_upsert_kafka.sql.sql_types import (
    APPROXIMATE,
    IN_SPARK,
    WHOLE,
    kind_of,
    spark_cast,
    type_unknown,
)

_DIGITS = {
    "TINYINT": "DECIMAL(3, 0)", "SMALLINT": "DECIMAL(5, 0)", "INT": "DECIMAL(10, 0)", "BIGINT": "DECIMAL(19, 0)",
}  # fmt: skip
"""Whole numbers as decimals of Flink; Spark takes a literal for one of its own digits only."""
_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})


_BY_TYPE = "by-type"
"""Marks a call of Flink's that is made Spark's when the types of its arguments are known."""


def with_types_of_flink(tree: exp.Expr, schema: MappingSchema, query: Query) -> exp.Expr:
    """Gives each value of a query the type that it has in Flink; the tree is changed.

    Args:
        tree: The query, each of its columns with its table.
        schema: The columns of its tables.
        query: The query as it was read.

    Raises:
        OptionError: A type is not known, or a cast is not known to give the same; the text gives line and column.
    """
    for at, nodes in enumerate(_in_order(tree) or [[]]):
        annotate_types(tree, schema=schema, dialect="spark", overwrite_types=True)
        if at == 0:
            check_types(tree.walk(), query)
        for node in nodes:
            _change_of(node)(node, query)
    return tree


def _in_order(tree: exp.Expr) -> list[list[exp.Expr]]:
    """The nodes to change, in lists: each node is in a later list than the nodes on which its type depends.

    sqlglot finds types for a whole query at once, which is slow. So this is done once per list, and not once per node.
    """
    found: list[list[exp.Expr]] = []

    def add(node: exp.Expr, at: int) -> int:
        """Adds a node and those in it to the lists from ``at`` on; returns the list for nodes that depend on it."""
        parts, first = list(node.iter_expressions()), _FIRST.get(type(node), ())
        for part in parts:
            if part.arg_key in first:
                at = max(at, add(part, at))
        at = max([at, *(add(part, at) for part in parts if part.arg_key not in first)])
        if not _is_changed(node):
            return at
        if at == len(found):
            found.append([])
        found[at].append(node)
        return at + 1

    add(tree, 0)
    return found


def call_by_type(name: str, arguments: Arguments) -> exp.Expr:
    """A call of Flink's function, which is translated when the types of its arguments are known.

    Args:
        name: The function.
        arguments: Its arguments, which are checked already.
    """
    node = exp.Anonymous(this=name, expressions=list(arguments))
    node.meta[_BY_TYPE] = True
    return node


def _is_changed(node: exp.Expr) -> bool:
    return _BY_TYPE in node.meta or (type(node) in _CHANGES and IN_SPARK not in node.meta)


def _change_of(node: exp.Expr) -> Callable[[exp.Expr, Query], None]:
    return _call if _BY_TYPE in node.meta else _CHANGES[type(node)]


def _call(node: exp.Expr, query: Query) -> None:
    check_types(node.expressions, query)  # some types are known only now
    try:
        node.replace(expect_the_same(node, FUNCTIONS[node.name].call(node.expressions)))
    except ValueError as error:
        raise place_in_query(node, query).error(f"function {node.name}: {error}.") from None


def _divide(node: exp.Expr, query: Query) -> None:
    kinds = {kind_of(node.this), kind_of(node.expression)}
    if kinds <= {*WHOLE}:
        widest = max(kinds, key=WHOLE.index)
        whole = exp.IntDiv(this=node.this.copy(), expression=exp.paren(node.expression.copy()))
        node.replace(spark_cast(whole, widest))
    elif kinds <= {*WHOLE, "FLOAT"}:
        _align(node, query)
        node.meta[IN_SPARK] = True
        node.replace(spark_cast(node.copy(), "FLOAT"))
    elif kinds <= {*WHOLE, "DECIMAL"}:
        _align(node, query)
    elif not kinds <= {*WHOLE, *APPROXIMATE, "DECIMAL"}:
        raise place_in_query(node, query).error(
            f"the type of '{shown(node)}' is not known, and division depends on it: cast both of its sides."
        )


def _align(node: exp.Expr, _: Query) -> None:
    """Casts whole numbers beside a DECIMAL or a FLOAT as Flink does: digits and type of the result depend on it."""
    sides = (node.this, node.expression)
    kinds = {kind_of(side) for side in sides}
    for side in sides:
        whole = kind_of(side)
        if whole in WHOLE and kinds & {"DECIMAL", "FLOAT"}:
            side.replace(spark_cast(side.copy(), "FLOAT" if "FLOAT" in kinds else _DIGITS[whole]))


def _modulo(node: exp.Expr, query: Query) -> None:
    if {kind_of(node.this), kind_of(node.expression)} & {*APPROXIMATE}:
        raise type_unknown(node, query)
    _align(node, query)


def _round(node: exp.Expr, query: Query) -> None:
    unit = node.args.get("to")
    kind = kind_of(node.this)
    if unit is not None:
        name = unit.name.upper()
        if isinstance(node, exp.Ceil) or name not in _UNITS:
            raise place_in_query(node, query).error(
                f"{shown(node)} is not supported: there is FLOOR to {', '.join(sorted(_UNITS))}."
            )
        cut = exp.Anonymous(
            this="date_trunc", expressions=[exp.Literal.string(name), node.this.copy()]
        )
        if kind not in ("TIMESTAMPTZ", "TIMESTAMPNTZ"):
            raise type_unknown(node, query)
        node.replace(spark_cast(cut, "TIMESTAMP" if kind == "TIMESTAMPTZ" else "TIMESTAMP_NTZ"))
    elif kind in (*WHOLE, *APPROXIMATE):
        node.meta[IN_SPARK] = True
        node.replace(spark_cast(node.copy(), kind))
    elif kind != "DECIMAL":
        raise type_unknown(node, query)


def _cast(node: exp.Expr, query: Query) -> None:
    node.replace(cast_of_flink(node, kind_of(node.this), query))


_FIRST: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Select: ("from_", "joins", "laterals"), exp.Join: ("this",), exp.Filter: ("expression",),
    exp.Window: ("partition_by", "order"),
}  # fmt: skip
"""Parts on which the types of the others depend, or that are replaced together with the others."""

_CHANGES: dict[type[exp.Expr], Callable[[exp.Expr, Query], None]] = {
    exp.Add: _align, exp.Sub: _align, exp.Mul: _align, exp.Mod: _modulo,
    exp.Div: _divide, exp.Sum: with_type_of_sum, exp.Avg: with_type_of_average, exp.Floor: _round, exp.Ceil: _round,
    exp.Cast: _cast, exp.TryCast: _cast, exp.Array: check_array, exp.Bracket: take_element,
}  # fmt: skip
