"""`make kills`: copies a topic exactly once and at least once, while all processes that copy are killed again and again.

In each of 30 runs more changes arrive, and a program copies them with two queries and `upsert_sink`. Its Python workers are
killed at random moments, and then its driver. Half of these moments are while something is being written. Workers of a killed
driver are often stopped instead (SIGSTOP), and continue in the middle of the next run, like machines that had hung. The number
of tasks changes from batch to batch. A batch that runs again with another number is rejected, and the program then uses the old
number.

In the end both copies are read by Kafka's own Java client, read_committed. In the first copy it must find each change once, and the
changes of a key in order. In the second copy no change may be missing, and the last change of each key must be last. The last line is
the verdict. The exit code is 0 only if both hold.

`make kills RUNS=5` is a short one.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import psutil

from pyspark_upsert_kafka import LocalKafka
from tools.faults import (
    BrokenRuleError,
    Ends,
    kill_a_worker,
    listed,
    produce,
    repeated,
    send,
    with_fast_workers,
    workers,
)
from tools.kills.copy import EXACT, PLAIN, SOURCE
from tools.local_topics import create, producer
from tools.proof.java_reader import JavaReader, Message
from tools.verdict import Held

RUNS = 30
CHANGES = 20_000
KEYS = 997
PARTITIONS = 3

Changes = dict[int, list[int]]
"""For each key the numbers of its changes, in their order."""


def proof(runs: int, seed: int) -> Held:
    """The whole of it; returns what is said when it holds."""
    with_fast_workers()
    choices, sent = random.Random(seed), defaultdict[int, list[int]](list)
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = kafka.bootstrap_servers
        create(servers, SOURCE, EXACT, PLAIN, partitions=PARTITIONS, compacted=False)
        killer = Killer(servers, folder, choices)
        for run in range(runs):
            send_changes(servers, range(run * CHANGES, (run + 1) * CHANGES), sent, choices)
            killer.run(to_the_end=run == runs - 1)
            print(f"kills: run {run + 1} of {runs}, {listed(killer.counts)}", flush=True)
        with JavaReader(servers) as reader:
            exact, plain = (by_key(reader.read(each, f"kills-{each}")) for each in (EXACT, PLAIN))
    check_exact(sent, exact)
    check_plain(sent, plain)
    again = sum(map(len, plain.values())) - runs * CHANGES
    said = (
        f"{runs * CHANGES} changes over {KEYS} keys in {runs} runs, {listed(killer.counts)}; exactly once each change "
        f"is there once and in order; at least once none is lost, and {again} are there again"
    )
    return Held(said, {kind: killer.counts[kind] for kind in FAULTS})


def send_changes(servers: str, numbers: range, sent: Changes, choices: random.Random) -> None:
    """Sends changes of random keys with these numbers, and adds them to those that were sent."""
    sender = producer(servers)
    for n in numbers:
        key = choices.randrange(KEYS)
        produce(sender, SOURCE, key=f'{{"id":{key}}}', value=f'{{"id":{key},"n":{n}}}')
        sent[key].append(n)
        sender.poll(0)
    if sender.flush(60):
        raise BrokenRuleError("the changes could not be sent")


def by_key(messages: Iterable[Message]) -> Changes:
    """The changes that messages of a topic hold, by key in their order."""
    found: Changes = defaultdict(list)
    for message in messages:
        value = re.fullmatch(rb'\{"id":(\d+),"n":(\d+)\}', message.value or b"")
        if value is None:
            raise BrokenRuleError(f"a message is {message.value!r}")
        found[int(value[1])].append(int(value[2]))
    return found


def check_exact(sent: Changes, found: Changes) -> None:
    """Each change is there once, and those of a key in their order."""
    for key in sent.keys() | found.keys():
        wanted, got = sent.get(key, []), found.get(key, [])
        if wanted != got:
            lost, more = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
            raise BrokenRuleError(
                f"key {key}, exactly once: {len(lost)} changes lost, {len(more)} repeated"
                f"{'' if lost or more else ', their order is another'}; "
                f"lost {sorted(lost)[:5]}, repeated {sorted(more)[:5]}"
            )


def check_plain(sent: Changes, found: Changes) -> None:
    """No change is lost, and the last one of each key is the last."""
    for key, wanted in sent.items():
        got = found.get(key, [])
        lost = set(wanted) ^ set(got)
        if lost:
            raise BrokenRuleError(
                f"key {key}, at least once: {len(lost)} changes lost, or never sent"
            )
        if wanted[-1] != got[-1]:
            raise BrokenRuleError(
                f"key {key}, at least once: {got[-1]} is the last, not {wanted[-1]}"
            )


FAULTS = ("drivers killed", "workers killed", "workers stopped")
"""What is killed or stopped; the other counts are what follows from it."""


class Killer:
    """Starts the program that copies and kills it, run by run.

    Args:
        servers: The bootstrap servers.
        folder: Where checkpoints and logs are.
        choices: Where all random choices come from.
    """

    def __init__(self, servers: str, folder: str, choices: random.Random) -> None:
        self._program = [sys.executable, "-m", "tools.kills.copy", servers, folder]
        self._log, self._choices = Path(folder) / "log", choices
        self._stopped: list[psutil.Process] = []
        self._ends = Ends(servers, EXACT, PARTITIONS)
        self.counts: Counter[str] = Counter()

    def run(self, *, to_the_end: bool) -> None:
        """One run; it ends when everything is copied, or by a kill some seconds after its first batch is done."""
        choices = self._choices
        with self._log.open("wb") as log:
            process = subprocess.Popen(self._program, stdout=log, stderr=subprocess.STDOUT)
        driver = psutil.Process(process.pid)
        while not self._said("started") and process.poll() is None:
            time.sleep(0.1)
        before, deadline = self._batches_done(), float("inf")
        while process.poll() is None and (to_the_end or time.monotonic() < deadline):
            time.sleep(choices.uniform(0.2, 2.0))
            self._wake_stopped()
            if not to_the_end and choices.random() < 0.4:
                self._wait_for_a_write()
                self.counts["workers killed"] += kill_a_worker(driver, choices)
            if deadline == float("inf") and self._batches_done() > before:
                deadline = time.monotonic() + choices.uniform(0.0, 6.0)
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
            raise BrokenRuleError(f"the last run failed: {self._log.read_text()[-3000:]}")

    def _batches_done(self) -> int:
        return len(list(self._log.parent.glob(f"{EXACT}/commits/[0-9]*")))

    def _wait_for_a_write(self) -> None:
        """Half of the time: until something is written to the exact copy, since most moments are those of planning."""
        before, deadline = self._ends.now(), time.monotonic() + self._choices.choice((0.0, 4.0))
        while self._ends.now() == before and time.monotonic() < deadline:
            time.sleep(0.005)

    def _said(self, what: str) -> bool:
        return f"\n{what}\n".encode() in b"\n" + self._log.read_bytes()

    def _kill(self, driver: psutil.Process) -> None:
        """Kills the driver; half of the time its workers are stopped first, and go on in the next run."""
        orphans, processes = workers(driver), [driver, *driver.children(recursive=True)]
        if self._choices.random() < 0.5:
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


if __name__ == "__main__":
    sys.exit(repeated("kills", proof, RUNS))
