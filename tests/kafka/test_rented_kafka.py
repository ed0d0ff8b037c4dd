"""Logins at the Kafka of clouds, played by a server before a broker: each as its page says it, with each client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import confluent_kafka as ck
import pytest

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.client_pool import close_idle_clients
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config
from pyspark_upsert_kafka.logins import login_tokens
from tests.conftest import Broker
from tests.kafka.conftest import CLIENTS, WAYS, Edge, eventually, numbered, turn_off
from tests.kafka.sasl_server import RefusedError, SaslServer
from tests.kafka.secured import LONG_PASSWORD, Secured
from tests.kafka.test_security import _close_idle_clients  # noqa: F401
from tests.token_endpoint import TokenEndpoint
from tests.unit.logins.test_google_managed_kafka import (
    ACCOUNT,
    TOKEN,
    subject_of,
    write_key,
)
from tests.unit.registry.fake_registry import FakeRegistry, serving

BY_TOKEN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}


@pytest.fixture(autouse=True)
def _no_tokens_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    login_tokens._begin_in_fork()


@pytest.fixture
def cloud() -> Iterator[FakeRegistry]:
    """A server that gives a machine tokens."""
    with serving() as cloud:
        yield cloud


def opens(token: str) -> Callable[[str], float]:
    """Lets in whoever shows this token."""

    def judge(shown: str) -> float:
        if shown != token:
            raise RefusedError("invalid token")
        return 0

    return judge


def check(
    broker: Broker, client: str, judge: Callable[[str], float], login: dict[str, str]
) -> set[str]:
    """Sends and reads through a server that asks for tokens; returns those that it was shown."""
    topic = broker.topic()
    server = SaslServer(broker.servers, judge)
    with closing(server):
        edge = Edge(client, server.servers).given({**BY_TOKEN, **login})
        edge.send(topic, *numbered(3))
        assert edge.offsets(Range(topic, 0, 0, 3), committed=False) == [0, 1, 2]
        close_idle_clients()
    return {*server.tokens}


@pytest.mark.every_client
@pytest.mark.parametrize("client", CLIENTS)
def test_azure_by_the_identity_of_the_machine(
    broker: Broker, client: str, cloud: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """azure-identity asks for it; one token serves all clients of the process."""
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{cloud.url}/token")
    monkeypatch.setenv("IDENTITY_HEADER", "s3cr3t")
    ends = int(time.time()) + 3600
    answer = {"access_token": "of-shop", "expires_on": str(ends), "token_type": "Bearer", "resource": "r"}  # fmt: skip
    cloud.answers["/token?"] = [(200, answer)]
    login = {
        "sasl.oauthbearer.token.provider": "azure",
        "sasl.oauthbearer.config": "scope=https://shop.servicebus.windows.net/.default",
    }

    assert check(broker, client, opens("of-shop"), login) == {"of-shop"}
    assert len(cloud.asked) == 1


@pytest.mark.parametrize("way", [way for way in WAYS if way != "kafka-python"])
def test_azure_by_librdkafkas_own_way(
    broker: Broker, way: str, cloud: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks the machine as its configuration says; also where messages are read and sent by the thousand."""
    turn_off(monkeypatch, way)
    with TokenEndpoint("spark", ("", "")) as endpoint:
        token = endpoint.token()
    cloud.answers["/imds?"] = [(200, {"access_token": token, "expires_in": "3600"})]
    login = {
        "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
        "sasl.oauthbearer.token.endpoint.url": f"{cloud.url}/imds",
        "sasl.oauthbearer.config": "query=api-version=2018-02-01&resource=https://shop.servicebus.windows.net",
    }

    assert check(broker, way.split(maxsplit=1)[0], opens(token), login) == {token}
    assert {each.headers["Metadata"].lower() for each in cloud.asked} == {"true"}
    assert all("resource=https://shop" in path for path in cloud.paths())


@pytest.mark.every_client
@pytest.mark.parametrize("client", CLIENTS)
def test_azure_by_the_secret_of_a_client(broker: Broker, client: str) -> None:
    """As Java spells it: the address of the tenant's tokens, and the namespace as the scope."""
    with TokenEndpoint("spark", ("an id", "geheim")) as entra:
        login = {
            "sasl.oauthbearer.token.endpoint.url": entra.url,
            "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            'clientId="an id" clientSecret="geheim" scope="https://shop.servicebus.windows.net/.default";',
        }
        shown = check(broker, client, lambda _: 0, login)

        assert {form["scope"][0] for form in entra.forms} == {
            "https://shop.servicebus.windows.net/.default"
        }
    assert all(token.count(".") == 2 for token in shown)


@pytest.mark.every_client
@pytest.mark.parametrize("client", CLIENTS)
def test_google_by_a_key_file(
    broker: Broker,
    client: str,
    cloud: FakeRegistry,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """As Java spells it: its handler is ours."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", write_key(tmp_path, f"{cloud.url}/token"))
    cloud.answers["/token"] = [(200, {"access_token": TOKEN, "expires_in": 3600})]
    login = {
        "sasl.login.callback.handler.class": "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler",
        "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
    }

    (shown,) = check(broker, client, lambda _: 0, login)
    assert subject_of(shown) == ACCOUNT
    assert len(cloud.asked) == 1


@pytest.mark.every_client
@pytest.mark.parametrize("client", CLIENTS)
def test_google_by_a_key_as_the_password(secured: Secured, client: str) -> None:
    """A key in base64 is a password of 3,000 characters, which a broker gets whole; with another end it is refused."""
    topic = secured.broker.topic()
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "key", "sasl.password": LONG_PASSWORD}
    edge = secured.edge(client, "SASL_PLAINTEXT", login)
    edge.send(topic, *numbered(3))

    assert edge.offsets(Range(topic, 0, 0, 3), committed=False) == [0, 1, 2]
    other = edge.given({"sasl.password": LONG_PASSWORD[:-1]})
    with pytest.raises(BrokerError, match=r"[Aa]uthentication"):
        other.bounds(topic, committed=False)


@pytest.mark.long("waits until a client has asked for a token twice")
def test_librdkafka_follows_no_redirect(cloud: FakeRegistry) -> None:
    """It takes it for an answer without a token: nobody else is asked, with or without the client's secret."""
    given = {
        **BY_TOKEN,
        "sasl.oauthbearer.token.endpoint.url": f"{cloud.url}/token",
        "sasl.oauthbearer.client.id": "an id",
        "sasl.oauthbearer.client.secret": "geheim",
    }
    with serving() as other:
        cloud.answers["/token"] = [(307, f"{other.url}/token")]
        other.answers["/token"] = [(200, {"access_token": "x", "expires_in": 60})]
        config = client_config(Properties(given), "writer", {"bootstrap.servers": "127.0.0.1:1"})
        producer = ck.Producer({**config, "log_level": 0})
        assert eventually(lambda: len(cloud.asked) > 1)
        del producer

        assert other.asked == []
