"""The page of versions says what ran, and of what did not run that it did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.versions.cell_tests import (
    CONFLUENT_KAFKA,
    END_TO_END,
    KAFKA_PYTHON,
    SPARK,
    UNIT,
    result_of,
)
from tools.versions.environments import Environment
from tools.versions.page import PAGE, page, shown
from tools.versions.plan import OURS, TABLES, Cell, Impossible, Trial, chosen
from tools.versions.results import Result, load, save
from tools.versions.wheels import Wheels

DAY = "2026-01-01"
TESTS = Trial(Environment("some", "3.12"), OURS, SPARK)
WHEELS = Wheels("aarch64-manylinux_2_28", "3.12")


@pytest.mark.parametrize(
    ("cell", "result", "text"),
    [
        (TESTS, None, "not run"),
        (TESTS, Result(DAY, 9), "ok: 9 tests (2026-01-01)"),
        (TESTS, Result(DAY, 9, 2), "ok: 9 tests, 2 skipped (2026-01-01)"),
        (TESTS, Result(DAY, 9, 2, ("test_a", "test_b")), "**2 failed**: test_a, test_b (2026-01-01)"),
        (TESTS, Result(DAY, problem="no Python 3.14"), "no Python 3.14 (2026-01-01)"),
        (WHEELS, Result(DAY, 41), "ok: 41 wheels (2026-01-01)"),
        (Impossible("PySpark 4.3 needs Python 3.11"), None, "PySpark 4.3 needs Python 3.11"),
    ],
)  # fmt: skip
def test_a_cell_says_what_it_gave(cell: Cell, result: Result, text: str) -> None:
    """And on which day; one that never ran says so."""
    assert shown(cell, result) == text


def test_results_outlast_a_run(tmp_path: Path) -> None:
    """A cell that does not run again keeps what it gave, with the versions that it had."""
    results = {
        ("brokers", "4.3.1", "PySpark"): Result(DAY, 9, 1, versions={"pyspark": "4.3.0"}),
        ("brokers", "2.1.1", "PySpark"): Result(DAY, 8, 1, ("test_a",)),
        ("wheels", "Linux, ARM", "Python 3.12"): Result(DAY, problem="none"),
    }
    save(results, tmp_path / "results.json")

    assert load(tmp_path / "results.json") == results
    assert load(tmp_path / "no such file") == {}


def test_headings_have_the_versions_that_were_seen() -> None:
    """Those of the last run, for columns and for rows; without a run a heading is what was asked for."""
    place = ("python", "3.12", "PySpark 4.2")
    text = page({place: Result(DAY, 9, versions={"pyspark": "4.2.1", "python": "3.12.1"})})

    assert "| Python | PySpark 4.0 | PySpark 4.1 | PySpark 4.2.1 | PySpark 4.3 |" in text
    assert "| 3.12.1 | not run | not run | ok: 9 tests (2026-01-01) | not run |" in text
    assert "| 3.13 | not run | not run | not run | not run |" in text


def test_names_choose_cells() -> None:
    """Of tables, rows and columns; without names all cells run that can, and an unknown name is none."""
    all_ = [place for place, _ in chosen([])]

    cells = [cell for table in TABLES for row in table.cells.values() for cell in row.values()]
    assert len(all_) == len([cell for cell in cells if not isinstance(cell, Impossible)])
    assert {place[0] for place, _ in chosen(["wheels"])} == {"wheels"}
    assert {place[1] for place, _ in chosen(["2.1.1"])} == {"2.1.1"}
    assert {place[2] for place, _ in chosen(["PySpark 4.0"])} == {"PySpark 4.0"}
    assert list(chosen(["5.0"])) == []


def test_a_report_of_pytest(tmp_path: Path) -> None:
    """Failures and errors are named; without a report nothing is known."""
    report = tmp_path / "report.xml"
    report.write_text(
        """<testsuites><testsuite>
        <testcase name="test_a"/><testcase name="test_b"><skipped/></testcase>
        <testcase name="test_c[x]"><failure/></testcase><testcase name="test_d"><error/></testcase>
        </testsuite></testsuites>"""
    )

    assert result_of(report, {}, DAY) == Result(DAY, 1, 1, ("test_c[x]", "test_d"))
    assert result_of(tmp_path / "none", {}, DAY).problem == "the tests ended without a report"


def test_the_page_is_of_runs() -> None:
    """docs/versions.md is what ``make test-versions`` wrote, and no test failed."""
    results = load()

    assert PAGE.read_text(encoding="utf-8") == page(results)
    assert [place for place, result in results.items() if result.failed] == []
    assert {place for place, _ in chosen([])} >= set(results)


def test_the_tests_of_a_cell_are_there() -> None:
    """A test that was renamed, or a folder that moved, would not run in any cell, and pytest would not say so of a folder."""
    root = Path(__file__).parents[2]
    for name in {*CONFLUENT_KAFKA.names, *KAFKA_PYTHON.names, *SPARK.names, *END_TO_END.names}:
        file, _, test = name.partition("::")
        assert f"def {test}(" in (root / file).read_text(encoding="utf-8"), name
    assert "tests/unit/core" in UNIT.names
