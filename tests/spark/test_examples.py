"""Notebooks in ``examples`` run from top to bottom, and what they find is right; `make test-notebooks` runs all in a kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [
    pytest.mark.classic("a function of its foreachBatch prints, over Connect on the server"),
    pytest.mark.long("notebooks, which make test-notebooks runs too"),
]


@pytest.fixture
def run(spark: SparkSession, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook on the shared broker and session; gives its variables."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.servers)

    def notebook(name: str) -> dict[str, Any]:
        made: dict[str, Any] = {"__name__": "__main__"}
        file = EXAMPLES / f"{name}.ipynb"
        exec(compile(code_of(file), str(file), "exec"), made)
        return made

    yield notebook
    for query in spark.streams.active:
        query.stop()


def code_of(file: Path) -> str:
    """The code of a notebook, from top to bottom."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def test_page_views_per_region_and_hour(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The table that is drawn is that of all views sent, in both waves; each region has two lines of bars."""
    made = run("pageviews_per_region")
    visitors: dict[tuple[object, str], list[object]] = {}
    for view in made["sent"]:
        at = (view["user_region"], f"{view['view_time'][:13]}:00:00")
        visitors.setdefault(at, []).append(view["user_id"])

    assert {(region, str(hour)): (pv, uv) for region, hour, pv, uv in made["rows_now"]()} == {
        at: (len(users), len(set(users))) for at, users in visitors.items()
    }
    drawing = capsys.readouterr().out.splitlines()[-9:]
    assert drawing[0].startswith("per hour, from 08:00 to 19:00")
    totals = [int(line.split("|")[2]) for line in drawing[1::2]]
    assert sum(totals) == len(made["sent"])


def test_the_history_of_a_user(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Every change of the key with the row before it, and then each change as it comes; no other user's."""
    made = run("history_of_a_user")
    seen = made["history"].select("name_before", "name", "region_before", "region").collect()

    assert [tuple(row) for row in seen][:3] == [
        (None, "Ada", None, "Asia"),
        ("Ada", "Ada", "Asia", "Europe"),
        ("Ada", "Ada L.", "Europe", "Europe"),
    ]
    assert made["said"] == ["user 7 is Ada L. in Africa", "user 7 is gone"]
    assert "user 7 is gone" in capsys.readouterr().out
