"""The page of versions says what ran, and of what did not run that it did not."""

from __future__ import annotations

import re

from tools.versions import BROKERS, ENVIRONMENTS, PAGE, Environment, Result, page, row, row_before

OLDEST, NEWEST = BROKERS


def test_a_cell_that_was_not_run_says_so() -> None:
    """A row that was not chosen, and a broker on which a row did not run; skipped and failed tests are told."""
    results = {OLDEST: Result(9, 2, 0), NEWEST: Result(8, 2, 1)}

    assert row("PySpark 4.0.5", results, "2026-01-01") == (
        "| PySpark 4.0.5 | 9 passed, 2 skipped | **1 failed**, 8 passed | 2026-01-01 |"
    )
    assert row("PySpark 4.1.4", {NEWEST: Result(11, 0, 0)}, "2026-01-01") == (
        "| PySpark 4.1.4 | not run | 11 passed | 2026-01-01 |"
    )
    assert row("PySpark 4.2", {}, "2026-01-01") == "| PySpark 4.2 | not run | not run |  |"


def test_a_row_that_is_not_run_again_stays() -> None:
    """It keeps what was seen, and when; a row that the page does not have was not run."""
    old = row("PySpark 4.1.4, Python 3.11.7", {NEWEST: Result(11, 0, 0)}, "2026-01-01")
    text = page([old])

    assert row_before(Environment("4.1", "3.11"), text) == old
    assert "not run | not run" in row_before(Environment("4.10", "3.11"), text)


def test_the_page_is_of_a_run() -> None:
    """docs/versions.md is what ``make test-versions`` wrote: a row for each environment, every cell has run, and nothing failed."""
    text = PAGE.read_text(encoding="utf-8")
    rows = [row_before(wanted, text) for wanted in ENVIRONMENTS]

    assert text == page(rows)
    for line in rows:
        _, name, *cells, _, _ = line.split("|")
        assert re.match(r" PySpark [.\d]+, Python [.\d]+ ", name)
        assert len(cells) == len(BROKERS)
        for cell in cells:
            assert re.fullmatch(r" \d+ passed(, \d+ skipped)? ", cell)
