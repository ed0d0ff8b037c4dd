"""`make reruns`: exactly-once queries fail and run again with a change: sinks in another order, in threads, other keys.

Each of 300 attempts is a query of one or two small batches. It has one or two sinks to one topic, usually with one prefix. It fails: a
row cannot be encoded, the function of ``foreachBatch`` fails at its end, or a worker is killed. Then the query runs again with a
change: the sinks in the other order, or one of them left out; calls from threads; keys cast to another type (with and without a
DDL); ``primary-key`` in another order; another number of tasks. In the end it runs as it was started.

After each run Kafka's own Java client, read_committed, must find no row twice, and when the query says that it is done, each row once. A query may be
rejected only with an error of this package. The last line is the verdict.

`make reruns ATTEMPTS=20` is a short one.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from tools.spark_home import spark_home

os.environ["PYSPARK_PYTHON"] = sys.executable
# Hundreds of queries start thousands of Python workers.
os.environ.setdefault("SPARK_HOME", str(spark_home()))
_WORKERS = str(Path(__file__).parents[2] / "tests" / "spark_workers")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_WORKERS, os.environ.get("PYTHONPATH")]))

from pyspark.sql import SparkSession  # noqa: E402

from pyspark_upsert_kafka import LocalKafka  # noqa: E402
from tools.proof.java_reader import JavaReader  # noqa: E402
from tools.reruns.attempt import Attempt, RerunsError  # noqa: E402
from tools.reruns.variant import FAULTS  # noqa: E402
from tools.verdict import Held, verdict  # noqa: E402

ATTEMPTS = 300
_AT_ONCE = 4


def proof(attempts: int, seed: int) -> Held:
    """The whole of it; returns what is said when it holds."""
    spark = (
        SparkSession.builder.master("local[4,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        # Each plan runs once, over a few rows: to compile it costs more than to run it.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    # Imported by several threads at the same time it fails.
    import_module("sqlglot")
    counts: Counter[str] = Counter()
    finds: list[str] = []
    with (
        LocalKafka() as kafka,
        tempfile.TemporaryDirectory() as folder,
        JavaReader(kafka.bootstrap_servers) as reader,
    ):

        def one(number: int) -> None:
            attempt = Attempt(spark, kafka.bootstrap_servers, reader, folder, f"{seed}-{number}")
            try:
                attempt.run()
            except RerunsError as found:
                finds.append(str(found))
                print(f"reruns: FOUND {found}", flush=True)
            if attempt.counts["refused for good"]:
                print(f"reruns: refused for good\n{attempt}", flush=True)
            counts.update(attempt.counts)
            counts["attempts"] += 1
            if counts["attempts"] % 10 == 0:
                print(f"reruns: {_shown(counts)}", flush=True)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(one, range(attempts)))
        spark.stop()
    if finds:
        raise RerunsError(f"{len(finds)} finds in {attempts} attempts; the first: {finds[0]}")
    faults = {name: count for name, count in counts.items() if name in FAULTS.values()}
    return Held(_shown(counts), faults)


def _shown(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.most_common())


def main() -> int:
    """Prints the verdict."""
    attempts = int(sys.argv[1]) if len(sys.argv) > 1 else ATTEMPTS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**6)
    return verdict("reruns", lambda: proof(attempts, seed), f" (seed {seed})")


if __name__ == "__main__":
    sys.exit(main())
