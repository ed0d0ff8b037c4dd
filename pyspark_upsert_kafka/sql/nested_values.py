"""Arrays, maps and rows: what makes them, and what is taken out of them."""

from __future__ import annotations

from sqlglot import exp

from pyspark_upsert_kafka.sql.expressions import place_in_query, shown
from pyspark_upsert_kafka.sql.functions import spark_cast
from pyspark_upsert_kafka.sql.statements import Query
from pyspark_upsert_kafka.sql.type_names import TEXTS, WHOLE, kind_of


def is_map(node: exp.Expr) -> bool:
    """Whether square brackets make a map: ``MAP['a', 1]``."""
    column = node.this
    is_name = isinstance(column, exp.Column) and not column.table and not column.this.quoted
    return is_name and column.name.upper() == "MAP"


def map_of(node: exp.Expr, query: Query) -> exp.Expr:
    """``MAP[key, value, ...]`` as Spark's.

    Raises:
        OptionError: A key has no value; it names line and column.
    """
    parts = node.expressions
    if not parts or len(parts) % 2:
        raise place_in_query(node, query).error("expected MAP[key, value, ...].")
    keys, values = exp.Array(expressions=parts[::2]), exp.Array(expressions=parts[1::2])
    return exp.VarMap(keys=keys, values=values)


def row_of(node: exp.Expr) -> exp.Expr:
    """``ROW(a, b)`` as Spark's, with the names that Flink gives its fields."""
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(f"EXPR${at}", quoted=True), expression=value)
        for at, value in enumerate(node.expressions)
    ]
    return exp.Struct(expressions=fields)


def check_array(node: exp.Expr, query: Query) -> None:
    """Refuses an array, or the keys or values of a map, whose type is not that of each of its elements.

    Raises:
        OptionError: Their types are several, or not known; it names line and column.
    """
    kinds = {kind_of(each) for each in node.expressions} - {"NULL"}
    kinds = {"TEXT" if kind in TEXTS else kind for kind in kinds}
    if "UNKNOWN" in kinds or not kinds or (len(kinds) > 1 and not kinds <= {*WHOLE}):
        raise place_in_query(node, query).error(
            f"the elements of '{shown(node)}' have no type in common that is the same in Spark: CAST them to one."
        )


def take_element(node: exp.Expr, query: Query) -> None:
    """An element of an array, counted from 1, or of a map; NULL where there is none.

    Raises:
        OptionError: It is counted from 0, or from the end; it names line and column.
    """
    index = node.expressions[0]
    if len(node.expressions) != 1:
        raise place_in_query(node, query).error(f"'{shown(node)}': expected one index or key.")
    value: exp.Expr = exp.Anonymous(
        this="try_element_at", expressions=[node.this.copy(), index.copy()]
    )
    kind = node.this.type
    if kind is None or kind.this.name not in ("ARRAY", "MAP"):
        raise place_in_query(node, query).error(
            f"the type of what '{shown(node)}' takes an element of is not known: CAST it AS ARRAY<...> or MAP<..., ...>."
        )
    if kind.this.name == "ARRAY" and not _is_from_1(index):
        raise place_in_query(node, query).error(
            f"'{shown(node)}': an index is a whole number from 1 on, written as a number: Spark counts others from the end."
        )
    node.replace(spark_cast(value, kind.expressions[-1].sql("spark")))


def _is_from_1(index: exp.Expr) -> bool:
    return isinstance(index, exp.Literal) and index.is_int and int(index.name) > 0
