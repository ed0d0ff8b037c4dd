"""`make repeat`: runs `make test` many times on a busy machine; the last line is the verdict.

Two programs that never rest keep both cores busy meanwhile. With ``BESIDE=test`` a second `make test` runs beside the first one instead. All
runs are made, also after one has failed: a test that fails once in twenty runs depends on chance, and its name is what is looked for.
Each run's line says how long it took, and the log of each is kept in `build/repeat`. ``TIMES=5`` runs it less often.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.proof.reports import cases
from tools.verdict import Held, verdict

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "repeat"
_BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
_MINUTE_S = 60.0


class RunFailedError(Exception):
    """A run of `make test` has failed."""


def main(runs: int, beside: str) -> Held:
    """Repeats it.

    Args:
        runs: How often.
        beside: What else runs: ``busy`` programs, a second ``test``, or ``nothing``.

    Raises:
        RunFailedError: A run failed.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    failed: Counter[str] = Counter()
    bad, minutes = 0, []
    for number in range(1, runs + 1):
        with _other_work(beside):
            names = ["first", "second"] if beside == "test" else ["first"]
            begin = time.monotonic()
            started = {name: _start(f"{number}-{name}") for name in names}
            codes = {name: process.wait() for name, process in started.items()}
        minutes.append((time.monotonic() - begin) / _MINUTE_S)
        tests = [test for name in names for test in _failed(f"{number}-{name}")]
        failed.update(tests)
        bad += any(codes.values())
        ended = "passed" if not any(codes.values()) else f"FAILED: {', '.join(tests) or codes}"
        print(
            f"repeat: {beside}: run {number} of {runs}: {minutes[-1]:.1f} min: {ended}", flush=True
        )
    said = f"{runs} runs beside {beside}, {min(minutes):.1f} to {max(minutes):.1f} min each"
    if bad:
        raise RunFailedError(f"{bad} of {said}: {dict(failed)}; see {FOLDER}")
    return Held(said)


def _start(name: str) -> subprocess.Popen[bytes]:
    """Each run writes a log and a report of its own."""
    report = FOLDER / f"{name}.xml"
    report.unlink(missing_ok=True)
    arguments = f"ARGS=-q -pno:cacheprovider --junitxml={report}"
    with (FOLDER / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            ["make", "test", arguments], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
        )


def _failed(name: str) -> list[str]:
    found = cases(FOLDER / f"{name}.xml")
    return [test for test, outcome in found if outcome == "failed"]


@contextmanager
def _other_work(beside: str) -> Iterator[None]:
    """As many programs that never rest as there are cores."""
    count = (os.cpu_count() or 1) if beside == "busy" else 0
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


if __name__ == "__main__":
    PARSER = argparse.ArgumentParser("make repeat", description=__doc__)
    PARSER.add_argument("times", type=int, metavar="TIMES")
    PARSER.add_argument("beside", choices=["busy", "test", "nothing"], metavar="BESIDE")
    GIVEN = PARSER.parse_args()
    if GIVEN.times < 1:
        PARSER.error("TIMES is a number from 1 on")
    sys.exit(verdict("repeat", lambda: main(GIVEN.times, GIVEN.beside)))
