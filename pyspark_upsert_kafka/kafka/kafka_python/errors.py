"""What kafka-python's errors mean for the next attempt, and the retry loop that heeds it."""

from __future__ import annotations

import re
import ssl
from typing import Any

from kafka import errors

from pyspark_upsert_kafka.kafka.connections import failures
from pyspark_upsert_kafka.kafka.connections.client_errors import ClientErrors
from pyspark_upsert_kafka.kafka.connections.failures import AttemptError, Failure, Kind, explained
from pyspark_upsert_kafka.kafka.connections.retrying import Retrying
from pyspark_upsert_kafka.kafka.connections.timeouts import Timeouts
from pyspark_upsert_kafka.kafka.kafka_python.client_log import is_about_security

_SECURITY = frozenset({
    "AuthenticationFailedError", "AuthenticationMethodNotSupported", "IllegalSaslStateError",
    "SaslAuthenticationFailedError", "UnrecognizedBrokerVersion", "UnsupportedSaslMechanismError",
})  # fmt: skip
"""Names of errors about who we are; which of them exist differs between versions. A broker whose version is not
recognized has hung up when it was asked for that, as one does that expects another security protocol."""

_RETRIABLE = frozenset({"UnknownBrokerIdError"})
"""Names of errors that pass although kafka-python-ng does not call them retriable."""

_AWAY = frozenset({
    "KafkaConnectionError", "KafkaTimeoutError", "NoBrokersAvailable", "NodeNotReadyError", "RequestTimedOutError",
})  # fmt: skip
"""Names of errors by which the library says that it has no answer."""

_CODE_IN_TEXT = re.compile(r"\[Error (\d+)\]")

_CONNECT_S = 10.0
"""For opening a client, which tries by itself meanwhile: Java's ``socket.connection.setup.timeout.ms``."""


def connect_timeouts(timeout: float) -> dict[str, int]:
    """The arguments that bound the opening of a client; what they are called differs between versions."""
    ms = int(min(timeout, _CONNECT_S) * 1000)
    return {"api_version_auto_timeout_ms": ms, "bootstrap_timeout_ms": ms}


def kind_of(error: Exception) -> Kind:
    """What an error means for the next attempt."""
    name = type(error).__name__
    if name in _SECURITY or isinstance(error, ssl.SSLError) or is_about_security(str(error)):
        return Kind.SECURITY
    if isinstance(error, OSError) or name in _AWAY:
        return Kind.AWAY
    code = _code(error)
    if code is not None and failures.kind_of(code) is not Kind.FATAL:
        return failures.kind_of(code)
    passes = getattr(error, "retriable", False) or name in _RETRIABLE
    return Kind.RETRIABLE if passes else Kind.FATAL


def _code(error: BaseException) -> int | None:
    """The code in Kafka's protocol; None = it has none."""
    if isinstance(error, errors.BrokerResponseError):
        return getattr(error, "errno", None)
    # A producer's fatal error has that of the broker in its text alone.
    found = _CODE_IN_TEXT.search(str(error)) if isinstance(error, errors.KafkaError) else None
    return int(found[1]) if found else None


def describe_error(error: BaseException) -> str:
    """An error in words."""
    text = str(error).removesuffix(".")
    name = type(error).__name__
    if isinstance(error, errors.UnsupportedCodecError):
        text += " (pip install 'pyspark-upsert-kafka[kafka-python]' brings them)"
    described = text if name in text else f"{name}: {text}" if text else name
    return explained(_code(error), described)


def classify(error: Exception) -> Failure:
    """What an exception means for the next attempt."""
    return Failure(kind_of(error), describe_error(error))


def checked(code: int, value: Any) -> Any:
    """The value of an answer, unless its code is that of an error.

    Raises:
        AttemptError: It is; the library does not know every code.
    """
    if code:
        name = errors.for_code(code).__name__
        text = explained(code, f"{name} (Kafka's error code {code})")
        raise AttemptError(Failure(failures.kind_of(code), text))
    return value


def retrying(
    servers: str,
    timeouts: Timeouts,
    client_errors: ClientErrors,
    **more: Any,
) -> Retrying:
    """The retry loop for a client of kafka-python; the arguments are those of `Retrying`."""
    raised = (errors.KafkaError, OSError)
    return Retrying(servers, timeouts, client_errors, raised, classify, **more)
