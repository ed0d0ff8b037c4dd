"""Names that no other test of the shared registry uses."""

from __future__ import annotations

import uuid

import pytest


@pytest.fixture
def topic() -> str:
    """A topic's name, and so subjects of its own."""
    return f"t-{uuid.uuid4().hex[:12]}"
