"""The table of the page has every type."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyspark_upsert_kafka
from pyspark_upsert_kafka.formats.cdc.semantic_types import SEMANTIC_TYPES
from tools.debezium_types_table import BEGIN, END, types_table, with_table


@pytest.mark.parametrize("name", SEMANTIC_TYPES)
def test_each_type_is_a_row(name):
    """With how it is sent, the column that it means, and the columns that can hold it."""
    (row,) = [line for line in types_table().splitlines() if f"`{name}`" in line]

    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == 4
    assert all(cells)


def test_the_page_is_fresh():
    """docs/cdc-types.md has what ``make docs`` writes."""
    page = (Path(pyspark_upsert_kafka.__file__).parents[1] / "docs" / "cdc-types.md").read_text(
        "utf-8"
    )

    assert with_table(page) == page


def test_the_rest_of_the_page_stays():
    """Only what stands between the marks is written."""
    page = with_table(f"before\n{BEGIN}old\n{END}after\n")

    assert page.startswith(f"before\n{BEGIN}\n| type in the schema |")
    assert page.endswith(f"{END}after\n")
    assert with_table(page) == page
