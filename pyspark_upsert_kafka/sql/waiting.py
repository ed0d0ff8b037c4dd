"""Waits for the streams of a script, and stops them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING

from pyspark_upsert_kafka.sql.checkpoint_use import release

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_S = 0.2


def wait(queries: Sequence[StreamingQuery], timeout: float | None) -> bool:
    """Waits until all queries have ended, or for so many seconds.

    Returns:
        Whether all have ended.

    Raises:
        StreamingQueryException: One has failed; the others are stopped then.
    """
    end = None if timeout is None else time.monotonic() + timeout
    try:
        while any(query.isActive for query in queries):
            _raise_failure(queries)
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(_POLL_S)
        _raise_failure(queries)
    except BaseException:
        stop(queries)
        raise
    release(queries)
    return True


def stop(queries: Sequence[StreamingQuery]) -> None:
    """Stops those of the queries that run.

    Other threads do it, since each has a connection to the JVM of its own: on this thread's, Ctrl-C may have left an answer
    that is not read.
    """
    with ThreadPool(1) as pool:
        pool.map(lambda query: query.stop(), queries)
    release(queries)


def _raise_failure(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        error = query.exception()
        if error is not None:
            raise error
