"""What librdkafka's errors mean for the next attempt, and what a client reports."""

from __future__ import annotations

from confluent_kafka import KafkaError

from pyspark_upsert_kafka.kafka import failures
from pyspark_upsert_kafka.kafka.client_errors import ClientErrors
from pyspark_upsert_kafka.kafka.failures import Failure, Kind

_KINDS = {
    KafkaError._TRANSPORT: Kind.RETRIABLE,  # noqa: SLF001 - how confluent-kafka spells librdkafka's own codes
    KafkaError._ALL_BROKERS_DOWN: Kind.RETRIABLE,  # noqa: SLF001
    KafkaError._RESOLVE: Kind.RETRIABLE,  # noqa: SLF001
    KafkaError._TIMED_OUT: Kind.RETRIABLE,  # noqa: SLF001
    KafkaError._TIMED_OUT_QUEUE: Kind.RETRIABLE,  # noqa: SLF001
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

UNREACHABLE = frozenset({
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
})  # fmt: skip
"""Nobody listens at a broker's address."""


def kind_of(error: KafkaError) -> Kind:
    """What an error means for the next attempt."""
    return _KINDS.get(error.code()) or failures.kind_of(error.code())


def classify(exception: Exception) -> Failure:
    """What a KafkaException means for the next attempt."""
    error = exception.args[0]
    return Failure(kind_of(error), error.str())


class ReportedErrors(ClientErrors):
    """The errors that a client of librdkafka reports to its ``error_cb``."""

    unreachable: KafkaError | None = None
    """The last broker that was out of reach since the attempt began."""

    def on_error(self, error: KafkaError) -> None:
        """Takes note of an error: the client's ``error_cb``."""
        # That all brokers are down says no more than what was reported of each.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.describe():  # noqa: SLF001
            self.add(error.str(), security=kind_of(error) is Kind.SECURITY)
        if error.code() in UNREACHABLE:
            self.unreachable = error
