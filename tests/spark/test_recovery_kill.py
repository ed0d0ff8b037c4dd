"""Programs killed in the middle of a batch, and a broker that goes away under a running query."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import LocalKafka
from tests.conftest import Broker, broker_at
from tests.spark.conftest import eventually, run_to_end
from tests.spark.pipelines import start
from tests.spark.streams import Batches, message, read, running

pytestmark = pytest.mark.long("kills programs, and restarts a broker")

ROOT = Path(__file__).parents[2]
ROWS = 2000


def written(consumer: Consumer, topic: str) -> int:
    """How many messages there are in a topic of two partitions."""
    both = (TopicPartition(topic, partition) for partition in (0, 1))
    try:
        return sum(consumer.get_watermark_offsets(each, timeout=60)[1] for each in both)
    except KafkaException:  # the topic is so new that its leader is not known
        return 0


def kill_in_a_batch(program: list[str], broker: Broker, targets: list[str], folder: Path) -> None:
    """Starts a program and kills it when it has written something to each target.

    Not before all queries have planned a batch: what Spark does with half a checkpoint is Spark's.
    """
    log = folder / "program.log"
    planned = [folder / name / "offsets" / "0" for name in ("copy", "count", "exact", "length")]
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "looks"})
    while True:
        with log.open("wb") as said:
            process = subprocess.Popen(program, cwd=ROOT, start_new_session=True, stderr=said)
        eventually(
            lambda: (
                process.poll() is not None  # noqa: B023 - waited for within the loop
                or (
                    all(written(consumer, each) for each in targets)
                    and all(map(Path.exists, planned))
                )
            ),
            "the program writes",
        )
        # Spark gives a stream's process ten seconds to start, which is not much on a busy machine.
        if process.poll() is None or "worker to connect back" not in log.read_text():
            break
    consumer.close()
    assert process.poll() is None, f"it ended before it was killed: {log.read_text()[-5000:]}"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.classic("one of its queries writes exactly once")
def test_killed_programs_leave_the_right_tables(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A copy, counts, an exact copy and counts of rows by length, killed while all write, and started again elsewhere.

    In the end each key's last change is that of the source; no change is counted twice or left out; in the exact
    copy each change is once, those of a key in their order; and rows that changed or went away are counted no more.
    """
    source, copied, counted, exact, lengths = (broker.topic(2) for _ in range(5))
    changes = (message(n % 700, None if n % 7 == 0 else f"v{n}") for n in range(ROWS))
    broker.produce(source, *changes)
    arguments = (broker.servers, source, copied, counted, exact, lengths, str(tmp_path))
    program = [sys.executable, "-m", "tests.spark.pipelines", *arguments]
    kill_in_a_batch(program, broker, [copied, counted, exact, lengths], tmp_path)
    for query in start(spark, *arguments):
        run_to_end(query)
    counts = Counter(json.loads(key or b"")["id"] for key, _ in broker.pairs(source))

    assert last_values(broker, copied) == last_values(broker, source)
    assert last_values(broker, counted) == {
        b'{"id":%d}' % id_: {"id": id_, "changes": count} for id_, count in counts.items()
    }
    assert all_values(broker, exact) == all_values(broker, source)
    names = [row["name"] for row in last_values(broker, source).values() if row]
    rows = {key: row["rows"] for key, row in last_values(broker, lengths).items() if row}
    assert rows == {b'{"id":%d}' % n: count for n, count in Counter(map(len, names)).items()}


def all_values(broker: Broker, topic: str) -> dict[bytes | None, list[bytes | None]]:
    """The values of each key, in their order."""
    found: dict[bytes | None, list[bytes | None]] = {}
    for key, value in broker.pairs(topic):
        found.setdefault(key, []).append(value)
    return found


def last_values(broker: Broker, topic: str) -> dict[bytes | None, object]:
    """The last value of each key."""
    return {key: value and json.loads(value) for key, value in broker.pairs(topic)}


def test_a_broker_that_restarts_does_not_end_a_query(
    spark: SparkSession, own_kafka: Callable[..., LocalKafka], tmp_path: Path
) -> None:
    """It waits for the broker and goes on by itself; so do gaps that compaction has left."""
    kafka = own_kafka(config={"log.cleaner.backoff.ms": "100"})
    broker = broker_at(kafka.bootstrap_servers)
    topic = broker.topic(
        1, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01"
    )
    for n in range(5):
        broker.produce(topic, message(1, f"a{n}"), message(2, None))

    def compacted() -> bool:
        broker.produce(topic, message(3, "rolls the segment"))
        return len(broker.messages(topic)) < 10

    eventually(compacted, "gaps")
    sink = Batches(tmp_path)
    frame = read(spark, broker, topic)
    with running(sink.start(frame, processingTime="0 seconds")) as query:
        eventually(lambda: bool(sink.all()), "the table")
        kafka.stop()
        kafka.start()
        broker.produce(topic, message(4, "after"))
        after = (4, "after", "upsert")
        eventually(lambda: after in sink.all() or not query.isActive, "a message after the restart")
        assert query.isActive, query.exception()

    assert (1, "a4", "upsert") in sink.all()
    assert (1, "a0", "upsert") not in sink.all()
