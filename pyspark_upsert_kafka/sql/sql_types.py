"""The types of values as sqlglot names them, and casts to types of Spark."""

from __future__ import annotations

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
    """The name of a value's type."""
    if isinstance(node, exp.Null):
        return "NULL"
    return "UNKNOWN" if node.type is None else str(node.type.this.name)


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
    """Precision and scale of a DECIMAL; None if they are not known.

    sqlglot knows them only for casts and for columns of tables.
    """
    value = node.unnest()
    if isinstance(value, exp.Column):
        source = _source(value)
        if isinstance(source, exp.Subquery):
            found = [each for each in source.selects if each.alias_or_name == value.name]
            is_known = bool(found) and isinstance(source.this, exp.Select)
            return decimal_digits(found[0].unalias()) if is_known else None
        if source is None:
            return None
    elif not isinstance(value, exp.Cast):
        return None
    digits = value.type.expressions if value.type is not None else []
    return (digits[0].name, digits[1].name) if len(digits) == 2 else None


def _source(column: exp.Column) -> exp.Expr | None:
    """The table or query of a column."""
    select = column.find_ancestor(exp.Select)
    if select is None:
        return None
    parts = (select.args.get("from_"), *(select.args.get("joins") or ()))
    sources = [part.this for part in parts if part is not None]
    return next((each for each in sources if each.alias_or_name == column.table), None)
