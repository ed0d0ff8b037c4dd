"""The tokens of OAUTHBEARER that a process has: asked for once for all clients of the same settings, and renewed before they end.

Whoever gives them is code of somebody else: it may raise, hang, or give what is no token. As long as the token of before is
good, that is a warning; then it is an error, which never shows a token.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass, field
from typing import Protocol

from pyspark_upsert_kafka.core.clock import (
    SYSTEM_CLOCK,
    Backoff,
    WallClock,
    is_about_time,
    shown_time,
)
from pyspark_upsert_kafka.core.errors import BrokerError, RetriableBrokerError
from pyspark_upsert_kafka.core.masking import outside_text

logger = logging.getLogger("pyspark_upsert_kafka")

TOKENS = "Login tokens"
"""Where a client's configuration has its `LoginTokens`. No option gives it: their names are in lower case."""

_DEADLINE_S = 10.0
"""How long a token is waited for."""

ANSWERS_S = 9.0
"""For all answers that a provider of ours needs for a token, in seconds: a little less, since it knows more of what happened."""

_USED_SHARE = 0.8
"""A token is renewed after this share of its life: Java's ``sasl.login.refresh.window.factor``, and librdkafka's."""

_AGAIN = Backoff(first_s=1.0, most_s=30.0)
"""The pauses after a renewal that failed."""

_LOOK_S = 1.0
"""How often it is looked whether a token is to be renewed, and whether a client is open that needs it."""

_MOST_HANGING = 4
"""A provider that hangs in so many calls is not called again: each has a thread."""

_KEPT, _BEGIN = 4, 16
"""So many tokens are known that are not to be shown, and that so many characters are the begin of one."""

