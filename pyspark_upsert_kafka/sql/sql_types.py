"""The types of values as sqlglot names them, and casts to types of Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

IN_SPARK = "in-spark"
"""Marks a node of a query that is Spark's already."""

WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
"""Whole numbers, the widest last."""

APPROXIMATE = ("FLOAT", "DOUBLE")
NUMBERS = (*WHOLE, *APPROXIMATE, "DECIMAL")
TEXTS = ("TEXT", "VARCHAR", "CHAR")
NESTED = ("ARRAY", "MAP", "STRUCT")


def kind_of(node: exp.Expr) -> str:
    """The name of a value's type; of a DECIMAL and a FLOAT or DOUBLE it is DOUBLE, which sqlglot takes for DECIMAL or FLOAT."""
    if isinstance(node, exp.Null):
        return "NULL"
    kind = "UNKNOWN" if node.type is None else str(node.type.this.name)
    return "DOUBLE" if kind in _DOUBLE_WITH and _is_of_any(node, _DOUBLE_WITH[kind]) else kind


_DOUBLE_WITH = {"DECIMAL": APPROXIMATE, "FLOAT": ("DECIMAL", "DOUBLE")}
"""For a type that sqlglot finds: with which others a value of it is a DOUBLE."""


def _is_of_any(node: exp.Expr, kinds: Sequence[str]) -> bool:
    value = node.unnest().unalias()
    if isinstance(value, exp.Column):
        parts = _selected(value)
    elif type(value) in _OF_ARITHMETIC:
        parts = [value.this, value.expression]
    else:
        parts = _branches(value)
    return any(kind_of(each) in kinds for each in parts)


def parts_of(kind: exp.DataType) -> list[exp.DataType]:
    """The types within an array, a map or a row."""
    return [
        each.args["kind"] if isinstance(each, exp.ColumnDef) else each for each in kind.expressions
    ]


def spark_cast(node: exp.Expr, kind: str) -> exp.Expr:
    """A cast to a type of Spark, which tells sqlglot the type of a call; if the value has that type, the cast changes nothing."""
    made = exp.Cast(this=node, to=exp.DataType.build(kind, dialect="spark"))
    made.meta[IN_SPARK] = True
    return made


def decimal_digits(node: exp.Expr) -> tuple[str, str] | None:
    """Precision and scale of a DECIMAL, as texts; None if they are not known."""
    found = _digits(node)
    return None if found is None else (str(found[0]), str(found[1]))


_Digits = tuple[int, int]
MOST_DIGITS = 38
_LEAST_SCALE = 6
"""Digits behind the point that a product or a quotient of too many digits keeps, if it has so many."""

_DIGITS_OF_WHOLE = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}


def _digits(node: exp.Expr) -> _Digits | None:
    """Precision and scale of a DECIMAL, or of a whole number as one.

    sqlglot knows them only for casts and for columns of tables; others follow by the rules of Flink's ``LogicalTypeMerging``, which
    are Spark's too.
    """
    value = node.unnest()
    whole = _DIGITS_OF_WHOLE.get(kind_of(value))
    if whole is not None:
        return whole, 0
    if isinstance(value, exp.Column):
        return _digits_of_column(value)
    if type(value) in _OF_ARITHMETIC:
        one, other = _digits(value.this), _digits(value.expression)
        return None if one is None or other is None else _OF_ARITHMETIC[type(value)](one, other)
    branches = _branches(value)
    return _common(branches) if branches else _declared(value)


def _branches(value: exp.Expr) -> list[exp.Expr]:
    """The values of which a value is one; its type is what they have in common. Empty = it is none of others."""
    if isinstance(value, exp.Neg | exp.Abs | exp.Max | exp.Min | exp.Nullif):
        return [value.this]
    if isinstance(value, exp.Case):
        otherwise = value.args.get("default")
        return [*(each.args["true"] for each in value.args["ifs"]), otherwise or exp.Null()]
    if isinstance(value, exp.If):
        return [value.args["true"], value.args.get("false") or exp.Null()]
    return [value.this, *value.expressions] if isinstance(value, exp.Coalesce) else []


