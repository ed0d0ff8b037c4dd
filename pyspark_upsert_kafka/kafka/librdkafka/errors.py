"""librdkafka's errors: what they mean for the next attempt, what a client reports by itself, what is said of them; and its log."""

from __future__ import annotations

import logging
import re
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError

from pyspark_upsert_kafka.core.clock import SYSTEM_CLOCK, Clock
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.kafka import failures
from pyspark_upsert_kafka.kafka.failures import ClientErrors, Failure, FailureKind, explained
from pyspark_upsert_kafka.kafka.tls import tls_context
from pyspark_upsert_kafka.logins.login_tokens import TOKENS

logger = logging.getLogger("pyspark_upsert_kafka")

_KINDS = {
    KafkaError._TRANSPORT: FailureKind.AWAY,  # noqa: SLF001 - how confluent-kafka spells librdkafka's own codes
    KafkaError._ALL_BROKERS_DOWN: FailureKind.AWAY,  # noqa: SLF001
    KafkaError._RESOLVE: FailureKind.AWAY,  # noqa: SLF001
    KafkaError._TIMED_OUT: FailureKind.AWAY,  # noqa: SLF001
    KafkaError._TIMED_OUT_QUEUE: FailureKind.AWAY,  # noqa: SLF001
    KafkaError._DESTROY_BROKER: FailureKind.RETRIABLE,  # noqa: SLF001
    KafkaError._NODE_UPDATE: FailureKind.RETRIABLE,  # noqa: SLF001
    KafkaError._UNKNOWN_BROKER: FailureKind.RETRIABLE,  # noqa: SLF001
    KafkaError._WAIT_CACHE: FailureKind.RETRIABLE,  # noqa: SLF001
    KafkaError._WAIT_COORD: FailureKind.RETRIABLE,  # noqa: SLF001
    KafkaError._NOENT: FailureKind.RETRIABLE,  # noqa: SLF001 - "No leaders found": a broker that has just come back
    KafkaError._AUTHENTICATION: FailureKind.SECURITY,  # noqa: SLF001
    KafkaError._SSL: FailureKind.SECURITY,  # noqa: SLF001
    KafkaError._UNKNOWN_TOPIC: FailureKind.UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION: FailureKind.UNKNOWN_TOPIC,  # noqa: SLF001
}
"""Of librdkafka's own codes; those of the protocol mean the same for every client."""

_REFUSED_BY_BROKER = re.compile(r"SSL routines::\S+ alert ")
"""A TLS alert: with TLS 1.3 a broker refuses the client's certificate when the connection seems to be up."""

_NO_TOKEN_ENDPOINT = re.compile(
    "Failed to acquire SASL OAUTHBEARER token: .*"
    "(?:Failed to connect|Could(?: not|n't) (?:connect|resolve)|timed out)"
)
"""A token endpoint that is out of reach, in libcurl's words: it has refused nothing, and may come back."""

_OTHER_PROTOCOL = re.compile(r"broker listener\?|security\.protocol")
"""What librdkafka says of a broker that hangs up as one does that speaks another security protocol."""

_UNVERIFIED = re.compile(r"ssl://(?P<host>[^/]+):(?P<port>\d+)/.*certificate verify failed")

UNREACHABLE = frozenset({
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
})  # fmt: skip
"""Nobody listens at a broker's address."""

_TRUST = frozenset(
    {"ssl.ca.location", "ssl.ca.pem", "ssl.crl.location", "ssl.endpoint.identification.algorithm"}
)

_LOOK_S = 3.0
"""For a look at a certificate."""


def kind_of(error: KafkaError) -> FailureKind:
    """What an error means for the next attempt."""
    if _REFUSED_BY_BROKER.search(error.str()):
        return FailureKind.SECURITY
    if _NO_TOKEN_ENDPOINT.search(error.str()):
        return FailureKind.RETRIABLE
    return _KINDS.get(error.code()) or failures.kind_of(error.code())


def classify(exception: Exception) -> Failure:
    """What a KafkaException means for the next attempt."""
    error = exception.args[0]
    return Failure(kind_of(error), explained(error.code(), error.str()))


_TOLD_EVERY_S = 60.0


