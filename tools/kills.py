"""`make kills`: a topic is copied exactly once, and at least once, while everything that copies is killed again and again.

In each of 30 runs more changes arrive, a program copies them by two queries with `upsert_sink`, its Python workers are
killed at random moments, and then its driver. Half of these
moments are those in which something is being written. Workers of a driver that was killed are often stopped instead (SIGSTOP)
and go on in the middle of the next run, as machines do that had hung. The number of tasks changes from batch to
batch; a batch that runs again with another one is refused, and the program then takes the old one.

In the end a read_committed reader must find each change once, and those of a key in their order, in the one copy; and in
the other none lost, and the last change of each key last. The last line is the verdict, and the exit code is 0 only
if both hold.

`make kills RUNS=5` is a short one.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import LocalKafka, upsert_sink

RUNS = 30
CHANGES = 20_000
BATCH = 10_000
KEYS = 997
PARTITIONS = 3
SOURCE, EXACT, PLAIN = "source", "exact", "plain"

_REFUSED = re.compile(r"begun with 'sink\.parallelism' = '(\d+)'")
_RESTARTS = 20

Changes = dict[int, list[int]]
"""For each key the numbers of its changes, in their order."""


class KillsError(Exception):
    """Why the proof failed."""


# The program that is killed


def table(servers: str, topic: str) -> dict[str, object]:
    """Options of the table in a topic."""
    return {
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "primary-key": "id",
        "key.format": "json",
        "value.format": "json",
    }


class Copy:
    """A query that copies the source, started again after each failure; a supervisor would do the same.

    Args:
        spark: The session.
        servers: The bootstrap servers.
        target: The topic to copy to.
        folder: Where its checkpoint is.
    """

    def __init__(self, spark: SparkSession, servers: str, target: str, folder: str) -> None:
        self._spark, self._servers, self._target, self._folder = spark, servers, target, folder
        self._tasks = 0
        self._restarts = 0
        self.query = self._start()

    def is_done(self) -> bool:
        """Whether everything is copied; a query that failed is started again."""
        if self.query.isActive:
            return False
        failure = self.query.exception()
        if failure is None:
            return True
        self._restarts += 1
        if self._restarts > _RESTARTS:
            raise failure
        refused = _REFUSED.search(str(failure))
        self._tasks = int(refused[1]) if refused else 0
        print("refused" if refused else f"failed {_reason(failure)}", flush=True)
        self.query = self._start()
        return False

    def _start(self) -> StreamingQuery:
        changes = (
            self._spark.readStream.format("upsert-kafka")
            .schema("id BIGINT, n BIGINT, _change_type STRING, _offset BIGINT")
            .options(**table(self._servers, SOURCE), maxOffsetsPerTrigger=BATCH)  # type: ignore[arg-type]
            .load()
        )
        writer = changes.writeStream.foreachBatch(self._write)
        writer = writer.option("checkpointLocation", f"{self._folder}/{self._target}")
        return writer.trigger(availableNow=True).start()

    def _write(self, rows: DataFrame, batch: int) -> None:
        tasks, self._tasks = self._tasks or random.choice((2, 3, 4)), 0
        exactly_once = {
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": "kills",
        }
        sink = upsert_sink(
            table(self._servers, self._target),
            **{"sink.parallelism": tasks, "sequence-by": "_offset"},
            **(exactly_once if self._target == EXACT else {}),
        )
        sink(rows, batch)


def _reason(failure: StreamingQueryException) -> str:
    """The line of a failure that says the most."""
    lines = [line for line in str(failure).splitlines() if "Error" in line]
    return (lines or [str(failure)])[-1].strip()[:300]


def copy_all(servers: str, folder: str) -> None:
    """Copies what is there to both targets, and ends."""
    spark = (
        SparkSession.builder.master("local[2,8]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    copies = [Copy(spark, servers, target, folder) for target in (EXACT, PLAIN)]
    print("started", flush=True)
    while not all([copy.is_done() for copy in copies]):  # noqa: C419 - each is looked at
        time.sleep(0.2)
    print("done", flush=True)
    spark.stop()


# What kills it


class Killer:
    """Starts the program and kills it, run by run.

    Args:
        servers: The bootstrap servers.
        folder: Where checkpoints and logs are.
    """

    def __init__(self, servers: str, folder: str) -> None:
        self._program = [sys.executable, __file__, "copy", servers, folder]
        self._log = Path(folder) / "log"
        self._stopped: list[psutil.Process] = []
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": "looks"})
        self.counts: Counter[str] = Counter()

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


# What must be true in the end


def produce(servers: str, start: int, count: int) -> Changes:
    """Sends changes of random keys, numbered from ``start``."""
    producer = Producer(
        {"bootstrap.servers": servers, "partitioner": "murmur2_random", "enable.idempotence": True}
    )
    sent: Changes = defaultdict(list)
    for n in range(start, start + count):
        key = random.randrange(KEYS)
        producer.produce(SOURCE, key=f'{{"id":{key}}}', value=f'{{"id":{key},"n":{n}}}')
        sent[key].append(n)
        producer.poll(0)
    if producer.flush(60):
        raise KillsError("the changes could not be sent")
    return sent


def read(servers: str, topic: str) -> Changes:
    """The committed changes in a topic, by key in their order."""
    config = {"bootstrap.servers": servers, "group.id": "kills", "enable.partition.eof": True}
    consumer = Consumer({**config, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: Changes = defaultdict(list)
    missing = PARTITIONS
    while missing:
        for message in consumer.consume(10_000, timeout=1.0):
            if message.error() is not None:
                missing -= 1
                continue
            value = re.fullmatch(rb'\{"id":(\d+),"n":(\d+)\}', message.value() or b"")
            if value is None:
                raise KillsError(f"a message of {topic} is {message.value()!r}")
            found[int(value[1])].append(int(value[2]))
    consumer.close()
    return found


def check_exact(sent: Changes, found: Changes) -> None:
    """Each change is there once, and those of a key in their order."""
    for key in sent.keys() | found.keys():
        wanted, got = sent.get(key, []), found.get(key, [])
        if wanted != got:
            lost, more = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
            raise KillsError(
                f"key {key}, exactly once: {len(lost)} changes lost, {len(more)} repeated"
                f"{'' if lost or more else ', their order is another'}; "
                f"lost {sorted(lost)[:5]}, repeated {sorted(more)[:5]}"
            )


def check_plain(sent: Changes, found: Changes) -> None:
    """No change is lost, and the last one of each key is the last."""
    for key, wanted in sent.items():
        got = found.get(key, [])
        if set(wanted) != set(got):
            raise KillsError(
                f"key {key}, at least once: {len(set(wanted) - set(got))} changes lost"
            )
        if wanted[-1] != got[-1]:
            raise KillsError(f"key {key}, at least once: {got[-1]} is the last, not {wanted[-1]}")


def proof(runs: int) -> str:
    """The whole of it; returns what is said when it holds."""
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = kafka.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        topics = [NewTopic(name, PARTITIONS, 1) for name in (SOURCE, EXACT, PLAIN)]
        for created in admin.create_topics(topics).values():
            created.result()
        killer, sent = Killer(servers, folder), defaultdict[int, list[int]](list)
        for run in range(runs):
            for key, numbers in produce(servers, run * CHANGES, CHANGES).items():
                sent[key] += numbers
            killer.run(to_the_end=run == runs - 1)
            counts = ", ".join(f"{count} {what}" for what, count in killer.counts.items())
            print(f"kills: run {run + 1} of {runs}, {counts}", flush=True)
        exact, plain = read(servers, EXACT), read(servers, PLAIN)
        check_exact(sent, exact)
        check_plain(sent, plain)
        repeated = sum(map(len, plain.values())) - runs * CHANGES
        return (
            f"{runs * CHANGES} changes over {KEYS} keys in {runs} runs, {counts}; exactly once each change "
            f"is there once and in order; at least once none is lost, and {repeated} are there again"
        )


def main() -> int:
    """Prints the verdict."""
    if sys.argv[1:2] == ["copy"]:
        copy_all(*sys.argv[2:])
        return 0
    seed = random.SystemRandom().randrange(2**32)
    random.seed(seed)
    try:
        said = proof(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
    except Exception as error:  # noqa: BLE001 - whatever ends it is its verdict
        print(f"kills: FAILED {type(error).__name__}: {error} (seed {seed})", flush=True)
        return 1
    print(f"kills: PASSED {said}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
