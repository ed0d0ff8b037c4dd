"""An endpoint of tokens: whom it is trusted by, how long it is waited for, and what never goes elsewhere."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Iterator

import pytest
import trustme

from pyspark_upsert_kafka.logins.own_tokens import TokenEndpoint, TokenEndpointError
from tests.http_server import SILENCE
from tests.unit.registry.fake_registry import FakeRegistry, serving

SECRET = "geheim:%ü"
ANSWER = (200, {"access_token": "opaque", "expires_in": 60})


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    """A server that answers what it is told to."""
    with serving() as server:
        yield server


def at(server: FakeRegistry, **more: str) -> TokenEndpoint:
    """The endpoint there."""
    return TokenEndpoint(f"{server.url}/token", "an id", SECRET, **more)


def test_an_endpoint_that_is_silent(server):
    """It is waited for so long, and not longer; asking again may help."""
    server.answers["/token"] = [SILENCE]
    with pytest.raises(
        TokenEndpointError, match=r"/token did not answer within 0\.2 seconds"
    ) as error:
        at(server).token(timeout_s=0.2)

    assert error.value.retriable


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_credentials_do_not_follow_a_redirect(server, status):
    """Not to another host, and not to another path of this one: nobody else is asked."""
    with serving() as other:
        other.answers["/token"] = [ANSWER]
        server.answers["/token"] = [(status, f"{other.url}/token")]
        with pytest.raises(TokenEndpointError, match="a redirect, which is not followed"):
            at(server).token()

        assert other.asked == []
    assert server.paths() == ["/token"]


def test_an_authority_of_its_own():
    """It is trusted beside those of the system, where it is given; else the endpoint is not, and gets no secret."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    pem = authority.cert_pem.bytes().decode()
    with serving(context) as server:
        server.answers["/token"] = [ANSWER]
        assert at(server, more_authorities=pem).token()[0] == "opaque"
        with pytest.raises(TokenEndpointError, match="certificate verify failed") as error:
            at(server).token()

        assert len(server.asked) == 1
    assert not error.value.retriable


def test_tokens_are_of_the_endpoint_with_its_secret(server):
    """The same settings share a token, another secret does not; no secret is in a repr."""
    server.answers["/token"] = [ANSWER]
    tokens = at(server).tokens()
    tokens.token()
    TokenEndpoint(f"{server.url}/token", "an id", "b").tokens().token()

    assert at(server).tokens() is tokens
    assert len(server.asked) == 2
    assert SECRET not in repr(at(server)) + repr(tokens)


def test_a_proxy_of_the_environment(server, monkeypatch):
    """It is asked in the place of the endpoint, as other programs do."""
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("http_proxy", server.url)
    address = "http://tokens.example/token"
    server.answers[address] = [ANSWER]

    assert TokenEndpoint(address, "an id", SECRET).token()[0] == "opaque"
    assert server.paths() == [address]


MISBEHAVIOURS = {
    "megabytes": ((200, b"x" * 20_000_000), "the answer has more than 16 MB"),
    "a token that is no text": ((200, {"access_token": [SECRET], "expires_in": 9}), "answered without an access_token"),
    "a life that is no number": ((200, {"access_token": SECRET, "expires_in": "soon"}), "answered without an access_token"),
    "a life beyond all numbers": ((200, b'{"access_token": "a", "expires_in": %s}' % (b"9" * 5_000)), "answered without an"),
    "a token of brackets": ((200, {"access_token": f"e30.{'W' * 99_999}.x"}), "answered without an access_token"),
    "no JSON": ((200, b"<html>sign in</html>"), "answered without an access_token that says when it expires"),
    "hostile text": ((400, {"error": f"\x1b[2J {SECRET}", "error_description": SECRET}), "answered 400 Bad Request$"),
    "an error of its own": ((503, {"error": "busy"}), r"answered 503 Service Unavailable \(busy\)$"),
}  # fmt: skip


@pytest.mark.parametrize("life", [300, 300.5, "300", None, "soon", 0, True, float("nan")])
def test_how_long_a_token_lives(server, life):
    """What the endpoint says, as a number or as a text; else what stands in the token, which the clock over there has set."""
    ends = time.time() + 900
    body = base64.urlsafe_b64encode(json.dumps({"exp": ends}).encode()).decode().rstrip("=")
    server.answers["/token"] = [(200, {"access_token": f"e30.{body}.c2ln", "expires_in": life})]

    _, expires_at = at(server).token()
    is_said = life in (300, 300.5, "300")
    assert expires_at == (pytest.approx(time.time() + 300, abs=30) if is_said else ends)


@pytest.mark.parametrize("case", MISBEHAVIOURS)
def test_an_endpoint_that_misbehaves(case, server):
    """Is told in a sentence, which shows of its words nothing that could be somebody's."""
    answer, said = MISBEHAVIOURS[case]
    server.answers["/token"] = [answer]
    with pytest.raises(TokenEndpointError, match=said) as error:
        at(server).token(timeout_s=300)

    assert SECRET not in str(error.value)
