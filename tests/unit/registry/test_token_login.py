"""Logins to a registry by tokens: from an endpoint, from a function, and those of the Kafka client."""

from __future__ import annotations

import ast
import base64
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options, side_of
from pyspark_upsert_kafka.core.clock import Backoff
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, RetriableBrokerError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.logins.token_providers import tokens_of
from pyspark_upsert_kafka.registry import rest
from pyspark_upsert_kafka.registry.access import Access
from pyspark_upsert_kafka.registry.rest import Patience
from tests import given_tokens
from tests.chains import texts_of
from tests.http_server import Endless
from tests.table_options import table_options
from tests.token_endpoint import TokenEndpoint
from tests.unit.registry.avro_confluent_codecs import settings, settings_of, spec
from tests.unit.registry.fake_registry import FakeRegistry, serving

ROOT = Path(__file__).parents[3]
HERE = "/schemas/ids/7"
GOOD = (200, {"schema": '"long"'})
REFUSED = (401, {"error_code": 401, "message": "Unauthorized"})
SECRET = "geheim:%ü"
CLIENT = ("an id", SECRET)
SOURCE = "bearer-auth.credentials-source"
CUSTOM = {SOURCE: "CUSTOM", "bearer-auth.token.provider": given_tokens.TOKEN_PROVIDER}

IN_VAIN = Patience(all_s=0.1, backoff=Backoff(0.01, 4.0, random=lambda: 0.5))
request = partial(rest.request, patience=replace(IN_VAIN, all_s=30.0))


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    """An endpoint that knows the client."""
    with TokenEndpoint("ana", CLIENT) as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def _providers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in given_tokens.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def by_endpoint(endpoint: TokenEndpoint | str, **more: str) -> dict[str, str]:
    """The options of a client of an endpoint."""
    return {
        SOURCE: "OAUTHBEARER",
        "bearer-auth.issuer.endpoint.url": endpoint if isinstance(endpoint, str) else endpoint.url,
        "bearer-auth.client.id": CLIENT[0],
        "bearer-auth.client.secret": SECRET,
        **{f"bearer-auth.{name.replace('_', '.')}": value for name, value in more.items()},
    }


def access(registry: FakeRegistry, given: dict[str, str], side: str = "value") -> Access:
    """The way to a registry."""
    return settings({"url": registry.url, **given}, side=side).access


def inherited(registry: FakeRegistry, client: dict[str, str]) -> Access:
    """The way to it with the login of a Kafka client."""
    table = spec({"url": registry.url, SOURCE: "SASL_OAUTHBEARER_INHERIT"})
    return settings_of(replace(table, client=Properties(client))).access


def sent(registry: FakeRegistry) -> list[str]:
    """The tokens that came, in turn."""
    return [asked.headers["Authorization"].removeprefix("Bearer ") for asked in registry.asked]


def subject_of(token: str) -> object:
    """Whom a token is of."""
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["sub"]


def test_a_token_of_an_endpoint(registry, endpoint):
    """One serves key and value; what Confluent's cloud wants beside it is sent as its own clients do."""
    more = {"scope": "a b", "logical_cluster": "lsrc-1", "identity_pool_id": "pool-1,pool-2"}
    registry.answers[HERE] = [GOOD]
    for side in ("key", "value", "value"):
        request(access(registry, by_endpoint(endpoint, **more), side), HERE, {})

    assert [subject_of(token) for token in sent(registry)] == ["ana"] * 3
    assert len(set(sent(registry))) == 1
    assert endpoint.forms == [{"grant_type": ["client_credentials"], "scope": ["a b"]}]
    headers = {name.lower(): value for name, value in registry.asked[-1].headers.items()}
    assert headers["target-sr-cluster"] == "lsrc-1"
    assert headers["confluent-identity-pool-id"] == "pool-1,pool-2"


def test_the_example_of_the_page(registry, monkeypatch):
    """Its options mean what the page says, with the addresses of ours and the secret from the environment."""
    page = (ROOT / "docs" / "schema-registry.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^by_token = (\{.*?^\})$", page, re.DOTALL | re.MULTILINE)
    options = ast.literal_eval(block)
    monkeypatch.setenv("REGISTRY_SECRET", SECRET)
    registry.answers[HERE] = [GOOD]
    with TokenEndpoint("page", ("spark", SECRET)) as endpoint:
        options["value.avro-confluent.url"] = registry.url
        options["value.avro-confluent.bearer-auth.issuer.endpoint.url"] = endpoint.url
        assert options.pop("value.format") == "avro-confluent"
        prefix = "value.avro-confluent."
        given = {name.removeprefix(prefix): value for name, value in options.items()}
        request(access(registry, given), HERE, {})

        assert endpoint.forms == [{"grant_type": ["client_credentials"], "scope": ["registry"]}]
    assert subject_of(sent(registry)[0]) == "page"
    assert SECRET not in repr(options)


