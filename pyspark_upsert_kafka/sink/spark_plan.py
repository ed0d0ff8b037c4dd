"""What Spark knows of a DataFrame before it runs: asked of the plan in the JVM, which Spark Connect does not show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_RANDOM = re.compile(
    r"\b(rand|random|randn|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id)\s*\(",
    re.IGNORECASE,
)


def partition_count(rows: DataFrame) -> int | None:
    """In how many partitions the rows are; None = that is not known before they are computed."""
    in_jvm = getattr(rows, "_jdf", None)
    return None if in_jvm is None else _partitions_of(in_jvm.queryExecution().executedPlan())


def is_deterministic(rows: DataFrame, expression: Column, text: str) -> bool:
    """Whether the expression, written so, gives the same value each time it is computed for a row."""
    in_jvm = getattr(rows.select(expression), "_jdf", None)
    if in_jvm is None:
        return _RANDOM.search(text) is None
    analyzed = in_jvm.queryExecution().analyzed().expressions()
    return all(analyzed.apply(at).deterministic() for at in range(analyzed.length()))


def _partitions_of(plan: Any) -> int | None:
    """Of a physical plan, without computing anything of it.

    Most plans know how many partitions they give. One that does not, and has one child, gives as many as that;
    a scan, such as that of the rows that foreachBatch hands over, has an RDD that is made at once.
    """
    known: int = plan.outputPartitioning().numPartitions()
    if known:
        return known
    children = plan.children()
    if children.length() == 1:
        return _partitions_of(children.head())
    if children.length():
        return None
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        # How many it will be is decided while it runs, but what was asked to be one stays one.
        asked_for = plan.inputPlan().outputPartitioning().getClass().getSimpleName()
        return 1 if asked_for == "SinglePartition$" else None
    count: int = plan.execute().getNumPartitions()
    return count
