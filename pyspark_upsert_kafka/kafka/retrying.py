"""The one retry loop of requests to brokers, whichever client sends them, and how long is waited: for an answer, for brokers that are all away.

Timeouts have the names and defaults of the Java client.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pyspark_upsert_kafka.core.clock import Backoff, Clock
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    OptionError,
    RetriableBrokerError,
    UnknownTopicError,
)
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.kafka.failures import (
    SECURITY_HINT,
    AttemptError,
    ClientErrors,
    Failure,
    FailureKind,
)

logger = logging.getLogger("pyspark_upsert_kafka")


REQUEST_TIMEOUT_S, API_TIMEOUT_S = 30.0, 60.0
"""For one attempt of a request and for all of them: the Java client's defaults."""

POLL_TIMEOUT_S = 120.0
"""For the next message of a range (the default of Spark's ``kafkaConsumer.pollTimeoutMs``)."""


CLOSE_TIMEOUT_S = 5.0
"""For what is still under way when a client is closed."""

_REQUEST = "request.timeout.ms"
_API = "default.api.timeout.ms"


@dataclass(frozen=True)
class Timeouts:
    """How long the answer to a request is waited for.

    Args:
        request_s: In one attempt.
        api_s: In all attempts together.
    """

    request_s: float
    api_s: float

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Timeouts:
        """The timeouts that the properties state, or those of the Java client.

        As in Java, a request timeout longer than all attempts is an error when both are given, and
        extends them when only it is given.

        Raises:
            OptionError: A timeout is no positive whole number, or one attempt is longer than all.
        """
        request_s = _seconds(properties, _REQUEST, REQUEST_TIMEOUT_S)
        api_s = _seconds(properties, _API, max(API_TIMEOUT_S, request_s))
        if api_s < request_s:
            by_default = "" if _REQUEST in properties else " (its default)"
            raise OptionError(
                f"Option '{PREFIX}{_API}' = '{api_s * 1000:.0f}' is the time for all attempts and must "
                f"not be less than '{PREFIX}{_REQUEST}' = '{request_s * 1000:.0f}'{by_default}, the time "
                "for one: raise the first, or lower the second."
            )
        return cls(request_s, api_s)


@dataclass(frozen=True)
class ReadWaits:
    """How long is waited while a range is read.

    Args:
        message_s: For the next message.
        outage_s: For brokers that are all away; 0 = no longer than for any answer.
    """

    message_s: float
    outage_s: float = 0.0


def message_timeout_s(properties: Mapping[str, str]) -> float:
    """How long the next message of a range is waited for: as long as for an answer, where that is given."""
    return Timeouts.from_properties(properties).api_s if _API in properties else POLL_TIMEOUT_S


def _seconds(properties: Mapping[str, str], name: str, default_s: float) -> float:
    value = properties.get(name)
    if value is None:
        return default_s
    stripped = value.strip()
    if not (stripped.isascii() and stripped.isdigit() and int(stripped) > 0):
        raise OptionError(
            f"Invalid value for option '{PREFIX}{name}': expected a positive number of milliseconds, "
            f"but is {stripped!r}."
        )
    return int(stripped) / 1000


_WARN_S = 30.0


class Outage:
    """The time in which no broker answers a client at all; one that answers with an error is not away.

    A process that waits does not notice that Spark has ended, which started it. So it looks at its parent process, and
    waits no longer when that is another one.

    Args:
        limit_s: How long brokers are waited for, in seconds; 0 = no longer than for any answer.
        clock: Seconds that only rise.
        parent: The process that has started this one; when that has gone, it is another.
    """

    def __init__(
        self,
        limit_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        parent: Callable[[], int] = os.getppid,
    ) -> None:
        self.limit_s, self._clock, self._parent = limit_s, clock, parent
        self._started_by = parent()
        self._since: float | None = None
        self._warned_at: float | None = None

    def goes_on(self, servers: str, seen: str) -> bool:
        """Whether brokers are waited for any longer, now that none has answered; a warning is logged every 30 seconds.

        Args:
            servers: The bootstrap servers.
            seen: What the client says.
        """
        now = self._clock()
        self._since = now if self._since is None else self._since
        lasted_s = now - self._since
        if lasted_s >= self.limit_s or self._parent() != self._started_by:
            return False
        if now - (self._warned_at or self._since) >= _WARN_S:
            self._warned_at = now
            logger.warning(
                "No Kafka broker at %r has answered for %.0f seconds (%s). The query waits for them up to %g seconds "
                "('scan.outage.timeout'), and then ends.",
                servers, lasted_s, seen, self.limit_s,
            )  # fmt: skip
        return True

    def end(self) -> None:
        """Takes note that a broker has answered."""
        if self._warned_at is not None and self._since is not None:
            logger.warning(
                "A Kafka broker answers again, after %.0f seconds.", self._clock() - self._since
            )
        self._since = self._warned_at = None


T = TypeVar("T")

_BACKOFF = Backoff(first_s=0.1, most_s=1.0)
"""Between attempts: the Java client's ``retry.backoff.ms`` and ``retry.backoff.max.ms``."""

_CLIENTS = 4
"""How many clients are opened, one after the other, in the time for all attempts."""

_MIN_ATTEMPT_S = 0.1


def _nothing(*_: object) -> object:
    """For a client that keeps nothing from one attempt to the next."""


