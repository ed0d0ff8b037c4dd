"""``COUNT(DISTINCT x)`` in a stream: Spark has no distinct aggregates there, but it has sets."""

from __future__ import annotations

from sqlglot import exp

from pyspark_upsert_kafka.sql.expressions import place_in_query, shown
from pyspark_upsert_kafka.sql.functions import spark_cast
from pyspark_upsert_kafka.sql.statements import Query


def count_by_sets(node: exp.Select, query: Query) -> None:
    """Counts distinct values as the size of their set, which is exact; the query is changed.

    Raises:
        OptionError: Another aggregate is distinct; it names line and column.
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
