"""The last change of each key in a batch of changes, and which of two changes of a key is newer.

Changes in one partition are ordered by offset. Changes in different partitions, where a key lies after partitions were added,
are ordered by the records' timestamps, then by the number of the partition: the higher one was added later.

The timestamps of a partition may fall while offsets rise. So that there is one order, which does not depend on how the changes
are cut into batches, the time of a change is the greatest timestamp that its key has had in that partition up to it. To go on,
the time and the place of a key's newest change are enough: an older change of another partition stays older, whatever was
before it in its own.

Without a column of timestamps the number of the partition decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyspark_upsert_kafka.connector.changelog.changelog_columns import (
    PUT_ASIDE,
    ChangeColumns,
    change_columns,
)
from pyspark_upsert_kafka.core.ddl.spark_columns import quoted
from pyspark_upsert_kafka.core.errors import SchemaError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, WindowSpec


OLDEST = int(np.iinfo(np.int64).min)
"""The time of a message without a timestamp."""


def several_partitions(columns: ChangeColumns, function: str) -> str:
    """The warning that a key lies in several partitions, for the function that has seen it."""
    how = (
        "the records' timestamps, then by the number of the partition"
        if columns.timestamp is not None
        else "the number of the partition, since there is no column _timestamp. Add it to the schema that is read, so that "
        "they are ordered by the records' timestamps"
    )
    return (
        f"{function}: keys lie in several partitions, as after partitions were added to a topic. Changes of such a key in "
        f"different partitions are ordered by {how}."
    )


class NewerChanges(NamedTuple):
    """Changes in their order, without those that are older than the last one of their key.

    Args:
        order: The number of each change.
        times: The times of the last changes that were known, and then of these.
        by_key: The same rows by key.
        in_several: The rows, one for each, of keys that lie in several partitions: last changes and then new ones are counted.
    """

    order: np.ndarray
    times: np.ndarray
    by_key: RowsByKey
    in_several: np.ndarray


class RowsByKey(NamedTuple):
    """Which rows have a key: those of a key follow one another, in their order.

    Args:
        rows: The numbers of rows, key by key.
        ends: Where the rows of each key end in them.
    """

    rows: np.ndarray
    ends: np.ndarray


def rows_by_key(keys: pl.DataFrame) -> RowsByKey:
    """The rows of each key.

    Args:
        keys: The key of each row.
    """
    by_key = keys.with_row_index("row").group_by(keys.columns).agg("row")["row"]
    ends = by_key.list.len().to_numpy().astype(np.int64).cumsum()
    return RowsByKey(by_key.explode().to_numpy().astype(np.int64), ends)


def newer_changes(
    keys: pl.DataFrame, place: Sequence[pa.ChunkedArray], offset: np.ndarray, time: np.ndarray
) -> NewerChanges:
    """Which changes are newer than the last known change of their key, in order.

    Args:
        keys: The key of each last change, one for each key, and then that of each new change.
        place: Of the same changes, where they lie: the partition, and the topic if there are several. NULL = not known.
        offset: The offsets of the new changes.
        time: The times of the last changes, and the timestamps of the messages of the new ones; `OLDEST` = none.
    """
    import polars as pl

    old = len(time) - len(offset)
    key, places = keys.columns, [f"place{at}" for at in range(len(place))]
    frame = keys.with_columns(
        *(
            pl.Series(name, pl.from_arrow(column))
            for name, column in zip(places, place, strict=True)
        ),
        pl.Series("offset", np.concatenate([np.full(old, -1), offset])),
        pl.Series("time", time),
    ).with_row_index("row")
    several = np.zeros(0, np.int64)
    if frame.select(pl.any_horizontal(pl.col(places).n_unique() > 1)).item():
        differs = pl.any_horizontal(pl.col(name).min() != pl.col(name).max() for name in places)
        by_key = frame.group_by(key).agg(differs.alias("several"), pl.col("row").min())
        several = by_key.filter("several")["row"].sort().to_numpy().astype(np.int64)
    new = frame.slice(old).sort(*places, "offset", maintain_order=True)
    in_log = pl.concat([frame.slice(0, old), new])
    if not len(several):
        order = new["row"].to_numpy().astype(np.int64) - old
        rows = rows_by_key(in_log.select(key))
        times = _greatest_up_to_each(in_log["time"].to_numpy(), rows)
        return NewerChanges(order, times, rows, several)
    by_place = rows_by_key(in_log.select(*key, *places))
    times = _greatest_up_to_each(in_log["time"].to_numpy(), by_place)
    ordered = in_log.with_columns(time=times).sort("time", *places, "offset", maintain_order=True)
    # The last change that was known comes after them.
    known_since = (pl.col("row") < old).cum_sum(reverse=True).over(key)
    new = ordered.filter((pl.col("row") >= old) & (known_since == 0))
    kept = pl.concat([frame.slice(0, old), new])
    order = new["row"].to_numpy().astype(np.int64) - old
    rows = rows_by_key(kept.select(key))
    return NewerChanges(order, kept["time"].to_numpy(), rows, several)


def _greatest_up_to_each(times: np.ndarray, by_key: RowsByKey) -> np.ndarray:
    """For each row the greatest time of its key up to it; a window function takes four times as long."""
    begins = np.zeros(len(times), bool)
    begins[by_key.ends[:-1]] = True
    of_key = times[by_key.rows]
    if not (of_key[1:] < of_key[:-1])[~begins[1:]].any():
        return times
    values, rank = np.unique(of_key, return_inverse=True)
    first = begins.cumsum() * len(values)
    greatest = np.empty_like(times)
    greatest[by_key.rows] = values[np.maximum.accumulate(first + rank) - first]
    return greatest


def with_times(df: DataFrame, columns: ChangeColumns, name: str) -> DataFrame:
    """The changes with the time of each, by which it is ordered among those of other partitions.

    Args:
        df: A batch of changes.
        columns: Its columns, one of timestamps among them.
        name: The name of the column to add.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    in_log = Window.partitionBy(*map(quoted, columns.keys)).orderBy(*columns.place, columns.offset)
    # Places rise in this order, so the greatest pair is one of the change's own partition.
    pair = f.struct(*columns.place, f.col(str(columns.timestamp)).alias("time"))
    up_to_here = in_log.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return df.withColumn(name, f.max(pair).over(up_to_here)["time"])


def newest_first(columns: ChangeColumns, time: str) -> list[Column]:
    """The order of changes of a key, the newest one first.

    Args:
        columns: The columns.
        time: The column that `with_times` has added, if there are timestamps.
    """
    from pyspark.sql import functions as f

    times = [] if columns.timestamp is None else [f.desc(time)]
    return [*times, *map(f.desc, (*columns.place, columns.offset))]


def places_of_key(columns: ChangeColumns, by_key: WindowSpec) -> Column:
    """The lowest and the highest partition in which a key has changes, as an array; NULL if there is only one.

    Args:
        columns: The columns.
        by_key: The changes of a key, in any order.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    of_key = by_key.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    place = f.struct(*columns.place)
    lowest, highest = f.min(place).over(of_key), f.max(place).over(of_key)
    return f.when(lowest != highest, f.array(lowest, highest))


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
