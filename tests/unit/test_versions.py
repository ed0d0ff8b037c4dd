"""The page of versions says what ran, and of what did not run that it did not."""

from __future__ import annotations

import re

from tools.versions import BROKERS, ENVIRONMENTS, PAGE, Result, page


def test_a_cell_that_was_not_run_says_so() -> None:
    """A row that was not chosen, and a broker on which a row did not run; skipped and failed tests are told."""
    oldest, newest = BROKERS
    rows = {
        "PySpark 4.0.5": {oldest: Result(9, 2, 0), newest: Result(8, 2, 1)},
        "PySpark 4.1.4": {newest: Result(11, 0, 0)},
        "PySpark 4.2": {},
    }

    text = page(rows, "2026-01-01")

    assert "| PySpark 4.0.5 | 9 passed, 2 skipped | **1 failed**, 8 passed |\n" in text
    assert "| PySpark 4.1.4 | not run | 11 passed |\n" in text
    assert "| PySpark 4.2 | not run | not run |\n" in text
    assert "2026-01-01" in text


def test_the_page_is_of_a_run() -> None:
    """docs/versions.md is what ``make test-versions`` wrote: a row for each environment, and nothing failed."""
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (PySpark [^|]*) \| (.*) \|$", text, re.MULTILINE)

    assert "(`make test-versions`, " in text
    assert len(rows) == len(ENVIRONMENTS)
    for (name, cells), wanted in zip(rows, ENVIRONMENTS, strict=True):
        assert re.match(rf"PySpark {wanted.pyspark}[.\d]*, Python {wanted.python}", name)
        for cell in cells.split(" | "):
            assert re.fullmatch(r"\d+ passed(, \d+ skipped)?|not run", cell)
