"""Several test processes (pytest-xdist): which tests each of them runs, and what they share."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from pyspark_upsert_kafka import LocalKafka
from tests.local_registry import LocalRegistry

NEVER_FENCED = {"broker.session.timeout.ms": "600000"}
"""A setting of brokers: one that gets no processor for nine seconds would be fenced, and no topic could be created for a moment."""

_FOLDER = "folder of shared services"
_WITH_SPARK = ("gw0", "gw1", "gw2")

_WITH_SECURED_BROKER = tuple(
    f"tests/kafka/test_{name}.py" for name in ("doctor", "port_protocol", "security", "tls")
)
"""Files with tests of the broker that asks who its clients are: it is started once, by the process that runs them."""


class SparkInSome(LoadFileScheduling):
    """Each file goes to one process; those with Spark to three of them, while there are others for the rest.

    A Spark session takes 25 s of CPU time until it is warm. Tests of a broker wait more than they work.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return _WITH_SECURED_BROKER[0] if file in _WITH_SECURED_BROKER else file

    def _assign_work_unit(self, node: Any) -> None:
        with_spark = node.gateway.id in _WITH_SPARK
        fitting = (each for each in self.workqueue if each.startswith("tests/spark/") == with_spark)
        self.workqueue.move_to_end(next(fitting, next(iter(self.workqueue))), last=False)
        super()._assign_work_unit(node)


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

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> SparkInSome | None:
        """For ``--dist=loadfile``."""
        return SparkInSome(config, log) if config.option.dist == "loadfile" else None

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
