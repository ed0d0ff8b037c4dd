"""Makes the class archives with which the JVMs of tests start in half the CPU time.

The tests start dozens of brokers and Spark drivers, and each of them loads and verifies the same thousands of classes. With an
archive of Java's class-data sharing (JEP 350) they need not do that. An archive that does not fit, because Java or the
jars have changed, is ignored silently, and the tests give the same results without it.

`make test-long` and its like run this once for their virtual environment; `make test` starts too few JVMs to make them.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_upsert_kafka import LocalKafka, upsert_sink
from tools.local_topics import create, table

FOLDER = Path(__file__).parents[1] / ".venv" / "class-archives"
BROKER = FOLDER / "broker.jsa"
SPARK = FOLDER / "spark.jsa"

# With the optimising compiler and a collector that works in threads of its own a JVM that lives for seconds needs half
# the CPU time again.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def flags(archive: Path) -> str:
    """What a JVM is told to start quickly, with its archive if there is one, as words of a shell."""
    given = shlex.quote(f"-XX:SharedArchiveFile={archive}")
    return f"{_QUICK} {given} {_SILENT}" if archive.exists() else _QUICK


def _flags_to_make(archive: Path) -> str:
    given = shlex.quote(f"-XX:ArchiveClassesAtExit={archive}.new")
    return f"{_QUICK} {given} {_SILENT}"


def _use_tables(spark: SparkSession, servers: str, checkpoints: str) -> None:
    """A batch and two streams, which load what most tests need."""
    users = spark.range(100).selectExpr("id", "cast(id % 7 as string) name")
    users.write.format("upsert-kafka").options(**table(servers, "users")).mode("append").save()
    read = spark.read.format("upsert-kafka").schema(users.schema)
    read.options(**table(servers, "users")).load().collect()
    stream = spark.readStream.format("upsert-kafka").options(**table(servers, "users"))
    changes = stream.schema("id BIGINT, name STRING, _change_type STRING").load()
    counts = changes.groupBy("id").count().writeStream.outputMode("update")
    sink = upsert_sink(table(servers, "counts"))
    copy = changes.writeStream.format("upsert-kafka").options(**table(servers, "copy"))
    for name, writer in {"counts": counts.foreachBatch(sink), "copy": copy}.items():
        query = writer.option("checkpointLocation", f"{checkpoints}/{name}")
        query.trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    """Runs a broker and Spark as tests do, and keeps the classes that they loaded."""
    FOLDER.mkdir(exist_ok=True)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["LOCAL_KAFKA_OPTS"] = _flags_to_make(BROKER)
    os.environ["SPARK_SUBMIT_OPTS"] = _flags_to_make(SPARK)
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as checkpoints:
        create(kafka.bootstrap_servers, "users", "counts", "copy", partitions=2)
        session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = session.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        _use_tables(spark, kafka.bootstrap_servers, checkpoints)
        kafka.stop()  # in good order: closing kills it, and a JVM that is killed writes no archive
        # The archive is written when the JVM ends; Spark gives no other way to wait for that.
        driver = spark.sparkContext._gateway.proc  # noqa: SLF001
        spark.stop()
        driver.stdin.close()
        driver.wait()
    for archive in (BROKER, SPARK):
        Path(f"{archive}.new").replace(archive)


if __name__ == "__main__":
    main()
