"""Asking a broker with patience: transient trouble is waited out, the rest told in a sentence."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import TypeVar

from kafka import errors

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.kafka import patience
from pyspark_upsert_kafka.kafka.cluster import UnknownTopicError

T = TypeVar("T")

_PAUSE_S = 0.25

_UNKNOWN = "UnknownTopicOrPartitionError"

_HOPELESS = frozenset({
    "AuthenticationFailedError", "AuthenticationMethodNotSupported", "IllegalSaslStateError",
    "SaslAuthenticationFailedError", "UnsupportedSaslMechanismError",
})  # fmt: skip
"""Names of errors that asking again cannot mend; which of them exist differs between versions."""

_TRANSIENT = frozenset({"BrokerNotAvailableError", "UnknownBrokerIdError"})
"""Names of errors that pass although the library does not call them retriable."""

_SAYS_NO = re.compile(
    "authentication ?failed|certificate verify failed|hostname mismatch|SaslMechanism|sasl_mechanism",
    re.IGNORECASE,
)
"""What the library logs, and does not raise, when asking again cannot mend it."""

_WHILE_GREETING = re.compile("<(authenticating|handshake)>.*: Closing connection")

_LOST_WHILE_GREETING = 3
"""A refusal may be no more than a lost connection; so may a broker that restarts, but once."""


class _Heard(logging.Handler):
    """What the library says goes wrong: it keeps the reasons of lost connections to its log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.forget()

    def forget(self) -> None:
        """Starts anew: what went wrong before is no news."""
        self.last = ""
        self.hopeless = False
        self._lost_while_greeting = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Takes note of a warning; what comes after one without hope only follows from it."""
        if self.hopeless:
            return
        self.last = record.getMessage()
        self._lost_while_greeting += bool(_WHILE_GREETING.search(self.last))
        self.hopeless = (
            _SAYS_NO.search(self.last) is not None
            or self._lost_while_greeting >= _LOST_WHILE_GREETING
        )


HEARD = _Heard()
logging.getLogger("kafka").addHandler(HEARD)


def is_hopeless(error: BaseException) -> bool:
    """Whether asking again cannot mend it: who we are, or whom we trust."""
    return type(error).__name__ in _HOPELESS or HEARD.hopeless


def is_transient(error: BaseException) -> bool:
    """Whether it passes: a restart, an election, a lost connection."""
    if isinstance(error, errors.KafkaError):
        return bool(error.retriable) or type(error).__name__ in _TRANSIENT
    return isinstance(error, OSError)


def told(error: BaseException) -> str:
    """An error in words."""
    text = str(error).removesuffix(".")
    name = type(error).__name__
    if isinstance(error, errors.UnsupportedCodecError):
        text += " (pip install 'pyspark-upsert-kafka[kafka-python]' brings them)"
    return text if name in text else f"{name}: {text}" if text else name


def describe_trouble() -> str:
    """What the library said last, as text to append to a sentence."""
    return f" Last seen: {HEARD.last}" if HEARD.last else ""


def _hint() -> str:
    if not HEARD.hopeless:
        return ""
    return (
        ". Check 'properties.security.protocol', what identifies you ('properties.sasl.*'), and whom "
        "you trust ('properties.ssl.*')."
    )


def ask(what: str, servers: str, question: Callable[[float], T]) -> T:
    """The answer to a question, asked again while the trouble is transient.

    Args:
        what: What is asked for, to complete "could not".
        servers: The bootstrap servers, for the error.
        question: Gets a timeout in seconds; raises KafkaError.

    Raises:
        BrokerError: No answer within `patience.ANSWER_S`, or one that asking again cannot change.
    """
    HEARD.forget()
    deadline = time.monotonic() + patience.ANSWER_S
    while True:
        try:
            return question(min(5.0, max(1.0, deadline - time.monotonic())))
        except (errors.KafkaError, OSError) as raised:
            error = raised
        if type(error).__name__ == _UNKNOWN:
            raise UnknownTopicError(f"Could not {what} at {servers!r}: {told(error)}.")
        if is_hopeless(error) or not is_transient(error):
            raise BrokerError(
                f"Could not {what} at {servers!r}: {told(error)}.{describe_trouble()}{_hint()}"
            )
        if time.monotonic() >= deadline:
            raise BrokerError(
                f"Could not {what}: no Kafka broker at {servers!r} answered within "
                f"{patience.ANSWER_S:.0f} seconds ({told(error)}).{describe_trouble()} "
                "Check 'properties.bootstrap.servers', and that the broker runs and can be reached "
                "from here."
            )
        time.sleep(_PAUSE_S)


def needs_successor(what: str, remedy: str) -> OptionError:
    """The error for what kafka-python-ng cannot do."""
    return OptionError(
        f"'kafka.client' = 'kafka-python': the installed kafka-python-ng {what}. Install its "
        f"successor (pip uninstall kafka-python-ng; pip install 'kafka-python>=3'), set 'kafka.client' "
        f"to 'librdkafka', or {remedy}."
    )
