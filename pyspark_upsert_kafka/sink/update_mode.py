"""`upsert_sink`: writes each micro-batch as a batch, since Spark has no output mode ``update`` for Python sinks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_upsert_kafka.core.delivery.guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.delivery.receipts import Call, digest
from pyspark_upsert_kafka.core.delivery.sink_identity import sink_identity
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options import (
    CALL,
    FROM_UPSERT_SINK,
    INTERNAL,
    Given,
    WriteOptions,
    as_spark_passes_on,
    check_write_options,
    given_options,
    option_texts,
    write_options,
)
from pyspark_upsert_kafka.core.secrets.masking import masked
from pyspark_upsert_kafka.core.table.columns import table_to_write
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.format_catalog import format_options
from pyspark_upsert_kafka.sink.delivery import transactions
from pyspark_upsert_kafka.sink.exactly_once import prepare
from pyspark_upsert_kafka.sink.foreach_batch import CallNumbers, SinkCall, running_batch
from pyspark_upsert_kafka.sink.row_order import arranged, distributing
from pyspark_upsert_kafka.sink.warnings import (
    refuse_speculation,
    speculation,
    warn_unless_compacted,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OURS = ("sink.parallelism", "sequence-by")

_call_numbers = CallNumbers()


@dataclass(frozen=True, repr=False)
class UpsertSink:
    """A function for ``foreachBatch``, returned by `upsert_sink`."""

    raw: Given

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Writes one micro-batch and returns when the broker has confirmed all of it.

        Args:
            rows: The rows that foreachBatch passes, or rows derived from them.
            batch_id: The batch number that foreachBatch passes.
        """
        # With Spark Connect this runs on the server, which may know what the client's options refer to.
        options = write_options(self.raw, format_options, update_mode=True)
        _activate(rows.sparkSession)
        setting = rows.sparkSession.conf.get("spark.speculation", "false")
        warn_unless_compacted(options.table)
        in_order, order = arranged(rows, options)
        given = as_spark_passes_on(self.raw)
        passed_on = {name: value for name, value in given.items() if name not in _OURS}
        passed_on[FROM_UPSERT_SINK.name] = order
        if options.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            refuse_speculation(setting)
            with _prepared(rows, batch_id, options, self.raw) as call:
                _write(in_order, {**passed_on, CALL.name: call.to_text()})
        else:
            warn_once(*speculation(setting, str(options.table.topics)))
            _write(in_order, passed_on)

    def __repr__(self) -> str:
        return f"upsert_sink({masked({name: self.raw[name] for name in self.raw if name not in INTERNAL})})"


def _activate(session: SparkSession) -> None:
    """A thread that the user has started knows no session, and Spark finds no Python data source without one."""
    in_the_jvm = getattr(session, "_jsparkSession", None)  # a session of Spark Connect has none
    if in_the_jvm is not None:
        sessions = session._get_j_spark_session_class(session._jvm)  # noqa: SLF001
        sessions.setActiveSession(in_the_jvm)


@contextmanager
def _prepared(rows: DataFrame, batch_id: int, options: WriteOptions, raw: Given) -> Iterator[Call]:
    """Prepares an exactly-once call of which the tasks must know."""
    running = running_batch(rows, batch_id)
    schema = rows.schema
    table = table_to_write(schema, options)
    prefix, tasks = str(options.transactional_id_prefix), int(options.parallelism or 0)
    sink = sink_identity(raw, options, schema, table)
    servers = str(options.table.properties.resolved()["bootstrap.servers"])
    key = distributing(schema, table)
    content = digest(running.entry, *(f"{field.name} {field.dataType}" for field in key))
    topics = options.table.topics.names
    this_call = SinkCall(prefix, sink, servers, rows.semanticHash())
    with _call_numbers.numbered(this_call, running) as numbered:
        call = Call(prefix, running.query, numbered.number, batch_id, tasks, topics, content, sink)
        prepare(call, transactions(options), may_begin=not numbered.is_known_by_it)
        yield call


def _write(rows: DataFrame, options: Mapping[str, str]) -> None:
    rows.write.format("upsert-kafka").mode("append").options(**options).save()


def upsert_sink(options: Mapping[str, Any] | None = None, /, **more: Any) -> UpsertSink:
    """Returns a function for ``foreachBatch`` that writes each micro-batch as changes of a table.

    Use it to write aggregations in output mode ``update``, which Spark does not allow for Python sinks. Only this sink can
    distribute rows by key (``sink.parallelism``), order the changes of a key within a batch (``sequence-by``), and write
    exactly once.

    Args:
        options: The options of the sink, by name.
        **more: More options, as keyword arguments.

    Raises:
        OptionError: An option is unknown, missing or malformed, or contradicts another.

    Example::

        from pyspark_upsert_kafka import upsert_sink

        ticks = spark.readStream.format("rate").load()  # a row a second
        counts = ticks.groupBy((ticks.value % 3).alias("remainder")).count()
        sink = upsert_sink({
            "topic": "counts",
            "properties.bootstrap.servers": "localhost:9092",
            "primary-key": "remainder",
            "key.format": "json",
            "value.format": "json",
            "sink.parallelism": 2,
        })
        query = counts.writeStream.outputMode("update").foreachBatch(sink).start()
    """
    raw = option_texts({**(options or {}), **more})
    for name in INTERNAL & {name.lower() for name in raw}:
        raise OptionError(f"Option '{name}' is for upsert_sink itself: leave it out.")
    warn_once(*check_write_options(raw, format_options))
    # A DDL is read here and not in each batch anew, and may hold options that are upsert_sink's own.
    return UpsertSink(given_options(raw))
