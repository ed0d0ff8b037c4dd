"""What librdkafka's errors mean for the next attempt, and what a client reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError

from pyspark_upsert_kafka.core.secrets.masking import hide_secrets
from pyspark_upsert_kafka.kafka.connections import failures
from pyspark_upsert_kafka.kafka.connections.client_errors import ClientErrors
from pyspark_upsert_kafka.kafka.connections.failures import Failure, Kind, explained
from pyspark_upsert_kafka.kafka.connections.tls import certificate_error

_KINDS = {
    KafkaError._TRANSPORT: Kind.AWAY,  # noqa: SLF001 - how confluent-kafka spells librdkafka's own codes
    KafkaError._ALL_BROKERS_DOWN: Kind.AWAY,  # noqa: SLF001
    KafkaError._RESOLVE: Kind.AWAY,  # noqa: SLF001
    KafkaError._TIMED_OUT: Kind.AWAY,  # noqa: SLF001
    KafkaError._TIMED_OUT_QUEUE: Kind.AWAY,  # noqa: SLF001
    KafkaError._DESTROY_BROKER: Kind.RETRIABLE,  # noqa: SLF001
    KafkaError._NODE_UPDATE: Kind.RETRIABLE,  # noqa: SLF001
    KafkaError._UNKNOWN_BROKER: Kind.RETRIABLE,  # noqa: SLF001
    KafkaError._WAIT_CACHE: Kind.RETRIABLE,  # noqa: SLF001
    KafkaError._WAIT_COORD: Kind.RETRIABLE,  # noqa: SLF001
    KafkaError._NOENT: Kind.RETRIABLE,  # noqa: SLF001 - "No leaders found": a broker that has just come back
    KafkaError._AUTHENTICATION: Kind.SECURITY,  # noqa: SLF001
    KafkaError._SSL: Kind.SECURITY,  # noqa: SLF001
    KafkaError._UNKNOWN_TOPIC: Kind.UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION: Kind.UNKNOWN_TOPIC,  # noqa: SLF001
}
"""Of librdkafka's own codes; those of the protocol mean the same for every client."""

_REFUSED_BY_BROKER = re.compile(r"SSL routines::\S+ alert ")
"""A TLS alert: with TLS 1.3 a broker refuses the client's certificate when the connection seems to be up."""

_OTHER_PROTOCOL = re.compile(r"broker listener\?|security\.protocol")
"""What librdkafka says of a broker that hangs up as one does that speaks another security protocol."""

_UNVERIFIED = re.compile(r"ssl://(?P<host>[^/]+):(?P<port>\d+)/.*certificate verify failed")

UNREACHABLE = frozenset({
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
})  # fmt: skip
"""Nobody listens at a broker's address."""


def kind_of(error: KafkaError) -> Kind:
    """What an error means for the next attempt."""
    if _REFUSED_BY_BROKER.search(error.str()):
        return Kind.SECURITY
    return _KINDS.get(error.code()) or failures.kind_of(error.code())


def classify(exception: Exception) -> Failure:
    """What a KafkaException means for the next attempt."""
    error = exception.args[0]
    return Failure(kind_of(error), explained(error.code(), error.str()))


class ReportedErrors(ClientErrors):
    """The errors that a client of librdkafka reports to its ``error_cb``.

    Args:
        config: The client's configuration: its secrets are not shown, and a certificate that it refuses is looked at;
            None = neither.
    """

    unreachable: KafkaError | None = None
    """The last broker that was out of reach since the attempt began."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._config = config
        self._certificates: dict[str, str] = {}

    def on_error(self, error: KafkaError) -> None:
        """Takes note of an error: the client's ``error_cb``."""
        # That all brokers are down says no more than what was reported of each.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.describe():  # noqa: SLF001
            said = hide_secrets(error.str(), self._config or {})
            text = explained(error.code(), said) + self._certificate_error(said)
            hung_up = _OTHER_PROTOCOL.search(text) is not None
            is_refused = kind_of(error) is Kind.SECURITY
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
            found = certificate_error(
                refused["host"].strip("[]"), int(refused["port"]), self._config
            )
            self._certificates[broker] = f" ({found})" if found else ""
        return self._certificates[broker]
