"""Python runs this at the start of each process of a test's Spark, before all else.

Spark forks its Python workers from one process for each kind of them. Those processes import here what their workers
need, once, and free the garbage collector from it: else each worker looks through it after each task. What is imported
is not used before the fork.

The process of a stream is not forked, and Spark gives it ten seconds to connect. It connects here, before it imports
anything: on a busy machine its imports alone can take as long.
"""

import gc
import os
import sys
from importlib import import_module

_TO_PLAN = (
    "pyspark_upsert_kafka.formats.json",
    "pyspark_upsert_kafka.kafka.librdkafka",
    "pyspark_upsert_kafka.connector.writing.writer",
    "pyspark_upsert_kafka.connector.planning.batch_reader",
)
_TO_RUN_TASKS = (
    "pandas",
    "polars",
    "pyarrow.dataset",
    "pyarrow.json",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
    "pyspark_upsert_kafka.formats.json.json_encoder",
    "pyspark_upsert_kafka.formats.json.column_paths",
    "pyspark_upsert_kafka.kafka.librdkafka.reader",
    "pyspark_upsert_kafka.kafka.librdkafka.sender",
    "pyspark_upsert_kafka.connector.writing.delivery",
    "pyspark_upsert_kafka.connector.reading.task_reading",
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


def _connect() -> None:
    """Connects to Spark, as `local_connect_and_auth` of PySpark does later; that then gives this connection."""
    import socket

    secret = os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode()
    connection = socket.create_connection(
        ("127.0.0.1", int(os.environ["PYTHON_WORKER_FACTORY_PORT"]))
    )
    connection.sendall(len(secret).to_bytes(4, "big") + secret)

    def connected(*_: object) -> tuple[object, socket.socket]:
        file = connection.makefile("rwb", 65536)
        reply = file.read(int.from_bytes(file.read(4), "big"))
        if reply != b"ok":
            raise ConnectionRefusedError(f"Spark has answered {reply!r} to its own secret")
        return file, connection

    import_module("pyspark.util").local_connect_and_auth = connected


if sys.orig_argv[1:3] == ["-m", "pyspark.daemon"]:
    for module in _IMPORTS.get(sys.orig_argv[3], ()):
        import_module(module)
    gc.freeze()
elif (
    sys.orig_argv[1:2] == ["-m"]
    and sys.orig_argv[2].startswith("pyspark.")
    and {"PYTHON_WORKER_FACTORY_PORT", "PYTHON_WORKER_FACTORY_SECRET"} <= os.environ.keys()
):
    _connect()
