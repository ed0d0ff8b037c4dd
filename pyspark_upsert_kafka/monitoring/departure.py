"""A listener takes its leave when the program ends: Spark's JVM lives a little longer, and would call a Python that has gone."""

from __future__ import annotations

import atexit
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

_LAST_EVENTS_MS = 2_000
"""How long events that are on their way may take."""

_LONGEST_S = 10.0


class Departure(threading.Thread):
    """Removes a listener from its session when the program ends, after the events that are on their way to it.

    It is a thread from the beginning, since none can be started when Python ends, and the main thread's connection to the JVM
    may be in the middle of a call that Ctrl-C has cut off.
    """

    def __init__(self, listener: StreamingQueryListener, session: SparkSession) -> None:
        super().__init__(name="departure of a ProgressListener", daemon=True)
        self._listener, self._session = listener, session
        self._is_due = threading.Event()

    @classmethod
    def prepare(cls, listener: StreamingQueryListener) -> None:
        """Within an event of the listener; over Spark Connect nobody calls it from outside."""
        from pyspark.sql import SparkSession
        from pyspark.sql.utils import is_remote

        session = None if is_remote() else SparkSession.getActiveSession()
        if session is not None:
            departure = cls(listener, session)
            departure.start()
            atexit.register(departure.leave)

    def leave(self) -> None:
        """Removes it, and waits for that."""
        self._is_due.set()
        self.join(_LONGEST_S)

    def run(self) -> None:
        """The thread."""
        self._is_due.wait()
        context = self._session.sparkContext._jsc  # noqa: SLF001 - Spark offers no other way
        if context is None:  # a session that was stopped has nothing left to report
            return
        with suppress(Py4JError, OSError):  # the JVM has ended before, or is too busy
            events = context.sc().listenerBus()
            with suppress(Py4JError):
                events.waitUntilEmpty(_LAST_EVENTS_MS)
            self._session.streams.removeListener(self._listener)
            events.waitUntilEmpty(_LAST_EVENTS_MS)
