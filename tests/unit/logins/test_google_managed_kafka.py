"""Tokens for Google's Kafka and its registry: how they are made, for whom, and what becomes of Google's answers."""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, RetriableBrokerError
from pyspark_upsert_kafka.logins import login_tokens
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens
from pyspark_upsert_kafka.logins.rented_kafka import is_google
from pyspark_upsert_kafka.logins.token_providers import tokens_of
from tests.http_server import SILENCE, Endless
from tests.unit.registry.fake_registry import FakeRegistry, serving

ACCOUNT = "spark@shop.iam.gserviceaccount.com"
TOKEN = "ya29.c.b0Aaekm1K_secret-part"
SERVERS = "bootstrap.orders.europe-west1.managedkafka.shop.cloud.goog:9092"


@cache
def _key() -> str:
    """A private key, which nobody else has."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(*kind, serialization.NoEncryption()).decode()


def write_key(folder: Path, token_uri: str, **more: object) -> str:
    """A key file of a service account whose tokens are at an address of ours; returns its path."""
    file = folder / "key.json"
    content = {
        "type": "service_account",
        "project_id": "shop",
        "private_key_id": "1",
        "private_key": _key(),
        "client_email": ACCOUNT,
        "token_uri": token_uri,
        **more,
    }
    file.write_text(json.dumps(content))
    return str(file)


def part(token: str, number: int) -> bytes:
    """A part of a token."""
    text = token.split(".")[number]
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def subject_of(token: str) -> object:
    """Whom a token is of."""
    return json.loads(part(token, 1))["sub"]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody is logged in here, and no token is there."""
    monkeypatch.setenv("no_proxy", "*")
    _metadata = pytest.importorskip("google.auth.compute_engine._metadata")
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    login_tokens._begin_in_fork()


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeRegistry]:
    """Google's endpoint of tokens, which gives one to the key file that the environment names."""
    with serving() as google:
        google.answers["/token"] = [(200, {"access_token": TOKEN, "expires_in": 3600})]
        file = write_key(tmp_path, f"{google.url}/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
        yield google


def tokens(provider: str = "gcp", config: str = "") -> LoginTokens:
    """The tokens of a client."""
    found = tokens_of({
        "bootstrap.servers": SERVERS,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": provider,
        "sasl.oauthbearer.config": config,
    })  # fmt: skip
    assert found is not None
    return found


def test_a_broker_gets_three_parts(google):
    """A header, claims and Google's token, as Google's handler for Java and its sample for Python make them."""
    before = int(time.time())
    found = tokens().token()
    claims = json.loads(part(found.text, 1))

    assert json.loads(part(found.text, 0)) == {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    assert {**claims, "exp": 0, "iat": 0} == {
        "exp": 0, "iat": 0, "iss": "Google", "scope": "kafka", "sub": ACCOUNT,
    }  # fmt: skip
    assert part(found.text, 2).decode() == TOKEN
    assert before <= claims["iat"] <= time.time()
    assert before + 3590 <= claims["exp"] <= found.expires_at <= time.time() + 3600
    assert "=" not in found.text


def test_what_google_is_asked(google):
    """By the key of the service account, for the scope of its cloud."""
    tokens().token()
    (asked,) = google.asked
    form = dict(pair.split("=") for pair in asked.body.decode().split("&"))
    claims = json.loads(part(form["assertion"], 1))

    assert (claims["iss"], claims["scope"]) == (
        ACCOUNT,
        "https://www.googleapis.com/auth/cloud-platform",
    )


def test_the_registry_gets_googles_token_as_it_is(google):
    """It is another name of a provider, with tokens of its own."""
    assert tokens("gcp-access-token").token().text == TOKEN
    assert tokens("gcp-access-token").token().text == TOKEN
    assert len(google.asked) == 1


def test_an_account_that_is_impersonated(google, monkeypatch):
    """The first account's token asks for the other's."""
    from google.auth import iam

    monkeypatch.setattr(iam, "_IAM_ENDPOINT", f"{google.url}/accounts/{{}}:generateAccessToken")
    other = "kafka@shop.iam.gserviceaccount.com"
    google.answers[f"/accounts/{other}:generateAccessToken"] = [
        (200, {"accessToken": "of-the-other", "expireTime": "2100-01-01T00:00:00Z"})
    ]
    found = tokens(config=f"impersonate={other}").token()

    assert subject_of(found.text) == other
    assert part(found.text, 2) == b"of-the-other"
    assert found.expires_at == 4102444800
    assert google.asked[-1].headers["Authorization"] == f"Bearer {TOKEN}"


def test_a_machine_of_google(google, monkeypatch):
    """Its metadata say whose tokens they are."""
    from google.auth.compute_engine import _metadata

    host = urlsplit(google.url).netloc
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("GCE_METADATA_IP", host)
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", False)
    monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", host)
    service = "/computeMetadata/v1/instance/service-accounts"
    google.headers = {"Metadata-Flavor": "Google"}
    google.answers |= {
        "/": [(200, {})],
        "/computeMetadata/v1/project/project-id": [(200, b"shop")],
        "/computeMetadata/v1/universe/universe-domain": [(200, b"googleapis.com")],
        f"{service}/default/?": [(200, {"email": ACCOUNT, "scopes": [], "aliases": ["default"]})],
        f"{service}/default/token?": [(200, {"access_token": TOKEN, "expires_in": 3599})],
    }
    found = tokens().token()

    assert subject_of(found.text) == ACCOUNT
    assert part(found.text, 2).decode() == TOKEN


def test_credentials_of_a_person(google, monkeypatch, tmp_path):
    """Belong to no service account, by which brokers know users: it is said what to do; the registry takes them."""
    file = tmp_path / "person.json"
    content = {
        "type": "authorized_user", "client_id": "c", "client_secret": "geh3im", "refresh_token": "1//r3fresh",
    }  # fmt: skip
    file.write_text(json.dumps(content))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    from google.oauth2 import credentials

    monkeypatch.setattr(credentials, "_GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{google.url}/token")
    with pytest.raises(BrokerError, match=r"'impersonate=<address of one>'"):
        tokens().token()

    assert tokens("gcp-access-token").token().text == TOKEN
    google.answers["/token"] = [
        (400, {"error": "invalid_grant", "error_description": "1//r3fresh of geh3im is over"})
    ]
    login_tokens._begin_in_fork()
    with pytest.raises(BrokerError, match=r"invalid_grant: \*\*\* of \*\*\* is over") as error:
        tokens("gcp-access-token").token()
    assert not isinstance(error.value, RetriableBrokerError)


MISBEHAVIOURS: dict[str, tuple[tuple[int, Any] | None, str, bool]] = {
    "is silent": (SILENCE, "cannot be asked: timed out", True),
    "is away for a while": ((503, {"error": "backend"}), "backend", True),
    "refuses": ((400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}), "invalid_grant: Invalid JWT", False),
    "repeats the token": ((200, {"id_token": TOKEN, "expires_in": 3}), "No access token in response", False),
    "gives no JSON": ((200, b"<html>sign in</html>"), "answer is no token", False),
    "gives a token without an end": ((200, {"access_token": TOKEN}), "nobody says when the token ends", False),
    "gives a token that has ended": ((200, {"access_token": TOKEN, "expires_in": -9}), "its token has ended", True),
    "gives megabytes": ((200, b"x" * 20_000_000), "the answer has more than 16 MB", False),
    "sends without an end": ((200, Endless(b"x" * 1024, 0.05)), "cannot be asked: timed out", True),
    "is hostile": ((400, {"error": "\x1b[2Jx", "error_description": f"see {TOKEN} eyJhbGciOiJSUzI1NiJ9.e30.c2ln"}), "see", False),
}  # fmt: skip


@pytest.mark.parametrize("case", MISBEHAVIOURS)
def test_an_endpoint_that_misbehaves(case, google, monkeypatch):
    """Is told in a sentence, in which nothing is secret; asking again is for what passes."""
    from pyspark_upsert_kafka.logins import google_managed_kafka

    answer, said, passes = MISBEHAVIOURS[case]
    google.answers["/token"] = [answer]
    asked = tokens()
    in_vain = "timed out" in said
    monkeypatch.setattr(google_managed_kafka, "ANSWERS_S", 1.0 if in_vain else 300.0)
    asked._deadline_s = 300.0
    with pytest.raises(BrokerError, match=said) as error:
        asked.token()

    assert "The provider 'gcp' gives no token" in str(error.value)
    assert isinstance(error.value, RetriableBrokerError) == passes
    assert not any(each in str(error.value) for each in ("\x1b", "eyJ"))
    assert (TOKEN in str(error.value)) == (
        case == "is hostile"
    )  # it has given none that could be starred out
    assert len(str(error.value)) < 1_200


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_credentials_do_not_follow_a_redirect(status, google):
    """What the key has signed goes to nobody else."""
    with serving() as other:
        other.answers["/token"] = [(200, {"access_token": TOKEN, "expires_in": 3600})]
        google.answers["/token"] = [(status, f"{other.url}/token")]
        with pytest.raises(BrokerError, match="'gcp' gives no token"):
            tokens().token()

        assert other.asked == []


def test_nobody_is_logged_in():
    """Google's own words say where credentials are looked for."""
    with pytest.raises(BrokerError, match="default credentials were not found"):
        tokens().token()


def test_entries_that_mean_nothing(google):
    """A misspelt one would be another's rights."""
    with pytest.raises(OptionError, match="where the names are impersonate"):
        tokens(config="impersonated=a")


@pytest.mark.parametrize(
    ("servers", "is_there"),
    [
        (SERVERS, True),
        (f"SASL_SSL://{SERVERS}", True),
        ("b.managedkafka.shop.cloud.goog.evil.example:9092", False),
        ("localhost:9092", False),
    ],
)
def test_brokers_of_google_have_names(servers, is_there):
    """A name that only begins so is somebody else's."""
    assert is_google(servers) == is_there


@pytest.mark.parametrize("name", ["gcp", "gcp-access-token"])
def test_without_google_auth_it_is_said_what_to_install(name, monkeypatch):
    """The extra has a name."""
    module = "pyspark_upsert_kafka.logins.google_managed_kafka"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "google.auth", None)

    with pytest.raises(OptionError, match=r"pip install 'pyspark-upsert-kafka\[gcp\]'"):
        tokens(name)
