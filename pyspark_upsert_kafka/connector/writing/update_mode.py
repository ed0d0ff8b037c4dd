"""`upsert_sink`: writes each micro-batch as a batch, since Spark has no output mode ``update`` for Python sinks.

What Spark tells the function of ``foreachBatch`` on the driver, and how its calls of a sink are numbered, stands first.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.spark_task import BATCH_ID, QUERY_ID
from pyspark_upsert_kafka.connector.writing.delivery import prepare, transactions
from pyspark_upsert_kafka.connector.writing.row_order import arranged, distributing
from pyspark_upsert_kafka.connector.writing.sink_warnings import (
    check_speculation,
    gives_times,
    warn_unless_compacted,
)
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import OptionError, warn_once
from pyspark_upsert_kafka.core.masking import is_secret, masked
from pyspark_upsert_kafka.core.options.catalog import (
    CALL,
    FROM_UPSERT_SINK,
    INTERNAL,
    OPTIONS,
    Given,
)
from pyspark_upsert_kafka.core.options.frozen_options import WriteOptions
from pyspark_upsert_kafka.core.options.given import as_spark_passes_on, given_options, option_texts
from pyspark_upsert_kafka.core.options.write import check_write_options, write_options
from pyspark_upsert_kafka.core.receipts import Call, digest
from pyspark_upsert_kafka.core.table import Table, table_to_write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WHAT = "'sink.delivery-guarantee' = 'exactly-once'"


@dataclass(frozen=True)
class RunningBatch:
    """The micro-batch that runs in this thread.

    Its calls come in this thread only, so they come in one order.

    Args:
        query: Id of the query, which survives restarts.
        run: Id of this run of it.
        batch: Number of the micro-batch.
        entry: What the checkpoint says of it: the same when it runs again.
    """

    query: str
    run: str
    batch: int
    entry: str


def running_batch(rows: DataFrame, batch_id: int) -> RunningBatch:
    """The micro-batch whose rows these are.

    Raises:
        OptionError: None runs in this thread, or it has another number, or this is not the thread in which
            foreachBatch calls.
    """
    if getattr(rows, "_jdf", None) is None:
        raise OptionError(
            f"{_WHAT} does not work over Spark Connect, which tells neither the function of foreachBatch nor "
            "its tasks which query runs: its receipts could not be told from those of other queries. Run the "
            "query in a classic session, or use 'at-least-once'."
        )
    context = rows.sparkSession.sparkContext
    query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if query is None or batch is None:
        raise OptionError(
            f"{_WHAT} writes the batches of streaming queries only, in the thread in which foreachBatch calls: "
            "this thread runs no streaming query. Write other rows 'at-least-once'."
        )
    if int(batch) != batch_id:
        raise OptionError(
            f"upsert_sink was called with batch {batch_id} while batch {batch} runs: {_WHAT} needs the number "
            "that foreachBatch passes to its function."
        )
    execution = _execution(rows, query)
    if execution is None or not _calls_here(rows, execution):
        raise OptionError(
            f"upsert_sink was called for batch {batch_id} from another thread than the one in which foreachBatch calls, and "
            f"{_WHAT} needs that one: the order of threads is random, and a batch that runs again could swap "
            "what they write. Nothing of this call was written. Call the sinks one after the other in the function of "
            "foreachBatch; tasks run at the same time by 'sink.parallelism', and sinks in queries of their own."
        )
    return RunningBatch(
        query, str(execution.runId().toString()), batch_id, _entry(execution, batch_id)
    )


def _entry(execution: Any, batch: int) -> str:
    """What the checkpoint says of a batch: the same when the batch runs again, another one when Spark plans the batch again."""
    planned = execution.offsetLog().get(batch).get()
    # Offsets alone may be the same: those of a source of files count its own log.
    metadata = planned.productElement(1)  # its name differs from version to version
    if metadata.getClass().getSimpleName() == "Some":  # not where sources have names
        metadata = metadata.get()
    return f"{planned.toString()} {metadata.batchTimestampMs()}"


def _execution(rows: DataFrame, query: str) -> Any:
    """The running query, as Spark knows it, whatever job group is set."""
    session = rows.sparkSession
    id_ = session.sparkContext._jvm.java.util.UUID.fromString(query)  # type: ignore[union-attr]  # noqa: SLF001
    return session._jsparkSession.sharedState().activeStreamingQueries().get(id_)  # noqa: SLF001


def _calls_here(rows: DataFrame, execution: Any) -> bool:
    """Whether this is the thread of the running query.

    A thread that the user has started is another one in the JVM too, also if it has inherited the local properties.
    """
    jvm: Any = rows.sparkSession.sparkContext._jvm  # noqa: SLF001
    return bool(execution.queryExecutionThread().equals(jvm.java.lang.Thread.currentThread()))


@dataclass(frozen=True)
class SinkCall:
    """What a call of `upsert_sink` writes, and as what.

    Args:
        prefix: ``sink.transactional-id-prefix``.
        sink: What the sink is; see ``connector/writing/update_mode.py``.
        servers: The brokers that it writes to.
        rows_hash: A hash of the rows' query plan, which tells rows apart within a batch.
    """

    prefix: str
    sink: str
    servers: str
    rows_hash: int


@dataclass(frozen=True)
class Numbered:
    """The number of a call in its batch.

    Args:
        number: From 0.
        is_known_by_it: Whether only the number distinguishes the call from one before it.
    """

    number: int
    is_known_by_it: bool = False


@dataclass
class _Calls:
    """The calls of a micro-batch with one prefix."""

    batch: RunningBatch
    calls: list[SinkCall] = field(default_factory=list)
    last_has_failed: bool = False

    def add(self, call: SinkCall) -> Numbered:
        """Numbers a call, which has failed until it is known that it has not."""
        if self.last_has_failed:
            raise OptionError(
                f"upsert_sink has failed in batch {self.batch.batch} and is called in it once more with "
                f"'sink.transactional-id-prefix' = '{call.prefix}', which could write again what the call that failed has "
                "written. Let its error end the batch: when the batch runs again, it is finished."
            )
        is_known_by_it = any(_differ_in_number_only(call, other) for other in self.calls)
        self.calls.append(call)
        self.last_has_failed = True
        return Numbered(len(self.calls) - 1, is_known_by_it)


class CallNumbers:
    """Numbers the calls of a micro-batch, so that each has transactional ids of its own.

    A batch that runs again numbers them from 0 again: so calls must come in one order.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[tuple[str, str], _Calls] = {}

    @contextmanager
    def numbered(self, call: SinkCall, running: RunningBatch) -> Iterator[Numbered]:
        """The number of a call, from 0 in each batch; when it fails, no other one may follow in the batch.

        Raises:
            OptionError: A call before has failed, and the batch goes on.
        """
        calls = self._calls(call.prefix, running)
        yield calls.add(call)
        calls.last_has_failed = False

    def _calls(self, prefix: str, running: RunningBatch) -> _Calls:
        key = (prefix, running.query)
        with self._lock:
            found = self._last.get(key)
            if found is None or found.batch != running:
                found = self._last[key] = _Calls(running)
            return found


