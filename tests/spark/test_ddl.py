"""Tables that a Flink `CREATE TABLE` statement defines: written, read and streamed by it alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyspark_upsert_kafka import upsert_sink, watermark_of
from pyspark_upsert_kafka.cli import main
from tests.conftest import Broker
from tests.spark.batches import refused
from tests.spark.conftest import rows, run_to_end

REGIONS = """
CREATE TABLE `regions` (
  `region` STRING NOT NULL,      -- the key
  `pv` BIGINT,
  `uv` BIGINT,
  `changed_at` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  PRIMARY KEY (`region`) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '{topic}',
  'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'csv',
  'value.format' = 'csv',
  'sink.parallelism' = '2'
);
"""

VIEWS = """
CREATE TABLE views (
  user_id BIGINT,
  viewtime TIMESTAMP(3),
  region STRING,
  page STRING,
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = '{topic}',
  'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'raw',
  'key.fields' = 'page',
  'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
)
"""


def table(spark: SparkSession, ddl: str) -> DataFrame:
    """The table as of now."""
    return spark.read.format("upsert-kafka").option("ddl", ddl).load()


def test_a_table_is_written_and_read_by_its_ddl(spark: SparkSession, broker: Broker) -> None:
    """Rows are written in the order and types of the DDL, and read back with its columns; no option is needed."""
    ddl = REGIONS.format(topic=broker.topic(2), servers=broker.servers)
    ddl = ddl.replace("'sink.parallelism' = '2'", "'scan.parallelism' = '2'")
    written = spark.createDataFrame(
        [(7, "Asia", 3, "upsert"), (1, "Europe", 1, "upsert"), (None, "Asia", None, "delete")],
        "uv INT, Region STRING, pv BIGINT, _change_type STRING",
    ).coalesce(1)

    written.write.format("upsert-kafka").mode("append").option("ddl", ddl).save()
    found = table(spark, ddl)

    assert found.columns == ["region", "pv", "uv", "changed_at", "_change_type"]
    assert rows(found.select("region", "pv", "uv")) == [("Europe", 1, 1)]
    # What was read can be written back: VIRTUAL columns are left alone.
    found.write.format("upsert-kafka").mode("append").option("ddl", ddl).save()
    text = refused(
        lambda: written.withColumn("pv", f.col("pv").cast("string"))
        .write.format("upsert-kafka").mode("append").option("ddl", ddl).save()
    )  # fmt: skip
    assert "Column 'pv' has the type STRING, and in the DDL BIGINT: cast it." in text


def test_the_printed_program_runs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `ddl FILE.sql` prints makes the streams that the statements themselves make; no broker is asked."""
    statements = {"views": VIEWS, "regions": REGIONS}
    script = ";".join(statements.values()).format(topic="t", servers="nowhere:9092")
    (tmp_path / "tables.sql").write_text(script, encoding="utf-8")

    assert main(["ddl", str(tmp_path / "tables.sql")]) == 0
    made: dict[str, DataFrame] = {}
    exec(capsys.readouterr().out, made)

    for name, ddl in statements.items():
        given = ddl.format(topic="t", servers="nowhere:9092")
        stream = spark.readStream.format("upsert-kafka").option("ddl", given).load()
        assert made[name].isStreaming
        assert made[name].schema.simpleString() == stream.schema.simpleString()


def test_views_are_counted_in_windows(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """An append source with a watermark, and a column of its key, feeds a table by `upsert_sink`."""
    views, regions = broker.topic(1), broker.topic(2)
    from_ddl = VIEWS.format(topic=views, servers=broker.servers)
    to_ddl = REGIONS.format(topic=regions, servers=broker.servers)
    for page, user, second, region in [
        ("a", 1, 1, "Asia"),
        ("b", 1, 2, "Asia"),
        ("a", 2, 3, "Asia"),
    ]:
        view = {"user_id": user, "viewtime": f"2026-01-01 00:00:0{second}", "region": region}
        broker.produce(views, (page, json.dumps(view)))

    stream = spark.readStream.format("upsert-kafka").option("ddl", from_ddl).load()
    counts = (
        stream.withWatermark(*watermark_of(from_ddl))
        .groupBy("region", f.window("viewtime", "1 hour"))
        .agg(f.count("page").alias("pv"), f.approx_count_distinct("user_id").alias("uv"))
        .drop("window")
    )
    query = (
        counts.writeStream.outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .foreachBatch(upsert_sink(ddl=to_ddl))
        .start()
    )
    run_to_end(query)

    assert stream.columns == ["user_id", "viewtime", "region", "page"]
    assert rows(table(spark, to_ddl).select("region", "pv", "uv")) == [("Asia", 3, 2)]
