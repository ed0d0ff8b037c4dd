"""Iceberg and Delta Lake, each on the Spark that it is made for, and what tests do with their tables."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

import pyspark
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka import merge_sink
from pyspark_upsert_kafka.kafka.local.jars import broker_jars


@dataclass(frozen=True)
class Engine:
    """A table format, as Spark has it.

    Args:
        name: As SQL names it: ``USING <name>``.
        pyspark: How the version of PySpark begins that it is made for.
        lock: Its jars.
        catalog: What stands before the names of its tables.
        settings: Settings of Spark; ``{folder}`` is replaced by the folder of the tables.
    """

    name: str
    pyspark: str
    lock: str
    catalog: str
    settings: Mapping[str, str]

    @property
    def fits(self) -> bool:
        """Whether the PySpark that runs is the one."""
        return pyspark.__version__.startswith(self.pyspark)

    def session(self, folder: Path, **more: str) -> SparkSession:
        """A local session with it."""
        jars = broker_jars(Path(__file__).with_name(self.lock)).glob("*.jar")
        builder = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.jars", ",".join(sorted(map(str, jars))))
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .config("spark.connect.grpc.binding.port", "0")
        )
        for name, value in {**self.settings, **more}.items():
            builder = builder.config(name, value.format(folder=folder))
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")  # conflicts are what tests make
        return session


ICEBERG = Engine(
    "iceberg", "4.1.", "iceberg.lock", "lake.db.",
    {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": "{folder}/lake",
        "spark.sql.catalog.lake.cache-enabled": "false",
        # The same tables, by a catalog that remembers them.
        "spark.sql.catalog.remembering": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.remembering.type": "hadoop",
        "spark.sql.catalog.remembering.warehouse": "{folder}/lake",
    },
)  # fmt: skip
DELTA = Engine(
    "delta", "4.2.", "delta-lake.lock", "",
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Spares small tables fifty tasks.
        "spark.databricks.delta.snapshotPartitions": "1",
    },
)  # fmt: skip


def engine_here() -> Engine | None:
    """The engine that is made for the PySpark that runs; None = there is none."""
    return next((engine for engine in (ICEBERG, DELTA) if engine.fits), None)


def kill_jvm(session: SparkSession) -> None:
    """Ends a session whose JVM may no longer do as it is told, so that another one can be made."""
    gateway: Any = SparkContext._gateway
    gateway.proc.kill()
    gateway.proc.wait()
    gateway.proc.stdin.close()
    context = session.sparkContext
    context._jsc = None  # the rest of it is in this process
    context.stop()
    gateway.close()
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


@dataclass
class Lake:
    """A session with an engine, and tables that no other test has."""

    engine: Engine
    session: SparkSession
    folder: Path
    _offset: int = field(default=0)

    def table(self) -> str:
        """The name of a table that is not there yet."""
        return f"{self.engine.catalog}t{uuid.uuid4().hex[:12]}"

    def create(self, columns: str, more: str = "") -> str:
        """Creates a table, and returns its name."""
        table = self.table()
        self.session.sql(f"CREATE TABLE {table} ({columns}) USING {self.engine.name} {more}")
        return table

    def changes(self, columns: str, *changes: tuple[Any, ...]) -> DataFrame:
        """Changes of one partition, in order; the kind of change is the last value of each."""
        rows = []
        for change in changes:
            rows.append((*change[:-1], 0, self._offset, change[-1]))
            self._offset += 1
        of_message = "_partition INT, _offset BIGINT, _change_type STRING"
        return self.session.createDataFrame(rows, f"{columns}, {of_message}")

    def merge(
        self, table: str, columns: str, *changes: tuple[Any, ...], key: Any = "id", **more: Any
    ) -> None:
        """Merges a batch of changes."""
        merge_sink(table, primary_key=key, **more)(self.changes(columns, *changes), 0)

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """The rows of a table, sorted."""
        found = self.read(table).select(*columns or "*").collect()
        return sorted((tuple(row) for row in found), key=repr)

    def files(self, table: str) -> set[Path]:
        """The files of a table that hold rows, whether a commit names them or not."""
        in_catalog = self.folder / ("lake" if self.engine.name == "iceberg" else "warehouse")
        place = Path(table) if "/" in table else in_catalog.joinpath(*table.split(".")[1:])
        return {file for file in place.rglob("*.parquet") if not file.name.startswith(".")}

    def read(self, table: str) -> DataFrame:
        """A table as it is now."""
        if table.startswith("/"):
            return self.session.read.format("delta").load(table)
        self.session.catalog.refreshTable(table)
        return self.session.table(table)

    def columns(self, table: str) -> str:
        """The columns of a table, as ``id: bigint, ...``."""
        return self.read(table).schema.simpleString()[len("struct<") : -1]
