"""What the long tests with faults share: `make histories`, `make kills`, `make reruns`, `make soak` and `make stress`.

Each does one thing many times while something fails, and compares what is there with what was sent. The last line is the verdict.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from pyspark.sql import SparkSession

from tools.spark_home import spark_home
from tools.verdict import Held, verdict

_PATIENCE_S = 60.0
_WORKERS = Path(__file__).parents[1] / "tests" / "spark_workers"


class BrokenRuleError(Exception):
    """A rule does not hold: what was seen instead."""


def repeated(name: str, proof: Callable[[int, int], Held], times: int) -> int:
    """The program ``python -m tools.NAME [TIMES [SEED]]``; returns its exit code.

    Args:
        name: What is proved.
        proof: The whole of it, so many times, with choices that follow from a seed.
        times: How often, if nothing is given.
    """
    given = [int(each) for each in sys.argv[1:]]
    times, seed = [*given, *[times, random.SystemRandom().randrange(10**6)][len(given) :]]
    return verdict(name, lambda: proof(times, seed), f" (seed {seed})")


def listed(counts: Mapping[str, int]) -> str:
    """What was counted, in a line."""
    return ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in counts.items())


def session(master: str, settings: Mapping[str, str], *, log: str = "OFF") -> SparkSession:
    """A session without a user interface.

    Args:
        master: Where it runs.
        settings: More settings.
        log: The level of its log.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master)
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    for name, value in {**quiet, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(log)
    return spark


def with_fast_workers() -> None:
    """Has the sessions of this program and of those that it starts begin their Python workers fast: there are thousands."""
    os.environ.setdefault("SPARK_HOME", str(spark_home()))
    path = [str(_WORKERS), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))


def produce(producer: Producer, topic: str, **message: object) -> None:
    """Hands a message over, as soon as there is room for it."""
    while True:
        try:
            return producer.produce(topic, **message)  # type: ignore[arg-type]
        except BufferError:
            producer.poll(0.1)


class Ends:
    """Where the partitions of a topic end, committed or not.

    Args:
        servers: The bootstrap servers.
        topic: The topic.
        partitions: How many it has.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "ends", "log_level": 0}
        )
        self._places = [TopicPartition(topic, number) for number in range(partitions)]

    def now(self) -> dict[int, int]:
        """The end of each partition."""
        return {place.partition: self._end(place) for place in self._places}

    def _end(self, place: TopicPartition) -> int:
        """A broker that has just started again may not lead the partition yet."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return int(self._consumer.get_watermark_offsets(place, timeout=_PATIENCE_S)[1])
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)


def workers(driver: psutil.Process) -> list[psutil.Process]:
    """The Python processes in which tasks of a driver run."""
    found = []
    for process in _children(driver, recursive=True):
        try:
            if "pyspark.daemon" in process.cmdline() and process.parent() != driver:
                found.append(process)
        except psutil.Error:  # it ended while it was looked at
            continue
    # Without the process that starts the others.
    return [each for each in found if not any(child in found for child in _children(each))]


def _children(process: psutil.Process, *, recursive: bool = False) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=recursive))
    except psutil.Error:
        return []


def send(process: psutil.Process, number: signal.Signals) -> None:
    """Sends a signal, unless the process is gone."""
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def kill_a_worker(driver: psutil.Process, choices: random.Random) -> bool:
    """Kills one of a driver's workers; whether there was one."""
    running = workers(driver)
    if running:
        send(choices.choice(running), signal.SIGKILL)
    return bool(running)


def peaks(sizes: Sequence[float]) -> tuple[float, float]:
    """The largest of the second third and of the last: the first is for warming up."""
    third = len(sizes) // 3
    return (max(sizes[third:-third]), max(sizes[-third:])) if third else (0.0, 0.0)
