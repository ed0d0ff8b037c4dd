"""How time, CPU time and memory of a snapshot follow from its size: a line for each, made from three small reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Size:
    """What is read.

    Args:
        messages: Messages in the topic.
        keys: Keys of the table.
        tasks: Tasks that read it; here each has one Kafka partition.
    """

    messages: int
    keys: int
    tasks: int

    @property
    def keys_of_a_task(self) -> float:
        """Keys of one task."""
        return self.keys / self.tasks


@dataclass(frozen=True)
class Read:
    """A read that was measured.

    Args:
        size: What was read.
        seconds: How long it took.
        core_s: CPU time of the Python workers and Spark's JVM, in core-seconds.
        worker_mb: The most memory of one Python worker.
    """

    size: Size
    seconds: float
    core_s: float
    worker_mb: float

    @classmethod
    def of(cls, found: dict) -> Read:
        """A read as it is kept in the file of measurements."""
        return cls(**{**found, "size": Size(**found["size"])})


@dataclass(frozen=True)
class Line:
    """A quantity that has a fixed part, a part for each message and a part for each task."""

    fixed: float
    per_message: float
    per_task: float

    def at(self, size: Size) -> float:
        """The quantity of a size."""
        return self.fixed + self.per_message * size.messages + self.per_task * size.tasks


@dataclass(frozen=True)
class Model:
    """What a snapshot takes.

    Args:
        seconds: Time on the machine on which it was measured.
        core_s: CPU time, in core-seconds.
        worker_mb: Memory of a worker before it holds keys.
        mb_per_key: Memory for each key of its task.
    """

    seconds: Line
    core_s: Line
    worker_mb: float
    mb_per_key: float

    def read(self, size: Size) -> Read:
        """What the model says of a size."""
        memory = self.worker_mb + self.mb_per_key * size.keys_of_a_task
        return Read(size, self.seconds.at(size), self.core_s.at(size), memory)


def fitted(reads: Sequence[Read]) -> Model:
    """The model of three or more reads, of different messages and different tasks.

    >>> sizes = [Size(10, 10, 1), Size(10, 10, 2), Size(20, 20, 1)]
    >>> reads = [Read(s, 1 + s.messages * 2, 3.0 * s.tasks, 300 + s.keys_of_a_task) for s in sizes]
    >>> model = fitted(reads)
    >>> round(model.read(Size(100, 50, 5)).seconds), round(model.read(Size(100, 50, 5)).worker_mb)
    (201, 310)
    """
    sizes = [read.size for read in reads]
    shape = [[1.0, size.messages, size.tasks] for size in sizes]
    base, per_key = solved(
        [[1.0, size.keys_of_a_task] for size in sizes], [r.worker_mb for r in reads]
    )
    return Model(
        Line(*solved(shape, [read.seconds for read in reads])),
        Line(*solved(shape, [read.core_s for read in reads])),
        base,
        per_key,
    )


def solved(shape: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """The factors that fit best."""
    factors, *_ = np.linalg.lstsq(np.array(shape), np.array(values), rcond=None)
    return [float(factor) for factor in factors]


def error_percent(model: float, measured: float) -> float:
    """By how much the model is above (+) or below (-) what was measured.

    >>> error_percent(110.0, 100.0)
    10.0
    """
    return round(100 * (model - measured) / measured, 1)


def as_dict(read: Read) -> dict:
    """A read as it is kept in the file of measurements."""
    return asdict(read)
