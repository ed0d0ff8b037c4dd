"""The arguments of kafka-python's producer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark_upsert_kafka.core.confirmation import confirmation
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.properties import PREFIX, Properties
from pyspark_upsert_kafka.kafka.kafka_python.installed import (
    IS_KAFKA_PYTHON_3,
    needs_kafka_python_3,
)
from pyspark_upsert_kafka.kafka.kafka_python.properties import client_config
from pyspark_upsert_kafka.kafka.kafka_python.translations import QUEUED_MESSAGES

_CONFIG = {
    "linger_ms": 5,
    "delivery_timeout_ms": 120_000,  # the Java client's default
    "max_block_ms": 45_000,
    "reconnect_backoff_max_ms": 1_000,
    QUEUED_MESSAGES: 20_000,
}

_BATCH_BYTES = 128 * 1024
_REQUEST_BYTES = 1024 * 1024
_REQUEST_MS = 30_000
_QUEUE_BYTES = 32 * 1024 * 1024


def producer_config(properties: Properties, guarantee: DeliveryGuarantee) -> dict[str, Any]:
    """The producer's arguments.

    Raises:
        OptionError: The properties contradict the guarantee, or the library cannot give it.
    """
    given = client_config(properties, "writer", _CONFIG)
    confirmed = confirmation(properties.resolved(), guarantee)
    given["acks"] = confirmed.acks if confirmed.acks == "all" else int(confirmed.acks)
    given["enable_idempotence"] = confirmed.idempotent
    if confirmed.idempotent and not IS_KAFKA_PYTHON_3:
        raise needs_kafka_python_3(
            "cannot write idempotently, so that a lost answer may write a message twice",
            f"accept that with '{PREFIX}enable.idempotence' = 'false'",
        )
    if not confirmed.idempotent:
        # Without idempotence a second request in flight could overtake the first one's retry.
        given.setdefault("max_in_flight_requests_per_connection", 1)
    delivery_ms = given["delivery_timeout_ms"]
    if IS_KAFKA_PYTHON_3:
        # As in the Java client, the time for one request and for lingering must be less than for all.
        request_ms = min(_REQUEST_MS, delivery_ms - given["linger_ms"] - 1)
        given.setdefault("request_timeout_ms", max(1, request_ms))
    else:
        # It has one timeout for all: of a request, and of a message that waits to be tried again.
        given.setdefault("request_timeout_ms", delivery_ms)
        given.setdefault("retries", 2**31 - 1)
    return given


def with_sizes(config: Mapping[str, Any], limits: Sequence[int]) -> dict[str, Any]:
    """The arguments with sizes that suit the topics, where the user says nothing else.

    A batch too large for a topic would have messages that are small enough refused with a large one.

    Args:
        config: The producer's arguments.
        limits: The largest message that each topic takes, where that is known.
    """
    largest = config.get("max_request_size", max([_REQUEST_BYTES, *limits]))
    queue = config.get("buffer_memory", max(_QUEUE_BYTES, largest))
    return {
        # The library's memory is in pieces of a batch: with none it would wait for ever.
        "batch_size": max(1, min([_BATCH_BYTES, *limits, queue])),
        "max_request_size": largest,
        "buffer_memory": queue,
        **config,
    }
