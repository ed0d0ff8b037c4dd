"""What an error means for the next attempt, whichever client raises it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
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
        return self in (Kind.RETRIABLE, Kind.AWAY)


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


def kind_of(code: int) -> Kind:
    """What an error code of Kafka's protocol means for the next attempt."""
    if code in _RETRIABLE:
        return Kind.RETRIABLE
    if code in _SECURITY:
        return Kind.SECURITY
    return Kind.UNKNOWN_TOPIC if code == _UNKNOWN_TOPIC else Kind.FATAL


def explained(code: int | None, text: str) -> str:
    """An error in the client's words, and what to do where they do not say it.

    >>> explained(30, "Broker: Group authorization failed")
    'Broker: Group authorization failed (the user has no ACL for the group; docs/security.md lists what is needed)'
    """
    resource = _NOT_ALLOWED.get(code or 0)
    if resource is None:
        return text
    return f"{text} (the user has no ACL for {resource}; docs/security.md lists what is needed)"


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
    """An attempt failed, for the reason that `failure` says."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure
