"""The types of ``SUM`` and ``AVG``: in Flink that of what they take, in Spark another one."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from pyspark_upsert_kafka.sql.expressions import place_in_query, shown
from pyspark_upsert_kafka.sql.functions import IN_SPARK, spark_cast
from pyspark_upsert_kafka.sql.statements import Query
from pyspark_upsert_kafka.sql.type_names import APPROXIMATE, WHOLE, kind_of, type_unknown


def with_type_of_sum(node: exp.Expr, query: Query) -> None:
    """Gives ``SUM`` the type of what it sums; raises OptionError where that is not known."""
    argument = _argument(node)
    kind = kind_of(argument)
    if kind in (*WHOLE, *APPROXIMATE):
        _replace_call(node, lambda call: spark_cast(call, kind))
    elif kind == "DECIMAL":
        scale = _scale(argument)
        if scale is None:
            raise place_in_query(node, query).error(
                f"the digits of what '{shown(node)}' takes are not known: CAST it AS DECIMAL(p, s)."
            )
        _replace_call(node, lambda call: spark_cast(call, f"DECIMAL(38, {scale})"))
    else:
        raise type_unknown(node, query)


def with_type_of_average(node: exp.Expr, query: Query) -> None:
    """Gives ``AVG`` the type of what it takes; raises OptionError where that is not known."""
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
    """Sum by count, cut to a whole number."""
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


def _scale(node: exp.Expr) -> str | None:
    """Digits after the point, of a cast or of a table's column; those of other values sqlglot does not know."""
    value = node.unnest()
    if isinstance(value, exp.Column):
        source = _source(value)
        if isinstance(source, exp.Subquery):
            found = [each for each in source.selects if each.alias_or_name == value.name]
            return (
                _scale(found[0].unalias())
                if found and isinstance(source.this, exp.Select)
                else None
            )
        if source is None:
            return None
    elif not isinstance(value, exp.Cast):
        return None
    digits = value.type.expressions if value.type is not None else []
    return digits[1].name if len(digits) == 2 else None


def _source(column: exp.Column) -> exp.Expr | None:
    """The table or query of a column."""
    select = column.find_ancestor(exp.Select)
    if select is None:
        return None
    parts = (select.args.get("from_"), *(select.args.get("joins") or ()))
    sources = [part.this for part in parts if part is not None]
    return next((each for each in sources if each.alias_or_name == column.table), None)
