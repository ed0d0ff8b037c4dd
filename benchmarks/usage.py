"""CPU time and memory of Spark's Python workers, its JVM and the broker while a job runs."""

from __future__ import annotations

import contextlib
import os
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from typing_extensions import Self

KINDS = ("worker", "JVM", "broker")


class Sampler(ABC):
    """Looks at processes again and again, in a thread, while the context lasts.

    Args:
        every_s: Seconds between two looks.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self.look(first=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self.look()

    def _watch(self) -> None:
        while not self._end.wait(self._every_s):
            self.look()

    @abstractmethod
    def look(self, *, first: bool = False) -> None:
        """Notes what the processes hold now."""


class Usage(Sampler):
    """CPU of each kind of process, the most memory of one worker, and by how much Spark's JVM grew, while the context lasts."""

    def __init__(self) -> None:
        super().__init__(every_s=0.1)
        self.seconds = dict.fromkeys(KINDS, 0.0)
        self.peak_worker_bytes = 0
        self.jvm_growth_bytes = 0
        self._jvm_bytes: dict[int, int] = {}
        self._seen: dict[int, float] = {}

    def look(self, *, first: bool = False) -> None:
        """Adds the CPU time since the last look."""
        for process in psutil.Process(os.getpid()).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                kind, times = _kind(process), process.cpu_times()
                used = times.user + times.system
                # A worker that was not there at first has used all of it in the meantime.
                self.seconds[kind] += 0 if first else used - self._seen.get(process.pid, 0.0)
                self._seen[process.pid] = used
                memory = process.memory_info().rss
                if kind == "worker":
                    self.peak_worker_bytes = max(self.peak_worker_bytes, memory)
                elif kind == "JVM":
                    grown = memory - self._jvm_bytes.setdefault(process.pid, memory)
                    self.jvm_growth_bytes = max(self.jvm_growth_bytes, grown)


def _kind(process: psutil.Process) -> str:
    command = " ".join(process.cmdline())
    if process.name().startswith("python"):
        return "worker"
    # A child that the JVM has just forked counts as the JVM: for a moment it has its memory.
    return "broker" if "kafka.Kafka" in command else "JVM"
