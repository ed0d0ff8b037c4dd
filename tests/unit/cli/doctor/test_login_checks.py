"""What doctor says of logins by token, before a broker is asked."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.cli.doctor.access_checks import login_findings, service_findings
from pyspark_upsert_kafka.cli.doctor.findings import Level
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.logins import login_tokens
from tests import given_tokens
from tests.table_options import table_options


@pytest.fixture(autouse=True)
def _may_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in given_tokens.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    login_tokens._begin_in_fork()


def options(servers: str = "localhost:9092", **properties: str) -> ReadOptions:
    """Options of a table whose client has these properties, named with ``__`` for dots."""
    named = {f"properties.{name.replace('__', '.')}": value for name, value in properties.items()}
    given = table_options(**{"properties.bootstrap.servers": servers, **named})
    return read_options(given, format_options, stream=False)


def by_provider(config: str) -> ReadOptions:
    """Options of a table that logs in by tokens of the tests' provider."""
    return options(
        **{name.replace(".", "__"): value for name, value in given_tokens.login(config).items()}
    )


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ("b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9098", "Amazon MSK in eu-west-1"),
        ("shop.servicebus.windows.net:9093", "the namespace shop.servicebus.windows.net of Azure Event Hubs, where a topic"),
        ("bootstrap.o.europe-west1.managedkafka.shop.cloud.goog:9092", "Google's Managed Service"),
    ],
)  # fmt: skip
def test_whose_brokers_they_are(servers: str, said: str) -> None:
    """Their names say it."""
    (finding,) = service_findings(options(servers))

    assert (finding.check, finding.level) == ("service", Level.OK)
    assert f"The brokers are those of {said}" in finding.text


def test_brokers_of_nobody_else() -> None:
    """Nothing is said of them, nor of a login by password."""
    by_password = options(sasl__mechanism="PLAIN")

    assert [*service_findings(by_password), *login_findings(by_password)] == []


def test_a_token_that_can_be_had() -> None:
    """It is said who gives it and until when it is good, and the token is not."""
    (finding,) = login_findings(by_provider("user=ana id=doctor"))

    assert (finding.check, finding.level) == ("login", Level.OK)
    assert "from the provider 'tests.given_tokens:token', good until 20" in finding.text
    assert "eyJ" not in finding.text


def test_a_token_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error, with what the provider says."""
    monkeypatch.setitem(given_tokens.failing, "id=lost", KeyError("no such role"))
    (finding,) = login_findings(by_provider("id=lost"))

    assert (finding.check, finding.level) == ("login", Level.ERROR)
    assert "gives no token to log in with: KeyError: 'no such role'" in finding.text


def test_tokens_that_librdkafka_alone_gets() -> None:
    """Nobody else can tell whether it does."""
    own_way = {
        "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
        "sasl.mechanism": "OAUTHBEARER",
    }
    found = [
        *login_findings(
            options(**{name.replace(".", "__"): value for name, value in own_way.items()})
        )
    ]

    assert [(each.check, each.level) for each in found] == [("login", Level.NOT_CHECKED)]


def test_a_login_that_is_not_understood() -> None:
    """It is an option that is wrong."""
    with pytest.raises(OptionError, match=r"needs '.*token\.endpoint\.url'"):
        [*login_findings(options(sasl__mechanism="OAUTHBEARER"))]
