"""Whom the option for a provider of tokens means, and who may be called."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import OutsideText, masked
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.kafka_python.properties import client_config as of_kafka_python
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config as of_librdkafka
from pyspark_upsert_kafka.logins import login_tokens, token_providers
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens
from pyspark_upsert_kafka.logins.token_providers import tokens_of

ALLOWED = "UPSERT_KAFKA_TOKEN_PROVIDERS"
PROVIDER = "sasl.oauthbearer.token.provider"
FAR = 4e9
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _no_tokens_of_before() -> Iterator[None]:
    """The process knows none."""
    login_tokens._begin_in_fork()
    yield
    login_tokens._begin_in_fork()


@pytest.fixture(autouse=True)
def _module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's."""
    module: Any = ModuleType("my_tokens")
    module.token = lambda config: (f"{config.replace('=', '-')}.", FAR)
    module.number = 5
    monkeypatch.setitem(sys.modules, "my_tokens", module)
    monkeypatch.delenv(ALLOWED, raising=False)


def given(provider: str, **more: str) -> dict[str, str]:
    """A client's properties."""
    return {
        "bootstrap.servers": "b-1.example:9098",
        "sasl.mechanism": "OAUTHBEARER",
        PROVIDER: provider,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def tokens(properties: dict[str, str]) -> LoginTokens:
    """The tokens of properties that name a provider."""
    found = tokens_of(properties)
    assert found is not None
    return found


@pytest.mark.parametrize("allowed", ["my_tokens", "another, my_tokens ,third"])
def test_a_function_of_a_module_that_the_environment_lists(allowed, monkeypatch):
    """It is called with the text of 'sasl.oauthbearer.config'."""
    monkeypatch.setenv(ALLOWED, allowed)

    found = tokens(given("my_tokens:token", sasl_oauthbearer_config="a=b"))

    assert (found.token().text, found.token().expires_at) == ("a-b.", FAR)


@pytest.mark.parametrize("allowed", [None, "", "my", "my_tokens.more", "my_tokens:token", "*"])
@pytest.mark.parametrize("config_of", [of_librdkafka, of_kafka_python])
def test_a_function_that_the_environment_does_not_list_is_not_called(
    allowed, config_of, monkeypatch
):
    """With the sentence that says what to set, wherever a client is opened: on the driver first."""
    if allowed is not None:
        monkeypatch.setenv(ALLOWED, allowed)
    monkeypatch.setitem(sys.modules, "my_tokens", None)  # importing it fails

    with pytest.raises(
        OptionError, match=f"set the environment variable '{ALLOWED}' to 'my_tokens' .* on each executor"
    ):  # fmt: skip
        config_of(Properties(given("my_tokens:token")), "reader", {})


class Installed:
    """Entry points of installed packages."""

    def __init__(self, *values: str) -> None:
        group = "pyspark_upsert_kafka.token_providers"
        self.found = [EntryPoint("acme", value, group) for value in values]

    def __call__(self, *, group: str) -> list[EntryPoint]:
        """Those of a group."""
        return [each for each in self.found if each.group == group]


@pytest.mark.parametrize("name", token_providers._OURS)
def test_each_provider_of_ours_has_its_extra_and_its_place_on_the_page(name):
    """So that users find it, and what the error of a missing package tells them to install is there."""
    extra = token_providers._OURS[name].extra
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "rented-kafka.md").read_text(encoding="utf-8")

    assert re.search(rf"^{extra} = \[", project, re.MULTILINE), f"pyproject.toml: {extra}"
    assert f"`{name}`" in page, "docs/rented-kafka.md"


def test_a_name_that_an_installed_package_has(monkeypatch):
    """Whoever can install packages can run code; the environment need not list it."""
    monkeypatch.setattr(token_providers, "entry_points", Installed("my_tokens:token"))

    assert tokens(given("acme", sasl_oauthbearer_config="c")).token().text == "c."


REFUSED = {
    "nobody's name": ((), "nobody", "no installed package has a provider of this name. Known here are 'aws-msk', 'azure', 'gcp', 'gcp-access-token'"),
    "a name of two packages": (("a:t", "b:t"), "acme", r"several installed packages have a provider of this name: a:t, b:t\."),
    "a package that is broken": (("not_there:t",), "acme", "'acme' cannot be loaded: No module named 'not_there'"),
    "a function that is not there": ((), "my_tokens:tokne", "'my_tokens:tokne' cannot be loaded: .*no attribute 'tokne'"),
    "what is no function": ((), "my_tokens:number", "'my_tokens:number' is no function"),
    "nothing": ((), "", "= '': no installed package has a provider"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_provider_is_told(case, monkeypatch):
    """When the client is opened, and not when it logs in."""
    values, name, message = REFUSED[case]
    monkeypatch.setenv(ALLOWED, "my_tokens")
    monkeypatch.setattr(token_providers, "entry_points", Installed(*values))

    with pytest.raises(OptionError, match=message):
        tokens_of(given(name))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"sasl_mechanism": "PLAIN"}, "needs 'properties.sasl.mechanism' = 'OAUTHBEARER', but it is 'PLAIN'"),
        ({"sasl_mechanism": ""}, "'OAUTHBEARER', but it is 'not given'"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://a"}, r"endpoint\.url' both say where tokens come from"),
        ({"sasl_oauthbearer_method": "oidc"}, r"method' both say where tokens come from"),
        ({"enable_sasl_oauthbearer_unsecure_jwt": "true"}, r"unsecure\.jwt' both say where tokens come from"),
    ],
)  # fmt: skip
def test_what_contradicts_a_provider_is_told(more, message):
    """One of them would be ignored."""
    with pytest.raises(OptionError, match=message):
        tokens_of(given("azure", **more))


def test_no_provider_is_nothing():
    """Clients that log in otherwise have no tokens, and nothing is looked up for them."""
    assert tokens_of({"sasl.mechanism": "PLAIN"}) is None


def test_settings_that_differ_have_tokens_of_their_own(monkeypatch):
    """What the provider is told, and the cluster; a client's tuning does not matter."""
    monkeypatch.setenv(ALLOWED, "my_tokens")
    same = tokens(given("my_tokens:token", linger_ms="5"))

    assert tokens(given("my_tokens:token", linger_ms="6")) is same
    assert tokens(given("my_tokens:token", sasl_oauthbearer_config="a")) is not same
    assert tokens(given("my_tokens:token", bootstrap_servers="b")) is not same


def test_the_config_of_a_provider_is_not_shown():
    """It may hold a secret; the provider's name is none, and errors need it."""
    shown = given("aws-msk", sasl_oauthbearer_config="region=eu client_secret=pst")

    assert masked(shown)["sasl.oauthbearer.config"] == "***"
    assert masked(shown)[PROVIDER] == "aws-msk"
    text = OutsideText(shown).shown("aws-msk in eu refuses pst")
    assert text == "aws-msk in eu refuses ***"
