"""A session with the engine that the PySpark here is made for: `make test-iceberg`, `make test-delta`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.lakehouse.engines import ICEBERG, Lake, engine_here
from tests.spark.conftest import connect_server

__all__ = ["connect_server"]

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


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A session with the engine, and tables that no other test has."""
    assert ENGINE is not None, "no engine is for this PySpark: make test-iceberg, make test-delta"
    folder = tmp_path_factory.mktemp(ENGINE.name)
    session = ENGINE.session(folder, **FEW_ROWS)
    yield Lake(ENGINE, session, folder)
    session.stop()


@pytest.fixture(scope="session")
def spark(lake: Lake) -> SparkSession:
    """The session with it."""
    return lake.session
