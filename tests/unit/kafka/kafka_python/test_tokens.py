"""Tokens for kafka-python: from an OpenID Connect provider, or made by the client itself."""

from __future__ import annotations

import base64
import json

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.kafka.failures import ClientErrors
from pyspark_upsert_kafka.kafka.kafka_python.properties import (
    TokenError,
    token_provider,
)
from tests.http_server import Endless
from tests.token_endpoint import TokenEndpoint
from tests.unit.registry.fake_registry import serving

OIDC = "sasl.oauthbearer."
CLIENT = ("an id", "geheim:%ü")
PROPERTIES = {f"{OIDC}client.id": CLIENT[0], f"{OIDC}client.secret": CLIENT[1]}


def given(endpoint: TokenEndpoint, **more: str) -> dict[str, str]:
    """The properties of a client that the provider knows."""
    return {
        f"{OIDC}token.endpoint.url": endpoint.url,
        f"{OIDC}client.id": CLIENT[0],
        f"{OIDC}client.secret": CLIENT[1],
        **{f"{OIDC}{name}": value for name, value in more.items()},
    }


def claims(token: str) -> dict[str, object]:
    """What a token says."""
    body = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))


def test_a_token_is_asked_for_and_used_until_it_gets_old():
    """Once for many connections; the scope is sent along."""
    with TokenEndpoint("ana", CLIENT) as endpoint:
        provider = token_provider(given(endpoint, scope="a b"), ClientErrors())

        assert claims(provider.token())["sub"] == "ana"
        assert provider.token() == provider.token()

    assert endpoint.forms == [{"grant_type": ["client_credentials"], "scope": ["a b"]}]


def test_tokens_are_shared_by_clients_of_the_same_settings():
    """The cache is that of every client of the process; another scope is another token."""
    with TokenEndpoint("ana", CLIENT) as endpoint:
        first, second, other = (
            token_provider(given(endpoint, scope=scope), ClientErrors()) for scope in "aab"
        )
        assert first.token() == second.token()
        other.token()

    assert [form["scope"] for form in endpoint.forms] == [["a"], ["b"]]


def test_what_the_provider_refuses_is_told_without_the_secret():
    """With its address and its error, and nothing else of its answer."""
    with TokenEndpoint("ana", CLIENT) as endpoint:
        wrong = {**given(endpoint), f"{OIDC}client.secret": "geheimer"}
        with pytest.raises(TokenError) as error:
            token_provider(wrong, ClientErrors()).token()

        text = f"The token endpoint {endpoint.url} answered 401 Unauthorized (invalid_client)."
        assert str(error.value).endswith(text)
        assert not error.value.retriable


@pytest.mark.parametrize(
    "error",
    [
        "Invalid_Client", "Basic YW4gaWQ=", "invalid\x1b[2J", "invalid client", "x" * 51, "", 5, None, ["x"],
        "invalid_client\n",
    ],
)  # fmt: skip
def test_what_is_no_code_of_an_error_is_not_shown(error):
    """A provider may write anything in its place."""
    with TokenEndpoint("ana", CLIENT) as endpoint:
        endpoint.refusal = json.dumps({"error": error}).encode()
        endpoint.reason = "\x1b[2J geheim:%ü"
        wrong = {**given(endpoint), f"{OIDC}client.id": "unknown"}
        with pytest.raises(TokenError) as raised:
            token_provider(wrong, ClientErrors()).token()

    assert str(raised.value).endswith(r"answered 401 \x1b[2J ***.")


@pytest.mark.parametrize("content", [b"[" * 1_000_000, b"\xff", b'{"error": {}}', b"[]", b"7"])
def test_a_refusal_that_is_no_answer_of_a_provider(content):
    """Of a proxy, perhaps: its status says enough."""
    with TokenEndpoint("ana", CLIENT) as endpoint:
        endpoint.refusal = content
        wrong = {**given(endpoint), f"{OIDC}client.id": "unknown"}
        with pytest.raises(TokenError, match=r"answered 401 Unauthorized\.$"):
            token_provider(wrong, ClientErrors()).token()


@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": "x", "expires_in": 10**400},
        {"access_token": "x", "expires_in": None},
        {"access_token": "x"},
        [],
    ],
    ids=lambda each: str(each)[:40],
)
def test_an_answer_that_says_no_time(answer):
    """Such a token would be used for ever, or never."""
    with serving() as server:
        server.answers["/token"] = [(200, answer)]
        properties = {**PROPERTIES, f"{OIDC}token.endpoint.url": f"{server.url}/token"}
        with pytest.raises(TokenError, match="without an access_token that says when it expires"):
            token_provider(properties, ClientErrors()).token()


def test_a_token_without_an_end():
    """It is not held in memory, and asking again would not help."""
    with serving() as server:
        server.answers["/token"] = [(200, Endless(b"x" * 65_536))]
        properties = {**PROPERTIES, f"{OIDC}token.endpoint.url": f"{server.url}/token"}
        with pytest.raises(
            TokenError, match="cannot be asked: the answer has more than 16 MB"
        ) as error:
            token_provider(properties, ClientErrors()).token()

    assert not error.value.retriable


def test_a_provider_that_is_away_may_come_back():
    """Asking again may help, so the error does not end a query at once."""
    with TokenEndpoint("ana", CLIENT) as endpoint:
        pass
    with pytest.raises(TokenError, match="cannot be asked") as error:
        token_provider(given(endpoint), ClientErrors()).token()

    assert error.value.retriable


def test_an_unsecured_token_is_one_that_the_client_makes():
    """As librdkafka makes it from the same properties."""
    properties = {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        f"{OIDC}config": "principal=ana lifeSeconds=60 scope=a,b",
        f"{OIDC}extensions": "x=1,y=2=3",
    }
    provider = token_provider(properties, ClientErrors())
    made = claims(provider.token())

    assert (made["sub"], made["scope"]) == ("ana", ["a", "b"])
    assert 59 < float(str(made["exp"])) - float(str(made["iat"])) < 61
    assert provider.token().endswith(".")
    assert provider.extensions() == {"x": "1", "y": "2=3"}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, r"needs 'properties\.sasl\.oauthbearer\.token\.endpoint\.url', .*client\.id', .*client\.secret'\."),
        (
            {f"{OIDC}token.endpoint.url": "file:///geheim", f"{OIDC}client.id": "a", f"{OIDC}client.secret": "b"},
            "expected an address that begins with 'https://'",
        ),
        ({f"{OIDC}extensions": "geheim"}, r"extensions': expected '<name>=<value>'"),
        (
            {"enable.sasl.oauthbearer.unsecure.jwt": "true", f"{OIDC}config": "geheim"},
            r"config': expected '<name>=<value>'",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_or_malformed_is_told(properties, message):
    """When the client is opened, and not when it first needs a token."""
    with pytest.raises(OptionError, match=message) as error:
        token_provider(properties, ClientErrors())

    assert "geheim" not in str(error.value)
