"""`ProgressListener`: lag, rows and bad messages of each running query."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TextIO

from pyspark.sql.streaming.listener import StreamingQueryListener

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.positions.progress import QueryBatch, query_batch
from pyspark_upsert_kafka.monitoring.departure import Departure
from pyspark_upsert_kafka.monitoring.totals import QueryTotals

logger = logging.getLogger("pyspark_upsert_kafka")

if TYPE_CHECKING:
    from prometheus_client.registry import Collector
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


_EMPTY_LINE = "\r\x1b[K"
"""Moves to the begin of the line and erases it: Spark leaves the cursor behind its progress bar."""


class ProgressListener(StreamingQueryListener):
    """Reports lag, rows and bad messages of each source of the format ``upsert-kafka`` in running queries.

    It reads what Spark reports after a micro-batch, and sends no requests to brokers. Queries without such a source are
    ignored. It works in a classic session and over Spark Connect, where it runs in the client.

    Args:
        print_to: Where one line for each micro-batch is written; None = nowhere. On a terminal the line replaces Spark's
            progress bar, which Spark draws again below it.

    Example:
        ```python
        listener = ProgressListener(print_to=sys.stdout)
        spark.streams.addListener(listener)
        ```
    """

    def __init__(self, print_to: TextIO | None = None) -> None:
        self._print_to = print_to
        self._queries: Mapping[str, QueryTotals] = {}
        self._has_departure = False

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
            from pyspark_upsert_kafka.monitoring.metrics import Metrics
        except ImportError:
            raise OptionError(
                "Metrics need a package that is not installed: "
                "pip install 'pyspark-upsert-kafka[metrics]'"
            ) from None
        return Metrics(self._totals)

    def _totals(self) -> Iterable[QueryTotals]:
        return self._queries.values()

    def onQueryStarted(self, _: QueryStartedEvent) -> None:
        """Nothing is known yet."""
        if not self._has_departure:
            self._has_departure = True
            Departure.prepare(self)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Called by Spark; stores the numbers of a finished micro-batch, and prints its line."""
        batch = query_batch(json.loads(event.progress.json))
        if not batch.sources:
            return
        before = self._queries.get(batch.query_id)
        totals = QueryTotals.first(batch) if before is None else before.followed_by(batch)
        # Replaced and never changed: another thread may be reading it for Prometheus.
        self._queries = {**self._queries, batch.query_id: totals}
        if self._print_to is not None:
            self._print(self._print_to, f"{batch}\n")

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
        """Called by Spark; removes the numbers of the query."""
        ended = str(event.id)
        self._queries = {query: each for query, each in self._queries.items() if query != ended}


def _is_terminal(file: TextIO) -> bool:
    """Whether the file is a terminal. An object that is not a real file may lack the method."""
    return hasattr(file, "isatty") and file.isatty()
