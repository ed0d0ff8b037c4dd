"""Tokens for Azure Event Hubs: what Microsoft Entra ID is asked for, by whom, and what becomes of its answers."""

from __future__ import annotations

import io
import json
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.logins import login_tokens
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens
from pyspark_upsert_kafka.logins.rented_kafka import event_hubs_host
from pyspark_upsert_kafka.logins.token_providers import tokens_of
from tests.http_server import SILENCE, Endless
from tests.unit.registry.fake_registry import FakeRegistry, serving

SHOP = "shop.servicebus.windows.net"
HEADER, SECRET = "s3cr3t-header", "geh3im~secret"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is logged in here, and no token is there."""
    pytest.importorskip("azure.identity")
    for name in ("CLIENT_ID", "CLIENT_SECRET", "TENANT_ID", "AUTHORITY_HOST", "TOKEN_CREDENTIALS"):
        monkeypatch.delenv(f"AZURE_{name}", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("PATH", "")
    login_tokens._begin_in_fork()


def tokens(servers: str = f"{SHOP}:9093", config: str = "") -> LoginTokens:
    """The tokens of a client."""
    found = tokens_of({
        "bootstrap.servers": servers,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": "azure",
        "sasl.oauthbearer.config": config,
    })  # fmt: skip
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("servers", "host"),
    [
        (f"{SHOP}:9093", SHOP),
        (f"SASL_SSL://{SHOP}:9093", SHOP),
        ("Shop.ServiceBus.Windows.net:9093", "Shop.ServiceBus.Windows.net"),
        ("a.servicebus.usgovcloudapi.net:9093", "a.servicebus.usgovcloudapi.net"),
        ("a.servicebus.chinacloudapi.cn", "a.servicebus.chinacloudapi.cn"),
        ("shop.servicebus.windows.net.evil.example:9093", None),
        ("servicebus.windows.net:9093", None),
        ("localhost:9092", None),
    ],
)
def test_a_namespace_has_a_name(servers, host):
    """Of each cloud of Microsoft's; a name that only begins so is somebody else's."""
    assert event_hubs_host(servers) == host


class Entra:
    """Microsoft Entra ID, which azure-identity asks in the place of the network: it knows one client.

    Args:
        answer: What it answers to a client.
    """

    def __init__(self, answer: dict[str, Any] | None = None) -> None:
        self.forms: list[dict[str, str]] = []
        self.hosts: set[str] = set()
        self.answer = answer

    def send(self, request: Any, **_: object) -> object:
        """An answer."""
        from azure.core.rest._requests_basic import RestRequestsTransportResponse
        from requests import Response

        parts = urlsplit(request.url)
        self.hosts.add(parts.netloc)
        base = f"https://{parts.netloc}/tenant"
        found: dict[str, Any] = {
            "token_endpoint": f"{base}/token",
            "authorization_endpoint": f"{base}/authorize",
            "issuer": base,
        }
        response = Response()
        response.status_code = 200
        if request.method == "POST":
            form = dict(request.data or {})
            self.forms.append(form)
            found = self.answer or {
                "access_token": f"of-{form['client_id']}-{len(self.forms)}",
                "expires_in": 3600,
                "token_type": "Bearer",
            }
            response.status_code = 401 if "error" in found else 200
        response.raw = io.BytesIO(json.dumps(found).encode())
        response.headers["Content-Type"] = "application/json"
        return RestRequestsTransportResponse(request=request, internal_response=response)

    def __enter__(self) -> Entra:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        pass

    open = close = sleep = __exit__


@pytest.fixture
def entra(monkeypatch: pytest.MonkeyPatch) -> Entra:
    """Microsoft Entra ID, and a client's secret in the environment."""
    from pyspark_upsert_kafka.logins import azure_event_hubs

    entra = Entra()
    for name, value in {"CLIENT_ID": "spark", "CLIENT_SECRET": SECRET, "TENANT_ID": "t"}.items():
        monkeypatch.setenv(f"AZURE_{name}", value)
    more = {"transport": entra, "disable_instance_discovery": True}
    monkeypatch.setattr(azure_event_hubs, "_IN_TIME", {**azure_event_hubs._IN_TIME, **more})
    return entra


@pytest.mark.parametrize(
    ("servers", "config", "scope", "authority"),
    [
        (SHOP, "", f"https://{SHOP}/.default", "login.microsoftonline.com"),
        ("a.servicebus.usgovcloudapi.net", "", "https://a.servicebus.usgovcloudapi.net/.default", "login.microsoftonline.us"),
        ("a.servicebus.chinacloudapi.cn", "", "https://a.servicebus.chinacloudapi.cn/.default", "login.chinacloudapi.cn"),
        ("10.0.0.4", "scope=https://b/.default", "https://b/.default", "login.microsoftonline.com"),
        (SHOP, "scope=https://b/.default", "https://b/.default", "login.microsoftonline.com"),
    ],
)  # fmt: skip
def test_a_token_is_for_the_namespace(servers, config, scope, authority, entra):
    """By its name, or as it is told; of the authority of its cloud. The library's name for a scope of ours is the same."""
    found = tokens(f"{servers}:9093", config).token()

    assert found.text == "of-spark-1"
    assert 3500 < found.expires_at - time.time() <= 3600
    assert [form["scope"].split()[0] for form in entra.forms] == [scope]
    assert [form["client_secret"] for form in entra.forms] == [SECRET]
    assert entra.hosts == {authority}


