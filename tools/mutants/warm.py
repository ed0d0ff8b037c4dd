"""A process in a copy of the tree that has imported what tests need, and forks one for each run of tests.

It reads a line of JSON for each run, a list of tests, and answers with a line: how they ended, and which test failed. `Copy` starts it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import pytest

_IMPORTED = (
    "avro.schema", "confluent_kafka.admin", "kafka", "numpy", "orjson", "polars", "psutil", "pyarrow.compute",
    "pyspark.sql.datasource", "pyspark.sql.functions", "sqlglot", "xdist.scheduler",
)  # fmt: skip
"""Nothing of this project, which each run imports anew."""

_OPTIONS = (
    "-x", "-q", "--tb=short", "--timeout=300", "--doctest-modules", "-p", "no:cacheprovider",
    # Hypothesis is imported before pytest can rewrite it, which it needs for its own tests alone.
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
_CPU_S, _CPU_OF_A_TEST_S, _WAIT_S = 120, 30, 1200
"""A mutant may never end. The slowest test takes some seconds."""
_BROKEN = 9
"""A process that does not get as far as pytest."""
_MEMORY = 12 << 30
"""Bytes of address space; libraries reserve more of it than they use."""


class _Failed:
    """A plugin of pytest that keeps which test failed, and ends one that does not end. An example that fails is not made smaller: that takes time."""

    def __init__(self) -> None:
        self.test = ""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """After the settings of tests/conftest.py, and before the tests are imported."""
        kept = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutants", hypothesis.settings.default, phases=kept)
        hypothesis.settings.load_profile("mutants")

    def pytest_runtest_logstart(self) -> None:
        """Called before each test."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime) + _CPU_OF_A_TEST_S
        resource.setrlimit(resource.RLIMIT_CPU, (min(most, _CPU_S), _CPU_S))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Called for each file."""
        if report.failed:
            self.test = report.nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called for each test."""
        if report.failed:
            self.test = report.nodeid


def _run(tests: Sequence[str], folder: Path) -> None:
    """Runs tests in this process, and ends it."""
    code = _BROKEN
    try:
        code = _pytest(tests, folder)
    except Exception:  # noqa: BLE001 - whoever asked is told of it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _pytest(tests: Sequence[str], folder: Path) -> int:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    failed = _Failed()
    code = int(pytest.main([*_OPTIONS, *tests], plugins=[failed]))
    (folder / "failed").write_text(failed.test)
    return code


def _ended(process: int) -> int:
    """How a process ended; one that takes too long is killed."""
    deadline = time.monotonic() + _WAIT_S
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.killpg(process, signal.SIGKILL)
        time.sleep(0.02)


def main() -> None:
    """Runs tests until there are no more to run."""
    for each in _IMPORTED:
        import_module(each)
    with TemporaryDirectory() as place:
        folder = Path(place)
        for line in sys.stdin:
            (folder / "failed").write_text("")
            process = os.fork()
            if not process:
                _run(json.loads(line), folder)
            code = _ended(process)
            said = (folder / "said").read_text(errors="replace")[-3000:]
            told = {"code": code, "failed": (folder / "failed").read_text(), "said": said}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
