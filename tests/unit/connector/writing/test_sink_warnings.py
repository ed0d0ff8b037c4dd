"""What a sink warns of before it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.writing import sink_warnings as warnings
from pyspark_upsert_kafka.connector.writing.sink_warnings import (
    refuse_speculation,
    removed_by_age,
    speculation,
    warn_unless_compacted,
)
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.options.frozen_options import TableOptions
from pyspark_upsert_kafka.core.options.write import write_options
from tests.table_options import table_options


class Brokers:
    """Tell how topics are compacted, and count how often they are asked."""

    def __init__(self, policy: str | None, **more: str) -> None:
        self.policy, self.more, self.asked, self.closed = policy, more, 0, 0
        self.names: Sequence[str] = ()

    def cluster(self, properties: object, role: str) -> Brokers:
        """A connection."""
        assert role == "writer"
        return self

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> Mapping[str, Mapping[str, str]]:
        """The policy of each topic, unless that is not allowed."""
        self.asked += 1
        assert names[0] == "cleanup.policy"
        self.names = names
        if self.policy is None:
            raise BrokerError("no ACL")
        return {topic: {"cleanup.policy": self.policy, **self.more} for topic in topics}

    def close(self) -> None:
        """Ends the connection."""
        self.closed += 1


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has asked and warned of nothing yet."""
    monkeypatch.setattr(errors, "_warned", set())
    monkeypatch.setattr(warnings, "_asked", set())


def table(**more: str) -> TableOptions:
    """A table that is written."""
    return write_options(table_options(**more), format_options).table


@pytest.mark.parametrize(("policy", "told"), [("compact", 0), ("delete", 1), (None, 0)])
def test_a_topic_that_is_not_compacted_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    policy: str | None,
    told: int,
) -> None:
    """Brokers are asked once in a process for the same topics; writing needs no right to ask."""
    brokers: Any = Brokers(policy)
    monkeypatch.setattr(warnings, "load_client", lambda _: brokers)
    for _ in range(3):
        warn_unless_compacted(table(topic="t"))
    assert (brokers.asked, brokers.closed, len(caplog.messages)) == (1, 1, told)
    warn_unless_compacted(table(topic="u"))

    assert (brokers.asked, brokers.closed, len(caplog.messages)) == (2, 2, 2 * told)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "604800000"}, True),
        ({"cleanup.policy": "compact,delete", "retention.ms": "1"}, True),
        ({"cleanup.policy": "compact", "retention.ms": "1"}, False),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, False),
        ({"cleanup.policy": "delete", "retention.ms": "1", "message.timestamp.type": "LogAppendTime"}, False),
        ({}, False),
    ],
)  # fmt: skip
def test_rows_that_are_removed_by_times_of_their_own(settings: dict[str, str], told: bool) -> None:
    """Where a topic removes messages by their age, and brokers do not give the times."""
    found = removed_by_age({"t": {"message.timestamp.type": "CreateTime", **settings}})

    assert bool(found) == told
    assert not told or f"older than retention.ms = {settings['retention.ms']}" in found[0]


def test_rows_with_times_need_a_topic_that_keeps_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then, and only then, is asked how long messages are kept."""
    brokers: Any = Brokers("delete", **{"retention.ms": "1000"})
    monkeypatch.setattr(warnings, "load_client", lambda _: brokers)

    warn_unless_compacted(table(topic="t"), has_times=False)
    assert brokers.names == ["cleanup.policy"]
    warn_unless_compacted(table(topic="t"), has_times=True)

    assert brokers.names == ["cleanup.policy", "retention.ms", "message.timestamp.type"]
    assert "retention.ms = 1000, and rows are written to it with times of their own" in caplog.text


@pytest.mark.parametrize(
    ("setting", "is_on"),
    [
        (None, False),
        ("", False),
        ("false", False),
        ("true", True),
        (" TRUE ", True),
        ("yes", False),
    ],
)
def test_speculation(setting: str | None, is_on: bool) -> None:
    """A warning where the slower attempt may write last, and an error where it would be fenced off."""
    assert len(speculation(setting, "users")) == is_on
    if is_on:
        with pytest.raises(OptionError, match=r"'spark\.speculation' is on"):
            refuse_speculation(setting)
    else:
        refuse_speculation(setting)
