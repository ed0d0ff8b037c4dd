"""The tables of docs/scale.md are what `make scale` has measured, and its model is what its docstrings say."""

from __future__ import annotations

import doctest
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the measurements."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: import_module(f"scale.{name}")


@pytest.mark.parametrize("name", ["model", "samples", "watch"])
def test_the_examples_of_the_measurements_hold(scale: Any, name: str) -> None:
    """What a docstring says that a function returns, it returns."""
    failed, tried = doctest.testmod(scale(name))

    assert tried
    assert not failed


def test_the_page_shows_what_was_measured(scale: Any) -> None:
    """docs/scale.md and docs/many-tables.md have the tables of benchmarks/scale/measured.json; `make scale ARGS=--page` writes them."""
    measured = json.loads((BENCHMARKS / "scale" / "measured.json").read_text(encoding="utf-8"))
    pages = [
        (ROOT / "docs" / name).read_text(encoding="utf-8")
        for name in ("scale.md", "many-tables.md")
    ]

    assert measured.keys() <= scale("page").TABLES.keys()
    assert pages == [scale("page").with_tables(page, measured) for page in pages]
    assert all(any(f"measured: {part} " in page for page in pages) for part in measured)


def test_a_time_measured_beside_other_work_is_not_shown(scale: Any) -> None:
    """Core-seconds and memory count beside other work too, but seconds do not."""
    sizes = [(1_000_000, 4), (1_000_000, 100), (4_000_000, 4)]
    reads = [
        {
            "size": {"messages": messages, "keys": messages, "tasks": tasks},
            "seconds": 1234.0 + messages + tasks,
            "core_s": 1.0 + messages + tasks,
            "worker_mb": 300.0,
        }
        for messages, tasks in sizes
    ]
    found = {"quiet": False, "calibration": reads, "checks": reads[:1]}
    shown = "\n".join(scale("page").keys_table(found))
    in_quiet = "\n".join(scale("page").keys_table({**found, "quiet": True}))

    assert "1,001,238" not in shown
    assert "1,001,238" in in_quiet
