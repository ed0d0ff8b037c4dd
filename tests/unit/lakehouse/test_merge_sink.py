"""What `merge_sink` sets in the session of a stream while it merges."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.lakehouse.merge_sink import _adaptive


class Session:
    """A session, of which only the settings are there."""

    def __init__(self, **settings: str) -> None:
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}

    @property
    def conf(self) -> Session:
        """The settings."""
        return self

    def get(self, name: str) -> str:
        """The value of a setting."""
        return self.settings[name]

    def set(self, name: str, value: str) -> None:
        """Changes a setting."""
        self.settings[name] = value


def test_settings_are_as_before_when_it_is_done() -> None:
    """Also when the merge fails: the next micro-batch of the stream must be planned as the stream needs it."""
    before = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    }
    session = Session(**before)

    def merge() -> None:
        with _adaptive(session):
            assert set(session.settings.values()) == {"true"}
            raise RuntimeError

    with pytest.raises(RuntimeError):
        merge()
    assert session.settings == before
