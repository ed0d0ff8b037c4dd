"""The switch that turns librdkafka's own functions off."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka import native
from pyspark_upsert_kafka.kafka.librdkafka.errors import client_log
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, open_client
from tests import given_tokens

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


def test_the_option_turns_them_off_for_its_clients() -> None:
    """Other clients of the process go on with them."""
    servers = {"bootstrap.servers": "here:9092"}
    off = client_config(Properties(servers, native=False), "writer", {})
    on = client_config(Properties(servers), "writer", {})

    assert (native.takes(off), native.takes(on)) == (False, True)


@pytest.mark.parametrize("is_on", [True, False])
def test_no_client_is_given_the_option(is_on: bool) -> None:
    """Librdkafka knows no such property."""
    config = client_config(
        Properties({"bootstrap.servers": "here:9092"}, native=is_on), "reader", {}
    )

    assert open_client(set, config) == config.keys() - {native.MAY_BE_CALLED}


@pytest.mark.parametrize(("is_on", "asks"), [(True, False), (False, True)])
def test_where_they_are_off_a_client_asks_for_its_token(
    is_on: bool, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By confluent-kafka's callback; else it is given one."""
    for name, value in given_tokens.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    given = {"bootstrap.servers": "127.0.0.1:1", **given_tokens.login(f"case={uuid.uuid4()}")}
    config = client_config(Properties(given, native=is_on), "writer", {"log_level": 0})
    seen = []

    def opened(config: dict[str, Any]) -> native.LoginProducer:
        seen.append("oauth_cb" in config)
        return native.LoginProducer(config)

    open_client(opened, config)
    assert seen == [asks]


def test_a_client_of_the_binding_is_found() -> None:
    """Its token could not be set otherwise, and each client would take a second to open."""
    assert native.can_log_in()
