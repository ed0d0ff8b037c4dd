"""Options ``properties.*``: those that the connector manages itself are rejected, and secret values are never shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import masked, refers, resolve, without_users

PREFIX = "properties."

_MANAGED = {
    "key.serializer": "'key.format' decides how keys are written",
    "value.serializer": "'value.format' decides how values are written",
    "key.deserializer": "'key.format' decides how keys are read",
    "value.deserializer": "'value.format' decides how values are read",
    "enable.auto.commit": "offsets are kept in Spark's checkpoint",
    "enable.auto.offset.store": "offsets are kept in Spark's checkpoint",
    "partitioner": "the partition of a key is computed as by the Java client (murmur2)",
    "partitioner.class": "the partition of a key is computed as by the Java client (murmur2)",
    "transactional.id": "'sink.transactional-id-prefix' names transactions",
    "enable.partition.eof": "the connector itself finds the end of a range",
    "interceptor.classes": "there is no JVM to load a class in",
}

_RESET, _SERVERS = "auto.offset.reset", "bootstrap.servers"

SPELLINGS = {
    "auto.commit.enable": "enable.auto.commit",
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "sasl.mechanisms": "sasl.mechanism",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
}
"""Librdkafka's other names of settings, and the Java client's names, which replace them here."""


class Properties(Mapping[str, str]):
    """The Kafka client's properties as given, without the prefix; its repr masks secrets.

    Raises:
        OptionError: The addresses of brokers hold a user or a password.

    Values may be references, ``${env:NAME}`` and ``${file:/path:key}`` (KIP-297), which only
    `resolved` looks up: so a plan holds the reference and never the secret.

    Args:
        given: The properties by name.
        native: Whether librdkafka's own functions may be called behind confluent-kafka (option ``kafka.client.native``).

    >>> Properties({"sasl.password": "s3cret", "linger.ms": "5"})
    Properties({'linger.ms': '5', 'sasl.password': '***'})
    """

    def __init__(self, given: Mapping[str, str], *, native: bool = True) -> None:
        self._given = dict(sorted(given.items()))
        self.native = native
        servers = given.get(_SERVERS, "")
        if "@" in servers and not refers(servers):
            raise OptionError(
                f"Option '{PREFIX}{_SERVERS}' is {without_users(_SERVERS, servers)!r}: addresses of brokers have no user and no "
                f"password. Give them by '{PREFIX}sasl.username' and '{PREFIX}sasl.password', or by '{PREFIX}sasl.jaas.config'."
            )

    def __getitem__(self, name: str) -> str:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Properties) and other.native != self.native:
            return False
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash(tuple(self._given.items()))

    def __repr__(self) -> str:
        return f"Properties({masked(self._given)})"

    def literal(self) -> dict[str, str]:
        """The properties without those that hold a reference."""
        return {name: value for name, value in self.items() if not refers(value)}

    def resolved(self) -> Properties:
        """The properties with every reference replaced by what it refers to.

        Raises:
            OptionError: An environment variable, a file or a key in it does not exist.
        """
        return self.replaced({name: resolve(PREFIX + name, value) for name, value in self.items()})

    def replaced(self, values: Mapping[str, str]) -> Properties:
        """The properties with other values for some names."""
        return Properties({**self, **values}, native=self.native)


def client_properties(
    given: Mapping[str, str], *, group_start: bool, native: bool = True
) -> Properties:
    """The ``properties.*`` among the options, checked for what the connector manages itself.

    ``auto.offset.reset`` is not among them: the connector asks for group offsets itself, and a reader
    whose offsets are gone must never be moved by the client.

    Args:
        given: All options, names in lower case.
        group_start: Whether the query starts at group offsets, where ``auto.offset.reset`` counts.
        native: Whether librdkafka's own functions may be called.

    Raises:
        OptionError: The connector manages a property itself.
    """
    properties = {
        name.removeprefix(PREFIX): value for name, value in given.items() if name.startswith(PREFIX)
    }
    for name, reason in _MANAGED.items():
        if name in properties:
            raise OptionError(f"Option '{PREFIX}{name}' cannot be set: {reason}.")
    if properties.pop(_RESET, None) is not None and not group_start:
        raise OptionError(
            f"Option '{PREFIX}{_RESET}' is for 'scan.startup.mode' = "
            "'group-offsets' only; otherwise 'scan.startup.mode' alone decides where to start."
        )
    return Properties(properties, native=native)
