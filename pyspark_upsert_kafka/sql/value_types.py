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
from pyspark_upsert_kafka.sql.nested_values import check_array, take_element
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


_DIGITS = {
    "TINYINT": "DECIMAL(3, 0)", "SMALLINT": "DECIMAL(5, 0)", "INT": "DECIMAL(10, 0)", "BIGINT": "DECIMAL(19, 0)",
}  # fmt: skip
"""Whole numbers as decimals of Flink; Spark takes a literal for one of its own digits only."""
_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})


def with_types_of_flink(tree: exp.Expr, schema: MappingSchema, query: Query) -> exp.Expr:
    """The query with each value in the type that it has in Flink; it is changed.

    Args:
        tree: The query, each of its columns with its table.
        schema: The columns of its tables.
        query: The query as it was read.

    Raises:
        OptionError: A type is not known, or a cast is not known to give the same; it names line and column.
    """
    for nodes in _in_order(tree):
        annotate_types(tree, schema=schema, dialect="spark", overwrite_types=True)
        for node in nodes:
            _CHANGES[type(node)](node, query)
    return tree


def _in_order(tree: exp.Expr) -> list[list[exp.Expr]]:
    """The parts that may change, each in a later list than those that its type depends on.

    Types are found for the whole query at once, which takes its time: once for each list, and not for each part.
    """
    found: list[list[exp.Expr]] = []

    def add(node: exp.Expr, at: int) -> int:
        """Adds a part and those in it to lists from ``at`` on; returns the place of what depends on it."""
        parts, first = list(node.iter_expressions()), _FIRST.get(type(node), ())
        for part in parts:
            if part.arg_key in first:
                at = max(at, add(part, at))
        at = max([at, *(add(part, at) for part in parts if part.arg_key not in first)])
        if type(node) not in _CHANGES or node.meta.get(IN_SPARK):
            return at
        if at == len(found):
            found.append([])
        found[at].append(node)
        return at + 1

    add(tree, 0)
    return found


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
    """Whole numbers beside a DECIMAL or a FLOAT, as Flink takes them: digits and type of the result depend on it."""
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
