"""What botocore asks for keys and of services: bounded, and sent as botocore would send it."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trustme

from pyspark_upsert_kafka.http_request import Deadline
from tests.http_server import SILENCE, Answer, Asked, Endless, http_server

pytest.importorskip("botocore")

from botocore.config import Config
from botocore.exceptions import BotoCoreError
from botocore.parsers import ResponseParserError
from botocore.session import Session

from pyspark_upsert_kafka.logins.aws_requests import (
    LateAnswerError,
    NoAnswerError,
    answered_until,
    bounded_session,
)

ROLE = "arn:aws:iam::123456789012:role/kafka"
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
CREDENTIALS = {
    "Code": "Success",
    "AccessKeyId": "ASIA",
    "SecretAccessKey": "x",
    "Token": "y",
    "Expiration": "2100-01-01T00:00:00Z",
}
ENDLESS, DRIPPING = Answer(200, Endless(b"x" * 65_536)), Answer(200, Endless(b"x", 0.02))

Ask = Callable[[Session], object]


@pytest.fixture(autouse=True)
def _somebody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Somebody with keys, and without files of AWS or endpoints for keys."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)


def role(session: Session) -> object:
    """Asks a service that gives keys of a role."""
    once = Config(retries={"total_max_attempts": 1})
    return session.create_client("sts", "eu-west-1", config=once).assume_role(
        RoleArn=ROLE, RoleSessionName="job"
    )


def keys(session: Session) -> object:
    """Looks for keys."""
    found = session.get_credentials()
    return found and found.get_frozen_credentials()


def places(monkeypatch: pytest.MonkeyPatch, place: str, url: str) -> Ask:
    """Whoever is asked is at an address; gives what asks."""
    if place == "service":
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", url)
        return role
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    if place == "container":
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{url}/keys")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container's token")
    else:
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"{url}/")
    return keys


PLACES = ("service", "container", "machine")


@pytest.mark.parametrize("place", PLACES)
def test_an_answer_without_an_end(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not held in memory: the error says whose it is."""
    with http_server(lambda _: ENDLESS) as url:
        ask = places(monkeypatch, place, url)
        with pytest.raises(NoAnswerError, match=rf'"{url}.*" has more than 16 MB'):
            ask(bounded_session())


@pytest.mark.parametrize("place", PLACES)
def test_an_answer_byte_by_byte(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a time for all of it, and for all answers together: then nothing more is asked."""
    asked: list[Asked] = []
    seconds = count()

    def dripping(each: Asked) -> Answer:
        asked.append(each)
        return DRIPPING

    with http_server(dripping) as url:
        ask = places(monkeypatch, place, url)
        a_second_a_byte = Deadline(30, 10, clock=lambda: next(seconds))
        with (
            answered_until(a_second_a_byte),
            pytest.raises(LateAnswerError, match=rf'"{url}.*" did not come in time'),
        ):
            ask(bounded_session())
    assert len(asked) == 1


@pytest.mark.parametrize("place", PLACES)
def test_an_answer_that_does_not_come(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for as botocore does: a program may also run on a machine that has no keys."""
    with http_server(lambda _: SILENCE) as url:
        ask = places(monkeypatch, place, url)
        with answered_until(Deadline(600, 0.2, clock=lambda: 0.0)):
            if place == "machine":
                assert ask(bounded_session()) is None
            else:
                with pytest.raises(BotoCoreError, match="Read timeout on endpoint"):
                    ask(bounded_session())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("place", PLACES)
def test_a_redirect_is_not_followed(
    place: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials go to nobody else."""
    others: list[Asked] = []

    def other(asked: Asked) -> Answer:
        others.append(asked)
        return Answer(200, CREDENTIALS)

    with http_server(other) as elsewhere, http_server(lambda _: Answer(status, elsewhere)) as url:
        ask = places(monkeypatch, place, url)
        with pytest.raises(NoAnswerError, match="is a redirect, which is not followed"):
            ask(bounded_session())
    assert others == []


def test_the_keys_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are asked for by a token, as botocore does."""
    asked: list[Asked] = []

    def machine(each: Asked) -> Answer:
        asked.append(each)
        if each.method == "PUT":
            return Answer(200, b"a token")
        return Answer(200, CREDENTIALS) if each.path.endswith("/kafka") else Answer(200, b"kafka")

    with http_server(machine) as url:
        ask = places(monkeypatch, "machine", url)
        found: Any = ask(bounded_session())
    assert (found.access_key, found.secret_key, found.token) == ("ASIA", "x", "y")
    assert [each.method for each in asked] == ["PUT", "GET", "GET"]
    lower = {name.lower(): value for name, value in asked[-1].headers.items()}
    assert lower["x-aws-ec2-metadata-token"] == "a token"


def test_keys_of_a_container_are_asked_for_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is beside the program, and a proxy does not know it."""
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with http_server(lambda _: Answer(200, CREDENTIALS)) as url:
        ask = places(monkeypatch, "container", url)
        found: Any = ask(bounded_session())
    assert found.access_key == "ASIA"


def test_a_service_is_asked_by_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As botocore does it."""
    monkeypatch.delenv("no_proxy")
    asked: list[Asked] = []

    def proxy(each: Asked) -> Answer:
        asked.append(each)
        return Answer(403, b"no.")

    with http_server(proxy) as url:
        monkeypatch.setenv("http_proxy", url)
        ask = places(monkeypatch, "service", "http://sts.example.org")
        with pytest.raises(ResponseParserError):
            ask(bounded_session())
    assert asked[0].path.startswith("http://sts.example.org")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is sent, in place of sending it."""
    from pyspark_upsert_kafka.logins import aws_requests

    found: list[Any] = []

    def answer_to(request: Any, *_: object, **__: object) -> object:
        found.append(request)
        raise TimeoutError

    monkeypatch.setattr(aws_requests, "answer_to", answer_to)
    return found


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://sts.example.org:443/", "sts.example.org"),
        ("http://sts.example.org:80", "sts.example.org"),
        ("http://sts.example.org:443", "sts.example.org:443"),
        ("https://sts.example.org:4430/", "sts.example.org:4430"),
        ("https://[::1]:443/x", "[::1]"),
    ],
)
def test_the_host_is_sent_as_it_is_signed(
    url: str, host: str, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the port that is usual: who checks the signature takes it from the request."""
    ask = places(monkeypatch, "service", url)
    with pytest.raises(BotoCoreError), answered_until(Deadline(0.0, 0.1, clock=lambda: 0.0)):
        ask(bounded_session())
    assert sent[0].host == host


def test_a_certificate_of_an_authority_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is trusted where AWS_CA_BUNDLE names its authority, and else not."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with http_server(lambda _: Answer(403, b"no."), context) as url:
        ask = places(monkeypatch, "service", url)
        with pytest.raises(BotoCoreError, match="SSL validation failed"):
            ask(bounded_session())
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        with pytest.raises(ResponseParserError):
            ask(bounded_session())
