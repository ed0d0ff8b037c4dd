"""docs/lakehouse.md: a topic is copied into a table of Iceberg or of Delta Lake, and the table is maintained."""

from __future__ import annotations

import pytest

from tests.conftest import Broker
from tests.lakehouse.engines import Lake
from tests.spark.pages import LAKEHOUSE, check_page

OTHER = {"iceberg": "Delta Lake", "delta": "Iceberg"}


@pytest.mark.timeout(900)
def test_the_page_runs_and_prints_what_it_says(
    lake: Lake, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a user pastes, top to bottom, works: with each engine but for the sections of the other one."""
    names: dict[str, object] = {"__name__": "__main__"}
    # The session is there already, and a catalog has its settings from its first use: the folder is the same.
    check_page(
        LAKEHOUSE, names, broker, lake.folder, lambda: capsys.readouterr().out,
        without=OTHER[lake.engine.name],
    )  # fmt: skip
