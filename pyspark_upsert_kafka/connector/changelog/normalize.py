"""Turns upserts and deletes into whole rows before and after each change."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from pyspark.sql import GroupedData

from pyspark_upsert_kafka.connector.changelog.changelog_columns import change_columns
from pyspark_upsert_kafka.core.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def normalize_changelog(df: DataFrame, keys: Sequence[str] | str, buckets: int = 64) -> DataFrame:
    """Returns whole rows before and after each change, computed from upserts and deletes.

    The last row of each key is kept in Spark's state store. The first upsert of a key returns an ``insert``. An upsert that
    changes the row returns an ``update_preimage`` with the old row, then an ``update_postimage`` with the new row. An
    upsert that does not change the row returns nothing. A delete returns a ``delete`` with the whole old row, or nothing if
    the key has no row. In all these rows, metadata columns show the message that made the change.

    Args:
        df: A stream, or a batch that is read with ``read.mode`` = ``changelog``. It must have the columns ``_change_type``,
            ``_partition`` and ``_offset``, which order the changes of a key in its partition. With ``_timestamp``, changes of a
            key that lies in several partitions are ordered by it: it is kept with the last row, and deletes are remembered for
            24 hours of these timestamps.
        keys: The columns of the key.
        buckets: The number of groups over which keys are distributed, 1 to 32768. Each group is stored as one columnar
            table. The number is fixed in the checkpoint.

    Returns:
        The same columns.

    Raises:
        SchemaError: A column is missing, or a key is not a column.
        OptionError: The number of buckets is not valid, a package is missing, or this Spark cannot keep the state.

    Example::

        from pyspark_upsert_kafka import normalize_changelog

        changes = (
            spark.read.format("upsert-kafka")
            .schema("user_id BIGINT, region STRING, _change_type STRING, _partition INT, _offset BIGINT")
            .option("read.mode", "changelog")
            .option("topic", "users")
            .option("properties.bootstrap.servers", "localhost:9092")
            .option("primary-key", "user_id")
            .option("key.format", "json")
            .option("value.format", "json")
            .load()
        )
        normalize_changelog(changes, "user_id").show()
    """
    columns = change_columns(df.schema, keys, "normalize_changelog")
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= 2**15:
        raise OptionError(f"normalize_changelog: buckets must be 1 to 32768, and is {buckets!r}.")
    _check_needs(df)
    # Only now: it needs what was checked.
    from pyspark_upsert_kafka.connector.changelog.buckets import whole_changes

    return whole_changes(df, columns, buckets)


def _check_needs(df: DataFrame) -> None:
    """Rejects what Spark would reject later with a less clear error."""
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
            "A batch can be normalized."
        )
    provider = str(df.sparkSession.conf.get(_PROVIDER, ""))
    if "RocksDB" not in provider:
        raise OptionError(
            "normalize_changelog keeps the state of a stream in RocksDB, and Spark has "
            f"'{_PROVIDER}' = '{provider}'. Before the query starts: spark.conf.set('{_PROVIDER}', '{_ROCKSDB}')"
        )
