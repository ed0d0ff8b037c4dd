"""100,000 micro-batches of the connector alone: it is called as Spark's Python processes call it, in one process, without Spark.

Each is planned, read, written to another topic and committed, with the JSON of offsets in between. What the connector itself
leaks with each micro-batch is seen here.
"""

from __future__ import annotations

import gc
import json
import time

import psutil
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import StructType
from topics import new_topic

from pyspark_upsert_kafka import LocalKafka, UpsertKafkaDataSource
from scale import backlog
from scale.samples import Sample
from scale.sessions import options_of

_SCHEMA = StructType().add("id", "long").add("n", "long").add("_change_type", "string")
_SAMPLES = 40


def measure(*, batches: int, seconds: float) -> dict:
    """Runs micro-batches until there were so many, or the time is over."""
    with LocalKafka() as kafka:
        servers = kafka.bootstrap_servers
        source, target = new_topic(servers, 1), new_topic(servers)
        backlog.write(servers, source, 1, batches)
        return {"samples": _run(servers, source, target, batches, seconds)}


def _run(servers: str, source: str, target: str, batches: int, seconds: float) -> list[Sample]:
    limit = ReadMaxRows(1)
    options = {**options_of(servers, source), "maxOffsetsPerTrigger": str(limit.max_rows)}
    reader = UpsertKafkaDataSource(options).streamReader(_SCHEMA)
    to_target = UpsertKafkaDataSource(options_of(servers, target))
    start, samples, rows, begin = reader.initialOffset(), [], 0, time.monotonic()
    every = max(1, batches // _SAMPLES)
    for batch in range(1, batches + 1):
        end = reader.latestOffset(start, limit)
        if end == start:
            break
        reader.reportLatestOffset()
        for partition in reader.partitions(start, end):
            found = list(reader.read(partition))
            rows += sum(each.num_rows for each in found)
            writer = to_target.streamWriter(_SCHEMA, overwrite=False)
            writer.commit([writer.write(iter(found))], batch)
        reader.commit(end)
        start = json.loads(json.dumps(end))
        gc.collect()  # as Spark's workers do after each task
        if batch % every == 0:
            samples.append(_sample(batch, rows, time.monotonic() - begin))
            print(f"scale: {samples[-1]}", flush=True)
        if time.monotonic() > begin + seconds:
            break
    return samples


def _sample(batches: int, rows: int, seconds: float) -> Sample:
    mine = psutil.Process()
    return {
        "batches": batches,
        "seconds": seconds,
        "rows": rows,
        "process, MB": mine.memory_info().rss / 1e6,
        "process, threads": mine.num_threads(),
        "process, open files": mine.num_fds(),
    }