_LATEST = 1e11
"""Seconds since 1970 that are no time of a token, but milliseconds."""

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750, section 2.1. It need not have dots, as a JSON Web Token has: those of Amazon have none."""

_EXTENSION = re.compile(r"(?!auth$)[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x20-\x7e\t\r\n]+")
"""RFC 7628, section 3.1."""


@dataclass(frozen=True)
class Token:
    """A token.

    Args:
        text: As it is sent.
        expires_at: When it ends, in seconds since 1970.
        principal: Whose it is; librdkafka wants a text, and sends it to nobody.
        extensions: SASL extensions (KIP-342).
    """

    text: str = field(repr=False)
    expires_at: float
    principal: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


class Receiver(Protocol):
    """A client that logs in by tokens."""

    @property
    def is_open(self) -> bool:
        """Whether it still needs tokens."""

    def set_token(self, token: Token, /) -> None:
        """Logs in by this token from now on."""


class AsksItself:
    """A client that asks for a token when it logs in: it is enough to renew them as long as it is there.

    Args:
        client: The client, which is not kept.
    """

    def __init__(self, client: object) -> None:
        self._client = weakref.ref(client)

    @property
    def is_open(self) -> bool:
        """Whether it is there."""
        return self._client() is not None

    def set_token(self, _: Token) -> None:
        """It asks."""


@dataclass(frozen=True)
class _Moment:
    """A time that has come when one of two clocks says so: that of the machine may be set at any moment, by minutes or hours.

    Args:
        at: By the clock of the machine, in seconds since 1970.
        steady_s: By the one that only rises, in seconds.
    """

    at: float
    steady_s: float

    @classmethod
    def after(cls, seconds: float, clock: WallClock) -> _Moment:
        """The one in so many seconds."""
        return cls(clock.time() + seconds, clock.monotonic() + seconds)

    def left_s(self, clock: WallClock) -> float:
        """How many seconds it takes to come."""
        return min(self.at - clock.time(), self.steady_s - clock.monotonic())


class _NoTokenError(Exception):
    """There is no token, for a reason in words."""

    def __init__(self, reason: str, *, passes: bool = True) -> None:
        super().__init__(reason)
        self.passes = passes


_all: weakref.WeakSet[LoginTokens] = weakref.WeakSet()


def without_tokens(text: str) -> str:
    """What is said of a connection that nobody knows the settings of, without the tokens of this process."""
    for tokens in tuple(_all):
        text = tokens.without_tokens(text)
    return text


class LoginTokens:
    """The tokens of some settings, in this process.

    Args:
        provider: Who gives them, as errors name it.
        ask: Gives a token as confluent-kafka's ``oauth_cb`` does: ``(token, expiry[, principal[, extensions]])``. An error
            whose attribute ``retriable`` is false means that asking again cannot help.
        shown: Makes what it says fit to be shown.
        clock: Tells the time.
        deadline_s: How long it is waited for, in seconds.
    """

    def __init__(
        self,
        provider: str,
        ask: Callable[[], object],
        shown: Callable[[str], str] = outside_text,
        *,
        clock: WallClock = SYSTEM_CLOCK,
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        self.provider, self._ask, self._shown = provider, ask, shown
        self._clock, self._deadline_s = clock, deadline_s
        self._token: Token | None = None
        self._lately: deque[str] = deque(maxlen=_KEPT)
        self._failure: _NoTokenError | None = None
        self._due = self._end = _Moment.after(0.0, clock)
        self._answers = self._failed = 0
        self._begin_in_process()
        _all.add(self)

    def _begin_in_process(self) -> None:
        """Nobody waits, holds a lock or renews: a fork has the threads of its parent no more."""
        self._asking, self._lock = threading.Lock(), threading.Lock()
        self._hanging: list[Future[object]] = []
        self._receivers: list[Receiver] = []
        self._is_kept_fresh = False

    def __repr__(self) -> str:
        return f"LoginTokens({self.provider!r})"

    def token(self) -> Token:
        """A token that is good now.

        Raises:
            BrokerError: There is none.
        """
        answers = self._answers
        if (found := self._living()) is not None:
            return found
        with self._asking:
            if (
                self._living() is None and self._answers == answers
            ):  # nobody else has asked meanwhile
                self._renew()
        if (found := self._living()) is not None:
            return found
        raise self._no_token(self._failure or _NoTokenError("its token has ended"))

    def fresh(self) -> Token:
        """A token that is good now and is not old, for whoever asks each time and is told of no later one.

        Raises:
            BrokerError: There is none.
        """
        if self._living() is not None:
            self.renew_if_due()
        return self.token()

    def instead_of(self, refused: Token) -> Token:
        """Another token than one that was refused although it should be good: asked for, unless somebody has done so.

        Raises:
            BrokerError: There is none.
        """
        with self._asking:
            if self._token is refused:
                self._renew()
        found = self._living()
        if found is None or found is refused:
            raise self._no_token(self._failure or _NoTokenError("its token has ended"))
        return found

    def serve(self, receiver: Receiver) -> None:
        """Gives a client a token, and each later one as long as it is open.

        Raises:
            BrokerError: There is none.
        """
        self.token()
        with self._lock:
            if self._token is not None:
                receiver.set_token(self._token)
            self._receivers.append(receiver)
            begins, self._is_kept_fresh = not self._is_kept_fresh, True
        if begins:
            _in_background(self._keep_fresh)

    @property
    def lost(self) -> BrokerError | None:
        """Why there is no token that is good; None = there is one."""
        failure = self._failure
        return None if failure is None or self._living() is not None else self._no_token(failure)

    def described(self) -> str:
        """Whose token it is and until when it is good by the provider's word, for an error of a broker that refuses it."""
        until = "" if self._token is None else f", good until {_time(self._token.expires_at)}"
        return f"the token is from the provider {self.provider!r}{until}; the clock here says {_time(self._clock.time())}"

    def without_tokens(self, text: str) -> str:
        """What somebody says who knows the tokens, as a broker does, without those of lately, also where one is cut."""
        tokens, at = tuple(self._lately), 0
        while (
            at := min(
                (found for token in tokens if (found := text.find(token[:_BEGIN], at)) >= 0),
                default=-1,
            )
        ) >= 0:
            end = at + max(_common(text[at:], token) for token in tokens)
            text = f"{text[:at]}***{text[end:]}"
            at += 3
        return text

    @property
    def is_idle(self) -> bool:
        """Whether nobody needs them."""
        return not self._is_kept_fresh and self._living() is None

    def renew_if_due(self) -> None:
        """Asks for another token when the one that is there gets old."""
        if self._due.left_s(self._clock) <= 0:
            with self._asking:
                if self._due.left_s(self._clock) <= 0:
                    self._renew()

    def _keep_fresh(self) -> None:
        """Renews the token in time as long as a client is open."""
        while self._is_needed():
            self.renew_if_due()
            self._clock.sleep(min(_LOOK_S, max(0.05, self._due.left_s(self._clock))))

    def _is_needed(self) -> bool:
        with self._lock:
            self._receivers = [each for each in self._receivers if each.is_open]
            self._is_kept_fresh = bool(self._receivers)
            return self._is_kept_fresh

    def _living(self) -> Token | None:
        return self._token if self._end.left_s(self._clock) > 0 else None

    def _renew(self) -> None:
        """Asks once, and takes note of the token or of why there is none."""
        try:
            token = self._checked(self._answer())
        except _NoTokenError as error:
            self._note_failure(error)
        else:
            self._note(token)
        self._answers += 1

    def _note(self, token: Token) -> None:
        life_s = token.expires_at - self._clock.time()
        with self._lock:
            self._token, self._failure = token, None
            self._lately.append(token.text)
            self._end = _Moment.after(life_s, self._clock)
            self._due = _Moment.after(_USED_SHARE * life_s, self._clock)
            self._failed = 0
            receivers = [each for each in self._receivers if each.is_open]
            for receiver in receivers:
                receiver.set_token(token)

    def _note_failure(self, error: _NoTokenError) -> None:
        self._failure = error
        if self._failed == 0 and (old := self._living()) is not None:
            logger.warning(
                "%s The token of before is used until it ends, at %s.",
                self._no_token(error), _time(old.expires_at),
            )  # fmt: skip
        self._due = _Moment.after(_AGAIN.pause_s(self._failed), self._clock)
        self._failed += 1

    def _no_token(self, error: _NoTokenError) -> BrokerError:
        raised = RetriableBrokerError if error.passes else BrokerError
        return raised(f"The provider {self.provider!r} gives no token to log in with: {error}.")

    def _answer(self) -> object:
        """What the provider answers in time; it is called in a thread of its own."""
        self._hanging = [each for each in self._hanging if not each.done()]
        if len(self._hanging) >= _MOST_HANGING:
            raise _NoTokenError(f"{len(self._hanging)} calls of it have not returned")
        answer: Future[object] = Future()

        def ask() -> None:
            try:
                answer.set_result(self._ask())
            except BaseException as error:  # noqa: BLE001 - whoever waits for it tells it
                answer.set_exception(error)

        _in_background(ask)
        try:
            error = answer.exception(self._deadline_s)
        except NotYetError:
            self._hanging.append(answer)
            raise _NoTokenError(f"no answer within {self._deadline_s:g} seconds") from None
        if error is not None:
            raise self._raised(error) from None
        return answer.result()

    def _raised(self, error: BaseException) -> _NoTokenError:
        text, passes = _told(error)
        said = self._shown(self.without_tokens(text)).strip().removesuffix(".")
        if is_about_time(said):
            said += f"; the clock here says {_time(self._clock.time())}"
        name = type(error).__name__.lstrip("_")
        is_named = said.startswith(name)  # as kafka-python's errors begin
        return _NoTokenError(
            said if is_named else f"{name}: {said}" if said else name, passes=passes
        )

    def _checked(self, answer: object) -> Token:
        """The token in an answer, of which nothing is shown."""
        if not isinstance(answer, tuple) or not 2 <= len(answer) <= 4:
            raise _NoTokenError(
                f"expected (token, expiry[, principal[, extensions]]), but is {_kind(answer)}"
            )
        text, expires_at, principal, extensions = (*answer, None, None)[:4]
        if not isinstance(text, str) or not _TOKEN.fullmatch(text):
            raise _NoTokenError(
                f"expected a token of letters, digits and -._~+/, but is {_kind(text)}"
            )
        self._check_time(expires_at)
        if not isinstance(principal or "", str) or not (principal or "").isprintable():
            raise _NoTokenError(f"expected a principal as text, but is {_kind(principal)}")
        if not _are_extensions(extensions or {}):
            raise _NoTokenError(
                "expected extensions as a dict of texts, with names of letters (RFC 7628)"
            )
        return Token(text, float(expires_at), principal or "", dict(extensions or {}))

    def _check_time(self, expires_at: object) -> None:
        if isinstance(expires_at, bool) or not isinstance(expires_at, (int, float)):
            raise _NoTokenError(
                f"expected its end in seconds since 1970, but is {_kind(expires_at)}"
            )
        if not -_LATEST < expires_at < _LATEST:
            seen = "more than that" if abs(expires_at) > sys.float_info.max else f"{expires_at:g}"
            raise _NoTokenError(
                f"expected its end in seconds since 1970, but is {seen}; are these milliseconds?"
            )
        now = self._clock.time()
        if expires_at <= now:
            raise _NoTokenError(
                f"its token has ended at {_time(expires_at)}, and the clock here says {_time(now)}"
            )


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _told(error: BaseException) -> tuple[str, bool]:
    """What an error of a provider says, and whether asking again may help."""
    try:
        return str(error), bool(getattr(error, "retriable", True))
    except Exception:  # noqa: BLE001 - it is code of somebody else, which cannot even tell what is wrong
        return "", True


