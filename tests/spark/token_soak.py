"""A table is copied exactly once, on executors that are other processes, while each has its token renewed: ``python -m tests.spark.token_soak ...``.

The broker checks signatures, and ends sessions with their tokens. It prints how often the process that has asked most has asked, how
many messages were sent, and how many the copy lacks and has twice.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable

from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import LocalKafka, LocalSecurity, upsert_sink
from tests import signed_tokens
from tests.conftest import Broker, broker_at

PAUSE_S = 0.1
MOST_S = 3600


def main(folder: str, renewals: str, life_s: str) -> None:
    """Copies until a process has asked for so many tokens, each of so many seconds."""
    calls, key = Path(folder, "calls"), signed_tokens.make_key(Path(folder))
    os.environ["LOCAL_KAFKA_OPTS"] = signed_tokens.broker_flags(key)
    with LocalKafka(
        security=LocalSecurity(users={"ana": "x"}),
        config=signed_tokens.broker_settings(key, float(life_s)),
    ) as kafka:
        broker = broker_at(kafka.bootstrap_servers)
        source, target = broker.topic(2), broker.topic(2)
        login = signed_tokens.login(f"key={key} life={life_s} calls={calls}")
        table = {
            "primary-key": "id",
            "key.format": "json",
            "value.format": "json",
            "properties.bootstrap.servers": kafka.address("SASL_PLAINTEXT"),
            **{f"properties.{name}": value for name, value in login.items()},
        }
        spark = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        changes = (
            spark.readStream.format("upsert-kafka")
            .schema("id BIGINT, name STRING, _change_type STRING")
            .options(**table, topic=source)
            .load()
        )
        once = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "soak", "sink.parallelism": 2}  # fmt: skip
        query = (
            changes.writeStream.foreachBatch(upsert_sink({**table, **once, "topic": target}))
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
            .start()
        )
        sent, stopped = [0], threading.Event()
        sending = threading.Thread(target=_send, args=(broker, source, sent, stopped))
        sending.start()
        deadline = time.monotonic() + MOST_S
        while query.isActive and _most(calls) <= int(renewals) and time.monotonic() < deadline:
            time.sleep(1)
        stopped.set()
        sending.join()
        if query.isActive:
            query.processAllAvailable()
        state = f"ended by {query.exception()}" if query.exception() else "still running"
        query.stop()
        found = _committed(kafka.bootstrap_servers, target)
        lacking, twice = sent[0] - len(found), sum(found.values()) - len(found)
        sys.stdout.write(
            f"{state}\n{_most(calls)} renewals, {sent[0]} messages, {lacking} lacking, {twice} twice\n"
        )


def _send(broker: Broker, topic: str, sent: list[int], stopped: threading.Event) -> None:
    producer = broker.producer()
    while not stopped.wait(PAUSE_S):
        for _ in range(10):
            number = sent[0]
            producer.produce(topic, key=f'{{"id":{number}}}', value=f'{{"id":{number},"name":"n"}}')
            sent[0] += 1
        producer.flush()


def _most(calls: Path) -> int:
    if not calls.exists():
        return 0
    return max(Counter(calls.read_text().split()).values(), default=0)


def _committed(servers: str, topic: str) -> Counter[bytes]:
    """How often each key is in the topic, for a reader of what is committed."""
    consumer = Consumer({
        "bootstrap.servers": servers, "group.id": "soak", "auto.offset.reset": "earliest",
        "isolation.level": "read_committed", "enable.partition.eof": True,
    })  # fmt: skip
    consumer.subscribe([topic])
    found: Counter[bytes] = Counter()
    ended = set()
    while len(ended) < 2:
        message = consumer.poll(10)
        if message is not None and message.error():
            ended.add(message.partition())
        elif message is not None and message.key() is not None:
            found[message.key()] += 1
    consumer.close()
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
