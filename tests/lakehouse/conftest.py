"""A session with the engine that the PySpark here is made for: `make test-iceberg`, `make test-delta`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.lakehouse.engines import ENGINES, Lake
from tests.spark.conftest import connect_server

__all__ = ["connect_server"]


@pytest.fixture(scope="session", params=ENGINES)
def lake(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lake]:
    """Tests run for each engine; one that is made for another PySpark is skipped."""
    engine = ENGINES[request.param]
    if not engine.fits:
        pytest.skip(f"{engine.name} is for PySpark {engine.pyspark}x: make {engine.target}")
    folder = tmp_path_factory.mktemp(engine.name)
    session = engine.session(folder)
    yield Lake(engine, session, folder)
    session.stop()


@pytest.fixture(scope="session")
def spark(lake: Lake) -> SparkSession:
    """The session with it."""
    return lake.session
