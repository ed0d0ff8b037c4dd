"""`make histories`: reads snapshots of a table that is changed and compacted all the time.

Each history has its own topic, on one broker with small segments and a log cleaner without pauses. A writer upserts, deletes and
inserts again without a pause, with or without transactions. Meanwhile two or three snapshots are read, sometimes slowly: by either
client, with one task for each partition or more, once or twice after they were planned. As many streams begin with such a table
(`table_first.py`). After that, Spark reads the snapshots of a tenth as many further histories.

The key and the offset of each written message are known. So three rules are checked for each snapshot: no key is missing that existed
during the whole time from planning to the end of the read; no key appears twice; and each row was the row of its key at some time
between these two. The last line is the verdict. The exit code is 0 only if all rules hold.

`make histories HISTORIES=10` is a short one.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import asdict
from functools import partial
from random import Random

from pyspark_upsert_kafka import LocalKafka
from tools.faults import listed, repeated, session
from tools.histories.history import CLEANER, Counts, history, with_spark
from tools.histories.table_first import table_first
from tools.verdict import Held

HISTORIES = 100


def proof(histories: int, seed: int) -> Held:
    """The whole of it; returns what is said when it holds."""
    counts = Counts()
    with LocalKafka(config=CLEANER) as kafka:
        for number in range(histories):
            history(kafka.bootstrap_servers, Random(seed + number), counts)
            table_first(kafka.bootstrap_servers, Random(seed + number), counts)
            print(f"histories: {number + 1} of {histories}, {asdict(counts)}", flush=True)
        spark = session("local[2]", {}, log="ERROR")
        snapshot = partial(with_spark, spark)
        for number in range(by_spark := max(1, histories // 10)):
            history(kafka.bootstrap_servers, Random(seed - number), counts, snapshot)
            print(f"histories: {number + 1} of {by_spark} with Spark, {asdict(counts)}", flush=True)
        spark.stop()
    return Held(
        f"{histories} histories and {by_spark} with Spark: {listed(asdict(counts))}; no key was missing"
    )


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    sys.exit(repeated("histories", proof, HISTORIES))
