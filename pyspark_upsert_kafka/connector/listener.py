"""Runs of queries: when Spark last reported on each, and how many have failed."""

from __future__ import annotations

import atexit
import json
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.utils import is_remote

from pyspark_upsert_kafka.connector.reported_writes import WrittenBatches
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.positions.progress import QueryBatch, QueryTotals, query_batch

if TYPE_CHECKING:
    from prometheus_client.registry import Collector
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

logger = logging.getLogger("pyspark_upsert_kafka")


@dataclass(frozen=True)
class QueryRuns:
    """The runs of a query in this program.

    Args:
        name: The query's name; without one its id.
        query_id: The query's id, which a restart keeps.
        reported_at: When Spark last reported a micro-batch, or that there was nothing to do, in seconds since 1970; None =
            the query does not run.
        failures: How many of its runs have ended with an error.
    """

    name: str
    query_id: str
    reported_at: float | None = None
    failures: int = 0

    def reported(self, at: float) -> QueryRuns:
        """After a report of Spark.

        >>> QueryRuns("copy", "7").reported(12.5)
        QueryRuns(name='copy', query_id='7', reported_at=12.5, failures=0)
        """
        return replace(self, reported_at=at)

    def ended(self, *, with_error: bool) -> QueryRuns:
        """After the end of a run.

        >>> QueryRuns("copy", "7", 12.5, failures=1).ended(with_error=True)
        QueryRuns(name='copy', query_id='7', reported_at=None, failures=2)
        """
        return replace(self, reported_at=None, failures=self.failures + with_error)


_EMPTY_LINE = "\r\x1b[K"
"""Moves to the begin of the line and erases it: Spark leaves the cursor behind its progress bar."""


_LAST_EVENTS_MS = 2_000
"""How long events that are on their way may take."""

_LONGEST_S = 10.0
_SERVER_S = 30.0
"""How long a program that ends waits for a server of Spark Connect, which may have gone."""


class ProgressListener(StreamingQueryListener):
    """Reports lag, rows and bad messages of each source of the format ``upsert-kafka`` in running queries, and what sinks wrote.

    It reads what Spark reports after a micro-batch, and sends no requests to brokers. Queries without such a source or sink are
    ignored. It works in a classic session and over Spark Connect, where it runs in the client. What sinks wrote is known where
    the listener runs on the driver's machine.

    Args:
        print_to: Where one line for each micro-batch is written; None = nowhere. On a terminal the line replaces Spark's
            progress bar, which Spark draws again below it.

    Example::

        import sys

        from pyspark_upsert_kafka import ProgressListener

        listener = ProgressListener(print_to=sys.stdout)
        spark.streams.addListener(listener)
    """

    def __init__(self, print_to: TextIO | None = None) -> None:
        self._print_to = print_to
        self._queries: Mapping[str, QueryTotals] = {}
        self._written = WrittenBatches()
        self._runs: Mapping[str, QueryRuns] = {}
        self._is_removed_at_exit = False
        _RemovalFromClient.prepare(self)

    @property
    def batches(self) -> Mapping[str, QueryBatch]:
        """The newest micro-batch of each running query, by the query's id."""
        return {query: totals.newest for query, totals in self._queries.items()}

    @property
    def metrics(self) -> Collector:
        """The same numbers for Prometheus: ``prometheus_client.REGISTRY.register(listener.metrics)``.

        Raises:
            OptionError: The package ``prometheus_client`` is missing.
        """
        try:
            from pyspark_upsert_kafka.connector.listener_metrics import Metrics
        except ImportError:
            raise OptionError(
                "Metrics need a package that is not installed: "
                "pip install 'pyspark-upsert-kafka[metrics]'"
            ) from None
        return Metrics(self._totals, self._all_runs)

    def _totals(self) -> Iterable[QueryTotals]:
        return self._queries.values()

    def _all_runs(self) -> Iterable[QueryRuns]:
        return self._runs.values()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Called by Spark before the first micro-batch; has sinks report what they write."""
        self._written.open(str(event.runId))
        if not self._is_removed_at_exit:
            self._is_removed_at_exit = True
            _RemovalAtExit.prepare(self)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Called by Spark; stores the numbers of a finished micro-batch, and prints its line."""
        progress = json.loads(event.progress.json)
        run = progress["runId"]
        self._written.open(run)  # where the listener was added after the query's start
        batch = query_batch(progress, self._written.take(run, progress["batchId"]))
        before = self._queries.get(batch.query_id)
        if not batch.sources and batch.written is None and (before is None or before.sources):
            return
        totals = QueryTotals.first(batch) if before is None else before.followed_by(batch)
        # Replaced and never changed: another thread may be reading it for Prometheus.
        self._queries = {**self._queries, batch.query_id: totals}
        runs = self._runs.get(batch.query_id) or QueryRuns(batch.name, batch.query_id)
        self._runs = {**self._runs, batch.query_id: runs.reported(time.time())}
        if self._print_to is not None:
            self._print(self._print_to, f"{batch}\n")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Called by Spark every ten seconds while a query finds nothing to do."""
        runs = self._runs.get(str(event.id))
        if runs is not None:
            self._runs = {**self._runs, runs.query_id: runs.reported(time.time())}

    def _print(self, file: TextIO, line: str) -> None:
        """Writes a line. After an error nothing more is written, because a listener of Spark must not fail."""
        encoding = getattr(file, "encoding", None) or "utf-8"
        try:
            if _is_terminal(file):
                file.write(_EMPTY_LINE)
            file.write(line.encode(encoding, "backslashreplace").decode(encoding))
            file.flush()
        except (OSError, ValueError) as error:  # ValueError: the file is closed
            self._print_to = None
            logger.warning("ProgressListener prints no more lines: %s", error)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Called by Spark; removes the numbers of the query, but not how often it failed."""
        ended = str(event.id)
        self._written.close(str(event.runId))
        self._queries = {query: each for query, each in self._queries.items() if query != ended}
        runs = {query: each for query, each in self._runs.items() if query != ended}
        before = self._runs.get(ended)
        after = before and before.ended(with_error=event.exception is not None)
        self._runs = {**runs, ended: after} if after and after.failures else runs


