"""``SUM`` and ``AVG`` in the types that they have in Flink, and ``COUNT(DISTINCT x)`` in a stream."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from pyspark_upsert_kafka.sql.flink_query import Query, place_in_query, shown
from pyspark_upsert_kafka.sql.sql_types import (
    APPROXIMATE,
    IN_SPARK,
    WHOLE,
    decimal_digits,
    kind_of,
    spark_cast,
    type_unknown,
)


def with_type_of_sum(node: exp.Expr, query: Query) -> None:
    """Casts ``SUM`` to the type of its argument; raises OptionError if that type is not known."""
    argument = _argument(node)
    kind = kind_of(argument)
    if kind in (*WHOLE, *APPROXIMATE):
        _replace_call(node, lambda call: spark_cast(call, kind))
    elif kind == "DECIMAL":
        digits = decimal_digits(argument)
        if digits is None:
            raise place_in_query(node, query).error(
                f"the digits of what '{shown(node)}' takes are not known: CAST it AS DECIMAL(p, s)."
            )
        _replace_call(node, lambda call: spark_cast(call, f"DECIMAL(38, {digits[1]})"))
    else:
        raise type_unknown(node, query)


def with_type_of_average(node: exp.Expr, query: Query) -> None:
    """Casts ``AVG`` to the type of its argument; raises OptionError if that type is not known."""
    kind = kind_of(_argument(node))
    if kind == "DECIMAL":
        raise place_in_query(node, query).error(
            "AVG of a DECIMAL has other digits in Spark: write SUM(x) / COUNT(x), or cast to DOUBLE."
        )
    if kind in WHOLE:
        _replace_call(node, lambda call: spark_cast(_whole_average(call), kind))
    elif kind in APPROXIMATE:
        _replace_call(node, lambda call: spark_cast(call, kind))
    else:
        raise type_unknown(node, query)


def _argument(node: exp.Expr) -> exp.Expr:
    inner: exp.Expr = node.this
    return inner.expressions[0] if isinstance(inner, exp.Distinct) else inner


def _whole_average(call: exp.Expr) -> exp.Expr:
    """``SUM`` divided by ``COUNT``, truncated to a whole number."""
    return exp.IntDiv(this=_instead(call, exp.Sum), expression=_instead(call, exp.Count))


def _instead(call: exp.Expr, kind: type[exp.Expr]) -> exp.Expr:
    """A copy of the call with another aggregate in the place of AVG."""
    copy = call.copy()
    for average in [*copy.find_all(exp.Avg)]:
        made = kind(this=average.this.copy())
        if average is copy:
            return made
        average.replace(made)
    return copy


def _replace_call(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> None:
    """Changes a call of an aggregate with its FILTER and its OVER."""
    node.meta[IN_SPARK] = True
    call = node
    while isinstance(call.parent, (exp.Filter, exp.Window)) and call.arg_key == "this":
        call = call.parent
    call.replace(change(call.copy()))


def count_by_sets(node: exp.Select, query: Query) -> None:
    """Replaces ``COUNT(DISTINCT x)`` in a query by the size of the set of all values, which is exact.

    Spark has no distinct aggregates in a stream.

    Raises:
        OptionError: The query has another aggregate with DISTINCT; the text gives line and column.
    """
    for distinct in [*node.find_all(exp.Distinct)]:
        call = distinct.parent
        if not isinstance(call, exp.Count) or len(distinct.expressions) != 1:
            raise place_in_query(distinct, query).error(
                f"'{shown(call or distinct)}' is not done in a stream: of distinct values, COUNT(DISTINCT x) of one column "
                "is. Or run it in batch mode: SET 'execution.runtime-mode' = 'batch'."
            )
        whole = call.parent if isinstance(call.parent, exp.Filter) else call
        collected = exp.Anonymous(this="collect_set", expressions=[distinct.expressions[0].copy()])
        values: exp.Expr = collected
        if isinstance(whole, exp.Filter):
            values = exp.Filter(this=collected, expression=whole.expression.copy())
        whole.replace(spark_cast(exp.Anonymous(this="size", expressions=[values]), "BIGINT"))
