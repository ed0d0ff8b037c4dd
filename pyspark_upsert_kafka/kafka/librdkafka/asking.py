"""What librdkafka's errors mean for the next attempt, and what a client tells of its trouble."""

from __future__ import annotations

from confluent_kafka import KafkaError

from pyspark_upsert_kafka.kafka import failures
from pyspark_upsert_kafka.kafka.failures import Failure, Kind
from pyspark_upsert_kafka.kafka.trouble import Trouble

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


def failure(exception: Exception) -> Failure:
    """Why an attempt failed that raised a KafkaException."""
    error = exception.args[0]
    return Failure(kind_of(error), error.str())


class ClientTrouble(Trouble):
    """The errors that a client of librdkafka tells: its ``error_cb``."""

    unreachable: KafkaError | None = None
    """The last broker that was out of reach since the attempt began."""

    def __call__(self, error: KafkaError) -> None:
        """Takes note of an error."""
        # That all brokers are down says no more than what was told of each.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.describe():  # noqa: SLF001
            self.error(error.str(), security=kind_of(error) is Kind.SECURITY)
        if error.code() in UNREACHABLE:
            self.unreachable = error
