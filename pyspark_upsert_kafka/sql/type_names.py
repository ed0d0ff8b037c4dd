"""The types of values, by the names that sqlglot has for them."""

from __future__ import annotations

from sqlglot import exp

from pyspark_upsert_kafka.sql.expressions import place_in_query, shown
from pyspark_upsert_kafka.sql.statements import Query

WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
"""Whole numbers, the widest last."""

APPROXIMATE = ("FLOAT", "DOUBLE")
TEXTS = ("TEXT", "VARCHAR", "CHAR")
NESTED = ("ARRAY", "MAP", "STRUCT")


def kind_of(node: exp.Expr) -> str:
    """The name of a value's type."""
    if isinstance(node, exp.Null):
        return "NULL"
    return "UNKNOWN" if node.type is None else str(node.type.this.name)


def type_unknown(node: exp.Expr, query: Query) -> Exception:
    """The error of a function that takes no value of this type."""
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