def _are_extensions(extensions: object) -> bool:
    return isinstance(extensions, Mapping) and all(
        isinstance(name, str)
        and isinstance(value, str)
        and _EXTENSION.fullmatch(name)
        and _EXTENSION_VALUE.fullmatch(value)
        for name, value in extensions.items()
    )


def _kind(value: object) -> str:
    """What a value is, without the value."""
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if isinstance(value, str):
        return "an empty text" if not value else "a text with other characters"
    return f"of the type {type(value).__name__}"


def _time(seconds: float) -> str:
    return shown_time(int(seconds * 1000))


def _in_background(run: Callable[[], object]) -> None:
    threading.Thread(target=run, name="login tokens", daemon=True).start()


class _Known:
    """The tokens of this process, by their settings."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_settings: dict[Hashable, LoginTokens] = {}


_known = _Known()


def shared_tokens(settings: Hashable, make: Callable[[], LoginTokens]) -> LoginTokens:
    """The tokens of these settings, which all clients of the process share.

    Args:
        settings: The settings, with secrets.
        make: Makes what is not there yet.
    """
    known = _known
    found = known.by_settings.get(settings)
    if found is not None:
        return found
    made = make()
    with known.lock:
        for other, tokens in [*known.by_settings.items()]:
            if other != settings and tokens.is_idle:  # such as those of a secret that was replaced
                del known.by_settings[other]
        return known.by_settings.setdefault(settings, made)


def _begin_in_fork() -> None:
    """Forgets the tokens of the parent process, whose locks may be held by threads that are not here; who has some may use them."""
    global _known  # noqa: PLW0603 - a process has one
    _known = _Known()
    for tokens in _all:
        tokens._begin_in_process()  # noqa: SLF001 - of this module


os.register_at_fork(after_in_child=_begin_in_fork)
