"""Every Python snippet of README and docs runs, and prints what the page says; `tests.spark.pages` runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Broker
from tests.local_registry import Registry
from tests.spark.pages import (
    CLUSTER,
    DATABASE_TO_ICEBERG,
    GLUE,
    LAKEHOUSE,
    LAKEHOUSE_ORDER,
    LAKEHOUSE_TABLES,
    MANY_TABLES,
    ROOT,
    check_page,
)

PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "```python" in page.read_text(encoding="utf-8")
    # tests/lakehouse/test_page.py runs these, on the Sparks that table formats are made for.
    and page not in (LAKEHOUSE, LAKEHOUSE_TABLES, LAKEHOUSE_ORDER, DATABASE_TO_ICEBERG, MANY_TABLES)
    # tests/cluster/page.py runs it in a shell.
    and page != CLUSTER
]


MANY_QUERIES = {
    "aggregating", "coming-from-flink", "doctor", "filters", "index", "joining", "joining-streams",
    "joining-with-state", "managed-spark", "testing", "whole-rows",
}  # fmt: skip
"""Pages that take long; one also starts a broker."""

PRINT_IN_BATCHES = {"columns-that-change"}
"""Pages with a function of foreachBatch that prints: over Connect, on the server."""


def _marked(page: Path) -> Any:
    marks = [pytest.mark.long("many queries")] if page.stem in MANY_QUERIES else []
    if page.stem in PRINT_IN_BATCHES:
        marks.append(pytest.mark.classic("its foreachBatch prints, over Connect on the server"))
    return pytest.param(page, marks=marks, id=page.stem)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [_marked(page) for page in PAGES])
def test_snippets_run_and_print_what_the_page_says(
    page: Path,
    namespace: dict[str, object],
    broker: Broker,
    registry: Registry,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a user pastes from a page, top to bottom, works and prints what stands there."""
    needs_glue = GLUE in page.read_text(encoding="utf-8")
    glue = request.getfixturevalue("glue") if needs_glue else ""
    printed = lambda: capsys.readouterr().out  # noqa: E731
    check_page(page, namespace, broker, tmp_path, printed, registry.url, glue=glue)
