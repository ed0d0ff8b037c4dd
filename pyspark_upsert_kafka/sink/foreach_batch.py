"""What Spark tells the function of ``foreachBatch`` on the driver, and how its calls of a sink are numbered."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """

    query: str
    run: str
    batch: int


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
    return RunningBatch(query, _run_of(rows, query), batch_id)


def _run_of(rows: DataFrame, query: str) -> str:
    """Id of the run of a query, as Spark has it, whatever job group is set."""
    session = rows.sparkSession
    id_ = session.sparkContext._jvm.java.util.UUID.fromString(query)  # type: ignore[union-attr]  # noqa: SLF001
    execution = session._jsparkSession.sharedState().activeStreamingQueries().get(id_)  # noqa: SLF001
    return str(execution.runId().toString())


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
                    "chance. Give each sink a prefix of its own, or call one after the other."
                )
            self._last[sink] = (running, thread, number + 1)
            return number + 1
