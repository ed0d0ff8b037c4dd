"""`make memcheck`: a topic is read without an object for each message while valgrind watches each access to memory.

Needs valgrind (`apt-get install valgrind`) and some minutes: a program takes about 50 times as long under it. First a
message is read after it was freed, which valgrind must report; then ranges are read, left in the middle and compared with what
confluent-kafka reads, and nothing may be reported. The last line is the verdict, and the exit code is 0 only if it passed.
"""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.kafka.librdkafka.reader import BATCH_POOL, POOL
from pyspark_upsert_kafka.kafka.native.library import Message
from pyspark_upsert_kafka.kafka.native.message_pointers import bytes_at, can_be_read, fields_of
from tools.stress import BY_COLUMNS, BY_OBJECTS, TOPIC, read, write

RANGES = 30
REPORTED = 99
"""The exit code that valgrind gives a program with errors."""

# Only what is read, written or freed where there is nothing: Arrow's and polars' vector instructions read undefined bytes on
# purpose. Every allocation goes through the C library, so that valgrind sees when it ends.
VALGRIND = (
    "valgrind", "--quiet", f"--error-exitcode={REPORTED}", "--undef-value-errors=no", "--num-callers=30",
    "--keep-debuginfo=yes", f"--suppressions={Path(__file__).with_name('memcheck.supp')}",
)  # fmt: skip
ALLOCATE_BY_C = {"PYTHONMALLOC": "malloc", "ARROW_DEFAULT_MEMORY_POOL": "system"}


def read_ranges(servers: str) -> None:
    """Reads ranges both ways; one that differs is an error."""
    rng = random.Random(7)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "memcheck"})
    _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=60)
    consumer.close()
    if not can_be_read():
        sys.exit("This library is not read without an object for each message.")
    for number in range(RANGES):
        committed = rng.random() < 0.5
        first = rng.randrange(end)
        last = min(end, first + 1 + rng.randrange(3000))
        most = rng.choice([None, None, 10])
        found, wanted = (
            list(islice(read(servers, first, last, details, committed=committed), most))
            for details in (BY_COLUMNS, BY_OBJECTS)
        )
        if found != wanted:
            sys.exit(f"Offsets {first} to {last}: {len(found)} messages instead of {len(wanted)}.")
        print(f"range {number + 1} of {RANGES}: {len(found)} messages", flush=True)
    for pool in (POOL, BATCH_POOL):
        pool.close_idle()


def read_after_free() -> None:
    """Reads the fields of a message, and bytes, in memory that was freed."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    place = library.malloc(ctypes.sizeof(Message))
    library.free(place)
    fields_of(np.array([place], np.uintp))
    bytes_at(np.array([place], np.uintp), np.array([ctypes.sizeof(Message)], np.uintp))


def is_clean(*arguments: str) -> bool:
    """Runs this program under valgrind, and tells whether that reports nothing.

    Raises:
        SystemExit: The program itself failed.
    """
    command = [*VALGRIND, sys.executable, "-m", "tools.memcheck", *arguments]
    code = subprocess.run(command, env=os.environ | ALLOCATE_BY_C, check=False).returncode
    if code not in (0, REPORTED):
        sys.exit(f"{' '.join(command)} ended with {code}")
    return code == 0


def main() -> int:
    """Runs both; the exit code says whether all was well."""
    is_seen = not is_clean("freed")
    print(f"reading what was freed is reported: {is_seen}", flush=True)
    with LocalKafka(config={"message.max.bytes": "4000000"}) as kafka:
        write(kafka.bootstrap_servers, random.Random(7))
        is_well = is_seen and is_clean("ranges", kafka.bootstrap_servers)
    print("passed" if is_well else "FAILED")
    return int(not is_well)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["freed"]:
            read_after_free()
        case ["ranges", servers]:
            read_ranges(servers)
        case _:
            sys.exit(main())
