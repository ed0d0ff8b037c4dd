"""What is done at the end also where something has failed: an error in that never takes the place of the first one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

logger = logging.getLogger("pyspark_upsert_kafka")


class Closeable(Protocol):
    """Something with a method `close`."""

    def close(self) -> object:
        """Ends it."""


C = TypeVar("C", bound=Closeable)


@contextmanager
def undone_on_failure(undo: Callable[[], object], what: object = "a request") -> Iterator[None]:
    """A context that calls a function when it is left with an exception, which is raised whatever the function does.

    Args:
        undo: Takes back what was begun, or closes it; an error of it is logged.
        what: What fails then, for the log.
    """
    try:
        yield
    except BaseException:
        try:
            undo()
        except Exception:
            logger.exception("After %s had failed, closing what was open failed too:", what)
        raise


@contextmanager
def closing(thing: C) -> Iterator[C]:
    """As `contextlib.closing`, but an error while closing is only logged after another one."""
    with undone_on_failure(thing.close):
        yield thing
    thing.close()
