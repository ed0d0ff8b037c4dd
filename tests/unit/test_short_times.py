"""What holds for all tests of `make test`: none depends on how fast the machine is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
_MARKS = ("mark.long", "mark.alone")
_MEASURES = {
    "monotonic", "perf_counter", "process_time", "memory_info", "num_threads", "num_fds", "getrusage",
}  # fmt: skip


def unmarked(source: str) -> Iterator[ast.FunctionDef]:
    """The tests of a file that are marked neither `long` nor `alone`."""
    tree = ast.parse(source)
    marks = [each for each in tree.body if "pytestmark" in ast.unparse(each).partition("=")[0]]
    if any(mark in ast.unparse(each) for mark in _MARKS for each in marks):
        return
    for each in tree.body:
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_"):
            decorators = " ".join(map(ast.unparse, each.decorator_list))
            # A case that is marked is one of several.
            named = decorators.replace("marks=pytest.mark", "")
            if not any(mark in named for mark in _MARKS):
                yield each


def hasty(source: str) -> list[str]:
    """The calls of unmarked tests that measure, or that sleep without asking whether it was long enough.

    A ``while`` around the pause asks.
    """
    found: list[str] = []
    if not any(name in source for name in ("sleep", *_MEASURES)):
        return found  # most files, which need not be parsed
    for test in unmarked(source):
        asked = {
            call
            for loop in ast.walk(test)
            if isinstance(loop, ast.While)
            for call in ast.walk(loop)
        }
        for call in ast.walk(test):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                of_time = ast.unparse(call.func.value) == "time"
                sleeps = call.func.attr == "sleep" and of_time and call not in asked
                if sleeps or call.func.attr in _MEASURES:
                    found.append(f"{test.name}, line {call.lineno}: {ast.unparse(call)}")
    return found


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def test_a():\n    time.sleep(1)", 1),
        ("def test_a():\n    begin = time.monotonic()", 1),
        ("def test_a():\n    assert psutil.Process().memory_info().rss < 7", 1),
        ("def test_a():\n    while not found():\n        time.sleep(0.1)", 0),
        ("def test_a(clock):\n    clock.sleep(1)", 0),
        ("@pytest.mark.long('waits')\ndef test_a():\n    time.sleep(1)", 0),
        ("@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.long('more'))])\ndef test_a(n):\n    time.sleep(1)", 1),
        ("pytestmark = pytest.mark.alone('measures')\ndef test_a():\n    time.sleep(1)", 0),
    ],
)  # fmt: skip
def test_what_is_hasty(source: str, count: int) -> None:
    """The next test would find nothing else."""
    assert len(hasty(source)) == count


def test_no_test_depends_on_short_times() -> None:
    """A test that sleeps for something to happen is marked `long` or waits for it; one that measures is marked `alone`."""
    files = sorted(TESTS.rglob("test_*.py"))
    found = {
        str(file.relative_to(TESTS)): calls
        for file in files
        if (calls := hasty(file.read_text(encoding="utf-8")))
    }

    assert len(files) > 200
    assert found == {}
