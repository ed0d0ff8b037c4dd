"""A column that is added in a database arrives in the table without a person (``scan.schema-changes`` = ``restart``)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import merge_sink, why_it_ended
from tests.conftest import Broker, options
from tests.lakehouse.engines import Lake
from tests.spark.conftest import run_to_end
from tests.spark.streams import failing_once
from tools.recorded_debezium import TOPIC, Recorded, record


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "fails",
    [False, pytest.param(True, marks=pytest.mark.long("one more run of the query"))],
    ids=["", "and the batch fails once more"],
)
def test_a_column_of_a_database(lake: Lake, broker: Broker, tmp_path: Path, fails: bool) -> None:
    """The batch that met it is merged again, with the column, whatever of it was merged before: the table is that of the database."""
    recording, topic = record(Recorded(7, rows=12, transactions=12)), broker.topic()
    table = lake.table()
    merge = merge_sink(table, primary_key="id", schema="evolve")
    given = options(
        broker,
        topic,
        **{
            "key.format": "json",
            "value.format": "debezium-json",
            "value.debezium-json.schema-include": "true",
        },
    )
    stream = {
        "scan.schema-changes": "restart",
        "metadata._partition": "partition",
        "metadata._offset": "offset",
    }

    def send(part: str) -> None:
        messages = [each for each in recording.parts[part] if each.topic == TOPIC]
        broker.produce(topic, *((each.key, each.value) for each in messages))

    def load() -> DataFrame:
        return lake.session.readStream.format("upsert-kafka").options(**given, **stream).load()

    write = failing_once(merge, tmp_path / "failed", "tier") if fails else merge

    def start(frame: DataFrame) -> StreamingQuery:
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(availableNow=True).foreachBatch(write).start()

    send("snapshot")
    run_to_end(start(load()))
    before = load()
    send("changes")
    send("added-column")
    with pytest.raises(PySparkException) as raised:
        run_to_end(start(before))
    why = why_it_ended(raised.value)
    assert (why.error, why.restart) == ("SchemaChangedError", True)
    assert "lacks: tier SMALLINT" in why.text
    if fails:
        with pytest.raises(PySparkException):
            run_to_end(start(load()))
    run_to_end(start(load()))

    in_topic = lake.session.read.format("upsert-kafka").options(**given).load()
    names = [column.name for column in recording.columns]
    expected = sorted((tuple(row) for row in in_topic.select(*names).collect()), key=repr)
    assert lake.rows(table, *names) == expected
    assert {row[0] for row in expected} == recording.table.keys()
    assert any(row[-1] is not None for row in expected)