def _declared(value: exp.Expr) -> _Digits | None:
    """The digits of a cast, or of a table's column."""
    if not isinstance(value, exp.Cast | exp.Column):
        return None
    digits = value.type.expressions if value.type is not None else []
    return (int(digits[0].name), int(digits[1].name)) if len(digits) == 2 else None


def _digits_of_column(column: exp.Column) -> _Digits | None:
    source = _source(column)
    if not isinstance(source, exp.Subquery):
        return None if source is None else _declared(column)
    return _merged([_digits(each) for each in _selected(column)])


def _selected(column: exp.Column) -> list[exp.Expr]:
    """What queries select into a column: of queries with UNION and the like several values; empty = it is a table's."""
    source = _source(column)
    names = (
        [each.alias_or_name for each in source.selects] if isinstance(source, exp.Subquery) else []
    )
    if source is None or column.name not in names:
        return []
    return _selected_at(source, names.index(column.name))


def _selected_at(query: exp.Expr, at: int) -> list[exp.Expr]:
    if isinstance(query, exp.Subquery):
        return _selected_at(query.this, at)
    if isinstance(query, exp.SetOperation):
        return [*_selected_at(query.left, at), *_selected_at(query.right, at)]
    return [query.selects[at].unalias()] if isinstance(query, exp.Select) else []


def _common(values: Sequence[exp.Expr]) -> _Digits | None:
    """The digits of the type that values have in common; NULL has every type."""
    return _merged([_digits(each) for each in values if not isinstance(each.unnest(), exp.Null)])


def _merged(found: Sequence[_Digits | None]) -> _Digits | None:
    """The digits that hold all the others, whole ones before those behind the point.

    >>> _merged([(10, 2), (10, 0)]), _merged([(38, 0), (10, 2)]), _merged([(10, 2), None])
    ((12, 2), (38, 0), None)
    """
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    whole = min(max(precision - scale for precision, scale in known), MOST_DIGITS)
    scale = min(max(scale for _, scale in known), MOST_DIGITS - whole)
    return whole + scale, scale


def _fitting(precision: int, scale: int) -> _Digits:
    """The digits of a result, of which at most 38 are kept, and six behind the point if it has so many.

    >>> _fitting(21, 4), _fitting(41, 10), _fitting(60, 4)
    ((21, 4), (38, 7), (38, 4))
    """
    if precision <= MOST_DIGITS:
        return precision, scale
    kept = max(MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE))
    return MOST_DIGITS, kept


def _of_sum(one: _Digits, other: _Digits) -> _Digits:
    scale = max(one[1], other[1])
    return _fitting(max(one[0] - one[1], other[0] - other[1]) + scale + 1, scale)


def _of_product(one: _Digits, other: _Digits) -> _Digits:
    return _fitting(one[0] + other[0] + 1, one[1] + other[1])


def _of_quotient(one: _Digits, other: _Digits) -> _Digits:
    scale = max(_LEAST_SCALE, one[1] + other[0] + 1)
    return _fitting(one[0] - one[1] + other[1] + scale, scale)


_OF_ARITHMETIC: dict[type[exp.Expr], Callable[[_Digits, _Digits], _Digits]] = {
    exp.Add: _of_sum, exp.Sub: _of_sum, exp.Mul: _of_product, exp.Div: _of_quotient,
}  # fmt: skip


def _source(column: exp.Column) -> exp.Expr | None:
    """The table or query of a column."""
    select = column.find_ancestor(exp.Select)
    if select is None:
        return None
    parts = (select.args.get("from_"), *(select.args.get("joins") or ()))
    sources = [part.this for part in parts if part is not None]
    return next((each for each in sources if each.alias_or_name == column.table), None)
