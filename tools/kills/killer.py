"""Starts the program, and kills it, its driver and its workers."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
from confluent_kafka import Consumer, TopicPartition

from tools.kills.copy import EXACT

PARTITIONS = 3


class KillsError(Exception):
    """Why the proof failed."""


class Killer:
    """Starts the program and kills it, run by run.

    Args:
        servers: The bootstrap servers.
        folder: Where checkpoints and logs are.
    """

    def __init__(self, servers: str, folder: str) -> None:
        self._program = [sys.executable, "-m", "tools.kills.copy", servers, folder]
        self._log = Path(folder) / "log"
        self._stopped: list[psutil.Process] = []
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": "looks"})
        self.counts: Counter[str] = Counter()

    @property
    def faults(self) -> dict[str, int]:
        """What was killed or stopped, and how often."""
        kinds = ("drivers killed", "workers killed", "workers stopped")
        return {kind: self.counts[kind] for kind in kinds}

    def run(self, *, to_the_end: bool) -> None:
        """One run; it ends when everything is copied, or by a kill some seconds after its first batch is done."""
        with self._log.open("wb") as log:
            process = subprocess.Popen(self._program, stdout=log, stderr=subprocess.STDOUT)
        driver = psutil.Process(process.pid)
        while not self._said("started") and process.poll() is None:
            time.sleep(0.1)
        before, deadline = self._batches_done(), float("inf")
        while process.poll() is None and (to_the_end or time.monotonic() < deadline):
            time.sleep(random.uniform(0.2, 2.0))
            self._wake_stopped()
            if not to_the_end and random.random() < 0.4:
                self._kill_a_worker(driver)
            if deadline == float("inf") and self._batches_done() > before:
                deadline = time.monotonic() + random.uniform(0.0, 6.0)
        if process.poll() is None:
            self._wait_for_a_write()
            self._kill(driver)
        process.wait()
        for line in self._log.read_text(errors="replace").splitlines():
            self.counts["batches refused"] += line.startswith("refused")
            if line.startswith("failed"):
                self.counts["queries started again"] += 1
                print(f"kills: a query {line}", flush=True)
        if to_the_end and not self._said("done"):
            raise KillsError(f"the last run failed: {self._log.read_text()[-3000:]}")

    def _batches_done(self) -> int:
        return len(list(self._log.parent.glob(f"{EXACT}/commits/[0-9]*")))

    def _wait_for_a_write(self) -> None:
        """Half of the time: until something is written to the exact copy, since most moments are those of planning."""
        before, deadline = self._end(), time.monotonic() + random.choice((0.0, 4.0))
        while self._end() == before and time.monotonic() < deadline:
            time.sleep(0.005)

    def _end(self) -> int:
        """How many messages are in the exact copy, committed or not."""
        partitions = (TopicPartition(EXACT, number) for number in range(PARTITIONS))
        return sum(self._consumer.get_watermark_offsets(each, timeout=60)[1] for each in partitions)

    def _said(self, what: str) -> bool:
        return f"\n{what}\n".encode() in b"\n" + self._log.read_bytes()

    def _kill_a_worker(self, driver: psutil.Process) -> None:
        self._wait_for_a_write()
        running = workers(driver)
        if running:
            send(random.choice(running), signal.SIGKILL)
            self.counts["workers killed"] += 1

    def _kill(self, driver: psutil.Process) -> None:
        """Kills the driver; half of the time its workers are stopped first, and go on in the next run."""
        orphans, processes = workers(driver), [driver, *driver.children(recursive=True)]
        if random.random() < 0.5:
            for orphan in orphans:
                send(orphan, signal.SIGSTOP)
            self._stopped += orphans
            self.counts["workers stopped"] += len(orphans)
        for each in processes:
            if each not in orphans:
                send(each, signal.SIGKILL)
        self.counts["drivers killed"] += 1

    def _wake_stopped(self) -> None:
        for orphan in self._stopped:
            send(orphan, signal.SIGCONT)
        self._stopped = []


def workers(driver: psutil.Process) -> list[psutil.Process]:
    """The Python processes in which tasks of a driver run."""
    found = []
    for process in descendants(driver):
        try:
            if "pyspark.daemon" in process.cmdline() and process.parent() in descendants(driver):
                found.append(process)
        except psutil.Error:  # it ended while it was looked at
            continue
    return [each for each in found if not _has_workers(each, found)]


def descendants(driver: psutil.Process) -> list[psutil.Process]:
    """All processes that a driver has started."""
    try:
        return list(driver.children(recursive=True))
    except psutil.Error:
        return []


def _has_workers(process: psutil.Process, others: list[psutil.Process]) -> bool:
    """Whether it is the process that starts the others."""
    try:
        return any(child in others for child in process.children())
    except psutil.Error:
        return False


def send(process: psutil.Process, number: signal.Signals) -> None:
    """Sends a signal, unless the process is gone."""
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
