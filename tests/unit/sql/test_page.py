"""docs/sql.md says what a script may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_upsert_kafka.sql.functions import FUNCTIONS, OVER_ROWS
from pyspark_upsert_kafka.sql.settings import MEANT

PAGE = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted({*FUNCTIONS, *OVER_ROWS, *MEANT}))
def test_the_page_names_what_is_known(name: str) -> None:
    """Each function and each setting that is known stands on the page."""
    assert f"`{name}`" in PAGE
