"""Python runs this at the start of each process of a test's Spark, before all else.

Spark forks its Python workers from one process for each kind of them. Those processes import here what their workers
need, once, and free the garbage collector from it: else each worker looks through it after each task. What is imported
is not used before the fork.
"""

import gc
import sys
from importlib import import_module

_TO_PLAN = (
    "pyspark_upsert_kafka.formats.json",
    "pyspark_upsert_kafka.kafka.librdkafka",
    "pyspark_upsert_kafka.sink.writer",
    "pyspark_upsert_kafka.source.planning.batch",
)
_TO_RUN_TASKS = (
    "pandas",
    "polars",
    "pyarrow.dataset",
    "pyarrow.json",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
    "pyspark_upsert_kafka.formats.json.encoding",
    "pyspark_upsert_kafka.formats.json.vectorised_path",
    "pyspark_upsert_kafka.kafka.librdkafka.reader",
    "pyspark_upsert_kafka.kafka.librdkafka.sender",
    "pyspark_upsert_kafka.sink.task",
    "pyspark_upsert_kafka.source.reading.task",
)

_PLANNERS = (
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
)
_IMPORTS = {
    "pyspark.worker": (*_TO_PLAN, *_TO_RUN_TASKS),
    **{planner: (planner, *_TO_PLAN) for planner in _PLANNERS},
}

# While modules are imported there is little garbage: looking for it takes an eighth of a process's start.
gc.set_threshold(100_000)

# Spark puts its own jar on Python's path. It holds no Python, and each process would read its long directory twice.
for entry in [each for each in sys.path if each.endswith(".jar")]:
    sys.path.remove(entry)
    sys.path_importer_cache.pop(entry, None)

if sys.orig_argv[1:3] == ["-m", "pyspark.daemon"]:
    for module in _IMPORTS.get(sys.orig_argv[3], ()):
        import_module(module)
    gc.freeze()
