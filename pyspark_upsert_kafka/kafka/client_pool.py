"""Idle Kafka clients, kept for the next task: opening one costs more than many a task.

A client and its threads belong to the process that opened the client. A forked process has the client without the threads:
to use it there would wait for ever, and to close it too, so a fork leaves it alone.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from pyspark_upsert_kafka.core.closing import undone_on_failure

C = TypeVar("C")

_SIZE = 8
"""Idle clients of a pool at most; each has a few threads and connections of its own."""

_MAX_AGE_S = 300.0
"""How long a client is used. What it learned when it was opened (a topic's configs, a certificate) may change."""


@dataclass(frozen=True, eq=False)
class Lease(Generic[C]):
    """A client that nobody else uses meanwhile.

    Args:
        client: The client.
        settings: What it was opened with; may hold secrets.
        opened_at: When it was opened, by the pool's clock.
    """

    client: C
    settings: Hashable = field(repr=False)
    opened_at: float
    process: int = field(default_factory=os.getpid)


class Pool(Generic[C]):
    """Idle clients by their settings, bounded in number and in age.

    Settings are given with every reference resolved, so that a secret that was changed opens a new client.
    Clients are closed when the pool is used, by whoever uses it: there is no thread for it.

    Args:
        close: Ends a client and its threads.
        size: The most clients that are idle, over all settings; the one used least recently goes first.
        max_age_s: A client opened longer ago is closed rather than used again.
        clock: Seconds that only rise.
    """

    def __init__(
        self,
        close: Callable[[C], object],
        *,
        size: int = _SIZE,
        max_age_s: float = _MAX_AGE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._close, self._size, self._max_age_s, self._clock = close, size, max_age_s, clock
        self._begin()
        _POOLS.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Lease[C]] = []  # the one used least recently first

    def take(self, settings: Hashable, open_: Callable[[], C]) -> Lease[C]:
        """The client with these settings that was used last, or a new one."""
        self._close_surplus()
        with self._lock:
            for at in reversed(range(len(self._idle))):
                if self._idle[at].settings == settings:
                    return self._idle.pop(at)
        return self.open(settings, open_)

    def open(self, settings: Hashable, open_: Callable[[], C]) -> Lease[C]:
        """A new client."""
        return Lease(open_(), settings, self._clock())

    def give_back(self, lease: Lease[C]) -> None:
        """Keeps a client for the next one who takes it."""
        if lease.process != os.getpid():
            let_be(lease)
            return
        with self._lock:
            self._idle.append(lease)
        self._close_surplus()

    def discard(self, lease: Lease[C]) -> None:
        """Ends a client that is of no more use."""
        if lease.process == os.getpid():
            self._close(lease.client)
        else:
            let_be(lease)

    @contextmanager
    def client(self, settings: Hashable, open_: Callable[[], C]) -> Iterator[C]:
        """A client for a while; one that is left with an exception is not used again."""
        lease = self.take(settings, open_)
        with undone_on_failure(partial(self.discard, lease)):
            yield lease.client
        self.give_back(lease)

    def close_idle(self) -> None:
        """Ends every idle client."""
        self._close_all(lambda _: False)

    def _close_surplus(self) -> None:
        oldest = self._clock() - self._max_age_s
        self._close_all(lambda lease: lease.opened_at > oldest)

    def _close_all(self, is_kept: Callable[[Lease[C]], bool]) -> None:
        """Ends the idle clients that are not kept, or too many; outside of the lock, as it may take long."""
        with self._lock:
            kept = [lease for lease in self._idle if is_kept(lease)][-self._size :]
            gone = [lease for lease in self._idle if lease not in kept]
            self._idle = kept
        for lease in gone:
            self._close(lease.client)

    def begin_in_fork(self) -> None:
        """Forgets what the parent process has, whose lock may be held by a thread that is not here."""
        for lease in self._idle:
            let_be(lease)
        self._begin()


_POOLS: weakref.WeakSet[Pool[Any]] = weakref.WeakSet()


def close_idle_clients() -> None:
    """Ends every idle client of this process, of whatever kind."""
    for pool in list(_POOLS):
        pool.close_idle()


def let_be(client: object) -> None:
    """Keeps a client of the parent process, or what holds it, from being ended, also when this process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))


def _begin_in_fork() -> None:
    for pool in list(_POOLS):
        pool.begin_in_fork()


os.register_at_fork(after_in_child=_begin_in_fork)


_EVERY_S = 1.0
"""Seconds between two lookups for each topic: so a producer asks about one topic a second at most."""


class PartitionLookups:
    """Remembers when a producer looked up the partitions of its topics.

    Args:
        topics: How many topics.
        clock: Seconds that only rise.
    """

    def __init__(self, topics: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = topics * _EVERY_S, clock
        self._last_s = clock()

    @property
    def is_due(self) -> bool:
        """Whether the last lookup was so long ago that the next task needs another one."""
        return self._clock() - self._last_s >= self._every_s

    def note(self) -> None:
        """Takes note of a lookup."""
        self._last_s = self._clock()
