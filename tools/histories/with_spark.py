"""Reads snapshots with Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from random import Random

from pyspark.sql import SparkSession

from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.format_catalog import format_options
from pyspark_upsert_kafka.kafka.clients import load_client
from tools.histories.history import COLUMNS, Found, ends


class WithSpark:
    """Reads snapshots with a session of its own."""

    def __init__(self) -> None:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        self._spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")

    def snapshot(self, given: dict[str, str], random: Random) -> Iterator[Found]:
        """A DataFrame whose rows are collected twice, with a pause between."""
        options = read_options(given, format_options, stream=False)
        client = load_client(options.table.client)
        table = self._spark.read.format("upsert-kafka").schema(COLUMNS).options(**given).load()
        with closing(client.cluster(options.table.properties, "driver")) as cluster:
            begins = ends(cluster, options)
            for _ in range(2):
                rows = [(row["_partition"], row["id"], row["n"]) for row in table.collect()]
                yield Found(rows, begins, ends(cluster, options))
                time.sleep(random.random())

    def stop(self) -> None:
        """Ends the session."""
        self._spark.stop()
