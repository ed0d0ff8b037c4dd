"""The configuration of librdkafka's producer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark_upsert_kafka.core.confirmation import confirmation
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config

_CONFIG: dict[str, Any] = {
    # What the Java client does with a key, so that mixed writers agree where a key lives.
    "partitioner": "murmur2_random",
    "linger.ms": 5,
    "delivery.timeout.ms": 120_000,  # the Java client's default
    # Few enough to stay in the processor's cache, and enough to fill a batch for many partitions.
    "queue.buffering.max.messages": 20_000,
    # A report for each delivered message would cost a Python call each; an error always comes.
    "delivery.report.only.error": True,
    "allow.auto.create.topics": False,
}

_TRANSACTION_TIMEOUT_MS = 900_000
"""As long as brokers allow unless told otherwise (``transaction.max.timeout.ms``)."""

_BATCH_BYTES = 1_000_000
_MOST_MESSAGE_BYTES = 1_000_000_000
"""librdkafka's own bound; topics without any say 2,147,483,647."""
_QUEUE_KBYTES = 64 * 1024


def producer_config(
    properties: Properties, limits: Sequence[int], guarantee: DeliveryGuarantee
) -> dict[str, Any]:
    """The producer's configuration.

    Args:
        properties: As the user gave them.
        limits: The largest message that each topic takes, where that is known.
        guarantee: What the sink promises.

    Raises:
        OptionError: The properties contradict the guarantee.
    """
    confirmed = confirmation(properties.resolved(), guarantee)
    given = client_config(properties, "writer", {})
    wanted = min(max([_BATCH_BYTES, *limits]), _MOST_MESSAGE_BYTES)
    largest = given.get("message.max.bytes", wanted)
    return {
        **_CONFIG,
        # librdkafka never splits a batch that is too large for the topic, so one must not become
        # so: else messages that are small enough would be refused with a large one.
        "batch.size": max(1, min([_BATCH_BYTES, *limits])),
        "message.max.bytes": largest,
        "queue.buffering.max.kbytes": _queue_kbytes(str(largest)),
        # Without idempotence a second request in flight could overtake the first one's retry.
        **({} if confirmed.idempotent else {"max.in.flight.requests.per.connection": 1}),
        **given,
        "acks": confirmed.acks,
        "enable.idempotence": confirmed.idempotent,
    }


def transaction_config(
    properties: Properties, limits: Sequence[int], transactional_id: str
) -> dict[str, Any]:
    """The configuration of a producer that writes in transactions.

    Raises:
        OptionError: The properties contradict ``exactly-once``.
    """
    config = producer_config(properties, limits, DeliveryGuarantee.EXACTLY_ONCE)
    timeout_ms = str(config.setdefault("transaction.timeout.ms", _TRANSACTION_TIMEOUT_MS))
    if timeout_ms.isdigit() and "delivery.timeout.ms" not in properties:
        # librdkafka takes no message timeout that is longer than the transaction's.
        config["delivery.timeout.ms"] = min(_CONFIG["delivery.timeout.ms"], int(timeout_ms))
    return {**config, "transactional.id": transactional_id}


def _queue_kbytes(largest: str) -> int:
    """A queue that the largest message fits into; what is no number librdkafka refuses itself."""
    return max(_QUEUE_KBYTES, int(largest) // 1024 + 1) if largest.isdigit() else _QUEUE_KBYTES
