"""What Spark tells the function of ``foreachBatch`` on the driver, and how its calls of a sink are numbered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.spark_task import BATCH_ID, QUERY_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
        sink: What the sink is; see ``core/delivery/sink_identity.py``.
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
