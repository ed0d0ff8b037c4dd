"""A query that tests kill while columns come: ``python -m tests.spark.columns_program JOB``, where JOB is a `Job` in JSON.

The supervisor of docs/operating.md starts it, again and again, until it has read what there is. At a place the program makes a file
of that name, and waits until there is one more, with ``.go`` behind the name: a test kills it there, or lets it go on.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import merge_sink, upsert_sink
from tests.spark.streams import KNOWS_LIMITS
from tests.spark.supervised import supervisor


@dataclass(frozen=True)
class Job:
    """What the query does.

    Args:
        folder: For the checkpoint, and the files of the places.
        source: Options of the stream.
        sink: Options of `upsert_sink`; empty = it merges into the table.
        table: The table.
        lake: The folder of its catalog.
        places: Where it waits: ``loaded``, in the first start when the columns are known; and in the second one ``ended``, before
            they are looked up anew, ``restarting``, before the query starts, ``altered``, before the MERGE, and ``written``, after
            the sink has the batch.
    """

    folder: str
    source: dict[str, str]
    sink: dict[str, str]
    table: str = ""
    lake: str = ""
    places: tuple[str, ...] = ()

    def to_text(self) -> str:
        """The job in JSON."""
        return json.dumps(asdict(self))


def run(session: SparkSession, job: Job) -> None:
    """Runs the query until it has read what there is."""
    folder, checkpoint = Path(job.folder), Path(job.folder) / "checkpoint"
    starts = 0

    def reached(place: str) -> None:
        if place in job.places and starts == (1 if place == "loaded" else 2):
            (folder / place).touch()
            while not (folder / f"{place}.go").exists():
                time.sleep(0.05)

    sink = _sink(job, lambda: reached("altered"))

    def write(batch: DataFrame, number: int) -> None:
        sink(batch, number)
        reached("written")

    def start() -> StreamingQuery:
        nonlocal starts
        starts += 1
        reached("ended")
        return query()

    def query() -> StreamingQuery:
        frame = session.readStream.format("upsert-kafka").options(**job.source).load()
        reached("loaded")
        writer = frame.writeStream.foreachBatch(write).trigger(availableNow=True)
        reached("restarting")
        return writer.option("checkpointLocation", str(checkpoint)).start()

    planned, done = (len([*checkpoint.glob(f"{log}/[0-9]*")]) for log in ("offsets", "commits"))
    if planned > done and not KNOWS_LIMITS:
        # Before PySpark 4.2 such a query ends with the batch that was not finished.
        query().awaitTermination()
    supervisor()(start, pause_s=0.1)


def _sink(job: Job, before_merge: Callable[[], None]) -> Callable[[DataFrame, int], None]:
    if job.sink:
        return upsert_sink(job.sink)
    sql = SparkSession.sql

    def watched(session: SparkSession, query: str, *args: Any, **more: Any) -> DataFrame:
        if query.startswith("MERGE"):
            before_merge()
        return sql(session, query, *args, **more)

    SparkSession.sql = watched  # type: ignore[method-assign]
    return merge_sink(job.table, primary_key="id", schema="evolve")


def main(text: str) -> None:
    """Runs a job in a session of its own."""
    job = Job(**json.loads(text))
    if job.lake:
        from tests.lakehouse.engines import engine_here

        engine = engine_here()
        assert engine is not None
        session = engine.session(Path(job.lake))
    else:
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    run(session, job)


if __name__ == "__main__":
    main(*sys.argv[1:])
