"""`make bench-quick`: did a change make anything slower? Without Spark, in about two minutes.

Each job is done by this package and by a plain Python program with the usual libraries, in turn, in one process. What
counts is the ratio of their CPU times, which other work on the machine changes little. It is compared with the ratios of
the last release in ``released.json``, which ``make bench-quick ARGS=--save`` writes.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from quick_jobs import ROWS, Job, jobs

import pyspark_upsert_kafka
from pyspark_upsert_kafka import LocalKafka

RELEASED = Path(__file__).with_name("released.json")

_LEAST_NOISE = 0.1
"""A ratio that is lower by less than this part of it says nothing."""


@dataclass(frozen=True)
class Measured:
    """How many times faster than the plain program a job is.

    Args:
        ratio: Of the medians of the CPU times.
        noise: By what part of it the ratios of single runs differ, as a rule (half the range between their quartiles).
        seconds: The CPU times of each run: of the plain program, and of this package.
    """

    ratio: float
    noise: float
    seconds: tuple[tuple[float, float], ...] = ()


def main() -> int:
    """Measures all jobs, prints their ratios, and saves them if that is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="write released.json")
    parser.add_argument("--raw", type=Path, help="a file for all that was measured, as JSON")
    parser.add_argument("--runs", type=int, default=7, help="runs of each side")
    parser.add_argument("--only", default="", help="only jobs whose name holds this")
    arguments = parser.parse_args()
    released = json.loads(RELEASED.read_text()) if RELEASED.exists() else {"jobs": {}}
    print(
        f"Times as fast as a plain Python program, by CPU time; {ROWS:,} rows, {arguments.runs} runs in turn; "
        f"released: {released.get('about', 'nothing yet')}"
    )
    print(f"{'':<36}{'now':>8}{'noise':>8}{'released':>10}")
    found = {}
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        for job in jobs(kafka.bootstrap_servers, Path(folder)):
            if arguments.only in job.name:
                found[job.name] = measured(job, arguments.runs)
                print(_line(job.name, found[job.name], released["jobs"].get(job.name)), flush=True)
    slower = [
        name
        for name, now in found.items()
        if name in released["jobs"] and is_slower(now, Measured(*released["jobs"][name]))
    ]
    print(f"{len(found)} jobs; slower than released: {', '.join(slower) or 'none'}")
    if arguments.raw:
        raw = {name: asdict(each) for name, each in found.items()}
        arguments.raw.write_text(json.dumps({"rows": ROWS, "jobs": raw}, indent=1) + "\n")
    if arguments.save:
        about = f"{pyspark_upsert_kafka.__version__}, {datetime.now(timezone.utc):%Y-%m-%d}, Python {platform.python_version()}"
        saved = {name: [round(each.ratio, 2), round(each.noise, 2)] for name, each in found.items()}
        RELEASED.write_text(json.dumps({"about": about, "jobs": saved}, indent=1) + "\n")
    return 0


def measured(job: Job, runs: int) -> Measured:
    """Both sides in turn, after a run of each that does not count."""
    seconds = [(_cpu_s(job.plain), _cpu_s(job.ours)) for _ in range(runs + 1)][1:]
    plain, ours = (statistics.median(side) for side in zip(*seconds, strict=True))
    low, _, high = statistics.quantiles([a / b for a, b in seconds], n=4)
    ratio = plain / ours
    return Measured(ratio, (high - low) / 2 / ratio, tuple(seconds))


def is_slower(now: Measured, released: Measured) -> bool:
    """Whether a job is slower than it was by more than the noise of both.

    >>> is_slower(Measured(8.0, 0.02), Measured(10.0, 0.03)), is_slower(Measured(8.0, 0.2), Measured(10.0, 0.03))
    (True, False)
    """
    return now.ratio < released.ratio * (1 - max(_LEAST_NOISE, now.noise + released.noise))


def _cpu_s(work: object) -> float:
    begin = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - begin


def _line(name: str, now: Measured, saved: list[float] | None) -> str:
    line = f"{name:<36}{now.ratio:>8.2f}{now.noise:>8.0%}"
    if saved is None:
        return line
    released = Measured(*saved)
    return f"{line}{released.ratio:>10.2f}{'   SLOWER' if is_slower(now, released) else ''}"


if __name__ == "__main__":
    sys.exit(main())