def _differ_in_number_only(call: SinkCall, other: SinkCall) -> bool:
    """Whether receipts would not tell two calls of a batch apart if they changed places.

    Calls that write the same rows may do so. Receipts at other brokers are not seen at all.
    """
    if call.servers != other.servers:
        return True
    return call.sink == other.sink and call.rows_hash != other.rows_hash


_OURS = ("sink.parallelism", "sequence-by")

_ACCESS = (".url", ".descriptor-file", "-auth.credentials-source")
"""How options of formats end that say where something is and how to get it, which may change."""

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
        has_times = gives_times(table_to_write(rows.schema, options))
        warn_unless_compacted(options.table, has_times=has_times)
        in_order, order = arranged(rows, options)
        given = as_spark_passes_on(self.raw)
        passed_on = {name: value for name, value in given.items() if name not in _OURS}
        passed_on[FROM_UPSERT_SINK.name] = order
        check_speculation(setting, options)
        if options.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            with _prepared(rows, batch_id, options, self.raw) as call:
                _write(in_order, {**passed_on, CALL.name: call.to_text()})
        else:
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
        call = Call(
            prefix, running.query, numbered.number, batch_id, tasks, topics, content, sink, digest(*_options(raw, options))
        )  # fmt: skip
        yield prepare(call, transactions(options), may_begin=not numbered.is_known_by_it)


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


def sink_identity(
    raw: Mapping[str, str], options: WriteOptions, rows: StructType, table: Table
) -> str:
    """A digest of what a sink is, the same after a restart.

    It leaves out what may change while a batch is half written: the client's properties, the number of tasks, the
    buffer, addresses and credentials. The topics and the number of tasks are in a receipt anyway.

    Args:
        raw: The options as they were given, by their names in lower case.
        options: The same, as frozen values.
        rows: The columns of the rows that are written.
        table: What they are written as.
    """
    return digest(*_options(raw, options), *_columns(rows.fields), *_columns(table.physical))


def _options(raw: Mapping[str, str], options: WriteOptions) -> list[str]:
    of_table = options.table
    key_format = "" if of_table.key_format is None else of_table.key_format.name
    return [
        *of_table.primary_key, key_format, of_table.value_format.name, of_table.key_prefix,
        str(of_table.value_holds_key), *(f"{name} {key}" for name, key in of_table.metadata),
        options.sequence_by or "", *_format_options(raw),
    ]  # fmt: skip


def _format_options(raw: Mapping[str, str]) -> list[str]:
    return [
        f"{name}={raw[name]}"
        for name in sorted(raw)
        if name.startswith(("key.", "value."))
        and name not in OPTIONS
        and not is_secret(name)
        and not name.endswith(_ACCESS)
        and ".ssl." not in name
    ]


def _columns(fields: tuple[StructField, ...] | list[StructField]) -> list[str]:
    """Names and types, without NOT NULL, which changes nothing of a row."""
    return [f"{field.name.lower()} {field.dataType.simpleString()}" for field in fields]
