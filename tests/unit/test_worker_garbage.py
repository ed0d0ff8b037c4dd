"""What the search for garbage costs in Spark's Python workers."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from pyspark_upsert_kafka.worker_garbage import freeze_modules


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """The objects of the test process are frozen, as tests/conftest.py has it."""
    yield
    gc.freeze()


def test_modules_are_searched_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there when modules had come is frozen; what came after it is not, until there are more modules."""
    monkeypatch.setitem(sys.modules, "tests.first", ModuleType("tests.first"))
    freeze_modules()
    assert not gc.get_objects(generation=2)

    kept = [[] for _ in range(1_000)]
    freeze_modules()
    gc.collect()
    assert any(each is kept for each in gc.get_objects())

    monkeypatch.setitem(sys.modules, "tests.second", ModuleType("tests.second"))
    freeze_modules()
    assert not any(each is kept for each in gc.get_objects())
