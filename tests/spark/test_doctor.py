"""``doctor`` and a checkpoint that Spark has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from pyspark_upsert_kafka.cli import main
from tests.conftest import Broker
from tests.kafka.conftest import delete_before
from tests.spark.conftest import run_to_end
from tests.spark.streams import Batches, message, named, read

pytestmark = pytest.mark.long("three queries; tests/kafka/test_doctor.py holds the rest")


def test_a_checkpoint_of_spark(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What doctor says of it is what the query does: it goes on, also with a second source, and cannot after data was lost."""
    topic = broker.topic(retention_ms="-1")
    other = broker.topic()
    broker.produce(topic, *(message(n) for n in range(3)))
    broker.produce(other, message(7))
    frame = named(read(spark, broker, other), "other").unionAll(
        named(read(spark, broker, topic), "topic")
    )
    sink = Batches(tmp_path)
    run_to_end(sink.start(frame))
    broker.produce(topic, message(3), message(4))

    def checkpoint() -> dict[str, str]:
        capsys.readouterr()
        where = ["--topic", topic, "--bootstrap-servers", broker.servers, "--output", "json"]
        table = ["--schema", "id BIGINT, name STRING", "--primary-key", "id"]
        main(["doctor", *where, *table, "--checkpoint", str(tmp_path)])
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return next(each for each in found if each["check"] == "checkpoint")

    found = checkpoint()
    assert found["level"] == "ok"
    assert "with about 2 offsets to read" in found["text"]
    delete_before(broker, topic, 4)
    found = checkpoint()
    assert found["level"] == "error"
    assert "at offset 3, and the first that is left is 4" in found["text"]
    with pytest.raises(StreamingQueryException, match="Some data may have been lost"):
        run_to_end(sink.start(frame))
