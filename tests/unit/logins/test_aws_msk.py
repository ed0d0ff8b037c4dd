"""Tokens for Amazon MSK: checked as Amazon checks them, and beside those of Amazon's own signer."""

from __future__ import annotations

import base64
import hashlib
import hmac
import sys
import time
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.logins import login_tokens
from pyspark_upsert_kafka.logins.token_providers import tokens_of

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
    pytest.importorskip("botocore")
    signer = pytest.importorskip("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
    tokens = tokens_of(given())
    assert tokens is not None
    theirs, _ = signer.generate_auth_token("eu-west-1")

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
