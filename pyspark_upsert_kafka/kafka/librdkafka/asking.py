"""Asking a broker with patience: transient trouble is waited out, the rest told in a sentence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.kafka import patience
from pyspark_upsert_kafka.kafka.cluster import UnknownTopicError

T = TypeVar("T")

_PAUSE_S = 0.25

_HOPELESS = frozenset({
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - how confluent-kafka spells librdkafka's own codes
    KafkaError._SSL,  # noqa: SLF001
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
})  # fmt: skip

TRANSIENT = frozenset({
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError._WAIT_COORD,  # noqa: SLF001
    KafkaError._NOENT,  # noqa: SLF001 - "No leaders found": a broker that has just come back
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
})  # fmt: skip
"""Codes of trouble that passes: a restart, an election, a lost connection."""


class Trouble:
    """The latest thing a client said went wrong; a client tells it by ``error_cb``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: KafkaError | None = None
        self._hopeless: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Takes note of an error."""
        with self._lock:
            self._last = error
            if error.code() in _HOPELESS:
                self._hopeless = error

    def forget(self) -> None:
        """Starts anew: what went wrong for an earlier task is no news."""
        with self._lock:
            self._last = self._hopeless = None

    @property
    def hopeless(self) -> KafkaError | None:
        """An error that asking again cannot mend: who we are, or whom we trust."""
        return self._hopeless

    def describe(self) -> str:
        """What went wrong last, as text to append to a sentence."""
        with self._lock:
            error = self._hopeless or self._last
        return f" Last seen: {error.str()}" if error is not None else ""


def ask(what: str, servers: str, trouble: Trouble, question: Callable[[float], T]) -> T:
    """The answer to a question, asked again while the trouble is transient.

    Args:
        what: What is asked for, to complete "could not".
        servers: The bootstrap servers, for the error.
        trouble: What the client has said went wrong.
        question: Gets a timeout in seconds; raises KafkaException.

    Raises:
        BrokerError: No answer within `patience.ANSWER_S`, or one that asking again cannot change.
    """
    trouble.forget()
    deadline = time.monotonic() + patience.ANSWER_S
    while True:
        try:
            return question(min(5.0, max(1.0, deadline - time.monotonic())))
        except KafkaException as exception:
            error = exception.args[0]
        if trouble.hopeless is not None or error.code() not in TRANSIENT:
            raise _refused(what, servers, error, trouble)
        if time.monotonic() >= deadline:
            raise BrokerError(
                f"Could not {what}: no Kafka broker at {servers!r} answered within "
                f"{patience.ANSWER_S:.0f} seconds ({error.str()}).{trouble.describe()} "
                "Check 'properties.bootstrap.servers', and that the broker runs and can be reached "
                "from here."
            )
        time.sleep(_PAUSE_S)


def _refused(what: str, servers: str, error: KafkaError, trouble: Trouble) -> BrokerError:
    is_unknown = error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001
    kind = UnknownTopicError if is_unknown else BrokerError
    return kind(f"Could not {what} at {servers!r}: {error.str()}.{trouble.describe()}")
