"""What Spark tells the function of ``foreachBatch`` on the driver, and how its calls of a sink are numbered."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sink.spark_task import BATCH_ID, QUERY_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WHAT = "'sink.delivery-guarantee' = 'exactly-once'"


@dataclass(frozen=True)
class RunningBatch:
    """The micro-batch that runs in this thread.

    Args:
        query: Id of the query, which survives restarts.
        run: Id of this run of it.
        batch: Number of the micro-batch.
        plan: What the checkpoint says of it: the same when it runs again.
    """

    query: str
    run: str
    batch: int
    plan: str


def running_batch(rows: DataFrame, batch_id: int) -> RunningBatch:
    """The micro-batch whose rows these are.

    Raises:
        OptionError: None runs in this thread, or it has another number.
    """
    if getattr(rows, "_jdf", None) is None:
        raise OptionError(
            f"{_WHAT} does not work over Spark Connect, which tells neither the function of foreachBatch nor "
            "its tasks which query runs: its markers could not be told from those of other queries. Run the "
            "query in a classic session, or use 'at-least-once'."
        )
    context = rows.sparkSession.sparkContext
    query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if query is None or batch is None:
        raise OptionError(
            f"{_WHAT} writes the batches of streaming queries only, in the thread in which foreachBatch calls: "
            "no query was found to run here. Write other rows 'at-least-once'."
        )
    if int(batch) != batch_id:
        raise OptionError(
            f"upsert_sink was called with batch {batch_id} while batch {batch} runs: {_WHAT} needs the number "
            "that foreachBatch hands over."
        )
    execution = _execution(rows, query)
    return RunningBatch(
        query, str(execution.runId().toString()), batch_id, _plan(execution, batch_id)
    )


def _plan(execution: Any, batch: int) -> str:
    """What the checkpoint says of a batch: it stays when the batch runs again, and is another when it is planned anew."""
    planned = execution.offsetLog().get(batch).get()
    # Offsets alone may be the same: those of a source of files count its own log.
    metadata = planned.productElement(1)  # its name differs from version to version
    return f"{planned.toString()} {metadata.get().batchTimestampMs()}"


def _execution(rows: DataFrame, query: str) -> Any:
    """The running query, as Spark has it, whatever job group is set."""
    session = rows.sparkSession
    id_ = session.sparkContext._jvm.java.util.UUID.fromString(query)  # type: ignore[union-attr]  # noqa: SLF001
    return session._jsparkSession.sharedState().activeStreamingQueries().get(id_)  # noqa: SLF001


class CallNumbers:
    """Numbers the calls of a micro-batch, so that each has transactional ids of its own.

    A batch that runs again numbers them from 0 again: so calls must come in one order, and in one thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[tuple[str, str], tuple[RunningBatch, int, int]] = {}

    def next(self, prefix: str, running: RunningBatch, thread: int) -> int:
        """The number of a call.

        Args:
            prefix: ``sink.transactional-id-prefix``.
            running: The batch.
            thread: The thread that calls.

        Raises:
            OptionError: A call before, of the same batch, came from another thread.
        """
        sink = (prefix, running.query)
        with self._lock:
            batch, first_thread, number = self._last.get(sink, (running, thread, -1))
            if batch != running:
                first_thread, number = thread, -1
            if first_thread != thread:
                raise OptionError(
                    f"upsert_sink was called from two threads for batch {running.batch} with "
                    f"'sink.transactional-id-prefix' = '{prefix}': which of the calls is the first would be "
                    "chance. Call one after the other; in a query that has written nothing yet, a prefix of its own "
                    "for each sink will do too."
                )
            self._last[sink] = (running, thread, number + 1)
            return number + 1
