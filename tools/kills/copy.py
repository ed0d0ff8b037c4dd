"""The program that is killed: ``python -m tools.kills.copy SERVERS FOLDER`` copies the source to both targets."""

from __future__ import annotations

import random
import re
import sys
import time

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import upsert_sink
from tools.faults import session
from tools.local_topics import table

SOURCE, EXACT, PLAIN = "source", "exact", "plain"
BATCH = 10_000

_REFUSED = re.compile(r"begun with 'sink\.parallelism' = '(\d+)'")
_RESTARTS = 20


class Copy:
    """A query that copies the source, started again after each failure; a supervisor would do the same.

    Args:
        spark: The session.
        servers: The bootstrap servers.
        target: The topic to copy to.
        folder: Where its checkpoint is.
    """

    def __init__(self, spark: SparkSession, servers: str, target: str, folder: str) -> None:
        self._spark, self._servers, self._target, self._folder = spark, servers, target, folder
        self._tasks = 0
        self._restarts = 0
        self.query = self._start()

    def is_done(self) -> bool:
        """Whether everything is copied; a query that failed is started again."""
        if self.query.isActive:
            return False
        failure = self.query.exception()
        if failure is None:
            return True
        self._restarts += 1
        if self._restarts > _RESTARTS:
            raise failure
        refused = _REFUSED.search(str(failure))
        self._tasks = int(refused[1]) if refused else 0
        print("refused" if refused else f"failed {_reason(failure)}", flush=True)
        self.query = self._start()
        return False

    def _start(self) -> StreamingQuery:
        changes = (
            self._spark.readStream.format("upsert-kafka")
            .schema("id BIGINT, n BIGINT, _change_type STRING, _offset BIGINT")
            .options(**table(self._servers, SOURCE), maxOffsetsPerTrigger=BATCH)
            .load()
        )
        writer = changes.writeStream.foreachBatch(self._write)
        writer = writer.option("checkpointLocation", f"{self._folder}/{self._target}")
        return writer.trigger(availableNow=True).start()

    def _write(self, rows: DataFrame, batch: int) -> None:
        tasks, self._tasks = self._tasks or random.choice((2, 3, 4)), 0
        exactly_once = {
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": "kills",
        }
        sink = upsert_sink(
            table(self._servers, self._target),
            **{"sink.parallelism": tasks, "sequence-by": "_offset"},
            **(exactly_once if self._target == EXACT else {}),
        )
        sink(rows, batch)


def _reason(failure: StreamingQueryException) -> str:
    """The line of a failure that says the most."""
    lines = [line for line in str(failure).splitlines() if "Error" in line]
    return (lines or [str(failure)])[-1].strip()[:300]


def copy_all(servers: str, folder: str) -> None:
    """Copies what is there to both targets, and ends."""
    spark = session("local[2,8]", {"spark.sql.shuffle.partitions": "2"})
    copies = [Copy(spark, servers, target, folder) for target in (EXACT, PLAIN)]
    print("started", flush=True)
    while not all([copy.is_done() for copy in copies]):  # noqa: C419 - each is looked at
        time.sleep(0.2)
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    copy_all(*sys.argv[1:])
