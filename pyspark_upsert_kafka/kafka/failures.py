"""What an error means for the next attempt, whichever client raises it, and when those that a client reports itself are fatal."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.masking import OutsideText
from pyspark_upsert_kafka.core.pages import page
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens


class FailureKind(Enum):
    """What an error means for the next attempt."""

    RETRIABLE = auto()
    """It will pass: a restart, an election, stale metadata."""

    AWAY = auto()
    """It will pass, and no broker has answered: a lost connection, or no answer in time."""

    SECURITY = auto()
    """A login or a certificate was refused; fatal when it goes on."""

    UNKNOWN_TOPIC = auto()
    """A topic or partition is gone, or so new that the broker does not know it yet."""

    FATAL = auto()
    """Retrying cannot change the answer."""

    ENDED = auto()
    """The transaction has ended with it, though it will pass: the next attempt of the task finds out what became of it."""

    @property
    def is_retriable(self) -> bool:
        """Whether it will pass."""
        return self in (FailureKind.RETRIABLE, FailureKind.AWAY)


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

_NOT_ALLOWED = {
    29: "the topic",
    30: "the group",
    31: "the cluster, or for writing to the topic",
    53: "the transactional id",
}
"""What the user has no ACL for, by the codes TOPIC_, GROUP_, CLUSTER_ and TRANSACTIONAL_ID_AUTHORIZATION_FAILED."""


def kind_of(code: int) -> FailureKind:
    """What an error code of Kafka's protocol means for the next attempt."""
    if code in _RETRIABLE:
        return FailureKind.RETRIABLE
    if code in _SECURITY:
        return FailureKind.SECURITY
    return FailureKind.UNKNOWN_TOPIC if code == _UNKNOWN_TOPIC else FailureKind.FATAL


def explained(code: int | None, text: str) -> str:
    """An error in the client's words, and what to do where they do not say it.

    >>> explained(30, "Broker: Group authorization failed")
    'Broker: Group authorization failed (the user has no ACL for the group; https://github.com/pyspark-upsert-kafka/pyspark-upsert-kafka/tree/main/docs/security.md lists what is needed)'
    """
    resource = _NOT_ALLOWED.get(code or 0)
    if resource is None:
        return text
    return (
        f"{text} (the user has no ACL for {resource}; {page('security.md')} lists what is needed)"
    )


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed.

    Args:
        kind: What that means for the next one.
        text: In the client's words.
    """

    kind: FailureKind
    text: str


class AttemptError(Exception):
    """An attempt failed, for the reason that `failure` says."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


FATAL_AFTER_S = 5.0
"""Security errors are fatal when they have gone on for so long (seconds) and nothing got through."""

_OFTEN = 4
"""How often an error must come that may have another cause, before it counts as one of security."""


SECURITY_HINT = (
    " Check 'properties.security.protocol', the credentials ('properties.sasl.*'), and the "
    "certificates ('properties.ssl.*')."
)
"""What to do about a fatal error, as text to append to a sentence."""


_LOGIN = re.compile("authenticat", re.IGNORECASE)
"""In what a client says when its login is refused."""


class ClientErrors:
    """The errors of one client since its task began.

    A client reconnects by itself, and one of several brokers may have a bad certificate: so a
    refused login or certificate is fatal only when such errors go on while nothing gets through.

    Args:
        settings: Those of the client: their secrets are not shown.
        clock: Gives the time in seconds.
    """

    def __init__(
        self,
        settings: Mapping[str, object] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._outside = OutsideText(settings)
        self.tokens: LoginTokens | None = None
        """By which the client logs in; None = in another way, or the client asks for them itself."""
        self.gives_tokens: LoginTokens | None = None
        """Who gives the tokens of a client that asks for them itself."""
        self._lock = threading.Lock()
        self._refusals = 0
        self.clear()

    def shown(self, text: str) -> str:
        """What the client or a broker says, fit to be shown."""
        tokens = self.gives_tokens or self.tokens
        return self._outside.shown(text if tokens is None else tokens.without_tokens(text))

    def clear(self) -> None:
        """Forgets the errors of an earlier task."""
        with self._lock:
            self._last = self._security = ""
            self._lasted_s = self._since = 0.0
            self._times = 0
            self._is_certain = False

    def add(
        self, text: str, *, security: bool = False, vague: bool = False, certain: bool = True
    ) -> None:
        """Takes note of an error.

        Args:
            text: In the client's words.
            security: Whether a login or a certificate was refused.
            vague: Whether it does not say what is wrong: then the text of an earlier security error is kept.
            certain: Whether the cause is security for sure. A broker that restarts hangs up just as one that expects
                another protocol does, but it does not do so again and again.
        """
        text = self.shown(text)
        tokens = self.gives_tokens
        if security and tokens is not None and tokens.lost is None and _LOGIN.search(text):
            text += f" ({tokens.described()})"
        with self._lock:
            self._last = text
            if security:
                now = self._clock()
                if not self._security:
                    self._since, self._times, self._is_certain = now, 0, False
                self._times += 1
                self._is_certain |= certain
                self._security = self._security if vague and self._security else text
                self._lasted_s = now - self._since
                self._refusals += not vague

    def note_progress(self) -> None:
        """Forgets security errors, since an answer, a message or a confirmation got through."""
        if self._security:
            with self._lock:
                self._security, self._lasted_s = "", 0.0

    @property
    def refusals(self) -> int:
        """How many errors of security there were that say what is wrong."""
        return self._refusals

    @property
    def security_error(self) -> str:
        """The last error of security; empty when something got through after it."""
        return self._security

    @property
    def fatal_error(self) -> str | None:
        """The security error that went on for too long; None = retrying may help."""
        with self._lock:
            is_fatal = self._lasted_s >= FATAL_AFTER_S
            return (
                self._security if is_fatal and (self._is_certain or self._times >= _OFTEN) else None
            )

    @property
    def lost_login(self) -> BrokerError | None:
        """Why there is no token to log in with, once a login was refused; None = there is one, or none is needed."""
        return self.tokens.lost if self.tokens is not None and self._security else None

    def describe(self, said: str = "") -> str:
        """The last error, and what to check when it is about security: to append to a sentence.

        Args:
            said: What the sentence itself says of the failure; an error with that text is not repeated.
        """
        with self._lock:
            last = self._security or self._last
            seen = f" Last seen: {last}" if last and last != said else ""
            if self._security:
                return f"{seen}{'.' if seen else ''}{SECURITY_HINT.removesuffix('.')}"
            return seen
