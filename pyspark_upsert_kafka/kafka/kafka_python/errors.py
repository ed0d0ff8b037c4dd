"""kafka-python's errors: what they mean for the next attempt, and those that it only logs, such as why a connection was lost."""

from __future__ import annotations

import logging
import re
import ssl
from typing import Any

from kafka import errors

from pyspark_upsert_kafka.kafka import failures
from pyspark_upsert_kafka.kafka.failures import (
    AttemptError,
    ClientErrors,
    Failure,
    FailureKind,
    explained,
)
from pyspark_upsert_kafka.kafka.retrying import Retrying, Timeouts
from pyspark_upsert_kafka.logins.login_tokens import without_tokens

_SECURITY = frozenset({
    "AuthenticationFailedError", "AuthenticationMethodNotSupported", "IllegalSaslStateError",
    "SaslAuthenticationFailedError", "UnrecognizedBrokerVersion", "UnsupportedSaslMechanismError",
})  # fmt: skip
"""Names of errors about logins and security protocols; which of them exist differs between versions. A broker whose version is not
recognized has hung up when it was asked for that, as one does that expects another security protocol."""

_RETRIABLE = frozenset({"UnknownBrokerIdError"})
"""Names of errors that pass although kafka-python-ng does not call them retriable."""

_AWAY = frozenset({
    "KafkaConnectionError", "KafkaTimeoutError", "NoBrokersAvailable", "NodeNotReadyError", "RequestTimedOutError",
})  # fmt: skip
"""Names of errors that mean: no broker has answered."""

_CODE_IN_TEXT = re.compile(r"\[Error (\d+)\]")

_CONNECT_S = 10.0
"""For opening a client, which tries by itself meanwhile: Java's ``socket.connection.setup.timeout.ms``."""


_ABOUT_SECURITY = re.compile(
    "authentication ?failed|lost during authentication|certificate verify failed|hostname mismatch|SaslMechanism|sasl_mechanism"
    # A broker that refuses a login may just hang up; so may one that restarts, but not for long.
    # This is what kafka-python-ng says then.
    "|<(authenticating|handshake)>.*: Closing connection",
    re.IGNORECASE,
)

_VAGUE = re.compile("during handshake|<(authenticating|handshake)>|socket disconnected")
"""A connection was lost on the way to being secure, and it is not said why."""

_LOST_IN_LOGIN = "Lost during authentication, as when a broker refuses the credentials"


def connect_timeouts(timeout: float) -> dict[str, int]:
    """The arguments that bound the opening of a client; what they are called differs between versions."""
    ms = int(min(timeout, _CONNECT_S) * 1000)
    return {"api_version_auto_timeout_ms": ms, "bootstrap_timeout_ms": ms}


def kind_of(error: Exception) -> FailureKind:
    """What an error means for the next attempt."""
    name = type(error).__name__
    if name in _SECURITY or isinstance(error, ssl.SSLError) or is_about_security(str(error)):
        return FailureKind.SECURITY
    if isinstance(error, OSError) or name in _AWAY:
        return FailureKind.AWAY
    code = _code(error)
    if code is not None and failures.kind_of(code) is not FailureKind.FATAL:
        return failures.kind_of(code)
    passes = getattr(error, "retriable", False) or name in _RETRIABLE
    return FailureKind.RETRIABLE if passes else FailureKind.FATAL


def _code(error: BaseException) -> int | None:
    """The code in Kafka's protocol; None = it has none."""
    if isinstance(error, errors.BrokerResponseError):
        return getattr(error, "errno", None)
    # A producer's fatal error has that of the broker in its text alone.
    found = _CODE_IN_TEXT.search(str(error)) if isinstance(error, errors.KafkaError) else None
    return int(found[1]) if found else None


def describe_error(error: BaseException) -> str:
    """An error in words."""
    if isinstance(error, errors.TopicAuthorizationFailedError) and any(
        isinstance(each, set) for each in error.args
    ):
        error = type(error)()  # of the topic's name, the consumer gives the set of its letters
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


class ClientId(str):
    """A client's id that holds the client's errors.

    Every connection has the id in its configuration, and a record of the library's log has the
    connection among its arguments: so each client gets the errors of its own connections only.
    """

    __slots__ = ("errors",)

    errors: ClientErrors

    def __new__(cls, text: str) -> ClientId:  # noqa: PYI034 - typing.Self needs Python 3.11
        """An id without errors; who opens the client gives it those that know its settings."""
        self = super().__new__(cls, text)
        self.errors = ClientErrors()
        return self


def errors_of(client: Any) -> ClientErrors:
    """The errors of a consumer or producer that was opened with a `ClientId`."""
    client_id: ClientId = client.config["client_id"]
    return client_id.errors


def is_about_security(text: str) -> bool:
    """Whether it says that a login or a certificate was refused."""
    return _ABOUT_SECURITY.search(text) is not None


def _disconnected_in_login(connection: Any, text: str) -> bool:
    """Whether a broker hung up in the middle of a login: kafka-python 3 says no more than that it is gone."""
    login = getattr(connection, "init_future", None)
    return (
        login is not None
        and login.failed()
        and bool(connection.sasl_enabled)
        and "socket disconnected" in text
    )


class _ErrorCollector(logging.Handler):
    """Adds what the library logs of a connection to the errors of its client, and has it logged as it may be shown."""

    def emit(self, record: logging.LogRecord) -> None:
        """Takes note of what is logged of a connection."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        # kafka-python 3 logs refusals, in which a broker may repeat a token, without the connection too.
        said = record.getMessage()
        if (shown := without_tokens(said)) != said:
            record.msg, record.args = shown, ()
        for argument in arguments:
            config = getattr(argument, "config", None)
            client_id = config.get("client_id") if isinstance(config, dict) else None
            if isinstance(client_id, ClientId):
                text = client_id.errors.shown(record.getMessage())
                record.msg, record.args = text, ()  # for the handlers of the loggers above
                if record.levelno < logging.WARNING:
                    continue
                if "<authenticating>" in text or _disconnected_in_login(argument, text):
                    text = f"{_LOST_IN_LOGIN}: {text}"
                is_vague = _VAGUE.search(text) is not None
                client_id.errors.add(text, security=is_about_security(text), vague=is_vague)


def _holds_no_secret(record: logging.LogRecord) -> bool:
    """Whether a record can be shown: at DEBUG kafka-python 3 prints its arguments, and logins as they are sent."""
    return record.levelno > logging.DEBUG


logging.getLogger("kafka").addHandler(_ErrorCollector())
for _name in ("kafka.admin.client", "kafka.net.connection", "kafka.protocol.parser"):
    logging.getLogger(_name).addFilter(_holds_no_secret)
