"""Tokens to log in with: asked for once, renewed in time, and what becomes of clients when a provider misbehaves."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError, RetriableBrokerError
from pyspark_upsert_kafka.core.masking import OutsideText
from pyspark_upsert_kafka.kafka.failures import ClientErrors
from pyspark_upsert_kafka.logins import login_tokens
from pyspark_upsert_kafka.logins.login_tokens import (
    AsksItself,
    LoginTokens,
    Token,
    shared_tokens,
)
from tests.unit import children

SECRET = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbmEifQ.c2ln"
NOW = 1_769_860_800.0  # 2026-01-31T12:00:00Z


class MovedClock:
    """A clock that a test moves; whoever sleeps by it does so for ever."""

    def __init__(self) -> None:
        self.now = NOW

    def time(self) -> float:
        """Seconds since the epoch."""
        return self.now

    def monotonic(self) -> float:
        """The same."""
        return self.now

    def sleep(self, _: float) -> None:
        """Never ends."""
        threading.Event().wait()


class Client:
    """A client, with the tokens that it was given."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self.is_open = True

    def set_token(self, token: Token) -> None:
        """Takes note of one."""
        self.given.append(token.text)


class Provider:
    """Gives tokens of 100 seconds, unless it is told what else to do."""

    def __init__(self, clock: MovedClock) -> None:
        self.clock = clock
        self.calls = 0
        self.does: Callable[[], object] | None = None

    def __call__(self) -> object:
        """A token and when it ends."""
        self.calls += 1
        if self.does is not None:
            return self.does()
        return f"{SECRET}{self.calls}", self.clock.now + 100


@pytest.fixture
def clock() -> MovedClock:
    """A clock."""
    return MovedClock()


@pytest.fixture
def provider(clock: MovedClock) -> Provider:
    """A provider."""
    return Provider(clock)


@pytest.fixture
def tokens(clock: MovedClock, provider: Provider) -> LoginTokens:
    """Its tokens."""
    settings = {"sasl.oauthbearer.config": "client_secret=pst"}
    return LoginTokens("acme", provider, OutsideText(settings).shown, clock=clock, deadline_s=0.2)


def raising(error: BaseException) -> Callable[[], object]:
    """What a provider does that raises."""

    def raise_() -> object:
        raise error

    return raise_


def hangs() -> object:
    """A provider that does not answer."""
    threading.Event().wait()
    return None


class RefusedError(Exception):
    """What a provider raises."""

    retriable = False


class SpeechlessError(Exception):
    """What a provider raises whose own code is broken."""

    @property
    def retriable(self) -> bool:
        """Not even this."""
        raise KeyError("retriable")

    def __str__(self) -> str:
        raise RuntimeError(SECRET)


