"""`make kills`: copies a topic exactly once and at least once, while all processes that copy are killed again and again.

In each of 30 runs more changes arrive, and a program copies them with two queries and `upsert_sink`. Its Python workers are
killed at random moments, and then its driver. Half of these moments are while something is being written. Workers of a killed
driver are often stopped instead (SIGSTOP), and continue in the middle of the next run, like machines that had hung. The number
of tasks changes from batch to batch. A batch that runs again with another number is rejected, and the program then uses the old
number.

In the end both copies are read by Kafka's own Java client, read_committed. In the first copy it must find each change once, and the
changes of a key in order. In the second copy no change may be missing, and the last change of each key must be last. The last line is
the verdict. The exit code is 0 only if both hold.

`make kills RUNS=5` is a short one.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import defaultdict

from pyspark_upsert_kafka import LocalKafka
from tools.kills.changes import KEYS, by_key, check_exact, check_plain, produce
from tools.kills.copy import EXACT, PLAIN, SOURCE
from tools.kills.killer import PARTITIONS, Killer
from tools.local_topics import create
from tools.proof.java_reader import JavaReader
from tools.verdict import Held, verdict

RUNS = 30
CHANGES = 20_000


def proof(runs: int) -> Held:
    """The whole of it; returns what is said when it holds."""
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = kafka.bootstrap_servers
        create(servers, SOURCE, EXACT, PLAIN, partitions=PARTITIONS, compacted=False)
        killer, sent = Killer(servers, folder), defaultdict[int, list[int]](list)
        for run in range(runs):
            for key, numbers in produce(servers, run * CHANGES, CHANGES).items():
                sent[key] += numbers
            killer.run(to_the_end=run == runs - 1)
            counts = ", ".join(f"{count} {what}" for what, count in killer.counts.items())
            print(f"kills: run {run + 1} of {runs}, {counts}", flush=True)
        with JavaReader(servers) as reader:
            exact, plain = (by_key(reader.read(each, f"kills-{each}")) for each in (EXACT, PLAIN))
        check_exact(sent, exact)
        check_plain(sent, plain)
        repeated = sum(map(len, plain.values())) - runs * CHANGES
        said = (
            f"{runs * CHANGES} changes over {KEYS} keys in {runs} runs, {counts}; exactly once each change "
            f"is there once and in order; at least once none is lost, and {repeated} are there again"
        )
        return Held(said, killer.faults)


def main() -> int:
    """Prints the verdict."""
    seed = random.SystemRandom().randrange(2**32)
    random.seed(seed)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    return verdict("kills", lambda: proof(runs), f" (seed {seed})")


if __name__ == "__main__":
    sys.exit(main())
