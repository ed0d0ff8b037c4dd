"""The last change of each key in a batch of changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_upsert_kafka.changelog.columns import PUT_ASIDE, change_columns
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.table.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def last_changes(df: DataFrame, keys: Sequence[str] | str) -> DataFrame:
    """Returns the last change of each key, deletes included. Use it before a ``MERGE`` into another table.

    A ``MERGE`` rejects two changes of one row, and a batch of changes may contain several. Of
    two changes of a key in one message the upsert counts. For tables of Iceberg and Delta Lake, `merge_sink` does both.

    Args:
        df: A batch of changes that `foreachBatch` passes, or that is read with ``read.mode`` = ``changelog``. It must have
            the columns ``_change_type``, ``_partition`` and ``_offset``; the last two order the changes of a key.
        keys: The columns of the key.

    Returns:
        The same columns, with at most one row per key.

    Raises:
        SchemaError: A column is missing, a key is not a column, or the DataFrame is a stream. A row that is neither
            an ``upsert`` nor a ``delete`` fails the query.

    Example::

        def merge(changes: DataFrame, batch_id: int) -> None:
            last_changes(changes, ["user_id"]).createOrReplaceTempView("changes")
            changes.sparkSession.sql("MERGE INTO users USING changes ON ...")

        stream.writeStream.foreachBatch(merge).start()
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    columns = change_columns(df.schema, keys, "last_changes")
    if df.isStreaming:
        raise SchemaError(
            "last_changes takes a batch, and this DataFrame is a stream: call it in a foreachBatch."
        )
    # A message of several changes may delete a key and give it to another row: an upsert comes before a delete.
    newest_first = Window.partitionBy(*map(quoted, columns.keys)).orderBy(
        f.desc(columns.partition), f.desc(columns.offset), f.desc(columns.change_type)
    )
    place = "_place_of_change"
    while place in df.columns:
        place += "_"
    numbered = df.withColumn(place, f.row_number().over(newest_first))
    kind, partition, offset = (
        f.coalesce(f.col(name).cast("string"), f.lit("NULL"))
        for name in (columns.change_type, columns.partition, columns.offset)
    )
    refused = f.concat(
        f.lit(f"SchemaError: last_changes takes rows whose {columns.change_type!r} is 'upsert' or 'delete', and of partition "),
        partition, f.lit(", offset "), offset, f.lit(" it is "), kind,
        f.lit(f". {PUT_ASIDE}"),
    )  # fmt: skip
    known = f.col(columns.change_type).isin("upsert", "delete")
    is_last = f.when(known, f.col(place) == 1).otherwise(f.raise_error(refused).cast("boolean"))
    return numbered.where(is_last).drop(place)
