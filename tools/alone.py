"""`make test-alone`: runs the tests that are marked `alone`, each in a process of its own, one after another.

They assert times, memory, or counts of threads and processes, which other work changes. A test that fails runs once more in a new process,
and the last lines say so: one that passed at the second try passes, and its name is shown. The exit code is 0 only if each test
passed. ``ARGS="tests/kafka"`` runs those of a folder, a file or a test; other arguments go to pytest, such as ``-k memory``.

    $ python -m tools.alone tests/unit
    ...
    alone: 7 passed, 1 of them at the second try: tests/unit/connector/writing/test_buffer.py::test_memory_is_bounded
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[1]
_TRIES = 2
_NOTHING_COLLECTED = 5


@dataclass(frozen=True)
class Tried:
    """How a test ended.

    Args:
        test: Its function, as pytest knows it.
        tries: How often it was run.
        passed: Whether the last try passed.
    """

    test: str
    tries: int
    passed: bool


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Runs them; returns the exit code.

    Args:
        arguments: Of the command line.
        root: Where pytest runs.
    """
    parser = argparse.ArgumentParser("tools.alone", add_help=False)
    parser.add_argument(
        "--junitxml", type=Path, help="where the outcome of all last tries is written"
    )
    given, others = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder)
        pytest = Pytest(root, without_places(others, root))
        ended = [
            tried(test, partial(pytest.passes, report=reports / f"{n:04}.xml"))
            for n, test in enumerate(pytest.marked(others))
        ]
        if given.junitxml is not None:
            given.junitxml.write_bytes(together(sorted(reports.glob("*.xml"))))
    print(f"alone: {summary(ended)}", flush=True)
    return int(not ended or not all(each.passed for each in ended))


def without_places(arguments: Sequence[str], root: Path) -> list[str]:
    """The arguments that are no files, folders or tests.

    >>> without_places(["tools/alone.py", "-k", "memory", "tools/alone.py::x"], ROOT)
    ['-k', 'memory']
    """
    return [each for each in arguments if not (root / each.partition("::")[0]).exists()]


@dataclass(frozen=True)
class Pytest:
    """Pytest in a process of its own, for tests that are marked.

    Args:
        root: Where it runs.
        flags: What it is told besides.
    """

    root: Path
    flags: Sequence[str] = ()

    def marked(self, arguments: Sequence[str]) -> list[str]:
        """The functions of the tests that are marked, each once.

        Args:
            arguments: Folders, files and tests; none = all tests. And what else chooses tests.

        Raises:
            SystemExit: They cannot be collected.
        """
        # With another -q, pytest would list no tests, and with -v their docstrings.
        loudness = re.compile(r"-q+|-v+|--quiet|--verbose")
        given = [each for each in arguments if not loudness.fullmatch(each)]
        collected = self._run("--collect-only", "-q", *given, capture_output=True)
        said = collected.stdout.decode()
        if collected.returncode not in (0, _NOTHING_COLLECTED):
            sys.exit(said + collected.stderr.decode())
        return list(
            dict.fromkeys(line.partition("[")[0] for line in said.splitlines() if "::" in line)
        )

    def passes(self, test: str, report: Path) -> bool:
        """Runs a test."""
        return self._run(f"--junitxml={report}", *self.flags, test).returncode == 0

    def _run(self, *arguments: str, **how: bool) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "pytest", "--no-header", "-m", "alone", *arguments]
        return subprocess.run(command, cwd=self.root, check=False, **how)


def tried(test: str, passes: Callable[[str], bool]) -> Tried:
    """Runs a test, and once more if it fails.

    Args:
        test: Its function.
        passes: Runs it, and tells whether it passed.
    """
    for attempt in range(1, _TRIES + 1):
        print(f"alone: {test}{', the second try' if attempt > 1 else ''}", flush=True)
        if passes(test):
            return Tried(test, attempt, passed=True)
    return Tried(test, _TRIES, passed=False)


def together(reports: Sequence[Path]) -> bytes:
    """One JUnit report of several."""
    root = ET.Element("testsuites")
    for report in reports:
        root.extend(ET.parse(report).getroot())
    return ET.tostring(root)


def summary(ended: Sequence[Tried]) -> str:
    """In a line, how they ended.

    >>> summary([Tried("a.py::x", 1, True), Tried("a.py::y", 2, True), Tried("a.py::z", 2, False)])
    '2 passed, 1 of them at the second try: a.py::y; 1 failed: a.py::z'
    """
    again = [each.test for each in ended if each.passed and each.tries > 1]
    failed = [each.test for each in ended if not each.passed]
    parts = f"{len(ended) - len(failed)} passed"
    if again:
        parts += f", {len(again)} of them at the second try: {', '.join(again)}"
    return f"{parts}; {len(failed)} failed: {', '.join(failed)}" if failed else parts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