MISBEHAVIOURS: dict[str, tuple[Callable[[], object], str]] = {
    "raises": (raising(KeyError("no such role")), r"KeyError: 'no such role'\."),
    "raises without a text": (raising(ValueError()), r"ValueError\."),
    "raises what ends a process": (raising(SystemExit(3)), r"SystemExit: 3\."),
    "raises a timeout of its own": (raising(TimeoutError("sts")), r"TimeoutError: sts\."),
    "raises with a secret": (
        raising(ValueError(f"refused pst, Bearer abc1234567=, {SECRET} and {SECRET[:30]}")),
        r"ValueError: refused \*\*\*, Bearer \*\*\*, \*\*\* and \*\*\*\.",
    ),
    "raises what cannot say anything": (raising(SpeechlessError()), r"SpeechlessError\."),
    "hangs": (hangs, r"no answer within 0\.2 seconds\."),
    "gives nothing": (lambda: None, r"but is of the type NoneType\."),
    "gives the token alone": (lambda: SECRET, r"but is a text with other characters\."),
    "gives too much": (lambda: (SECRET, NOW + 100, "", {}, 1), r"but is a tuple of 5\."),
    "gives bytes": (lambda: (SECRET.encode(), NOW + 900), r"but is of the type bytes\."),
    "gives an empty token": (lambda: ("", NOW + 900), r"but is an empty text\."),
    "gives a line end": (lambda: (f"{SECRET}\n", NOW + 900), r"a text with other characters\."),
    "gives a header": (lambda: (f"Bearer {SECRET}", NOW + 900), r"a text with other characters\."),
    "gives an expired token": (
        lambda: (SECRET, NOW - 600),
        r"has ended at 2026-01-31T11:50:00Z, and the clock here says 2026-01-31T12:0.:..Z\.",
    ),
    "gives a life": (lambda: (SECRET, 3600), r"has ended at 1970-01-01T01:00:00Z, and"),
    "gives milliseconds": (lambda: (SECRET, NOW * 1000), r"are these milliseconds\?"),
    "gives a huge number": (lambda: (SECRET, 10**400), r"seconds since 1970, but is more than that;"),
    "gives a huge time before": (lambda: (SECRET, -1e308), r"seconds since 1970, but is -1e\+308;"),
    "gives a time that is none": (lambda: (SECRET, float("nan")), r"seconds since 1970, but is nan;"),
    "gives no end": (lambda: (SECRET, float("inf")), r"expected its end in seconds"),
    "gives no number": (lambda: (SECRET, None), r"seconds since 1970, but is of the type NoneType\."),
    "gives a time as text": (lambda: (SECRET, "1769860900"), r"seconds since 1970, but is a text"),
    "gives a principal of bytes": (lambda: (SECRET, NOW + 900, b"ana"), r"a principal as text"),
    "gives a principal with a NUL": (lambda: (SECRET, NOW + 900, "a\0na"), r"a principal as text"),
    "gives a principal that is no Unicode": (lambda: (SECRET, NOW + 900, "\ud800"), r"a principal as text"),
    "gives extensions as a list": (lambda: (SECRET, NOW + 900, "", [1]), r"extensions as a dict"),
    "gives an extension 'auth'": (
        lambda: (SECRET, NOW + 900, "", {"auth": SECRET}),
        r"extensions as a dict of texts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_a_provider_that_misbehaves(
    name: str, tokens: LoginTokens, provider: Provider, clock: MovedClock, caplog
) -> None:
    """The token of before is used while it is good, with one warning; then there is an error that names the provider, and no token."""
    does, said = MISBEHAVIOURS[name]
    first = tokens.token()
    provider.does = does

    for moved in (80, 15, 2):
        clock.now += moved
        tokens.renew_if_due()
        assert tokens.token() == first
        assert tokens.lost is None
    (warning,) = caplog.messages
    clock.now += 5
    with pytest.raises(RetriableBrokerError, match=said) as error:
        tokens.token()

    assert "The provider 'acme' gives no token to log in with: " in str(error.value)
    assert "is used until it ends, at 2026-01-31T12:01:40Z." in warning
    assert isinstance(tokens.lost, RetriableBrokerError)
    for text in (warning, str(error.value), repr(tokens), repr(first), tokens.described()):
        assert "eyJ" not in text
        assert "pst" not in text


def test_a_provider_that_is_well_again(
    tokens: LoginTokens, provider: Provider, clock: MovedClock, caplog
) -> None:
    """The next renewal that fails is warned of again, and an error of before is forgotten."""
    for _ in range(2):
        first = tokens.token()
        clock.now += 81
        provider.does = raising(OSError("away"))
        tokens.renew_if_due()
        assert tokens.token() == first
        provider.does = None
        clock.now += 2
        tokens.renew_if_due()
        assert tokens.token() != first

    assert len(caplog.messages) == 2
    assert tokens.lost is None


def test_a_provider_that_says_it_is_of_no_use_to_ask_again(
    tokens: LoginTokens, provider: Provider
) -> None:
    """Its error does not ask for a restart of the query."""
    provider.does = raising(RefusedError("unknown client"))

    with pytest.raises(BrokerError, match="RefusedError: unknown client") as error:
        tokens.token()

    assert type(error.value) is BrokerError


def test_a_token_without_a_dot_is_one(tokens: LoginTokens, provider: Provider, clock) -> None:
    """Amazon's tokens, and those that only their server understands, have none: the broker decides about it."""
    provider.does = lambda: ("abc_-~+/123==", clock.now + 60, None, None)

    assert tokens.token() == Token("abc_-~+/123==", clock.now + 60)


def test_a_token_is_starred_out_whatever_it_looks_like(
    tokens: LoginTokens, provider: Provider, clock: MovedClock
) -> None:
    """A provider may quote the one that it gave before."""
    provider.does = lambda: ("opaque-0815", clock.now + 60)
    tokens.token()
    clock.now += 60
    provider.does = raising(ValueError("opaque-0815 is revoked"))

    with pytest.raises(RetriableBrokerError, match=r"ValueError: \*\*\* is revoked\."):
        tokens.token()


def test_what_a_broker_repeats_of_a_token(tokens: LoginTokens, clock: MovedClock) -> None:
    """Nothing of it is shown: of the one before neither, nor where what the broker says was cut within one."""
    first = tokens.token().text
    clock.now += 90
    tokens.renew_if_due()
    second = tokens.token().text
    said = f"{first} was good, {second} is not: {second[:30]}"

    assert first != second
    assert tokens.without_tokens(said) == "*** was good, *** is not: ***"
    assert tokens.without_tokens("no token") == "no token"


def test_all_that_a_provider_may_give(tokens: LoginTokens, provider: Provider, clock) -> None:
    """As confluent-kafka's callback."""
    provider.does = lambda: (SECRET, int(clock.now) + 60, "ana", {"logicalCluster": "lkc-1"})

    assert tokens.token() == Token(SECRET, clock.now + 60, "ana", {"logicalCluster": "lkc-1"})


def test_whoever_asks_each_time_gets_a_token_that_is_not_old(
    clock: MovedClock, provider: Provider, tokens: LoginTokens
) -> None:
    """It is renewed from four fifths of its life on; where that fails, the one of before is given while it is good."""
    first = tokens.fresh()
    clock.now += 79
    assert tokens.fresh() is first
    clock.now += 2
    second = tokens.fresh()
    assert second is not first

    provider.does = raising(ConnectionError("away"))
    clock.now += 99
    assert tokens.fresh() is second
    clock.now += 2
    with pytest.raises(BrokerError, match="away"):
        tokens.fresh()


def test_a_refused_token_is_asked_for_anew_by_one(provider: Provider, tokens: LoginTokens) -> None:
    """Whoever was refused with it too gets the new one; where there is none, the error says why."""
    refused = tokens.token()
    other = tokens.instead_of(refused)
    assert tokens.instead_of(refused) is other is tokens.token()
    assert provider.calls == 2

    provider.does = raising(ConnectionError("away"))
    with pytest.raises(BrokerError, match="away"):
        tokens.instead_of(other)


def test_a_token_is_renewed_at_four_fifths_of_its_life(
    tokens: LoginTokens, provider: Provider, clock: MovedClock
) -> None:
    """Every client that is open gets it, and nobody asks before."""
    clients = Client(), Client()
    for client in clients:
        tokens.serve(client)
    clients[1].is_open = False
    for moved, calls in ((79, 1), (1, 2), (79, 2), (1, 3)):
        clock.now += moved
        tokens.renew_if_due()
        assert provider.calls == calls

    assert [each[-1] for each in clients[0].given] == ["1", "2", "3"]
    assert [each[-1] for each in clients[1].given] == ["1"]


def test_many_clients_ask_once(tokens: LoginTokens, provider: Provider) -> None:
    """Those who come while it is asked take what it answers."""
    together = threading.Barrier(4)
    found: list[Token] = []

    def ask() -> None:
        together.wait()
        found.append(tokens.token())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert provider.calls == 1


def test_calls_that_hang_are_few(tokens: LoginTokens, provider: Provider) -> None:
    """Each has a thread: a provider that never answers is not called for ever."""
    provider.does = hangs
    for _ in range(6):
        with pytest.raises(RetriableBrokerError):
            tokens.token()

    assert provider.calls == 4
    with pytest.raises(RetriableBrokerError, match="4 calls of it have not returned"):
        tokens.token()


def test_a_client_that_is_gone_needs_no_token(
    tokens: LoginTokens, provider: Provider, clock: MovedClock
) -> None:
    """Nobody asks for one in the background then, and its settings are forgotten."""

    class Asking:
        pass

    client = Asking()
    tokens.serve(AsksItself(client))
    assert tokens._is_needed()
    del client
    gc.collect()

    assert not tokens._is_needed()
    clock.now += 200
    assert tokens.is_idle


@pytest.fixture
def _no_tokens_of_before() -> Iterator[None]:
    """The process knows none."""
    login_tokens._begin_in_fork()
    yield
    login_tokens._begin_in_fork()


@pytest.mark.usefixtures("_no_tokens_of_before")
def test_settings_that_are_equal_share_their_tokens(clock: MovedClock) -> None:
    """Others do not; what nobody needs any longer is forgotten when others come."""

    def of(settings: str) -> Any:
        return shared_tokens(settings, lambda: LoginTokens("acme", Provider(clock), clock=clock))

    first = of("a")
    first.token()
    assert of("a") is first
    assert of("b") is not first
    clock.now += 200
    of("c")
    assert of("a") is not first


FORKED = """
import os, time
from pyspark_upsert_kafka.logins import login_tokens
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens, shared_tokens

def tokens():
    return shared_tokens("a", lambda: LoginTokens("acme", lambda: ("x", time.time() + 60)))

held = tokens()
with held._asking, held._lock, login_tokens._known.lock:
    child = os.fork()
    if not child:
        os._exit(7 if tokens().token().text == "x" else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_waits_for_no_lock_of_its_parent() -> None:
    """A thread that holds it is not there."""
    assert children.run(FORKED).said == "7\n"


KEPT_IN_FORK = """
import os, threading, time
from types import SimpleNamespace
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens

made = []

def ask():
    made.append(0)
    return f"x{len(made)}", time.time() + 60

kept = LoginTokens("acme", ask)
kept.serve(SimpleNamespace(is_open=True, set_token=lambda token: None))
with kept._asking, kept._lock:
    child = os.fork()
    if not child:
        given = []
        kept.serve(SimpleNamespace(is_open=True, set_token=lambda token: given.append(token.text)))
        renews = [each for each in threading.enumerate() if each.name == "login tokens"]
        kept.instead_of(kept.token())
        os._exit(7 if given == ["x1", "x2"] and len(renews) == 1 else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_tokens_that_are_kept_over_a_fork_are_renewed_there() -> None:
    """By a thread of the process that uses them: that of the parent is not there, nor who holds its locks."""
    assert children.run(KEPT_IN_FORK).said == "7\n"


@pytest.mark.parametrize("refused", [False, True])
def test_a_lost_token_ends_what_was_refused(
    refused: bool, tokens: LoginTokens, provider: Provider, clock: MovedClock
) -> None:
    """A connection that is open goes on with a token that has ended, if the broker lets it."""
    errors = ClientErrors()
    errors.tokens = tokens
    tokens.token()
    clock.now += 200
    provider.does = raising(OSError("away"))
    tokens.renew_if_due()
    if refused:
        errors.add("SASL authentication error: invalid_token", security=True)

    assert (errors.lost_login is not None) is refused


def test_no_log_line_for_a_renewal_that_went_well(
    tokens: LoginTokens, clock: MovedClock, caplog
) -> None:
    """An hour of short tokens says nothing."""
    caplog.set_level(logging.DEBUG)
    for _ in range(120):
        clock.now += 81
        tokens.renew_if_due()

    assert caplog.messages == []


class PassingClock(MovedClock):
    """One by which sleep takes no time, but the clock goes on."""

    def sleep(self, seconds: float) -> None:
        """It is later then."""
        self.now += seconds


def test_an_idle_hour() -> None:
    """A client that only waits has a token that is good at any moment; tokens of a quarter of an hour are renewed each twelve minutes."""
    clock = PassingClock()
    made: list[float] = []

    def ask() -> object:
        made.append(clock.now - NOW)
        return f"{SECRET}{len(made)}", clock.now + 900

    tokens = LoginTokens("acme", ask, clock=clock)
    good: list[bool] = []

    class Idle(Client):
        @property
        def is_open(self) -> bool:
            good.append(tokens._living() is not None)
            return clock.now < NOW + 3600

        @is_open.setter
        def is_open(self, _: bool) -> None:
            pass

    tokens.token()
    tokens._receivers.append(idle := Idle())
    tokens._keep_fresh()

    assert [round(at / 720, 2) for at in made] == [0, 1, 2, 3, 4]
    assert len(idle.given) == 4
    assert all(good)
    assert len(good) > 3600
