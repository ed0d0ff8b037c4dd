"""A driver that dies between two steps of a batch: its checkpoint is made as such a crash leaves it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pyspark_upsert_kafka import upsert_sink
from tests.conftest import Broker, options
from tests.spark.conftest import run_to_end
from tests.spark.streams import message, read
from tests.spark.test_recovery_kill import last_values

pytestmark = pytest.mark.long("six queries of one table")

STEPS = {
    "nothing of it": ("first", None),
    "it was planned": ("first", "offsets"),
    "its tasks were done": ("second", "commits"),
    "it was committed": ("second", None),
}
"""What was done of the second batch when the driver died -> the checkpoint after which batch it is made
of, and the log in which the second batch is added to it or taken away."""


def crashed(folder: Path, step: str) -> Path:
    """The checkpoint of a query whose driver died at this step."""
    batch, log = STEPS[step]
    made = folder / step
    shutil.copytree(folder / batch, made)
    for name in ("1", ".1.crc") if log else ():
        if batch == "first":
            shutil.copy(folder / "second" / log / name, made / log / name)
        else:
            (made / log / name).unlink()
    return made


def test_a_driver_that_dies_between_two_steps_of_a_batch(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Each change is counted once, and only what was not committed is written again."""
    source = broker.topic(2)
    targets = {step: broker.topic() for step in STEPS}
    counts = read(spark, broker, source).groupBy("id").agg(f.count("*").alias("changes"))

    def run(target: str, checkpoint: Path) -> None:
        sink = upsert_sink(options(broker, target))
        writer = counts.writeStream.outputMode("update").foreachBatch(sink)
        writer = writer.option("checkpointLocation", str(checkpoint))
        run_to_end(writer.trigger(availableNow=True).start())

    for batch, ids in (("first", range(50)), ("second", range(20, 70))):
        broker.produce(source, *(message(id_) for id_ in ids))
        written = broker.topic()
        if batch == "second":
            shutil.copytree(tmp_path / "first", tmp_path / "second")
        run(written, tmp_path / batch)
        for step, (made_of, _) in STEPS.items():
            if batch == "first" or made_of == "second":
                broker.produce(targets[step], *broker.pairs(written))
    broker.produce(source, message(1, "after"), message(60, None))
    for step, target in targets.items():
        run(target, crashed(tmp_path, step))

    found = Counter(json.loads(key or b"")["id"] for key, _ in broker.pairs(source))
    expected = {b'{"id":%d}' % id_: {"id": id_, "changes": count} for id_, count in found.items()}
    for target in targets.values():
        assert last_values(broker, target) == expected
    repeated = {step: len(broker.pairs(target)) for step, target in targets.items()}
    # A batch done for the first time takes along what came after the crash; one done again does not.
    assert repeated == {
        "nothing of it": 50 + 51, "it was planned": 50 + 50 + 2,
        "its tasks were done": 50 + 50 + 50 + 2, "it was committed": 50 + 50 + 2,
    }  # fmt: skip
