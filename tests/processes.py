"""Several test processes (pytest-xdist): which tests each of them runs, and what they share."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from pyspark_upsert_kafka import LocalKafka
from tests.local_registry import LocalRegistry

NEVER_FENCED = {"broker.session.timeout.ms": "600000"}
"""A setting of brokers: one that gets no processor for nine seconds would be fenced, and no topic could be created for a moment."""

_TESTS = Path(__file__).parent
_FOLDER = "folder of shared services"
_ORDER = {
    "gw0": ("spark", "unit", "other"),
    "gw1": ("spark", "unit", "other"),
    "gw2": ("other", "unit", "spark"),
    "gw3": ("other", "unit", "spark"),
}
"""Which tests a process runs first, next and last: those of a folder in ``tests``, or of another one."""

_WITH_SECURED_BROKER = tuple(
    f"tests/kafka/test_{name}.py" for name in ("doctor", "port_protocol", "security", "tls")
)
"""Files with tests of the broker that asks who its clients are: it is started once, by the process that runs them."""


class ByFolder(LoadFileScheduling):
    """Each file goes to one process; those with Spark to two of them, those of brokers to two others, as long as there are some.

    A Spark session takes 25 s of CPU time until it is warm. Tests of a broker wait more than they work, unit tests only work:
    side by side they leave no core without work.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return _WITH_SECURED_BROKER[0] if file in _WITH_SECURED_BROKER else file

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The number of each test: to look for it in the list of all takes seconds for ten thousand."""
        return {test: number for number, test in enumerate(self.collection or ())}

    def _assign_work_unit(self, node: Any) -> None:
        order = _ORDER.get(node.gateway.id, ("unit", "other", "spark"))
        file = min(self.workqueue, key=partial(_place, order))
        tests = self.assigned_work[node][file] = self.workqueue.pop(file)
        node.send_runtest_some([self._numbers[test] for test, ended in tests.items() if not ended])


def _place(order: Sequence[str], file: str) -> int:
    """How many kinds of files come before this one."""
    folder = file.split("/")[1]
    return order.index(folder if folder in order else "other")


def import_share(config: pytest.Config) -> None:
    """Imports a share of all test files, where all are collected: each process finds those of the others rewritten by pytest."""
    given = getattr(config, "workerinput", None)
    if given is None or [Path(each).absolute() for each in config.args] != [_TESTS]:
        return
    number, count = int(given["workerid"].removeprefix("gw")), given["workercount"]
    for file in sorted(_TESTS.rglob("test_*.py"))[number::count]:
        # Pytest imports it once more, and says what is wrong.
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(file.relative_to(_TESTS.parent).with_suffix("").parts))


class Processes:
    """The plugin of the process that hands out the tests; it outlives those that run them.

    It starts one broker and one registry for all.
    """

    def __init__(self) -> None:
        self._running = ExitStack()
        self._folder = Path(self._running.enter_context(tempfile.TemporaryDirectory()))

    def pytest_configure_node(self, node: Any) -> None:
        """Tells a test process where it finds the addresses."""
        node.workerinput[_FOLDER] = str(self._folder)

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Starts what the tests need; they are handed out when this is done."""
        with_brokers = [each for each in ids if not each.startswith("tests/unit/")]
        if with_brokers and not self._file("broker").exists():
            kafka = self._running.enter_context(LocalKafka(config=NEVER_FENCED))
            self._file("broker").write_text(kafka.bootstrap_servers)
        if any("registry" in each for each in with_brokers) and not self._file("registry").exists():
            registry = self._running.enter_context(LocalRegistry())
            self._file("registry").write_text(registry.url)

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> ByFolder | None:
        """For ``--dist=loadfile``."""
        return ByFolder(config, log) if config.option.dist == "loadfile" else None

    def pytest_unconfigure(self) -> None:
        """Ends what was started."""
        self._running.close()

    def _file(self, service: str) -> Path:
        return self._folder / service


def shared_address(config: pytest.Config, service: str) -> str | None:
    """Where a service runs that was started for all test processes; None = there is none.

    Args:
        config: Of this process.
        service: ``broker`` or ``registry``.
    """
    folder = getattr(config, "workerinput", {}).get(_FOLDER)
    file = Path(folder, service) if folder else None
    return file.read_text() if file and file.exists() else None
