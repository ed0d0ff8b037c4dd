"""The pages on lakehouse tables: a topic is copied into a table of Iceberg or of Delta Lake, and the table is maintained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Broker
from tests.lakehouse.engines import ICEBERG, Lake
from tests.spark.pages import (
    DATABASE_TO_ICEBERG,
    LAKEHOUSE,
    LAKEHOUSE_ORDER,
    LAKEHOUSE_TABLES,
    check_page,
)

OTHER = {"iceberg": "Delta Lake", "delta": "Iceberg"}
FOR_BOTH = [LAKEHOUSE, LAKEHOUSE_TABLES, LAKEHOUSE_ORDER]
PAGES = [*FOR_BOTH, DATABASE_TO_ICEBERG] if ICEBERG.fits else FOR_BOTH


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_runs_and_prints_what_it_says(
    lake: Lake, broker: Broker, capsys: pytest.CaptureFixture[str], page: Path
) -> None:
    """What a user pastes, top to bottom, works: with each engine but for the sections of the other one."""
    names: dict[str, object] = {"__name__": "__main__"}
    # The session is there already, and a catalog has its settings from its first use: the folder is the same.
    without = OTHER[lake.engine.name] if page in FOR_BOTH else None
    check_page(page, names, broker, lake.folder, lambda: capsys.readouterr().out, without=without)
