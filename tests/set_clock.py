"""A clock of this machine that is off, for tests."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from pyspark_upsert_kafka.core import clock
from pyspark_upsert_kafka.logins import own_tokens


def set_clock(monkeypatch: pytest.MonkeyPatch, minutes: float) -> None:
    """The clock of this machine is so many minutes ahead, for all of this package that deals with tokens."""
    moved = SimpleNamespace(
        time=lambda: time.time() + 60 * minutes, monotonic=time.monotonic, sleep=time.sleep
    )
    for module in (clock, own_tokens):
        monkeypatch.setattr(module, "time", moved)
