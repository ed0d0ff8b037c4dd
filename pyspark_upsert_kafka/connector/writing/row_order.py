"""How `upsert_sink` arranges the rows of a micro-batch: distributed by key, and sorted within each task."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyspark_upsert_kafka.core.changes import SPELLINGS_OF, Change
from pyspark_upsert_kafka.core.ddl.spark_columns import direction_of, quoted
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import ALL_METADATA, CHANGE_TYPE
from pyspark_upsert_kafka.core.options.frozen_options import PreimageOrder, WriteOptions
from pyspark_upsert_kafka.core.table import Table, table_to_write

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType


_RANDOM = re.compile(
    r"\b(rand|random|randn|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id)\s*\(",
    re.IGNORECASE,
)


def arranged(rows: DataFrame, options: WriteOptions) -> tuple[DataFrame, PreimageOrder]:
    """The rows as tasks are to get them, and in which order those find the changes of a key."""
    table = table_to_write(rows.schema, options)
    key = [quoted(field.name) for field in distributing(rows.schema, table)]
    has_changes = table.metadata_column(CHANGE_TYPE) is not None
    if options.parallelism is not None:
        rows = rows.repartition(options.parallelism, *(rows[name] for name in key))
    elif options.sequence_by is not None:
        rows = rows.repartition(*(rows[name] for name in key))
    if options.sequence_by is not None:
        return _written(_in_sequence(rows, options.sequence_by, table), table), "by-key"
    in_one_task = options.parallelism is None and has_changes and partition_count(rows) == 1
    return _written(rows, table), "in-task" if in_one_task or not has_changes else "unknown"


def distributing(rows: StructType, table: Table) -> list[StructField]:
    """The columns by which rows are distributed: those of the key, in its order, with the types that they have in the rows.

    A DDL may declare a wider type, which has other hashes.
    """
    given = {field.name.lower(): field for field in rows}
    return [given[name.lower()] for name in table.key_names]


def _written(rows: DataFrame, table: Table) -> DataFrame:
    """The rows without the columns that a sink ignores, which would cross to Python for nothing."""
    ignored = [column.name for column in table.metadata if not ALL_METADATA[column.key].writable]
    return rows.drop(*ignored)


def _in_sequence(rows: DataFrame, sequence_by: str, table: Table) -> DataFrame:
    """The rows sorted within each task, by key first, so that the changes of a key follow one another.

    Of two changes of a key with one sequence the preimage is the earlier; NULL is the earliest of all.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    changes = table.metadata_column(CHANGE_TYPE)
    kind = []
    if changes is not None:
        spelt = f.lower(rows[quoted(changes.name)])
        kind = [spelt.isin(*SPELLINGS_OF[Change.UPDATE_PREIMAGE]).desc()]
    key = [rows[quoted(name)] for name in table.key_names]
    try:
        by = _expression(sequence_by, rows)
        arranged = rows.sortWithinPartitions(*key, by, *kind)
        _ = arranged.select(by).schema  # Spark Connect resolves nothing before it is asked for
        always_the_same = is_deterministic(rows, by, sequence_by)
    except PySparkException as error:
        raise OptionError(
            f"Invalid value for option 'sequence-by': expected a column or an expression that the rows "
            f"can be sorted by, but is {sequence_by!r}: {str(error).splitlines()[0]}"
        ) from None
    if not always_the_same:
        raise OptionError(
            f"Invalid value for option 'sequence-by': {sequence_by!r} is not deterministic, so that a "
            "batch that is written again could leave another row. Name a column that the rows have."
        )
    return arranged


def _expression(sequence_by: str, rows: DataFrame) -> Column:
    """The column of that name, however it is spelt, or else the expression."""
    from pyspark.sql import functions as f

    named = [name for name in rows.columns if name.lower() == sequence_by.lower()]
    if named:
        return rows[quoted(named[0])]
    if direction := direction_of(sequence_by):
        raise OptionError(
            f"Invalid value for option 'sequence-by': {sequence_by!r} ends with {direction}, which would be a name and no "
            "order: the change with the greatest value stands. Leave it out; for the opposite order, negate the value."
        )
    return f.expr(sequence_by)


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
    """How many partitions a physical plan gives, found without running any of it; None = not known.

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