class Throttling:
    """Tells that brokers hold answers back, once a minute at most for all clients of the process.

    Args:
        clock: Gives the time in seconds.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._again_at = float("-inf")

    def tell(self, client_id: str, broker: int, time_ms: int) -> None:
        """Logs it; of 0 ms nothing."""
        now = self._clock.monotonic()
        if time_ms > 0 and now >= self._again_at:
            self._again_at = now + _TOLD_EVERY_S
            logger.warning(
                "Broker %s throttles the client %r, as a quota is used up: it holds answers back for %s ms. Whoever runs the brokers "
                "can raise the quota of its user or of its client.id (kafka-configs.sh --alter --entity-type users or clients). This "
                "is said once a minute at most.", broker, client_id, f"{time_ms:,}",
            )  # fmt: skip


_throttling = Throttling()


class ReportedErrors(ClientErrors):
    """The errors that a client of librdkafka reports to its ``error_cb``.

    Args:
        config: The client's configuration: its secrets are not shown, and a certificate that it refuses is looked at;
            None = neither.
    """

    unreachable: KafkaError | None = None
    """The last broker that was out of reach since the attempt began."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(config or {})
        self._config = config
        self.tokens = None if config is None else config.get(TOKENS)
        self._certificates: dict[str, str] = {}

    def callbacks(self) -> dict[str, Any]:
        """What a client of confluent-kafka reports by."""
        return {
            "error_cb": self.on_error,
            "throttle_cb": lambda event: self.on_throttled(
                event.broker_id, round(event.throttle_time * 1000)
            ),
        }

    def on_throttled(self, broker: int, time_ms: int) -> None:
        """Tells that a broker holds answers back, since a quota is used up; 0 ms = no longer."""
        _throttling.tell(str((self._config or {}).get("client.id", "")), broker, time_ms)

    def on_error(self, error: KafkaError) -> None:
        """Takes note of an error: the client's ``error_cb``."""
        # That all brokers are down says no more than what was reported of each.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.describe():  # noqa: SLF001
            said = self.shown(error.str())
            text = explained(error.code(), said) + self._certificate_error(said)
            hung_up = _OTHER_PROTOCOL.search(text) is not None
            is_refused = kind_of(error) is FailureKind.SECURITY
            if self.tokens is not None and error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001
                text += f" ({self.tokens.described()})"
            self.add(text, security=is_refused or hung_up, certain=is_refused and not hung_up)
        if error.code() in UNREACHABLE:
            self.unreachable = error

    def _certificate_error(self, text: str) -> str:
        """What is wrong with the certificate that the text says was refused, for which each broker is asked once."""
        refused = _UNVERIFIED.search(text)
        if refused is None or self._config is None:
            return ""
        broker = refused[0]
        if broker not in self._certificates:
            found = _certificate_error(
                refused["host"].strip("[]"), int(refused["port"]), self._config
            )
            self._certificates[broker] = f" ({found})" if found else ""
        return self._certificates[broker]


def _certificate_error(host: str, port: int, given: Mapping[str, str]) -> str:
    """What is wrong with a broker's certificate, which librdkafka does not tell; empty = nothing, or not known.

    Args:
        host: The broker's host.
        port: Its port.
        given: Whom to trust, in the properties of librdkafka.
    """
    trust = {name: value for name, value in given.items() if name in _TRUST}
    try:
        context = tls_context(trust, ClientErrors())
        with (
            socket.create_connection((host, port), timeout=_LOOK_S) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            return ""
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (OSError, OptionError):
        return ""


client_log = logging.getLogger("pyspark_upsert_kafka.librdkafka")

_IRRELEVANT = (
    # A consumer's tuning is no mistake though a producer is opened with it too, and the other way round.
    "will be ignored by this",
    # The first idempotent producer of a new broker waits a moment for its turn.
    "Coordinator load in progress: retrying",
)

_AGAIN_AFTER_S = 30.0
_MANY = 1000

_CHANGING = re.compile(
    r"#(?:producer|consumer)-\d+|after \d+ms|\d+ identical error|Partition \S+\(\S+\)\[\d+\](?=: new leader)"
)
"""What differs from one report of the same error to the next. A broker that has just come back names no leaders yet, which is
reported of each partition."""


class WithoutSecrets:
    """A client's own log, without its secrets: what it logs may quote an answer that repeats its login.

    Args:
        config: The client's configuration.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._shown = ReportedErrors(config).shown

    def log(self, level: int, text: str, *arguments: str) -> None:
        """Logs what may be shown of it; confluent-kafka asks for no other method."""
        client_log.log(level, text, *map(self._shown, arguments))


class _RateLimit(logging.Filter):
    """Passes each text once in a while: a lost broker is reported 20 times a second during a request."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is relevant, and was not passed on a moment ago."""
        text = record.getMessage()
        if any(part in text for part in _IRRELEVANT):
            return False
        text, now = _CHANGING.sub("", text), time.monotonic()
        if now - self._passed_at.get(text, float("-inf")) < _AGAIN_AFTER_S:
            return False
        if len(self._passed_at) >= _MANY:
            self._passed_at.clear()
        self._passed_at[text] = now
        return True


client_log.addFilter(_RateLimit())
