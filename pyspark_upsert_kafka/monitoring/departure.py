"""A listener takes its leave when the program ends: Spark's JVM lives a little longer, and would call a Python that has gone."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener

_LAST_EVENTS_MS = 2_000
"""How long events that are on their way may take."""


def leave(listener: StreamingQueryListener) -> None:
    """Removes a listener from the session, after the events that are on their way to it.

    A session that was stopped before has nothing left to report. Over Spark Connect the listener runs in the client, and
    nobody calls it from outside.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    if is_remote():
        return
    with suppress(Py4JError, OSError):  # the JVM has ended before, or is busy
        session = SparkSession.getActiveSession()
        if session is not None:
            events = session.sparkContext._jsc.sc().listenerBus()
            with suppress(Py4JError):  # so busy that there are always more
                events.waitUntilEmpty(_LAST_EVENTS_MS)
            session.streams.removeListener(listener)
            events.waitUntilEmpty(_LAST_EVENTS_MS)