def _is_terminal(file: TextIO) -> bool:
    """Whether the file is a terminal. An object that is not a real file may lack the method."""
    return hasattr(file, "isatty") and file.isatty()


class _RemovalAtExit(threading.Thread):
    """Removes a listener from its session when the program ends, after the events that are on their way to it.

    It is a thread from the beginning, since none can be started when Python ends, and the main thread's connection to the JVM
    may be in the middle of a call that Ctrl-C has cut off.
    """

    def __init__(self, listener: StreamingQueryListener, session: SparkSession) -> None:
        super().__init__(name="removal of a ProgressListener", daemon=True)
        self._listener, self._session = listener, session
        self._is_due = threading.Event()

    @classmethod
    def prepare(cls, listener: StreamingQueryListener) -> None:
        """Within an event of the listener; over Spark Connect nobody calls it from outside."""
        session = None if is_remote() else SparkSession.getActiveSession()
        if session is not None:
            removal = cls(listener, session)
            removal.start()
            atexit.register(removal.remove)

    def remove(self) -> None:
        """Removes it, and waits for that."""
        self._is_due.set()
        self.join(_LONGEST_S)

    def run(self) -> None:
        """The thread."""
        self._is_due.wait()
        context = self._session.sparkContext._jsc  # noqa: SLF001 - Spark offers no other way
        if context is None:  # a session that was stopped has nothing left to report
            return
        from py4j.protocol import Py4JError  # type: ignore[import-untyped] # a client of Spark Connect may lack it

        with suppress(Py4JError, OSError):  # the JVM has ended before, or is too busy
            events = context.sc().listenerBus()
            with suppress(Py4JError):
                events.waitUntilEmpty(_LAST_EVENTS_MS)
            self._session.streams.removeListener(self._listener)
            events.waitUntilEmpty(_LAST_EVENTS_MS)


class _RemovalFromClient(threading.Thread):
    """Removes a listener from a session of Spark Connect when the main thread ends, also with an exception.

    The client has a thread that waits for the server's events until its last listener is removed, and Python waits for that thread
    before it calls what is registered with ``atexit``. So a program that fails would never end. Python first ends the pools of
    threads that the client's requests need: it calls in turn what was registered to end before threads, the last one first.
    """

    def __init__(self, listener: StreamingQueryListener) -> None:
        super().__init__(name="removal of a ProgressListener from a client", daemon=True)
        self._listener = listener
        self._is_due = threading.Event()

    @classmethod
    def prepare(cls, listener: StreamingQueryListener) -> None:
        """When a listener is made: over Spark Connect nobody calls it from outside."""
        removal = cls(listener)
        removal.start()
        import concurrent.futures.thread  # noqa: F401 - which registers the end of its pools: before this one

        threading._register_atexit(removal.remove)  # type: ignore[attr-defined] # noqa: SLF001 - Python has no other way

    def remove(self) -> None:
        """Removes it, and waits for that, unless the server does not answer."""
        self._is_due.set()
        self.join(_SERVER_S)

    def run(self) -> None:
        """The thread."""
        self._is_due.wait()
        if not is_remote():
            return
        with suppress(
            PySparkException
        ):  # every session has been stopped, and its listeners are removed
            SparkSession.active().streams.removeListener(self._listener)
