"""What is told once, though Spark plans a streaming write again for every micro-batch."""

from __future__ import annotations

import uuid

import pytest

from pyspark_upsert_kafka.core.errors import warn_once


def test_a_warning_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """The same text is no news; another one is."""
    one, other = (f"{name} {uuid.uuid4()} 100%" for name in ("one", "other"))
    for _ in range(3):
        warn_once(one)
        warn_once(one, other)

    assert [each.getMessage() for each in caplog.records] == [one, other]
