"""Exactly once from a compacted topic, when compaction takes changes between a failed attempt and the next one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka import LocalKafka, upsert_sink
from tests.conftest import Broker, broker_at, options
from tests.spark.batches import refused
from tests.spark.conftest import eventually, run_to_end

pytestmark = [
    pytest.mark.classic("exactly once is refused over Spark Connect"),
    pytest.mark.long("waits for compaction, on a broker of its own"),
]

KEYS = range(30)


def values(broker: Broker, topic: str) -> dict[int, list[str | None]]:
    """The committed values of each key, in their order; None = a delete."""
    found: dict[int, list[str | None]] = {}
    for key, value in broker.pairs(topic):
        name = json.loads(value)["name"] if value else None
        found.setdefault(json.loads(key or b"")["id"], []).append(name)
    return found


def message(key: int, name: str | None) -> tuple[str, str | None]:
    """A change of a key."""
    value = None if name is None else json.dumps({"id": key, "name": name})
    return f'{{"id":{key}}}', value


def test_what_compaction_takes_before_a_batch_runs_again_is_not_written_and_no_key_is_wrong(
    spark: SparkSession, own_kafka: Callable[..., LocalKafka], tmp_path: Path
) -> None:
    """Tasks that had written are skipped; of the others superseded changes are missing, and each key ends right."""
    kafka = own_kafka(config={"log.cleaner.backoff.ms": "100"})
    broker = broker_at(kafka.bootstrap_servers)
    source = broker.topic(
        1, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.001"
    )
    target = broker.topic(2)
    write = upsert_sink(
        options(broker, target),
        **{
            "sink.parallelism": 3,
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": "compacted",
        },
    )
    changes = spark.readStream.format("upsert-kafka").options(**options(broker, source))
    changes = changes.schema("id INT, name STRING, _change_type STRING")

    def run(kind: str) -> None:
        def call(rows: DataFrame, batch: int) -> None:
            write(rows.selectExpr("id", "name", kind), batch)

        writer = changes.load().writeStream.foreachBatch(call).trigger(availableNow=True)
        run_to_end(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())

    broker.produce(source, *(message(key, "old") for key in KEYS))
    # Of three tasks two run at once: the last one begins when another is done, and fails.
    in_the_last = (
        spark.range(20).selectExpr("CAST(id AS INT) AS id").filter("pmod(hash(id), 3) = 2")
    )
    failed = in_the_last.collect()[0].id
    failing = f"IF(id = {failed}, 'no kind', _change_type) AS _change_type"
    assert "'no kind' is not a kind of change" in refused(lambda: run(failing))
    written = values(broker, target)
    broker.produce(source, *(message(key, None if key == 9 else "new") for key in range(20)))

    def compacted() -> bool:
        broker.produce(source, message(99, "rolls the segment"))
        found = values(broker, source)
        return all("old" not in found[key] for key in range(20))

    eventually(compacted, "compaction")
    run("_change_type")
    found = values(broker, target)

    assert failed not in written
    assert written
    for key in KEYS:
        old = ["old"] if key in written or key >= 20 else []
        new = [] if key >= 20 else [None] if key == 9 else ["new"]
        assert found[key] == [*old, *new]
        assert max(Counter(found[key]).values()) == 1
        assert found[key][-1] == values(broker, source)[key][-1]
