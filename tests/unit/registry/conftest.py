"""A registry for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyspark_upsert_kafka.registry import client, glue_client
from pyspark_upsert_kafka.registry.glue_request import forget_clients
from tests.local_glue import CREDENTIALS
from tests.unit.registry import fake_glue
from tests.unit.registry.fake_glue import FakeGlue
from tests.unit.registry.fake_registry import FakeRegistry, serving
from tests.unit.registry.moving_clock import MovingClock


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> MovingClock:
    """The clock of all that asks for ids, by which nobody waits."""
    clock = MovingClock()
    for module in (client, glue_client):
        monkeypatch.setattr(module._UNKNOWN, "clock", clock)
    return clock


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    """A registry that answers what it is told to."""
    with serving() as registry:
        yield registry


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeGlue]:
    """AWS Glue, which answers what it is told to, for somebody with keys and without files of AWS."""
    for name in ("AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    files = {"AWS_CONFIG_FILE": "config", "AWS_SHARED_CREDENTIALS_FILE": "credentials"}
    for name, value in {
        **CREDENTIALS,
        **{name: str(tmp_path / file) for name, file in files.items()},
    }.items():
        monkeypatch.setenv(name, value)
    pytest.importorskip("botocore")
    forget_clients()
    for kept in (glue_client.schema_of_version, glue_client._version):
        kept.cache_clear()
    with fake_glue.serving() as glue:
        yield glue
    forget_clients()