def test_the_environment_names_the_authority(entra, monkeypatch):
    """As azure-identity has it, whatever the cloud is."""
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "login.example")
    tokens("a.servicebus.chinacloudapi.cn:9093").token()

    assert entra.hosts == {"login.example"}


def test_a_client_that_is_refused(entra, caplog):
    """The error is told once, without the secret, although the answer repeats it."""
    said = f"AADSTS7000215: Invalid client secret. client_secret={SECRET}\x1b[2J eyJhbGciOiJSUzI1NiJ9.e30.c2ln"
    entra.answer = {"error": "invalid_client", "error_description": said}
    with pytest.raises(BrokerError, match="AADSTS7000215: Invalid client secret") as error:
        tokens().token()

    everything = str(error.value) + caplog.text
    assert SECRET not in everything
    assert "eyJ" not in everything
    assert "\x1b" not in str(error.value)


def test_other_threads_log_what_they_like(caplog):
    """azure-identity is silent only where its errors are told by us."""
    with pytest.raises(BrokerError):
        tokens("other.servicebus.windows.net").token()
    assert "azure.identity" not in {record.name.rpartition(".")[0] for record in caplog.records}
    logging.getLogger("azure.identity._credentials.chained").warning("of the user's own code")

    assert caplog.messages == ["of the user's own code"]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    """The endpoint that gives a machine the tokens of its identities."""
    with serving() as machine:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{machine.url}/token")
        monkeypatch.setenv("IDENTITY_HEADER", HEADER)
        yield machine


def given(text: str, life_s: float = 3600) -> tuple[int, object]:
    """An answer with a token."""
    return 200, {"access_token": text, "expires_on": str(int(time.time() + life_s)), "token_type": "Bearer", "resource": "r"}  # fmt: skip


def test_identities_of_a_machine(machine):
    """Two tables may have one each, and each has its own tokens."""
    machine.answers["/token?"] = [given("first"), given("second")]
    one, other = tokens(config="clientId=one"), tokens(config="clientId=other")

    assert (one.token().text, other.token().text) == ("first", "second")
    assert (one.token().text, other.token().text) == ("first", "second")
    asked = [parse_qs(urlsplit(path).query) for path in machine.paths()]
    assert [query["client_id"] for query in asked] == [["one"], ["other"]]
    assert {query["resource"][0] for query in asked} == {f"https://{SHOP}"}
    assert {each.headers["X-Identity-Header"] for each in machine.asked} == {HEADER}


MISBEHAVIOURS: dict[str, tuple[tuple[int, Any] | None, str]] = {
    "is silent": (SILENCE, "timed out"),
    "refuses": ((403, {"statusCode": 403, "message": f"forbidden to {HEADER}"}), "forbidden"),
    "gives no JSON": ((200, b"<html>sign in</html>"), "ManagedIdentityCredential"),
    "gives no token": ((200, {"expires_on": "1"}), "ManagedIdentityCredential"),
    "gives a token that has ended": (given("old", -60), "ended|expired|no token"),
    "gives megabytes": ((200, b"x" * 20_000_000), "the answer has more than 16 MB"),
    "sends without an end": ((200, Endless(b"x" * 1024, 0.05)), "timed out"),
}


@pytest.mark.parametrize("case", MISBEHAVIOURS)
def test_an_endpoint_that_misbehaves(case, machine, monkeypatch):
    """Is told in a sentence, in which nothing is secret."""
    from pyspark_upsert_kafka.logins import azure_event_hubs

    answer, said = MISBEHAVIOURS[case]
    in_vain = "timed out" in said
    silent_s = 0.5 if in_vain else 300
    monkeypatch.setattr(azure_event_hubs, "ANSWERS_S", 0.5 if in_vain else 300)
    monkeypatch.setattr(
        azure_event_hubs, "_IN_TIME", {"retry_total": 0, "connection_timeout": silent_s, "read_timeout": silent_s}
    )  # fmt: skip
    machine.answers["/token?"] = [answer]
    found = tokens()
    found._deadline_s = 300.0
    with pytest.raises(BrokerError, match=said) as error:
        found.token()

    assert "'azure'" in str(error.value)
    assert HEADER not in str(error.value)
    assert len(str(error.value)) < 1_200


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_credentials_do_not_follow_a_redirect(status, machine):
    """The secret header goes to nobody else."""
    with serving() as other:
        other.answers["/token"] = [given("stolen")]
        machine.answers["/token?"] = [(status, f"{other.url}/token")]
        with pytest.raises(BrokerError, match="'azure' gives no token"):
            tokens().token()

        assert other.asked == []


def test_what_is_not_known_is_told():
    """The namespace under another name, and entries that mean nothing."""
    with pytest.raises(OptionError, match=r"'scope=https://<namespace>\.servicebus"):
        tokens("kafka.company.example:9093")
    with pytest.raises(OptionError, match="where the names are scope, clientId"):
        tokens(config="clientid=a")


def test_without_azure_identity_it_is_said_what_to_install(monkeypatch):
    """The extra has a name."""
    monkeypatch.delitem(sys.modules, "pyspark_upsert_kafka.logins.azure_event_hubs", raising=False)
    monkeypatch.setitem(sys.modules, "azure.identity", None)

    with pytest.raises(OptionError, match=r"pip install 'pyspark-upsert-kafka\[azure\]'"):
        tokens()