def test_a_token_of_a_function(registry):
    """It is called with the text that is given for it, once for all registries."""
    config = "user=custom for=registry"
    registry.answers[HERE] = [GOOD]
    for side in ("key", "value"):
        given = {**CUSTOM, "bearer-auth.token.provider.config": config}
        request(access(registry, given, side), HERE, {})

    assert [subject_of(token) for token in sent(registry)] == ["custom"] * 2
    assert given_tokens.calls[config] == 1


def test_the_login_of_the_client(registry):
    """The token is the one by which clients of Kafka are logged in, and not another."""
    client = given_tokens.login("user=inherited")
    of_client = tokens_of(client)
    assert of_client is not None
    registry.answers[HERE] = [GOOD]
    request(inherited(registry, client), HERE, {})

    assert sent(registry) == [of_client.token().text]
    assert given_tokens.calls["user=inherited"] == 1


@pytest.mark.parametrize("is_java", [False, True])
def test_the_endpoint_of_the_client(registry, endpoint, is_java):
    """Also where Java's configuration of a login says it."""
    login = (
        {
            "sasl.jaas.config": "o.a.k.OAuthBearerLoginModule required "
            f'clientId="{CLIENT[0]}" clientSecret="{SECRET}" scope="java";'
        }
        if is_java
        else {
            "sasl.oauthbearer.client.id": CLIENT[0],
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.method": "oidc",
        }
    )
    client = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": endpoint.url,
        **login,
    }
    registry.answers[HERE] = [GOOD]
    request(inherited(registry, client), HERE, {})

    assert subject_of(sent(registry)[0]) == "ana"
    assert len(endpoint.forms) == 1


