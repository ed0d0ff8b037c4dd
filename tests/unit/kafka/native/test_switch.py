"""The switch that turns librdkafka's own functions off."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.kafka import native
from pyspark_upsert_kafka.kafka.librdkafka.errors import client_log

SWITCH = "PYSPARK_UPSERT_KAFKA_NATIVE"
CONFIG = {"logger": client_log, "acks": "all"}


@pytest.mark.parametrize(("value", "is_on"), [(None, True), ("on", True), ("off", False)])
def test_the_environment_turns_them_off(
    value: str | None, is_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then messages are neither taken nor handed over so, and confluent-kafka's own clients are used."""
    if value is None:
        monkeypatch.delenv(SWITCH, raising=False)
    else:
        monkeypatch.setenv(SWITCH, value)

    assert native.is_on() is is_on
    assert native.can_take(frozenset()) is is_on
    assert native.takes(CONFIG) is is_on


def test_a_value_that_means_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants them off must not run them because of a misspelt word."""
    monkeypatch.setenv(SWITCH, "false")

    with pytest.raises(OptionError, match=f"'{SWITCH}': expected 'on' or 'off', but is 'false'"):
        native.takes(CONFIG)


def test_a_client_of_the_binding_is_found() -> None:
    """Its token could not be set otherwise, and each client would take a second to open."""
    assert native.can_log_in()
