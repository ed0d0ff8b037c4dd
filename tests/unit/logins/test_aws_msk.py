"""Tokens for Amazon MSK: checked as Amazon checks them, and beside those of Amazon's own signer."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.logins import login_tokens
from pyspark_upsert_kafka.logins.rented_kafka import msk_region
from pyspark_upsert_kafka.logins.token_providers import tokens_of
from tests.http_server import SILENCE, Endless
from tests.unit.registry.fake_registry import FakeRegistry, serving

ID, SECRET, SESSION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a/session+token=="
SERVERS = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9098,b-2.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9098"


def given(**more: str) -> dict[str, str]:
    """A client's properties."""
    return {
        "bootstrap.servers": SERVERS,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": "aws-msk",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The environment of somebody with keys, and without files of AWS."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    keys = {"AWS_ACCESS_KEY_ID": ID, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SESSION}
    files = {"AWS_CONFIG_FILE": "config", "AWS_SHARED_CREDENTIALS_FILE": "credentials"}
    for name, value in {
        **keys,
        **{name: str(tmp_path / file) for name, file in files.items()},
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    login_tokens._begin_in_fork()


def provider(properties: dict[str, str]) -> Any:
    """Gives tokens for a client, without keeping one."""
    from pyspark_upsert_kafka.logins import aws_msk

    return aws_msk.provider(properties)


def address_in(token: str) -> str:
    """The request that a token is."""
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


def signature(address: str, secret: str) -> str:
    """The signature that a request must have, by the rules of Signature Version 4 with known keys."""
    parts = urlsplit(address)
    signed = [
        pair for pair in parse_qsl(parts.query) if pair[0] not in ("X-Amz-Signature", "User-Agent")
    ]
    query = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted(signed)
    )
    values = dict(signed)
    empty = hashlib.sha256(b"").hexdigest()
    request = f"GET\n{parts.path}\n{query}\nhost:{parts.netloc}\n\nhost\n{empty}"
    scope = values["X-Amz-Credential"].partition("/")[2]
    text = f"AWS4-HMAC-SHA256\n{values['X-Amz-Date']}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in [*scope.split("/"), text]:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


def test_a_token_is_what_amazon_takes():
    """The request, its region, its life, and its signature."""
    pytest.importorskip("botocore")
    tokens = tokens_of(given())
    assert tokens is not None
    found = tokens.token()
    address = address_in(found.text)
    values = {name: value for name, (value,) in parse_qs(urlsplit(address).query).items()}

    assert address.startswith(
        "https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect&"
    )
    assert values["X-Amz-Credential"].split("/")[2:] == [
        "eu-west-1",
        "kafka-cluster",
        "aws4_request",
    ]
    assert (values["X-Amz-Expires"], values["X-Amz-Security-Token"]) == ("900", SESSION)
    assert values["X-Amz-Signature"] == signature(address, SECRET)
    assert values["X-Amz-Signature"] != signature(address, SECRET[1:])
    assert 890 < found.expires_at - time.time() <= 900
    assert list(values)[-1] == "User-Agent"


def test_amazons_own_signer_makes_the_same():
    """But for the name of the program, and the second in which it is made."""
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider

    tokens = tokens_of(given())
    assert tokens is not None
    theirs, _ = MSKAuthTokenProvider.generate_auth_token("eu-west-1")

    def shape(token: str) -> list[tuple[str, str]]:
        varies = ("X-Amz-Date", "X-Amz-Signature", "User-Agent")
        query = parse_qsl(urlsplit(address_in(token)).query)
        return [(name, "" if name in varies else value) for name, value in query]

    assert shape(tokens.token().text) == shape(theirs)


def test_a_token_ends_with_its_credentials():
    """Those of a role may have less than 900 seconds left."""
    pytest.importorskip("botocore")
    from botocore.credentials import ReadOnlyCredentials

    from pyspark_upsert_kafka.logins.aws_msk import token

    ends = datetime.now(timezone.utc) + timedelta(seconds=300)
    frozen = ReadOnlyCredentials(ID, SECRET, None)
    of_role = SimpleNamespace(get_frozen_credentials=lambda: frozen, _expiry_time=ends)

    assert token(of_role, "eu-west-1")[1] == ends.timestamp()


def test_the_region_of_brokers_under_other_names(monkeypatch):
    """It is that of the environment; without one there is a sentence."""
    pytest.importorskip("botocore")
    elsewhere = given(bootstrap_servers="kafka.company.example:9098")
    with pytest.raises(OptionError, match="set the environment variable 'AWS_REGION'"):
        tokens_of(elsewhere)
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    tokens = tokens_of(elsewhere)

    assert tokens is not None
    assert address_in(tokens.token().text).startswith("https://kafka.us-east-2.amazonaws.com/")


@pytest.mark.parametrize(
    ("servers", "region"),
    [
        ("b-1.demo.abc123.c2.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"),
        ("b-1.demo.abc123.c2.kafka.us-gov-west-1.amazonaws.com:9098", "us-gov-west-1"),
        ("boot-abc.c1.kafka-serverless.eu-west-1.amazonaws.com:9098", "eu-west-1"),
        ("SASL_SSL://b-1-public.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9198", "eu-west-1"),
    ],
)
def test_the_region_of_each_partition(servers, region):
    """What is signed is a request to the same name in each, as Amazon's signers for Java and Python have it."""
    pytest.importorskip("botocore")
    tokens = tokens_of(given(bootstrap_servers=servers))

    assert tokens is not None
    assert address_in(tokens.token().text).startswith(f"https://kafka.{region}.amazonaws.com/?")


@pytest.mark.parametrize(
    "servers", ["b-1.kafka.eu-west-1.amazonaws.com.evil.example:9098", "kafka.company.example:9098"]
)
def test_brokers_of_somebody_else(servers):
    """A name that only begins as Amazon's do is not Amazon's."""
    assert msk_region(servers) is None


def key_in(token: str) -> str:
    """The id of the key by which a token is signed."""
    query = parse_qs(urlsplit(address_in(token)).query)
    return query["X-Amz-Credential"][0].split("/")[0]


def test_keys_in_a_file_that_changes(tmp_path, monkeypatch):
    """The next token is signed by those that are there then; the process goes on."""
    pytest.importorskip("botocore")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    ask, found = provider(given()), []
    for name in ("FIRST", "SECOND"):
        text = f"[default]\naws_access_key_id={name}\naws_secret_access_key=s\n"
        (tmp_path / "credentials").write_text(text)
        found.append(key_in(ask("")[0]))

    assert found == ["FIRST", "SECOND"]


def test_credentials_that_end(tmp_path, monkeypatch):
    """A program that gives them says when: so long lives the token, and the next is by the next ones."""
    pytest.importorskip("botocore")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    said = tmp_path / "said.json"
    (tmp_path / "config").write_text(f"[profile job]\ncredential_process = cat '{said}'\n")
    ask, found = provider(given(sasl_oauthbearer_config="awsProfileName=job")), []
    now = datetime.now(timezone.utc).replace(microsecond=0)
    for name, life in (("FIRST", timedelta(minutes=5)), ("SECOND", timedelta(hours=5))):
        ends = (now + life).isoformat()
        keys = {"Version": 1, "AccessKeyId": name, "SecretAccessKey": "s", "Expiration": ends}
        said.write_text(json.dumps(keys))
        found.append(ask(""))

    assert [key_in(token) for token, _ in found] == ["FIRST", "SECOND"]
    assert found[0][1] == (now + timedelta(minutes=5)).timestamp()
    assert 0 <= found[1][1] - (now.timestamp() + 900) < 60


def test_a_role_of_a_real_service(monkeypatch):
    """A service that speaks STS gives keys for the role, in its region; the token is by these keys."""
    server_of = pytest.importorskip("moto.server").ThreadedMotoServer
    server = server_of(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{host}:{port}")
        role = "arn:aws:iam::123456789012:role/kafka"
        config = (
            f"awsRoleArn={role} awsRoleSessionName=job awsRoleExternalId=e-1 awsStsRegion=eu-west-2"
        )
        token, ends_at = provider(given(sasl_oauthbearer_config=config))("")
    finally:
        server.stop()

    query = parse_qs(urlsplit(address_in(token)).query)
    assert key_in(token).startswith("ASIA")
    assert key_in(token) != ID
    assert query["X-Amz-Security-Token"] != [SESSION]
    assert 800 < ends_at - time.time() <= 900


def test_a_role_is_asked_for_as_java_spells_it(monkeypatch):
    """With its name, its external id and the region of STS; the source are the keys that are there."""
    pytest.importorskip("botocore")
    from botocore.session import Session

    asked: list[Any] = []

    class Sts:
        def assume_role(self, **more: str) -> object:
            asked.append(more)
            ends = datetime.now(timezone.utc) + timedelta(hours=1)
            keys = {
                "AccessKeyId": "ASIA",
                "SecretAccessKey": "x",
                "SessionToken": "y",
                "Expiration": ends,
            }
            return {
                "Credentials": keys,
                "AssumedRoleUser": {"Arn": "arn:aws:sts::1:assumed-role/r/s"},
            }

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def close(self) -> None:
            pass

    def create_client(_: Session, service: str, **more: Any) -> Sts:
        asked.append((service, more["region_name"], more["aws_access_key_id"]))
        return Sts()

    monkeypatch.setattr(Session, "create_client", create_client)
    config = "awsRoleArn=arn:aws:iam::1:role/r awsRoleSessionName=s awsRoleExternalId=e awsStsRegion=eu-west-2"
    tokens = tokens_of(given(sasl_oauthbearer_config=config))

    assert tokens is not None
    assert "X-Amz-Credential=ASIA%2F" in address_in(tokens.token().text)
    assert asked == [
        ("sts", "eu-west-2", ID),
        {"RoleArn": "arn:aws:iam::1:role/r", "RoleSessionName": "s", "ExternalId": "e"},
    ]


CREDENTIALS = {"AccessKeyId": "ASIA", "SecretAccessKey": "x", "Token": "y"}
MISBEHAVIOURS: dict[str, tuple[int, Any] | None] = {
    "is silent": SILENCE,
    "refuses": (403, {"message": "forbidden"}),
    "gives no JSON": (200, b"<html>sign in</html>"),
    "gives no keys": (200, {"AccessKeyId": "ASIA"}),
    "gives keys that have ended": (200, {**CREDENTIALS, "Expiration": "2020-01-01T00:00:00Z"}),
    "gives megabytes": (200, b"x" * 20_000_000),
    "sends without an end": (200, Endless(b"x" * 1024, 0.1)),
}


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    """A container of Amazon, whose role has an endpoint for its keys."""
    pytest.importorskip("botocore")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    with serving() as endpoint:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{endpoint.url}/keys")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", SESSION)
        yield endpoint


def test_the_role_of_a_container(container):
    """Its keys are asked for by the token that the container has, and sign."""
    ends = datetime.now(timezone.utc) + timedelta(seconds=700)
    keys = {**CREDENTIALS, "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}
    container.answers["/keys"] = [(200, keys)]
    tokens = tokens_of(given())

    assert tokens is not None
    assert "X-Amz-Credential=ASIA%2F" in address_in(tokens.token().text)
    assert container.asked[0].headers["Authorization"] == SESSION


@pytest.mark.parametrize("case", MISBEHAVIOURS)
def test_an_endpoint_that_misbehaves(case, container):
    """Is told in a sentence in time, in which nothing is secret."""
    container.answers["/keys"] = [MISBEHAVIOURS[case]]
    tokens = tokens_of(given())
    assert tokens is not None
    tokens._deadline_s = 3.0

    with pytest.raises(BrokerError, match="The provider 'aws-msk' gives no token") as error:
        tokens.token()
    assert SESSION not in str(error.value)
    assert len(str(error.value)) < 1_200


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_credentials_do_not_follow_a_redirect(status, container):
    """The secret header goes to nobody else."""
    with serving() as other:
        other.answers["/keys"] = [(200, CREDENTIALS)]
        container.headers["Location"] = f"{other.url}/keys"
        container.answers["/keys"] = [(status, f"{other.url}/keys")]
        tokens = tokens_of(given())
        assert tokens is not None
        tokens._deadline_s = 3.0
        with pytest.raises(BrokerError, match="'aws-msk' gives no token"):
            tokens.token()

        assert other.asked == []


@pytest.mark.parametrize("config", ["awsRole=x", "awsRoleArn", "awsRoleArn= awsProfileName=x"])
def test_settings_that_mean_nothing(config):
    """A misspelt role would be another's rights."""
    pytest.importorskip("botocore")
    with pytest.raises(OptionError, match="where the names are awsProfileName, awsRoleArn"):
        tokens_of(given(sasl_oauthbearer_config=config))


def test_without_botocore_it_is_said_what_to_install(monkeypatch):
    """The extra has a name."""
    monkeypatch.delitem(sys.modules, "pyspark_upsert_kafka.logins.aws_msk", raising=False)
    monkeypatch.setitem(sys.modules, "botocore.auth", None)

    with pytest.raises(OptionError, match=r"pip install 'pyspark-upsert-kafka\[aws\]'"):
        tokens_of(given())
