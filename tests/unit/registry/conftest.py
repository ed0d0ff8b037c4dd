"""A registry for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.registry.fake_registry import FakeRegistry, serving


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    """A registry that answers what it is told to."""
    monkeypatch.setenv("no_proxy", "*")
    with serving() as registry:
        yield registry
