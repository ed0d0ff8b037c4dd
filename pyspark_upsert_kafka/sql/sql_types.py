"""The types of values: their names in sqlglot and in Spark, and casts to types of Spark."""

from __future__ import annotations

from sqlglot import exp

from pyspark_upsert_kafka.sql.flink_query import Query, place_in_query, shown

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


def type_unknown(node: exp.Expr, query: Query) -> Exception:
    """The error about an argument whose type is not known, or not supported by the function."""
    return place_in_query(node, query).error(
        f"the type of what '{shown(node)}' takes is not known, or not one that Flink takes there: cast it."
    )


def name_of(kind: exp.DataType) -> tuple[str, list[str]]:
    """The name of a type that a query names, and the numbers in its brackets."""
    name = str(kind.this.name)
    return name, [] if name in NESTED else [each.name for each in kind.expressions]


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


def type_of(node: exp.Expr) -> str:
    """The type of a value as Spark's SQL names it.

    Raises:
        ValueError: It is not known, or the digits of a DECIMAL are not; with a sentence.
    """
    kind = kind_of(node)
    if kind in ("UNKNOWN", "NULL") or node.type is None:
        raise ValueError("the type of an argument is not known: CAST it")
    if kind != "DECIMAL":
        return str(node.type.sql("spark")).replace("VARCHAR", "STRING")
    digits = decimal_digits(node)
    if digits is None:
        raise ValueError("the digits of an argument are not known: CAST it AS DECIMAL(p, s)")
    return f"DECIMAL({digits[0]}, {digits[1]})"


def parts_in_spark(node: exp.Expr) -> list[str]:
    """The types within the type of an array or a map, as Spark's SQL names them; raises ValueError where it is neither."""
    if node.type is None or kind_of(node) not in NESTED:
        raise ValueError("the first argument is not known to be an array or a map: CAST it")
    return [part.sql("spark").replace("VARCHAR", "STRING") for part in parts_of(node.type)]


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
