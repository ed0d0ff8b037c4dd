"""The one loop in which brokers are asked, whichever client asks: what passes is tried again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.kafka.timeouts import Timeouts
from pyspark_upsert_kafka.kafka.trouble import CHECK_SECURITY, Trouble

T = TypeVar("T")

_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0
"""Between attempts: the Java client's ``retry.backoff.ms`` and ``retry.backoff.max.ms``."""

_CLIENTS = 4
"""When nothing helps, so many clients share the time for all attempts."""

_LEAST_S = 0.1


class Kind(Enum):
    """What an error means for the next attempt."""

    RETRIABLE = auto()
    """It passes: a restart, an election, a lost connection, stale metadata."""

    SECURITY = auto()
    """A login or a certificate was refused; fatal when it goes on."""

    UNKNOWN_TOPIC = auto()
    """A topic or partition is gone, or so new that the broker does not know it yet."""

    FATAL = auto()
    """Asking again cannot change the answer."""


_RETRIABLE = frozenset({
    5,  # LEADER_NOT_AVAILABLE
    6,  # NOT_LEADER_OR_FOLLOWER
    7,  # REQUEST_TIMED_OUT
    8,  # BROKER_NOT_AVAILABLE
    9,  # REPLICA_NOT_AVAILABLE
    13,  # NETWORK_EXCEPTION
    14,  # COORDINATOR_LOAD_IN_PROGRESS
    15,  # COORDINATOR_NOT_AVAILABLE
    16,  # NOT_COORDINATOR
    19,  # NOT_ENOUGH_REPLICAS
    20,  # NOT_ENOUGH_REPLICAS_AFTER_APPEND
    41,  # NOT_CONTROLLER
    51,  # CONCURRENT_TRANSACTIONS
    56,  # KAFKA_STORAGE_ERROR
    70,  # FETCH_SESSION_ID_NOT_FOUND
    71,  # INVALID_FETCH_SESSION_EPOCH
    72,  # LISTENER_NOT_FOUND
    74,  # FENCED_LEADER_EPOCH
    75,  # UNKNOWN_LEADER_EPOCH
    78,  # OFFSET_NOT_AVAILABLE
    80,  # PREFERRED_LEADER_NOT_AVAILABLE
    83,  # ELIGIBLE_LEADERS_NOT_AVAILABLE
    84,  # ELECTION_NOT_NEEDED
    88,  # UNSTABLE_OFFSET_COMMIT
    89,  # THROTTLING_QUOTA_EXCEEDED
    100,  # UNKNOWN_TOPIC_ID
    103,  # INCONSISTENT_TOPIC_ID
    106,  # FETCH_SESSION_TOPIC_ID_ERROR
    122,  # SHARE_SESSION_NOT_FOUND
    123,  # INVALID_SHARE_SESSION_EPOCH
    133,  # SHARE_SESSION_LIMIT_REACHED
})  # fmt: skip
"""The protocol's errors that Java's client retries (subclasses of ``RetriableException`` in Kafka 4.3),
and BROKER_NOT_AVAILABLE. Not CORRUPT_MESSAGE, which is in the log to stay, nor UNKNOWN_TOPIC_OR_PARTITION,
which has a kind of its own."""

_SECURITY = frozenset({
    33,  # UNSUPPORTED_SASL_MECHANISM
    34,  # ILLEGAL_SASL_STATE
    58,  # SASL_AUTHENTICATION_FAILED
})  # fmt: skip

_UNKNOWN_TOPIC = 3


def kind_of(code: int) -> Kind:
    """What an error code of Kafka's protocol means for the next attempt."""
    if code in _RETRIABLE:
        return Kind.RETRIABLE
    if code in _SECURITY:
        return Kind.SECURITY
    return Kind.UNKNOWN_TOPIC if code == _UNKNOWN_TOPIC else Kind.FATAL


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed.

    Args:
        kind: What that means for the next one.
        text: In the client's words.
    """

    kind: Kind
    text: str


class AttemptError(Exception):
    """An attempt failed, and it is known how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class UnknownTopicError(BrokerError):
    """A topic is gone, or so new that the broker that was asked does not know it yet."""


def _nothing() -> None:
    """Of a client that keeps nothing from one attempt to the next."""


@dataclass(frozen=True)
class Asking:
    """How a client is asked.

    Args:
        servers: The bootstrap servers, for errors.
        timeouts: For one attempt and for all of them.
        trouble: What the client says goes wrong.
        errors: What an attempt may raise.
        failure: Tells what such an error means.
        refresh: Has the client look up leaders and brokers anew.
        reopen: Has the next attempt open a new client.
    """

    servers: str
    timeouts: Timeouts
    trouble: Trouble
    errors: tuple[type[Exception], ...]
    failure: Callable[[Exception], Failure]
    refresh: Callable[[float], object] = lambda _: None
    reopen: Callable[[], object] = _nothing

    def ask(self, what: str, question: Callable[[float], T]) -> T:
        """The answer to a question, asked again while the trouble passes.

        A client may keep for minutes what it once knew of leaders: so it looks them up anew before it
        asks again, and as a last resort it is replaced.

        Args:
            what: What is asked for, to complete "could not".
            question: Gets a timeout in seconds.

        Raises:
            BrokerError: No answer within the time for all attempts, or one that cannot change.
            UnknownTopicError: A topic or partition is not known.
        """
        known: tuple[type[Exception], ...] = (AttemptError, *self.errors)
        self.trouble.begin()
        begin = replaced = time.monotonic()
        pause, failure = _PAUSE_S, None
        while True:
            left = begin + self.timeouts.api_s - time.monotonic()
            if failure is not None and left <= 0:
                raise self._no_answer(what, failure)
            timeout = max(_LEAST_S, min(self.timeouts.request_s, left))
            try:
                if failure is not None:
                    self.refresh(timeout)
                answer = question(timeout)
            except known as error:
                failure = error.failure if isinstance(error, AttemptError) else self.failure(error)
            else:
                self.trouble.progress()
                return answer
            self._raise_fatal(what, failure)
            lasted = time.monotonic() - replaced
            if failure.kind is Kind.SECURITY or lasted > self.timeouts.api_s / _CLIENTS:
                # A client may repeat the verdict of its first login for ever.
                self.reopen()
                replaced = time.monotonic()
            time.sleep(min(pause, max(0.0, left)))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _raise_fatal(self, what: str, failure: Failure) -> None:
        trouble = self.trouble
        trouble.error(failure.text, security=failure.kind is Kind.SECURITY)
        fatal = trouble.fatal
        if fatal is None and failure.kind in (Kind.RETRIABLE, Kind.SECURITY):
            return
        kind = UnknownTopicError if failure.kind is Kind.UNKNOWN_TOPIC else BrokerError
        raise kind(
            f"Could not {what} at {self.servers!r}: {fatal or failure.text}."
            f"{CHECK_SECURITY if fatal else ''}"
        )

    def _no_answer(self, what: str, failure: Failure) -> BrokerError:
        return BrokerError(
            f"Could not {what}: no Kafka broker at {self.servers!r} answered within "
            f"{self.timeouts.api_s:g} seconds ({failure.text}).{self.trouble.describe()} "
            "Check 'properties.bootstrap.servers', and that the broker runs and can be reached from "
            "here. Where a broker needs longer, raise 'properties.default.api.timeout.ms'."
        )
