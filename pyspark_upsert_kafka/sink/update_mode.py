"""Update mode: Spark gives Python sinks none, so `upsert_sink` writes each micro-batch as a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options import WriteOptions, masked, write_options
from pyspark_upsert_kafka.formats import format_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OURS = ("sink.parallelism", "sequence-by")


@dataclass(frozen=True)
class UpsertSink:
    """A function for ``foreachBatch``; made by `upsert_sink`."""

    raw: Mapping[str, str] = field(repr=False)
    options: WriteOptions = field(compare=False)

    def __call__(self, rows: DataFrame, batch_id: int) -> None:  # noqa: ARG002 - what foreachBatch hands over
        """Writes one micro-batch and returns when the broker has confirmed it."""
        passed_on = {name: value for name, value in self.raw.items() if name not in _OURS}
        arranged = self._arranged(rows)
        arranged.write.format("upsert-kafka").mode("append").options(**passed_on).save()

    def _arranged(self, rows: DataFrame) -> DataFrame:
        """All changes of a key in one task, in their order."""
        options = self.options
        key = [rows[_quoted(name)] for name in options.table.primary_key]
        if options.parallelism is not None:
            rows = rows.repartition(options.parallelism, *key)
        elif options.sequence_by is not None:
            rows = rows.repartition(*key)
        if options.sequence_by is not None:
            rows = rows.sortWithinPartitions(*_sequence(options.sequence_by, rows, self.options))
        return rows


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

    Example:
        >>> sink = upsert_sink({
        ...     "topic": "pageviews_per_region",
        ...     "properties.bootstrap.servers": "localhost:9092",
        ...     "primary-key": "user_region",
        ...     "key.format": "json",
        ...     "value.format": "json",
        ...     "sink.parallelism": 2,
        ... })
        >>> query = counts.writeStream.outputMode("update").foreachBatch(sink)  # doctest: +SKIP
    """
    raw = {name.lower(): _text(name, value) for name, value in {**(options or {}), **more}.items()}
    return UpsertSink(raw, write_options(raw, format_options, update_mode=True))


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        raise OptionError(f"Option '{name}' is None; leave it out, or give it a value.")
    return str(value)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _sequence(sequence_by: str, rows: DataFrame, options: WriteOptions) -> list[Column]:
    """What to sort by within a task; of two changes with one sequence the preimage is the earlier."""
    from pyspark.sql import functions as f

    named = {column for column, key in options.table.metadata if key == "change-type"}
    changes = [name for name in rows.columns if name.lower() in (named or {"_change_type"})]
    first = [f.lower(rows[_quoted(name)]).isin("update_preimage", "-u").desc() for name in changes]
    order = f.col(_quoted(sequence_by)) if sequence_by in rows.columns else f.expr(sequence_by)
    return [order, *first]


__all__ = ["UpsertSink", "masked", "upsert_sink"]
