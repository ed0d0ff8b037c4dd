"""`make stress`: a topic is read without an object for each message, over and over, and compared with what confluent-kafka reads.

Ranges begin and end anywhere; they are left in the middle, and Ctrl-C comes at any moment. There are tiny messages and some
of a megabyte, null keys and values, committed and aborted transactions, and several readers at once. What is read and
not freed shows as memory that grows, or as a consumer that never closes.

`make stress MINUTES=5` is a short one. The last line is the verdict, and the exit code is 0 only if it passed.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import Any

import psutil
from confluent_kafka import Producer

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client
from pyspark_upsert_kafka.kafka.librdkafka.reader import BATCH_POOL, POOL
from tools.faults import BrokenRuleError, peaks
from tools.local_topics import create
from tools.verdict import Held, verdict

TOPIC = "stress"
LARGE = 1_000_000
BY_COLUMNS = frozenset({Detail.TIMESTAMP})
BY_OBJECTS = BY_COLUMNS | {Detail.HEADERS}
REPORT_S = 10.0
CLOSE_S = 120.0  # a consumer of whose messages one is not freed never closes
MOST_GROWTH = 150_000_000  # bytes; a leak of 0.1 % of what is read would exceed it

Row = tuple[int, Any, Any, int]
"""Offset, key, value and timestamp of a message."""


def write(servers: str, rng: random.Random) -> None:
    """Fills the topic."""
    limits = {"max.message.bytes": "4000000", "retention.ms": "-1"}  # whose timestamps are old
    create(servers, TOPIC, partitions=1, compacted=False, config=limits)
    config = {"bootstrap.servers": servers, "message.max.bytes": 4_000_000, "linger.ms": 5}
    producer = Producer({**config, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions()
    for number in range(300):
        producer.begin_transaction()
        for _ in range(rng.choice([1, 10, 500])):
            key = rng.choice([None, b"", b"k%d" % number])
            value = rng.choice([None, b"", rng.randbytes(rng.randrange(200))])
            producer.produce(TOPIC, value, key, timestamp=rng.choice([1, 10**12 + number]))
        if number % 10 == 0:
            producer.produce(TOPIC, rng.randbytes(LARGE), b"large")
        if rng.random() < 0.3:
            producer.flush()
            producer.abort_transaction()
        else:
            producer.commit_transaction()


def read(
    servers: str, begin: int, end: int, details: frozenset[Detail], *, committed: bool
) -> Iterator[Row]:
    """The messages of a range."""
    properties = Properties({"bootstrap.servers": servers})
    settings = ReadSettings(properties, committed, fail_on_data_loss=True, details=details)
    reader = load_client("librdkafka").reader(settings)
    for batch in reader.read(Range(TOPIC, 0, begin, end)):
        yield from zip(batch.offsets, batch.keys, batch.values, batch.timestamps, strict=True)


@contextmanager
def interrupt(after_s: float) -> Iterator[None]:
    """Has Ctrl-C come after a while, if that lasts so long."""
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Stress:
    """Checks ranges until a time.

    Args:
        servers: The broker's.
        until: The end, by the monotonic clock.
    """

    def __init__(self, servers: str, until: float) -> None:
        self.servers, self.until = servers, until
        client, properties = load_client("librdkafka"), Properties({"bootstrap.servers": servers})
        with closing(client.cluster(properties, "driver")) as cluster:
            view = cluster.view(cluster.topics(Topics((TOPIC,))), read_committed=False)
        ((_, bounds),) = view.bounds.items()
        self.end = bounds.latest
        self.expected = {
            committed: list(read(servers, 0, self.end, BY_OBJECTS, committed=committed))
            for committed in (True, False)
        }
        self.messages = self.interrupts = 0
        self.sizes: list[int] = []
        self.failed: list[str] = []

    @property
    def goes_on(self) -> bool:
        """Whether there is time, and nothing went wrong."""
        return time.monotonic() < self.until and not self.failed

    def check_range(self, rng: random.Random) -> None:
        """Reads one range, perhaps not to its end."""
        committed = rng.random() < 0.5
        first = rng.randrange(self.end)
        last = rng.randrange(first, self.end) + 1
        wanted = [row for row in self.expected[committed] if first <= row[0] < last]
        most = len(wanted) if rng.random() < 0.7 else rng.randrange(len(wanted) + 1)
        rows = read(self.servers, first, last, BY_COLUMNS, committed=committed)
        found = list(islice(rows, most)) if most < len(wanted) else list(rows)
        if found != wanted[:most]:
            self.failed.append(f"offsets {first} to {last}: {len(found)} of {most} messages")
        self.messages += len(found)

    def beside(self) -> None:
        """Checks ranges in a thread of its own, which no Ctrl-C reaches."""
        rng = random.Random()
        try:
            while self.goes_on:
                self.check_range(rng)
        except Exception as error:
            self.failed.append(repr(error)[:500])
            raise

    def interrupted(self, rng: random.Random) -> None:
        """Checks ranges while Ctrl-C comes again and again."""
        said = time.monotonic()
        while self.goes_on:
            self.interrupts += 1
            with suppress(KeyboardInterrupt), interrupt(rng.uniform(0.001, 1.0)):
                self.check_range(rng)
                self.interrupts -= 1
            if time.monotonic() - said > REPORT_S:
                said = time.monotonic()
                self.report()

    def report(self) -> None:
        """Says how far it is, and how large the process."""
        process = psutil.Process()
        self.sizes.append(process.memory_info().rss)
        print(
            f"{self.messages} messages, {self.interrupts} ranges interrupted; {self.sizes[-1] >> 20} MB, "
            f"{process.num_threads()} threads", flush=True,
        )  # fmt: skip


def ended(threads: Sequence[threading.Thread]) -> bool:
    """Whether threads end in time."""
    for thread in threads:
        thread.join(CLOSE_S)
    return not any(thread.is_alive() for thread in threads)


def proof(minutes: float) -> Held:
    """Runs for so long; returns what is said when all was well."""
    rng = random.Random(7)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    with LocalKafka(config={"message.max.bytes": "4000000"}) as kafka:
        write(kafka.bootstrap_servers, rng)
        stress = Stress(kafka.bootstrap_servers, time.monotonic() + minutes * 60)
        threads = [threading.Thread(target=stress.beside, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        stress.interrupted(rng)
        closings = [
            threading.Thread(target=pool.close_idle, daemon=True) for pool in (POOL, BATCH_POOL)
        ]
        is_closed = ended(threads)
        for closing_ in closings:
            closing_.start()
        is_closed &= ended(closings)
    before, after = peaks(stress.sizes)
    grown = int(after - before)
    if stress.failed or not is_closed or grown >= MOST_GROWTH:
        raise BrokenRuleError(
            f"failed: {stress.failed}; all is closed: {is_closed}; grown by {grown >> 20} MB"
        )
    return Held(
        f"{stress.messages} messages in {minutes:g} minutes, each as expected; grown by {grown >> 20} MB; all is closed",
        {"reads interrupted": stress.interrupts},
    )


if __name__ == "__main__":
    MINUTES = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    sys.exit(verdict("stress", lambda: proof(MINUTES)))