@pytest.mark.parametrize(
    ("client", "message"),
    [
        ({}, "'properties.sasl.mechanism' is 'not given'"),
        ({"sasl.mechanism": "PLAIN"}, "'properties.sasl.mechanism' is 'PLAIN'"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "needs 'properties.sasl.oauthbearer.token.endpoint.url'"),
        (
            {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.metadata.authentication.type": "azure_imds"},
            "by 'properties.sasl.oauthbearer.metadata.authentication.type' librdkafka alone gets tokens",
        ),
    ],
)  # fmt: skip
def test_a_login_of_the_client_that_has_no_token(registry, client, message):
    """It is told with the option that takes it."""
    with pytest.raises(OptionError) as error:
        request(inherited(registry, client), HERE, {})

    assert message in str(error.value)


def test_a_token_that_has_ended_is_not_sent(registry):
    """The function gives one that ends before it can be sent."""
    given = {**CUSTOM, "bearer-auth.token.provider.config": "life=0.000001 user=old"}
    with pytest.raises(BrokerError, match="has ended"):
        rest.request(access(registry, given), HERE, {}, patience=IN_VAIN)
    assert registry.asked == []


def test_a_refused_token_is_asked_for_anew_once(registry, endpoint):
    """It may have been withdrawn; the other one is used from then on."""
    registry.answers[HERE] = [REFUSED, GOOD]
    way = access(registry, by_endpoint(endpoint, scope="withdrawn"))
    for _ in range(2):
        request(way, HERE, {})

    first, second, third = sent(registry)
    assert first != second == third
    assert len(endpoint.forms) == 2


def test_a_token_that_is_refused_again(registry, endpoint):
    """The error says whose it is, until when it is good, and what may be wrong; it shows no token, which the registry repeats."""
    way = access(registry, by_endpoint(endpoint, scope="unknown"))
    tokens = way.login.tokens(way.option_prefix)
    said = {"error_code": 401, "message": f"unknown token {tokens.token().text}, {SECRET}"}
    registry.answers[HERE] = [(401, said)]
    with pytest.raises(BrokerError) as error:
        request(way, HERE, {})

    text = str(error.value)
    assert (
        "'value.avro-confluent.bearer-auth.credentials-source' = 'OAUTHBEARER' the token is from"
        in text
    )
    assert "It is refused, and so is the one that was asked for then" in text
    assert "the clock here says" in text
    assert SECRET not in text
    assert "eyJ" not in text
    assert len(registry.asked) == 2


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("wrap", ["{}", "Bearer {}", "token={}", '{{"t":"{}"}}', "no{}no"])
def test_a_token_that_no_pattern_knows_is_not_shown(registry, status, wrap):
    """One without a dot is told by what was sent, also the first of two: a registry may repeat it anywhere in its answer."""
    opaque = f"ya29+a0{status}/{len(wrap)}"
    way = access(registry, {**CUSTOM, "bearer-auth.token.provider.config": f"opaque={opaque}"})
    said = f"{wrap.format(f'{opaque}-1')} and {wrap.format(f'{opaque}-2')} may not"
    registry.answers[HERE] = [(status, {"error_code": status, "message": said})]

    with pytest.raises(BrokerError) as error:
        request(way, HERE, {})

    first, *others = sent(registry)
    assert first == f"{opaque}-1"
    assert others == ([f"{opaque}-2"] if status == 401 else [])
    # A second one that was never asked for is nobody's secret.
    shown = texts_of(error.value) if others else texts_of(error.value).replace(f"{opaque}-2", "")
    assert "ya29" not in shown
    assert "***" in shown
    assert "may not" in shown


def test_a_user_who_may_not_read(registry, endpoint):
    """Another token would not help: none is asked for."""
    registry.answers[HERE] = [(403, {"error_code": 403, "message": "Forbidden"})]
    with pytest.raises(BrokerError, match="It is refused: is it for this registry") as error:
        request(access(registry, by_endpoint(endpoint, scope="weak")), HERE, {})

    assert "asked for then" not in str(error.value)
    assert len(endpoint.forms) == 1


def test_no_other_token_for_one_that_is_refused(registry):
    """The function fails just then: both are told."""
    config = "user=withdrawn"
    way = access(registry, {**CUSTOM, "bearer-auth.token.provider.config": config})
    registry.answers[HERE] = [GOOD, REFUSED]
    request(way, HERE, {})
    given_tokens.failing[config] = ConnectionError("nobody there")
    with pytest.raises(RetriableBrokerError, match="ConnectionError: nobody there") as error:
        rest.request(way, HERE, {}, patience=IN_VAIN)

    assert f"There is no login to the schema registry at {registry.url}" in str(error.value)


def test_an_endpoint_that_is_away_for_a_moment(registry):
    """It is waited for as the registry itself is."""
    with serving() as server:
        server.answers["/token"] = [
            (503, b"busy"),
            (200, {"access_token": "opaque", "expires_in": 60}),
        ]
        registry.answers[HERE] = [GOOD]
        request(access(registry, by_endpoint(f"{server.url}/token")), HERE, {})

        assert len(server.asked) == 2
    assert sent(registry) == ["opaque"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((302, "http://127.0.0.2:1/token"), "a redirect, which is not followed: another server would get the client's secret"),
        ((200, b"<html>"), "without an access_token that says when it expires"),
        ((200, Endless(b"x" * 65_536)), "the answer has more than 16 MB"),
        ((400, {"error": "invalid_client"}), "answered 400 Bad Request (invalid_client)"),
        ((401, f"no such client: {SECRET}".encode()), "answered 401 Unauthorized"),
    ],
    ids=lambda each: str(each)[:20],
)  # fmt: skip
def test_an_endpoint_that_gives_no_token(registry, answer, message):
    """A sentence each, that names the option, the registry and the endpoint, without the secret; the registry is not asked."""
    with serving() as server:
        server.answers["/token?secret=x"] = [answer]
        with pytest.raises(BrokerError) as error:
            request(access(registry, by_endpoint(f"{server.url}/token?secret=x")), HERE, {})
        assert len(server.asked) == 1

    text = str(error.value)
    assert message in text
    assert f"There is no login to the schema registry at {registry.url}" in text
    assert "'value.avro-confluent.bearer-auth.credentials-source' = 'OAUTHBEARER'" in text
    assert f"The token endpoint {server.url}/token " in text
    assert SECRET not in text
    assert registry.asked == []


def test_a_function_that_may_not_be_called(registry, monkeypatch):
    """The rule of the client's option holds here: the error names this one."""
    monkeypatch.delenv("UPSERT_KAFKA_TOKEN_PROVIDERS")
    given = {**CUSTOM, "bearer-auth.token.provider.config": "not allowed"}
    with pytest.raises(OptionError) as error:
        request(access(registry, given), HERE, {})

    assert "Option 'value.avro-confluent.bearer-auth.token.provider' = 'tests.given_tokens:token'" in str(error.value)  # fmt: skip
    assert "set the environment variable 'UPSERT_KAFKA_TOKEN_PROVIDERS'" in str(error.value)


@pytest.mark.parametrize("side", ["key", "value"])
def test_the_login_is_that_of_the_table(side):
    """Of the properties that its options give to the Kafka client."""
    formats = {f"{each}.format": "avro-confluent" for each in ("key", "value")}
    registries = {
        f"{each}.avro-confluent.{name}": value
        for each in ("key", "value")
        for name, value in {"url": "http://a", SOURCE: "SASL_OAUTHBEARER_INHERIT"}.items()
    }
    client = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.client.secret": SECRET}
    properties = {f"properties.{name}": value for name, value in client.items()}
    given = table_options(**formats, **registries, **properties)
    table = read_options(given, format_options, stream=False).table
    login = settings_of(side_of(table, side, StructType()).spec).access.login

    assert login.client == {**client, "bootstrap.servers": "nowhere:9092"}
    assert SECRET not in repr(login)
