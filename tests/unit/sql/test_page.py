"""The pages on SQL say what a script may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_upsert_kafka.sql.flink_query import FUNCTIONS_WITH_SYNTAX
from pyspark_upsert_kafka.sql.script_settings import KNOWN
from pyspark_upsert_kafka.sql.sql_functions import FUNCTIONS, REJECTED
from tools.functions_table import WITH_SYNTAX, with_tables

DOCS = Path(__file__).parents[3] / "docs"
FUNCTIONS_PAGE = (DOCS / "sql-functions.md").read_text(encoding="utf-8")
LIMITS_PAGE = (DOCS / "sql-limits.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_page_names_what_is_known(name: str) -> None:
    """Each setting that is known stands on the page."""
    assert f"`{name}`" in LIMITS_PAGE


def test_the_tables_of_functions_are_those_of_the_code() -> None:
    """The pages show each function that is taken or refused: ``make docs`` writes them."""
    assert with_tables(FUNCTIONS_PAGE) == FUNCTIONS_PAGE
    assert with_tables(LIMITS_PAGE) == LIMITS_PAGE


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_each_function_that_is_supported_has_a_row(name: str) -> None:
    """In the table of what is supported, and not in that of what is rejected."""
    assert f"| `{name}(" in FUNCTIONS_PAGE


@pytest.mark.parametrize("name", sorted(REJECTED.keys() - FUNCTIONS.keys()))
def test_each_function_that_is_rejected_has_a_reason(name: str) -> None:
    """Functions with one reason share a row."""
    (row,) = [line for line in LIMITS_PAGE.splitlines() if f"`{name}`" in line.partition(" | ")[0]]

    assert row.count(" | ") == 1


@pytest.mark.parametrize("name", FUNCTIONS_WITH_SYNTAX)
def test_the_table_has_the_functions_with_a_syntax_of_their_own(name: str) -> None:
    """Those that are no names with arguments stand in the table too."""
    assert name in {*WITH_SYNTAX, "SUBSTRING"}
