"""What a sink warns of before it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.writing import sink_warnings as warnings
from pyspark_upsert_kafka.connector.writing.sink_warnings import (
    refuse_speculation,
    speculation,
    warn_unless_compacted,
)
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.options.values import TableOptions
from pyspark_upsert_kafka.core.options.write import write_options
from tests.table_options import table_options


class Brokers:
    """Tell how topics are compacted, and count how often they are asked."""

    def __init__(self, policy: str | None) -> None:
        self.policy, self.asked, self.closed = policy, 0, 0

    def cluster(self, properties: object, role: str) -> Brokers:
        """A connection."""
        assert role == "writer"
        return self

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> Mapping[str, Mapping[str, str]]:
        """The policy of each topic, unless that is not allowed."""
        self.asked += 1
        assert names == ["cleanup.policy"]
        if self.policy is None:
            raise BrokerError("no ACL")
        return {topic: {"cleanup.policy": self.policy} for topic in topics}

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
