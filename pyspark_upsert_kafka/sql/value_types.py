"""What depends on the types of values: division, sums and averages, rounding to a whole number, and casts.

In Flink a whole number divided by another is a whole number, ``SUM`` and ``AVG`` have the type of what they sum, and a boolean
as text is ``TRUE``; in Spark all of that is different.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from pyspark_upsert_kafka.sql.casts import cast_of_flink
from pyspark_upsert_kafka.sql.expressions import place_in_query, shown
from pyspark_upsert_kafka.sql.functions import IN_SPARK, spark_cast
from pyspark_upsert_kafka.sql.statements import Query

WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_APPROXIMATE = ("FLOAT", "DOUBLE")
_DIGITS = {
    "TINYINT": "DECIMAL(3, 0)", "SMALLINT": "DECIMAL(5, 0)", "INT": "DECIMAL(10, 0)", "BIGINT": "DECIMAL(19, 0)",
}  # fmt: skip
"""Whole numbers as decimals of Flink; Spark takes a literal for one of its own digits only."""
_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})

_BY_ZONE = {"date_trunc": 1, "date_format": 0}
"""Functions of Spark that take a time by way of the session's zone, and which argument it is."""


def with_types_of_flink(tree: exp.Expr, schema: MappingSchema, query: Query) -> exp.Expr:
    """The query with each value in the type that it has in Flink; it is changed.

    Args:
        tree: The query, each of its columns with its table.
        schema: The columns of its tables.
        query: The query as it was read.

    Raises:
        OptionError: A type is not known, or a cast is not known to give the same; it names line and column.
    """
    for node in [*tree.walk(bfs=False)][::-1]:
        change = _CHANGES.get(type(node))
        if change is not None and not node.meta.get(IN_SPARK):
            annotate_types(tree, schema=schema, dialect="spark", overwrite_types=True)
            change(node, query)
    return tree


def time_in_session_zone(tree: exp.Expr, schema: MappingSchema) -> exp.Expr | None:
    """The first call that cuts or formats a time without a zone, if there is one.

    Spark does both by way of the session's zone, where an hour that summer time leaves out becomes the next.
    """
    calls = [each for each in tree.find_all(exp.Anonymous) if each.name.lower() in _BY_ZONE]
    if not calls:
        return None
    annotate_types(tree, schema=schema, dialect="spark", overwrite_types=True)
    for call in calls:
        time = call.expressions[_BY_ZONE[call.name.lower()]]
        if kind_of(time) not in ("TIMESTAMPTZ", "TIMESTAMPLTZ"):
            return call
    return None


def kind_of(node: exp.Expr) -> str:
    """The name of a value's type."""
    if isinstance(node, exp.Null):
        return "NULL"
    return "UNKNOWN" if node.type is None else str(node.type.this.name)


def _divide(node: exp.Expr, query: Query) -> None:
    kinds = {kind_of(node.this), kind_of(node.expression)}
    if kinds <= {*WHOLE}:
        widest = max(kinds, key=WHOLE.index)
        whole = exp.IntDiv(this=node.this.copy(), expression=exp.paren(node.expression.copy()))
        node.replace(_as(whole, widest))
    elif kinds <= {*WHOLE, "FLOAT"}:
        _align(node, query)
        node.meta[IN_SPARK] = True
        node.replace(_as(node.copy(), "FLOAT"))
    elif kinds <= {*WHOLE, "DECIMAL"}:
        _align(node, query)
    elif not kinds <= {*WHOLE, *_APPROXIMATE, "DECIMAL"}:
        raise place_in_query(node, query).error(
            f"the type of '{shown(node)}' is not known, and division depends on it: cast both of its sides."
        )


def _align(node: exp.Expr, _: Query) -> None:
    """Whole numbers beside a DECIMAL or a FLOAT, as Flink takes them: digits and type of the result depend on it."""
    sides = (node.this, node.expression)
    kinds = {kind_of(side) for side in sides}
    for side in sides:
        whole = kind_of(side)
        if whole in WHOLE and kinds & {"DECIMAL", "FLOAT"}:
            side.replace(_as(side.copy(), "FLOAT" if "FLOAT" in kinds else _DIGITS[whole]))


def _modulo(node: exp.Expr, query: Query) -> None:
    if {kind_of(node.this), kind_of(node.expression)} & {*_APPROXIMATE}:
        raise _unknown(node, query)
    _align(node, query)


def _sum(node: exp.Expr, query: Query) -> None:
    argument = _argument(node)
    kind = kind_of(argument)
    if kind in (*WHOLE, *_APPROXIMATE):
        _replace_call(node, lambda call: _as(call, kind))
    elif kind == "DECIMAL":
        scale = _scale(argument)
        if scale is None:
            raise place_in_query(node, query).error(
                f"the digits of what '{shown(node)}' takes are not known: CAST it AS DECIMAL(p, s)."
            )
        _replace_call(node, lambda call: _as(call, f"DECIMAL(38, {scale})"))
    else:
        raise _unknown(node, query)


def _average(node: exp.Expr, query: Query) -> None:
    kind = kind_of(_argument(node))
    if kind == "DECIMAL":
        raise place_in_query(node, query).error(
            "AVG of a DECIMAL has other digits in Spark: write SUM(x) / COUNT(x), or cast to DOUBLE."
        )
    if kind in WHOLE:
        _replace_call(node, lambda call: _as(_whole_average(call), kind))
    elif kind in _APPROXIMATE:
        _replace_call(node, lambda call: _as(call, kind))
    else:
        raise _unknown(node, query)


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
            raise _unknown(node, query)
        node.replace(_as(cut, "TIMESTAMP" if kind == "TIMESTAMPTZ" else "TIMESTAMP_NTZ"))
    elif kind in (*WHOLE, *_APPROXIMATE):
        node.meta[IN_SPARK] = True
        node.replace(_as(node.copy(), kind))
    elif kind != "DECIMAL":
        raise _unknown(node, query)


def _cast(node: exp.Expr, query: Query) -> None:
    node.replace(cast_of_flink(node, kind_of(node.this), query))


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


def _as(node: exp.Expr, kind: str) -> exp.Expr:
    return spark_cast(node, kind)


def _unknown(node: exp.Expr, query: Query) -> Exception:
    return place_in_query(node, query).error(
        f"the type of what '{shown(node)}' takes is not known, or not one that Flink takes there: cast it."
    )


_CHANGES: dict[type[exp.Expr], Callable[[exp.Expr, Query], None]] = {
    exp.Add: _align, exp.Sub: _align, exp.Mul: _align, exp.Mod: _modulo,
    exp.Div: _divide, exp.Sum: _sum, exp.Avg: _average, exp.Floor: _round, exp.Ceil: _round,
    exp.Cast: _cast, exp.TryCast: _cast,
}  # fmt: skip
