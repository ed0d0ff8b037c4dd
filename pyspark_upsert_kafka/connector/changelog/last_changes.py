"""The last change of each key in a batch of changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark_upsert_kafka.connector.changelog.change_order import newest_first, with_times
from pyspark_upsert_kafka.connector.changelog.changelog_columns import (
    PUT_ASIDE,
    ChangeColumns,
    change_columns,
)
from pyspark_upsert_kafka.core.ddl.spark_columns import quoted
from pyspark_upsert_kafka.core.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KINDS = ("upsert", "delete")


def last_changes(df: DataFrame, keys: Sequence[str] | str) -> DataFrame:
    """Returns the last change of each key, deletes included. Use it before a ``MERGE`` into another table.

    A ``MERGE`` rejects two changes of one row, and a batch of changes may contain several. Of
    two changes of a key in one message the upsert counts. For tables of Iceberg and Delta Lake, `merge_sink` does both.

    Args:
        df: A batch of changes that `foreachBatch` passes, or that is read with ``read.mode`` = ``changelog``. It must have
            the columns ``_change_type``, ``_partition`` and ``_offset``, which order the changes of a key in its partition. With
            ``_timestamp``, changes of a key that lies in several partitions are ordered by it, then by the partition.
        keys: The columns of the key.

    Returns:
        The same columns, with at most one row per key.

    Raises:
        SchemaError: A column is missing, a key is not a column, or the DataFrame is a stream. A row that is neither
            an ``upsert`` nor a ``delete`` fails the query.

    Example::

        from pyspark.sql import DataFrame

        from pyspark_upsert_kafka import last_changes

        changes = (
            spark.readStream.format("upsert-kafka")
            .schema("user_id BIGINT, region STRING, _change_type STRING, _partition INT, _offset BIGINT")
            .option("topic", "users")
            .option("properties.bootstrap.servers", "localhost:9092")
            .option("primary-key", "user_id")
            .option("key.format", "json")
            .option("value.format", "json")
            .load()
        )

        def store(batch: DataFrame, batch_id: int) -> None:
            last_changes(batch, "user_id").show()  # here a MERGE INTO a table of your own

        query = changes.writeStream.foreachBatch(store).start()
    """
    columns = change_columns(df.schema, keys, "last_changes")
    if df.isStreaming:
        raise SchemaError(
            "last_changes takes a batch, and this DataFrame is a stream: call it in a foreachBatch."
        )
    from pyspark.sql import functions as f

    kind = f.col(columns.change_type)
    known = f.when(kind.isin(*_KINDS), kind).otherwise(
        unknown_kind(columns, "last_changes", ", ".join(_KINDS))
    )
    return last_of_each_key(df, columns, known)


def last_of_each_key(df: DataFrame, columns: ChangeColumns, kind: Column) -> DataFrame:
    """The last change of each key.

    Args:
        df: A batch of changes.
        columns: Its columns.
        kind: ``upsert`` or ``delete``. A message of several changes may delete a key and give it to another row: of two
            changes in one place the upsert counts.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    number, time = _new_names(df, "_number_of_change", "_time_of_change")
    timed = df if columns.timestamp is None else with_times(df, columns, time)
    newest = [*newest_first(columns, time), kind.desc()]
    by_key = Window.partitionBy(*map(quoted, columns.keys)).orderBy(*newest)
    numbered = timed.withColumn(number, f.row_number().over(by_key))
    return numbered.where(f.col(number) == 1).drop(number, time)


def _new_names(df: DataFrame, *names: str) -> Iterator[str]:
    """Names like these that no column has."""
    taken = {name.lower() for name in df.columns}
    for name in names:
        new = name
        while new in taken:
            new += "_"
        yield new


def unknown_kind(columns: ChangeColumns, function: str, kinds: str) -> Column:
    """Fails the query at a row whose kind of change is not known.

    The text of the error is that of a SchemaError, as Spark shows errors of Python sources too.

    Args:
        columns: The columns of the changes.
        function: Whose changes they are, for the message.
        kinds: The kinds that it takes, for the message.
    """
    from pyspark.sql import functions as f

    kind, partition, offset = (
        f.coalesce(f.col(name).cast("string"), f.lit("NULL"))
        for name in (columns.change_type, columns.partition, columns.offset)
    )
    text = f.concat(
        f.lit(f"SchemaError: {function}: {columns.change_type!r} of partition "), partition, f.lit(", offset "), offset,
        f.lit(" is "), kind, f.lit(f", and must be one of {kinds}. {PUT_ASIDE}"),
    )  # fmt: skip
    return f.raise_error(text).cast("string")
