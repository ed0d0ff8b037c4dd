"""`make bench-quick`: did a change make anything slower? Without Spark, in about two minutes.

Each job is done by this package and by a plain Python program with the usual libraries, in turn, in one process. What
counts is the ratio of their CPU times, which other work on the machine changes little. It is compared with the ratios of
the last release in ``released.json``, which ``make bench-quick ARGS=--save`` writes.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from quick_jobs import ROWS, Job, jobs

import pyspark_upsert_kafka
from pyspark_upsert_kafka import LocalKafka
from tools.ratios import Judgement, Measured, judgement, measured

RELEASED = Path(__file__).with_name("released.json")


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
    before = {name: Measured(*each) for name, each in released["jobs"].items()}
    found = {}
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        for job in jobs(kafka.bootstrap_servers, Path(folder)):
            if arguments.only in job.name:
                found[job.name] = measure(job, arguments.runs)
                print(_line(job.name, found[job.name], before.get(job.name)), flush=True)
    judged = {name: judgement(now, before.get(name)) for name, now in found.items()}
    slower = _with(judged, "slower")
    print(
        f"{len(found)} jobs; slower than released: {slower}; too noisy: {_with(judged, 'too noisy')}"
    )
    if arguments.raw:
        raw = {name: _raw(now, before.get(name)) for name, now in found.items()}
        arguments.raw.write_text(json.dumps({"rows": ROWS, "jobs": raw}, indent=1) + "\n")
    if arguments.save:
        about = f"{pyspark_upsert_kafka.__version__}, {datetime.now(timezone.utc):%Y-%m-%d}, Python {platform.python_version()}"
        saved = {name: [round(each.ratio, 2), round(each.noise, 2)] for name, each in found.items()}
        RELEASED.write_text(json.dumps({"about": about, "jobs": saved}, indent=1) + "\n")
    return 0


def measure(job: Job, runs: int) -> Measured:
    """Both sides in turn, after a run of each that does not count."""
    return measured([(_cpu_s(job.plain), _cpu_s(job.ours)) for _ in range(runs + 1)][1:])


def _cpu_s(work: object) -> float:
    begin = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - begin


def _line(name: str, now: Measured, released: Measured | None) -> str:
    line = f"{name:<36}{now.ratio:>8.2f}{now.noise:>8.0%}"
    line += f"{released.ratio:>10.2f}" if released else " " * 10
    return f"{line}   {judgement(now, released).upper()}".rstrip()


def _with(judged: dict[str, Judgement], wanted: Judgement) -> str:
    return ", ".join(name for name, found in judged.items() if found == wanted) or "none"


def _raw(now: Measured, released: Measured | None) -> dict[str, Any]:
    before = released and released.ratio
    return {**asdict(now), "released": before, "judgement": judgement(now, released)}


if __name__ == "__main__":
    sys.exit(main())
