"""Update mode: Spark gives Python sinks none, so `upsert_sink` writes each micro-batch as a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import CHANGE_TYPE
from pyspark_upsert_kafka.core.options import (
    FROM_UPSERT_SINK,
    PreimageOrder,
    WriteOptions,
    check_write_options,
    write_options,
)
from pyspark_upsert_kafka.core.secrecy import masked
from pyspark_upsert_kafka.core.table import Table, table_to_write
from pyspark_upsert_kafka.core.warning import speculation, warn_once
from pyspark_upsert_kafka.format_catalog import format_options
from pyspark_upsert_kafka.sink.spark_plan import is_deterministic, partition_count

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OURS = ("sink.parallelism", "sequence-by")


@dataclass(frozen=True, repr=False)
class UpsertSink:
    """A function for ``foreachBatch``; made by `upsert_sink`."""

    raw: Mapping[str, str]

    def __call__(self, rows: DataFrame, batch_id: int) -> None:  # noqa: ARG002 - what foreachBatch hands over
        """Writes one micro-batch and returns when the broker has confirmed it."""
        # With Spark Connect this runs on the server, which may know what the client's options refer to.
        options = write_options(self.raw, format_options, update_mode=True)
        setting = rows.sparkSession.conf.get("spark.speculation", "false")
        warn_once(*speculation(setting, str(options.table.topics)))
        arranged, order = _arranged(rows, options)
        passed_on = {name: value for name, value in self.raw.items() if name not in _OURS}
        passed_on[FROM_UPSERT_SINK.name] = order
        arranged.write.format("upsert-kafka").mode("append").options(**passed_on).save()

    def __repr__(self) -> str:
        return f"upsert_sink({masked(self.raw)})"


def upsert_sink(options: Mapping[str, Any] | None = None, /, **more: Any) -> UpsertSink:
    """A function for ``foreachBatch`` that writes each micro-batch as changes of a table.

    It is the way to write aggregations in output mode ``update``, which Spark refuses for Python sinks,
    and the only one that can distribute rows by key (``sink.parallelism``) and order the changes of a
    key within a batch (``sequence-by``).

    Args:
        options: The options of the sink, by name.
        **more: The same, as keyword arguments.

    Raises:
        OptionError: An option is unknown, missing, malformed or contradicts another.

    Example::

        sink = upsert_sink({
            "topic": "pageviews_per_region",
            "properties.bootstrap.servers": "localhost:9092",
            "primary-key": "user_region",
            "key.format": "json",
            "value.format": "json",
            "sink.parallelism": 2,
        })
        query = counts.writeStream.outputMode("update").foreachBatch(sink).start()
    """
    raw = {name.lower(): _text(name, value) for name, value in {**(options or {}), **more}.items()}
    if FROM_UPSERT_SINK.name in raw:
        raise OptionError(
            f"Option '{FROM_UPSERT_SINK.name}' is for upsert_sink itself: leave it out."
        )
    warn_once(*check_write_options(raw, format_options))
    return UpsertSink(raw)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        raise OptionError(f"Option '{name}' is None; leave it out, or give it a value.")
    return str(value)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _arranged(rows: DataFrame, options: WriteOptions) -> tuple[DataFrame, PreimageOrder]:
    """The rows as tasks are to get them, and in which order those find the changes of a key."""
    table = table_to_write(rows.schema, options)
    key = [_quoted(name) for name in table.key_names]
    has_changes = table.metadata_column(CHANGE_TYPE) is not None
    if options.parallelism is not None:
        rows = rows.repartition(options.parallelism, *(rows[name] for name in key))
    elif options.sequence_by is not None:
        rows = rows.repartition(*(rows[name] for name in key))
    if options.sequence_by is not None:
        return _in_sequence(rows, options.sequence_by, table), "by-key"
    in_one_task = options.parallelism is None and has_changes and partition_count(rows) == 1
    return rows, "in-task" if in_one_task or not has_changes else "unknown"


def _in_sequence(rows: DataFrame, sequence_by: str, table: Table) -> DataFrame:
    """The rows sorted within each task, by key first, so that the changes of a key follow one another.

    Of two changes of a key with one sequence the preimage is the earlier; NULL is the earliest of all.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    changes = table.metadata_column(CHANGE_TYPE)
    kind = []
    if changes is not None:
        spelt = f.lower(rows[_quoted(changes.name)])
        kind = [spelt.isin("update_preimage", "-u").desc()]
    key = [rows[_quoted(name)] for name in table.key_names]
    try:
        by = _expression(sequence_by, rows)
        _ = rows.select(by).schema  # Spark Connect resolves nothing before it is asked for
        arranged = rows.sortWithinPartitions(*key, by, *kind)
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
    return rows[_quoted(named[0])] if named else f.expr(sequence_by)
