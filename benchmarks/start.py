"""Where the first batch of a new query goes, step by step: `.venv/bin/python benchmarks/start.py`.

Each query runs in a session of its own, on a topic of a few rows. All its Python processes are traced by
``traced/sitecustomize.py``: what they import, which clients they open, and what they ask brokers. Prints a timeline of the last
run of each query (``--timeline``), and medians of the steps and of the CPU time of all runs after a warm-up.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from start_queries import QUERIES, ROWS
from topics import new_topic

from pyspark_upsert_kafka import LocalKafka

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent

Line = dict[str, Any]


def main() -> int:
    """Runs each query some times in a process of its own, and prints what they took."""
    arguments = _arguments()
    with LocalKafka() as kafka, tempfile.TemporaryDirectory(prefix="start-") as folder:
        topic = _filled(kafka.bootstrap_servers)
        found: dict[str, list[Run]] = defaultdict(list)
        for _ in range(arguments.runs + 1):
            for query in arguments.queries:
                found[query].append(_traced(query, kafka.bootstrap_servers, topic, Path(folder)))
    for query, (_, *runs) in found.items():
        if arguments.timeline:
            _show_timeline(query, runs[-1])
        _show_medians(query, runs)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each query, in turn")
    parser.add_argument("--queries", nargs="+", default=[*QUERIES], choices=[*QUERIES])
    parser.add_argument("--timeline", action="store_true", help="print what each process does")
    return parser.parse_args()


@dataclass(frozen=True)
class Run:
    """A query that was run.

    Args:
        lines: What its processes have noted, by time.
        cpu: CPU seconds of its Python processes and of its JVM.
    """

    lines: list[Line]
    cpu: dict[str, float]

    @property
    def begin(self) -> float:
        """When its driver began."""
        return float(self.lines[0]["at"])

    def of(self, what: str) -> list[Line]:
        """The lines of a kind."""
        return [line for line in self.lines if line["what"] == what]

    def asked(self) -> Counter[str]:
        """How often brokers were asked what, and how many clients were opened."""
        names = ("admin_client.RetryingAdminClient.call", "properties.open_client")
        return Counter(
            line["detail"] or "producer" for line in self.of("call") if line["name"] in names
        )


def _traced(query: str, servers: str, topic: str, folder: Path) -> Run:
    trace = folder / f"{uuid.uuid4().hex}.jsonl"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE / "traced"), str(PROJECT)]),
        "PYSPARK_PYTHON": sys.executable,
        "START_TRACE": str(trace),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have bytecode
    command = [sys.executable, HERE / "start_queries.py", query, servers, topic, folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    lines = sorted(map(json.loads, trace.read_text().splitlines()), key=lambda line: line["at"])
    (cpu,) = [line["of"] for line in lines if line["what"] == "cpu"]
    return Run(lines, cpu)


def _filled(servers: str) -> str:
    topic, producer = new_topic(servers), Producer({"bootstrap.servers": servers})
    for id_ in range(ROWS):
        key = f'{{"id":{id_}}}'
        producer.produce(topic, f'{{"id":{id_},"name":"a"}}', key)
    producer.flush()
    return topic


def _show_timeline(query: str, run: Run) -> None:
    print(f"\n{query}: seconds since the driver began")
    for line in run.lines:
        at, kind = line["at"] - run.begin, line["what"]
        where = f"[{line['pid']}]"
        if kind == "step":
            print(f"{at:7.3f}  {line['s']:6.3f} s  {line['name']}")
        elif kind in {"process", "fork", "end"}:
            parent = f" of {line['parent']}" if kind == "fork" else ""
            print(f"{at:7.3f}      {where} {kind}{parent}: {line['name']}, CPU {line['cpu']:.3f} s")
        elif kind == "imports" and line["used"] >= 0.005:
            packages = sorted(line["packages"].items(), key=lambda each: -each[1])
            of = ", ".join(f"{name} {used * 1000:.0f}" for name, used in packages if used >= 0.003)
            print(
                f"{at:7.3f}      {where}   import {line['name']}: CPU {line['used']:.3f} s (ms: {of})"
            )
        elif kind == "call":
            print(
                f"{at:7.3f}      {where}   {line['name']}({line['detail']}): {line['s']:.3f} s, CPU {line['used']:.3f} s"
            )


def _show_medians(query: str, runs: list[Run]) -> None:
    print(f"\n{query}, medians of {len(runs)} runs")
    steps = [line["name"] for line in runs[0].of("step")]
    for at, name in enumerate(steps):
        print(f"  {name:<40}{statistics.median(run.of('step')[at]['s'] for run in runs):8.2f} s")
    python = statistics.median(sum(_cpu_by_role(run).values()) for run in runs)
    jvm = statistics.median(run.cpu["JVM"] for run in runs)
    print(f"  CPU: Python processes {python:.2f} s, JVM {jvm:.2f} s")
    for role in sorted({role for run in runs for role in _cpu_by_role(run)}):
        used = statistics.median(_cpu_by_role(run).get(role, 0.0) for run in runs)
        count = statistics.median(_count(run, role) for run in runs)
        packages = _packages(runs[-1], role)
        print(f"    {role:<44}{count:3.0f} times{used:7.2f} s   imports, ms: {packages}")
    asked = ", ".join(f"{name} {count}" for name, count in sorted(runs[-1].asked().items()))
    print(f"  clients that were opened, and requests of this package: {asked}")


def _lives(run: Run) -> dict[tuple[int, str], float]:
    """CPU seconds of each process, as far as it has noted them."""
    used: dict[tuple[int, str], float] = {}
    roles: dict[int, str] = {}
    for line in run.lines:
        if line["what"] in {"process", "fork"}:
            fork = " (forked)" if line["what"] == "fork" else ""
            roles[line["pid"]] = f"{line['name']}{fork}"
        if line["pid"] in roles:
            life = line["pid"], roles[line["pid"]]
            used[life] = max(used.get(life, 0.0), line["cpu"])
    return used


def _cpu_by_role(run: Run) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for (_, role), used in _lives(run).items():
        if "start_queries.py" not in role:
            found[role] += used
    return found


def _count(run: Run, role: str) -> int:
    return sum(1 for _, each in _lives(run) if each == role)


def _packages(run: Run, role: str) -> str:
    pids = {pid for pid, each in _lives(run) if each == role}
    used: Counter[str] = Counter()
    for line in run.of("imports"):
        if line["pid"] in pids:
            used.update(line["packages"])
    return ", ".join(
        f"{name} {seconds * 1000:.0f}" for name, seconds in used.most_common(7) if seconds >= 0.003
    )


if __name__ == "__main__":
    sys.exit(main())
