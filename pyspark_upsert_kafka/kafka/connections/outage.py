"""Brokers that are all away: how long a query that has run waits for them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable

logger = logging.getLogger("pyspark_upsert_kafka")

_WARN_S = 30.0


class Outage:
    """The time in which no broker answers a client at all; one that answers with an error is not away.

    A process that waits does not notice that Spark has ended, which started it. So it looks at its parent process, and
    waits no longer when that is another one.

    Args:
        limit_s: How long brokers are waited for, in seconds; 0 = no longer than for any answer.
        clock: Seconds that only rise.
        parent: The process that has started this one; when that has gone, it is another.
    """

    def __init__(
        self,
        limit_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        parent: Callable[[], int] = os.getppid,
    ) -> None:
        self.limit_s, self._clock, self._parent = limit_s, clock, parent
        self._started_by = parent()
        self._since: float | None = None
        self._warned_at: float | None = None

    def goes_on(self, servers: str, seen: str) -> bool:
        """Whether brokers are waited for any longer, now that none has answered; a warning is logged every 30 seconds.

        Args:
            servers: The bootstrap servers.
            seen: What the client says.
        """
        now = self._clock()
        self._since = now if self._since is None else self._since
        lasted_s = now - self._since
        if lasted_s >= self.limit_s or self._parent() != self._started_by:
            return False
        if now - (self._warned_at or self._since) >= _WARN_S:
            self._warned_at = now
            logger.warning(
                "No Kafka broker at %r has answered for %.0f seconds (%s). The query waits for them up to %g seconds "
                "('scan.outage.timeout'), and then ends.",
                servers, lasted_s, seen, self.limit_s,
            )  # fmt: skip
        return True

    def end(self) -> None:
        """Takes note that a broker has answered."""
        if self._warned_at is not None and self._since is not None:
            logger.warning(
                "A Kafka broker answers again, after %.0f seconds.", self._clock() - self._since
            )
        self._since = self._warned_at = None
