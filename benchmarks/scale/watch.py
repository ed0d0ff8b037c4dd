"""What Spark's processes and the broker hold at most while a job runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import psutil
from usage import Sampler

KINDS = ("worker", "planner", "JVM", "executor", "broker")
_ASKED_FOR_CONNECTIONS = ("worker", "planner")


@dataclass
class Most:
    """The most that one process of a kind held, and the CPU time of all of them.

    Args:
        memory_mb: Resident memory, in MB of a million bytes.
        threads: Threads.
        files: Open files, sockets among them.
        connections: Connections to brokers and to Spark; 0 = they were not counted.
        core_s: CPU time of all processes of the kind, in core-seconds.
    """

    memory_mb: float = 0.0
    threads: int = 0
    files: int = 0
    connections: int = 0
    core_s: float = 0.0


class Watch(Sampler):
    """Looks at all processes that this one has started, twice a second, while the context lasts."""

    def __init__(self) -> None:
        super().__init__(every_s=0.5)
        self.most = {kind: Most() for kind in KINDS}
        self._used: dict[int, float] = {}

    def results(self) -> dict[str, dict[str, float]]:
        """What was seen, by kind of process; kinds without a process are left out."""
        return {kind: asdict(most) for kind, most in self.most.items() if most.memory_mb}

    def look(self, *, first: bool = False) -> None:
        """Keeps the most of each kind, and adds the CPU time since the last look."""
        for kind, process in processes():
            with contextlib.suppress(psutil.Error):  # it ended while it was looked at
                self._add(kind, process, first=first)

    def _add(self, kind: str, process: psutil.Process, *, first: bool) -> None:
        most, times = self.most[kind], process.cpu_times()
        used = times.user + times.system
        most.core_s += 0.0 if first else used - self._used.get(process.pid, 0.0)
        self._used[process.pid] = used
        most.memory_mb = max(most.memory_mb, process.memory_info().rss / 1e6)
        most.threads = max(most.threads, process.num_threads())
        most.files = max(most.files, process.num_fds())
        if kind in _ASKED_FOR_CONNECTIONS:
            most.connections = max(most.connections, len(process.net_connections("tcp")))


def processes() -> Iterator[tuple[str, psutil.Process]]:
    """The processes that this one has started, each with its kind."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            kind = kind_of(process.name(), " ".join(process.cmdline()))
            if kind is not None:
                yield kind, process


def kind_of(name: str, command: str) -> str | None:
    """Which kind of process it is; None = none of ours.

    >>> kind_of("python3.11", "python -m pyspark.daemon pyspark.worker")
    'worker'
    >>> kind_of("python3.11", "python -m pyspark.sql.streaming.python_streaming_source_runner")
    'planner'
    """
    if "kafka.Kafka" in command:
        return "broker"
    if "CoarseGrainedExecutorBackend" in command:
        return "executor"
    # A child that the JVM has just forked has its command for a moment.
    if name == "java":
        return "JVM" if "SparkSubmit" in command else None
    if not name.startswith("python") or "pyspark" not in command:
        return None
    return "worker" if "pyspark.daemon pyspark.worker" in command else "planner"
