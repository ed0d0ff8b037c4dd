"""A stream of upserts and deletes becomes one of whole rows before and after each change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from pyspark.sql import GroupedData

from pyspark_upsert_kafka.changelog.columns import ChangeColumns, change_columns
from pyspark_upsert_kafka.changelog.layout import Layout
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.table.names import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_PACKED = "bucket INT, rows BINARY"


def normalize_changelog(df: DataFrame, keys: Sequence[str] | str, buckets: int = 64) -> DataFrame:
    """Whole rows before and after each change, from upserts and deletes.

    The last row per key is kept in Spark's state store. The first upsert of a key is an ``insert``; one that changes the
    row is ``update_preimage`` with the old row, then ``update_postimage`` with the new one; one that does not is
    nothing. A delete is a ``delete`` with the whole old row, or nothing for a key that has no row. Metadata columns show
    the message that made the change, in each of its rows.

    Args:
        df: A stream or a batch, read with ``read.mode`` = ``changelog``, with ``_change_type``, and with ``_partition`` and
            ``_offset``, which order the changes of a key.
        keys: The columns of the key.
        buckets: Over how many groups keys are spread; each is kept as one columnar table. It is fixed with the checkpoint.

    Returns:
        The same columns.

    Raises:
        SchemaError: A column is missing, or a key is no column.
        OptionError: The number of buckets is none, or this Spark cannot keep the state.

    Example::

        users = normalize_changelog(stream, ["user_id"])
    """
    columns = change_columns(df.schema, keys, "normalize_changelog")
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= 2**15:
        raise OptionError(f"normalize_changelog: buckets must be 1 to 32768, and is {buckets!r}.")
    types = {field.name: field.dataType.simpleString() for field in df.schema}
    layout = Layout(buckets, columns.keys, {name: types[name] for name in columns.row})
    _check_needs(df)
    by_bucket = _packed(df, layout).groupBy("bucket")
    if df.isStreaming:
        from pyspark_upsert_kafka.changelog.buckets import ChangeProcessor

        whole = by_bucket.transformWithState(
            ChangeProcessor(columns, layout), "rows BINARY", outputMode="Append", timeMode="None"
        )
    else:
        whole = by_bucket.applyInArrow(_without_state(columns, layout), "rows BINARY")
    return whole.mapInArrow(_unpack, df.schema)


def _check_needs(df: DataFrame) -> None:
    """Refuses what Spark would refuse later, and less clearly."""
    modules = {"pandas": "pandas", "protobuf": "google.protobuf"}
    for package in ("pandas", "protobuf") if df.isStreaming else ("pandas",):
        try:
            import_module(modules[package])
        except ImportError:
            raise OptionError(
                f"normalize_changelog needs the package {package}, which Spark demands for this: "
                "pip install 'pyspark-upsert-kafka[changelog]', on every machine."
            ) from None
    if not df.isStreaming:
        return
    if not hasattr(GroupedData, "transformWithState"):
        raise OptionError(
            "normalize_changelog takes a stream on PySpark 4.1 or newer: before, Spark's state for Python is too slow. "
            "A batch is possible."
        )
    provider = str(df.sparkSession.conf.get(_PROVIDER, ""))
    if "RocksDB" not in provider:
        raise OptionError(
            "normalize_changelog keeps the state of a stream in RocksDB, and Spark has "
            f"'{_PROVIDER}' = '{provider}'. Before the query starts: spark.conf.set('{_PROVIDER}', '{_ROCKSDB}')"
        )


def _packed(df: DataFrame, layout: Layout) -> DataFrame:
    from pyspark.sql import functions as f

    key = [df[quoted(name)] for name in layout.keys]
    bucket = f.pmod(f.xxhash64(*key), f.lit(layout.buckets)).cast("int")
    return df.select("*", bucket.alias("_bucket")).mapInArrow(_pack, _PACKED)


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a task, bucket by bucket."""
    import pyarrow as pa

    from pyspark_upsert_kafka.changelog.packing import by_bucket
    from pyspark_upsert_kafka.worker_garbage import freeze_modules

    freeze_modules()
    for bucket, rows in by_bucket(batches):
        yield pa.record_batch([pa.array([bucket], pa.int32()), [rows]], ["bucket", "rows"])


def _without_state(columns: ChangeColumns, layout: Layout) -> Callable[[pa.Table], pa.Table]:
    """What becomes of a bucket of a batch, which has no last rows."""

    def whole_rows(changes: pa.Table) -> pa.Table:
        import pyarrow as pa

        from pyspark_upsert_kafka.changelog.buckets import Bucket

        bucket = Bucket(changes["bucket"][0].as_py(), columns, layout)
        _, whole = bucket.apply(None, changes["rows"].to_pylist())
        return pa.table([pa.array(whole, pa.binary())], ["rows"])

    return whole_rows


def _unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that were packed."""
    from pyspark_upsert_kafka.changelog.packing import unpacked
    from pyspark_upsert_kafka.worker_garbage import freeze_modules

    freeze_modules()
    for batch in batches:
        for rows in batch.column(0):
            yield from unpacked(rows.as_buffer()).to_batches()
