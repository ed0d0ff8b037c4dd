"""docs/sql.md says what a script may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_upsert_kafka.sql.query_text import FUNCTIONS_WITH_SYNTAX
from pyspark_upsert_kafka.sql.settings import KNOWN
from tools.functions_table import WITH_SYNTAX, with_table

PAGE = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_page_names_what_is_known(name: str) -> None:
    """Each setting that is known stands on the page."""
    assert f"`{name}`" in PAGE


def test_the_table_of_functions_is_that_of_the_code() -> None:
    """The page shows each function that is taken or refused: ``make docs`` writes it."""
    assert with_table(PAGE) == PAGE


@pytest.mark.parametrize("name", FUNCTIONS_WITH_SYNTAX)
def test_the_table_has_the_functions_with_a_syntax_of_their_own(name: str) -> None:
    """Those that are no names with arguments stand in the table too."""
    assert name in {*WITH_SYNTAX, "SUBSTRING"}