@dataclass(frozen=True)
class Retrying:
    """The retry loop for one client.

    A client may keep for minutes what it once knew of leaders: so it looks them up anew before each
    retry, and as a last resort it is replaced.

    Args:
        servers: The bootstrap servers, for errors.
        timeouts: For one attempt and for all of them.
        errors: What the client reports by itself.
        raised: What an attempt may raise.
        classify: What such an exception means for the next attempt.
        refresh: Has the client look up leaders and brokers anew, within a timeout in seconds; true = a broker has
            answered.
        reopen: Has the next attempt open a new client.
        hint: What to do when the port speaks another security protocol, to append to a sentence.
        outage: How long brokers are waited for while none answers: that time does not count as time of the attempts.
        backoff: The pauses between attempts.
        clock: Tells the time, and waits.
    """

    servers: str
    timeouts: Timeouts
    errors: ClientErrors
    raised: tuple[type[Exception], ...]
    classify: Callable[[Exception], Failure]
    refresh: Callable[[float], object] = _nothing
    reopen: Callable[[], object] = _nothing
    hint: Callable[[], str] = lambda: ""
    outage: Outage = field(default_factory=Outage)
    backoff: Backoff = _BACKOFF
    clock: Clock = time

    def call(self, what: str, request: Callable[[float], T]) -> T:
        """The answer to a request, which is sent again after a retriable error.

        Args:
            what: What is requested, to complete "could not".
            request: Gets a timeout in seconds.

        Raises:
            BrokerError: No answer within the time for all attempts, or one that cannot change.
            UnknownTopicError: A topic or partition is not known.
        """
        self.errors.clear()
        opened = self.clock.monotonic()
        deadline = opened + self.timeouts.api_s
        attempt, failed = request, 0
        while True:
            began = self.clock.monotonic()
            try:
                return self._attempt(attempt, deadline)
            except AttemptError as error:
                said = error.failure
            failure = replace(said, text=self.errors.shown(said.text))
            self._raise_if_fatal(what, failure)
            opened = self._reopen_if_useless(failure, opened)
            self.clock.sleep(
                max(0.0, min(self.backoff.pause_s(failed), deadline - self.clock.monotonic()))
            )
            if self._is_in_outage(what, failure):
                deadline += self.clock.monotonic() - began
            if self.clock.monotonic() >= deadline:
                raise self._no_answer(what, failure)
            attempt, failed = self._refreshed(request), failed + 1

    def _attempt(self, request: Callable[[float], T], deadline: float) -> T:
        """One attempt; raises AttemptError."""
        left = deadline - self.clock.monotonic()
        try:
            answer = request(max(_MIN_ATTEMPT_S, min(self.timeouts.request_s, left)))
        except self.raised as error:
            raise AttemptError(self.classify(error)) from error
        self.errors.note_progress()
        self.outage.end()
        return answer

    def _refreshed(self, request: Callable[[float], T]) -> Callable[[float], T]:
        """The request by a client that has looked up leaders and brokers anew."""

        def attempt(timeout: float) -> T:
            has_answer = self.refresh(timeout)
            try:
                return request(timeout)
            except self.raised as error:
                failure = self.classify(error)
                if (
                    has_answer and failure.kind is FailureKind.AWAY
                ):  # one broker is, not all of them
                    raise AttemptError(replace(failure, kind=FailureKind.RETRIABLE)) from error
                raise

        return attempt

    def _is_in_outage(self, what: str, failure: Failure) -> bool:
        """Whether no broker answers, and they are waited for.

        Raises:
            BrokerError: They have been waited for long enough.
        """
        if failure.kind is not FailureKind.AWAY:
            self.outage.end()
            return False
        if not self.outage.limit_s:
            return False
        if self.outage.goes_on(self.servers, failure.text):
            return True
        raise RetriableBrokerError(
            f"Could not {what}: no Kafka broker at {self.servers!r} has answered for {self.outage.limit_s:g} seconds, the "
            f"time of 'scan.outage.timeout' ({failure.text}).{self.errors.describe()} A query that is started again goes "
            "on from its checkpoint."
        )

    def _raise_if_fatal(self, what: str, failure: Failure) -> None:
        if failure.kind is FailureKind.SECURITY:
            self.errors.add(failure.text, security=True)
        if (lost := self.errors.lost_login) is not None:
            raise type(lost)(f"Could not {what} at {self.servers!r}. {lost}")
        fatal = self.errors.fatal_error
        if fatal is None and (failure.kind.is_retriable or failure.kind is FailureKind.SECURITY):
            return
        text = f"Could not {what} at {self.servers!r}: {fatal or failure.text}."
        if failure.kind is FailureKind.UNKNOWN_TOPIC:
            raise UnknownTopicError(text)
        advice = f"{self.hint()}{SECURITY_HINT}" if fatal else ""
        passes = failure.kind is FailureKind.ENDED and not fatal
        raise (RetriableBrokerError if passes else BrokerError)(text + advice, is_final=True)

    def _reopen_if_useless(self, failure: Failure, opened: float) -> float:
        """Replaces a client that fails for long, or whose login failed; gives when the client was opened."""
        now = self.clock.monotonic()
        # A client may repeat the result of its first login for ever.
        if failure.kind is FailureKind.SECURITY or now - opened > self.timeouts.api_s / _CLIENTS:
            self.reopen()
            return now
        return opened

    def _no_answer(self, what: str, failure: Failure) -> BrokerError:
        nobody = (
            f"Could not {what}: no Kafka broker at {self.servers!r} answered within "
            f"{self.timeouts.api_s:g} seconds ({failure.text})."
        )
        if hint := self.hint():  # the cause is known: nothing else has to be checked
            return BrokerError(nobody + hint)
        seen = self.errors.describe(failure.text)
        return RetriableBrokerError(
            f"{nobody}{seen}{'.' if seen else ''} "
            "Check 'properties.bootstrap.servers' and 'properties.security.protocol', and that the broker "
            "runs and can be reached from here. Where a broker needs longer, raise "
            "'properties.default.api.timeout.ms'."
        )
