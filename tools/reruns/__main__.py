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

import json
import re
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from pyspark_upsert_kafka import LocalKafka
from tools.faults import BrokenRuleError, listed, repeated, session, with_fast_workers
from tools.local_topics import create
from tools.proof.java_reader import JavaReader
from tools.reruns.query import (
    FAULTS,
    ROWS,
    Fault,
    Query,
    Variant,
    changed,
    fault,
    first_variant,
    is_of,
)
from tools.verdict import Held

ATTEMPTS = 300
_AT_ONCE = 4

_OURS = re.compile(r"\b(OptionError|CheckpointError|EncodeError|BrokerError|DeliveryError): ")
_EXPECTED = re.compile(r"RuntimeError: after all calls|Python worker exited unexpectedly")


def proof(attempts: int, seed: int) -> Held:
    """The whole of it; returns what is said when it holds."""
    with_fast_workers()
    spark = session(
        "local[4,4]",
        {
            "spark.sql.shuffle.partitions": "2",
            # Each plan runs once, over a few rows: to compile it costs more than to run it.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        },
    )
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
            except BrokenRuleError as found:
                finds.append(str(found))
                print(f"reruns: FOUND {found}", flush=True)
            if attempt.counts["refused for good"]:
                print(f"reruns: refused for good\n{attempt}", flush=True)
            counts.update(attempt.counts)
            counts["attempts"] += 1
            if counts["attempts"] % 10 == 0:
                print(f"reruns: {listed(dict(counts.most_common()))}", flush=True)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(one, range(attempts)))
        spark.stop()
    if finds:
        raise BrokenRuleError(f"{len(finds)} finds in {attempts} attempts; the first: {finds[0]}")
    faults = {name: count for name, count in counts.items() if name in FAULTS.values()}
    return Held(listed(dict(counts.most_common())), faults)


class Attempt:
    """A query with a topic of its own.

    Args:
        spark: The session.
        servers: The bootstrap servers.
        reader: Reads its topic.
        folder: Where files and checkpoints are.
        seed: Of its random choices, and the end of its name.
    """

    def __init__(
        self, spark: SparkSession, servers: str, reader: JavaReader, folder: str, seed: str
    ) -> None:
        self._random, self._reader = Random(seed), reader
        self._topic = f"attempt-{seed}"
        create(servers, self._topic, partitions=1, compacted=False)
        batches = self._random.choice((1, 1, 1, 1, 2))
        self._query = Query(spark, servers, self._topic, Path(folder) / seed, batches)
        self._runs: list[str] = []
        self._swapped = False
        self._first = first_variant(self._random)
        self.counts: Counter[str] = Counter()

    def run(self) -> None:
        """Runs the query until it is done, or refused for good.

        Raises:
            BrokenRuleError: A row is lost or repeated, or the query failed with something that nobody expects.
        """
        self.counts[f"second sink told by {self._first.kind}"] += 1
        tried = [self._first]
        done = self._one(self._first, fault(self._random))
        if not done and self._random.random() < 0.4:
            tried.append(changed(self._first, self._random))
            done = self._one(tried[-1], fault(self._random))
        done = done or self._as_begun(tried)
        self.counts["done" if done else "refused for good"] += 1
        if done and self._random.random() < 0.2:
            self._query.forget_last()
            self.counts["commits forgotten"] += 1
            self._one(self._random.choice([*tried, changed(self._first, self._random)]), "")

    def _as_begun(self, tried: list[Variant]) -> bool:
        """Without faults, in each of the ways in which it may have been begun."""
        plain = replace(self._first, caller="here")
        ways = dict.fromkeys([*(replace(each, caller="here") for each in tried), plain])
        return any(self._one(each, "") for each in ways) or self._obeying(tried)

    def _obeying(self, tried: list[Variant]) -> bool:
        """The second sink gets a prefix of its own, if the first one has always been the first."""
        if self._first.kind != "nothing" or any(each.order != "AB" for each in tried):
            return False
        ways = dict.fromkeys(replace(each, caller="here", obeys=True) for each in tried)
        if not any(self._one(each, "") for each in ways):
            raise self._found("what the refusal says does not help")
        return True

    def _one(self, variant: Variant, fault: Fault) -> bool:
        # Sinks that nothing tells apart are refused for as long as both are called, and what is there by then
        # is not promised.
        self._swapped = self._swapped or variant.order == "BA"
        before = self._written()
        text = self._query.run(variant, fault, self._random)
        after = self._written()
        self._runs.append(f"{variant}, {fault or 'no fault'}: {_line(text)}")
        self.counts["runs"] += 1
        self.counts.update([FAULTS[fault]] if fault else [])
        repeated = [n for n, count in after.items() if count > 1]
        if repeated and not (variant.kind == "nothing" and self._swapped and text is not None):
            raise self._found(f"rows {sorted(repeated)} are repeated")
        if text is None:
            lost = {
                n
                for n in range(self._query.batches * ROWS)
                if n not in after and any(is_of(which, variant, n) for which in variant.order)
            }
            if lost:
                raise self._found(f"rows {sorted(lost)} are lost")
            return True
        if not (_OURS.search(text) or _EXPECTED.search(text)):
            raise self._found("an error that is none of ours")
        if variant.caller != "here":
            if before != after:
                raise self._found("something was written before the refusal of a thread")
            self.counts["threads refused"] += 1
        elif "Nothing of this" in text:
            self.counts["reruns refused"] += 1
        return False

    def _written(self) -> Counter[int]:
        """How often each row is in the topic, for a read_committed reader."""
        messages = self._reader.read(self._topic)
        return Counter(json.loads(message.value or b"{}")["n"] for message in messages)

    def _found(self, what: str) -> BrokenRuleError:
        return BrokenRuleError(f"{self._topic}: {what}\n{self}")

    def __str__(self) -> str:
        return "\n".join(f"  {number}. {run}" for number, run in enumerate(self._runs, 1))


def _line(text: str | None) -> str:
    """The line of a failure that says the most."""
    if text is None:
        return "done"
    lines = [line for line in text.splitlines() if _OURS.search(line) or _EXPECTED.search(line)]
    return lines[-1].strip()[:200] if lines else text[-3000:]


if __name__ == "__main__":
    sys.exit(repeated("reruns", proof, ATTEMPTS))
