"""A session with the engine that the PySpark here is made for: `make test-iceberg`, `make test-delta`."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.lakehouse.engines import ICEBERG, Lake, engine_here, kill_jvm
from tests.spark.conftest import serving_connect

ENGINE = engine_here()

collect_ignore_glob = ["test_*.py"] if ENGINE is None else []
"""Without an engine none of these tests is collected, so that `make test` does not report them as skipped."""

if not ICEBERG.fits:
    collect_ignore_glob.append("test_many_tables.py")


FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Compiling the plans of these tests takes longer than running them. The programs of `test_restarts` compile theirs."""


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes which tests have failed."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A session with the engine, and tables that no other test has."""
    assert ENGINE is not None, "no engine is for this PySpark: make test-iceberg, make test-delta"
    folder = tmp_path_factory.mktemp(ENGINE.name)
    lake = Lake(ENGINE, ENGINE.session(folder, **FEW_ROWS), folder)
    yield lake
    lake.session.stop()


@pytest.fixture(autouse=True)
def _another_session_after_a_failure(request: pytest.FixtureRequest, lake: Lake) -> Iterator[None]:
    """A test that was interrupted in a call of the JVM leaves the answer for the next call, and its query runs on."""
    yield
    if request.node.stash.get(_FAILED, False):
        kill_jvm(lake.session)
        lake.session = lake.engine.session(lake.folder, **FEW_ROWS)


@pytest.fixture
def connect_server(lake: Lake) -> Iterator[str]:
    """The address of a Spark Connect server in the JVM that the tests have already."""
    with serving_connect(lake.session) as address:
        yield address
