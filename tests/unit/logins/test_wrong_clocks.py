"""A machine whose clock is ten minutes off, or is set while a program runs: what still works, and that errors name the clock."""

from __future__ import annotations

import base64
import json
import time
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from pyspark_upsert_kafka.core import clock as clock_module
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.logins import login_tokens
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens, Token
from pyspark_upsert_kafka.logins.own_tokens import TokenEndpoint
from tests.http_server import Answer, Asked, http_server
from tests.set_clock import set_clock
from tests.unit.logins.test_aws_msk import given, provider

MINUTES = pytest.mark.parametrize("minutes", [-10, 10])
NOW = 1_769_860_800.0  # 2026-01-31T12:00:00Z


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    login_tokens._begin_in_fork()


def jwt(**claims: float) -> str:
    """A token with these claims."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


@MINUTES
@pytest.mark.parametrize("life_s", [300, 3600])
def test_tokens_of_an_endpoint(monkeypatch, minutes, life_s):
    """It says how long a token lives: that is what counts, and not the time in the token, which is by the clock over there."""
    set_clock(monkeypatch, minutes)
    answers: list[dict[str, Any]] = []

    def answer(_: Asked) -> Answer:
        answers.append({"access_token": jwt(exp=time.time() + life_s), "expires_in": life_s})
        return Answer(200, answers[-1])

    with http_server(answer) as url:
        tokens = TokenEndpoint(f"{url}/token", "id", "secret").tokens()
        found = tokens.token()
    assert found.expires_at - clock_module.time.time() == pytest.approx(life_s, abs=30)
    assert tokens._due.left_s(clock_module.SYSTEM_CLOCK) == pytest.approx(0.8 * life_s, abs=30)


def test_a_token_that_has_ended_by_the_clock_here(monkeypatch):
    """Where an endpoint does not say how long it lives there is the time in the token alone: the error shows both clocks."""
    set_clock(monkeypatch, 10)
    with http_server(lambda _: Answer(200, {"access_token": jwt(exp=time.time() + 300)})) as url:
        tokens = TokenEndpoint(f"{url}/token", "id", "secret").tokens()
        with pytest.raises(BrokerError, match=r"has ended at 20.*, and the clock here says 20"):
            tokens.token()


SAID = {
    "STS": "An error occurred (SignatureDoesNotMatch) when calling the AssumeRole operation: Signature expired: 20260131T115000Z is "
    "now earlier than 20260131T115500Z (20260131T120000Z - 5 min.)",
    "STS, ahead": "An error occurred (SignatureDoesNotMatch) when calling the AssumeRole operation: Signature not yet current: "
    "20260131T121000Z is still later than 20260131T120500Z (20260131T120000Z + 5 min.)",
    "Google": "('invalid_grant: Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your "
    "iat and exp values in the JWT claim.',)",
    "Microsoft": "AADSTS700024: Client assertion is not within its valid time range. Current time: 2026-01-31T12:00:00Z.",
}  # fmt: skip


@pytest.mark.parametrize("who", SAID)
def test_what_a_cloud_says_of_a_signature_with_another_time(who):
    """The error has the time here beside it."""

    def ask() -> object:
        raise ValueError(SAID[who])

    clock = SimpleNamespace(time=lambda: NOW + 600, monotonic=time.monotonic, sleep=time.sleep)
    with pytest.raises(BrokerError, match="; the clock here says 2026-01-31T12:10:00Z"):
        LoginTokens("acme", ask, clock=clock).token()


def test_an_error_that_is_not_about_time_does_not_speak_of_a_clock():
    """It would lead astray."""

    def ask() -> object:
        raise ValueError("AccessDenied: not authorized to perform sts:AssumeRole")

    with pytest.raises(BrokerError) as error:
        LoginTokens("acme", ask).token()
    assert "clock" not in str(error.value)


@MINUTES
def test_a_token_for_msk_is_signed_by_the_clock_here(monkeypatch, minutes):
    """It lives for 900 seconds by that clock: where this is behind, Amazon refuses it before it is renewed, and is told why."""
    auth = pytest.importorskip("botocore.auth")
    set_clock(monkeypatch, minutes)
    off = timedelta(minutes=minutes)
    monkeypatch.setattr(auth, "get_current_datetime", lambda: datetime.now(timezone.utc) + off)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "k")

    text, expires_at = provider(given())("")
    address = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    signed = dict(parse_qsl(urlsplit(address).query))["X-Amz-Date"]

    here = datetime.now(timezone.utc) + off
    assert abs(datetime.strptime(f"{signed}+0000", "%Y%m%dT%H%M%SZ%z") - here) < timedelta(
        minutes=1
    )
    assert expires_at - clock_module.time.time() == pytest.approx(900, abs=30)


class SetClock:
    """A clock that a test sets, beside one that only rises."""

    def __init__(self) -> None:
        self.off, self.passed = 0.0, 0.0

    def time(self) -> float:
        """As it was set."""
        return NOW + self.off + self.passed

    def monotonic(self) -> float:
        """As time passes."""
        return self.passed

    def sleep(self, seconds: float) -> None:
        """Time passes."""
        self.passed += seconds


class Client:
    """A client, with the times at which it was given tokens."""

    def __init__(self, clock: SetClock) -> None:
        self.clock, self.given = clock, list[float]()

    is_open: Any = property(lambda self: self.clock.passed < 1_000)

    def set_token(self, _: Token) -> None:
        """Takes note of one."""
        self.given.append(round(self.clock.passed, -1))


@pytest.mark.parametrize(
    ("off", "renewed"), [(-600.0, [0, 240, 480, 720, 960]), (600.0, [0, 60, 300, 540, 780])]
)
def test_a_clock_that_is_set_while_tokens_are_renewed(off, renewed):
    """One that was ten minutes ahead: a token ends when its life is over. One that was behind: it seems to have ended, and is renewed."""
    clock = SetClock()
    tokens = LoginTokens("acme", lambda: ("a.b.c", clock.time() + 300), clock=clock)
    tokens.token()
    client = Client(clock)
    client.set_token(tokens.token())
    tokens._receivers.append(client)
    sleep = clock.sleep

    def sleep_and_set(seconds: float) -> None:
        sleep(seconds)
        if clock.passed >= 60 and not clock.off:
            clock.off = off

    clock.sleep = sleep_and_set  # type: ignore[method-assign]
    tokens._keep_fresh()
    assert client.given == renewed


def test_a_token_that_has_ended_is_not_used_after_the_clock_was_set_back():
    """By the clock of the machine it would be good for ten minutes more."""
    clock, made = SetClock(), list[int]()

    def ask() -> object:
        made.append(len(made))
        return f"a.b.c{len(made)}", clock.time() + 300

    tokens = LoginTokens("acme", ask, clock=clock)
    tokens.token()
    clock.off, clock.passed = -600.0, 301.0
    assert tokens.token().text == "a.b.c2"
