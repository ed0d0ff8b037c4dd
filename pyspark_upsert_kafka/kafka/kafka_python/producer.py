"""kafka-python's producers, kept from task to task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka import KafkaProducer

from pyspark_upsert_kafka.core.closing import undone_on_failure
from pyspark_upsert_kafka.core.delivery.guarantee import DeliveryGuarantee, required_acks
from pyspark_upsert_kafka.core.options.properties import PREFIX, Properties
from pyspark_upsert_kafka.core.positions.cluster_view import TopicInfo
from pyspark_upsert_kafka.kafka.cluster import max_message_bytes
from pyspark_upsert_kafka.kafka.connections import timeouts
from pyspark_upsert_kafka.kafka.connections.pool import Lease, Pool
from pyspark_upsert_kafka.kafka.connections.timeouts import Timeouts
from pyspark_upsert_kafka.kafka.kafka_python.admin_requests import pooled_admin
from pyspark_upsert_kafka.kafka.kafka_python.errors import connect_timeouts, retrying
from pyspark_upsert_kafka.kafka.kafka_python.installed import (
    IS_KAFKA_PYTHON_3,
    needs_kafka_python_3,
)
from pyspark_upsert_kafka.kafka.kafka_python.properties import (
    client_config,
    create_no_topics,
    open_client,
)
from pyspark_upsert_kafka.kafka.kafka_python.translations import (
    CONNECTION_REQUEST_MS,
    QUEUED_MESSAGES,
)
from pyspark_upsert_kafka.kafka.sending.partition_lookups import PartitionLookups

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


@dataclass(frozen=True)
class OpenProducer:
    """A producer, what it writes to, and how much of what it is given may be unrequired.

    Args:
        producer: The producer.
        topics: The topics with their partitions as they were when it was opened.
        lookups: When the topics were last looked up.
        max_messages: The most messages.
        max_bytes: The most bytes of keys and values.
        delivery_s: After so long a message counts as undelivered: kafka-python-ng tries again for ever while brokers take its requests.
    """

    producer: KafkaProducer
    topics: Mapping[str, TopicInfo]
    lookups: PartitionLookups
    max_messages: int
    max_bytes: int
    delivery_s: float


def pooled_producer(
    properties: Properties, topics: tuple[str, ...], guarantee: DeliveryGuarantee
) -> Lease[OpenProducer]:
    """A producer for these topics, which are checked to exist when it is opened.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        OptionError: The client does not take a property, or cannot give the guarantee.
    """

    def look_up() -> dict[str, TopicInfo]:
        with pooled_admin(properties, "writer") as admin:
            return admin.existing(topics)

    def connect() -> OpenProducer:
        config = producer_config(properties, guarantee)
        with pooled_admin(properties, "writer") as admin:
            limits = max_message_bytes(admin, topics)
        times = Timeouts.from_properties(properties.resolved())
        return _opened(with_sizes(config, limits), times, look_up())

    settings = (properties.resolved(), topics, guarantee)
    lease = POOL.take(settings, connect)
    while lease.client.lookups.is_due:
        lease.client.lookups.note()
        # There is no other way to have the client ask, and to know when it has the answer.
        with undone_on_failure(partial(POOL.discard, lease)):
            has_changed = look_up() != lease.client.topics
        if has_changed:
            POOL.discard(lease)
            lease = POOL.take(settings, connect)
    return lease


def _opened(
    config: Mapping[str, Any], times: Timeouts, topics: Mapping[str, TopicInfo]
) -> OpenProducer:
    def connect(timeout: float) -> KafkaProducer:
        return open_client(KafkaProducer, {**config, **connect_timeouts(timeout)})

    servers, errors = str(config["bootstrap_servers"]), config["client_id"].errors
    producer = retrying(servers, times, errors).call("connect", connect)
    create_no_topics(producer._metadata)  # noqa: SLF001
    lookups = PartitionLookups(len(topics))
    delivery_s = math.inf if IS_KAFKA_PYTHON_3 else config["delivery_timeout_ms"] / 1000
    return OpenProducer(
        producer, topics, lookups, config[QUEUED_MESSAGES], config["buffer_memory"], delivery_s
    )


def end_thread(producer: KafkaProducer) -> None:
    """Has the producer's thread end, and fail what is unsent, which ``close()`` would wait for."""
    producer._sender.force_close()  # noqa: SLF001


def _close(opened: OpenProducer) -> None:
    producer = opened.producer
    end_thread(producer)
    producer._sender.join(timeouts.CLOSE_TIMEOUT_S)  # noqa: SLF001
    producer.close(timeout=0)


POOL: Pool[OpenProducer] = Pool(_close)


def producer_config(properties: Properties, guarantee: DeliveryGuarantee) -> dict[str, Any]:
    """The producer's arguments.

    Raises:
        OptionError: The properties contradict the guarantee, or the library cannot give it.
    """
    given = client_config(properties, "writer", _CONFIG)
    required = required_acks(properties.resolved(), guarantee)
    given["acks"] = required.acks if required.acks == "all" else int(required.acks)
    given["enable_idempotence"] = required.idempotent
    if required.idempotent and not IS_KAFKA_PYTHON_3:
        raise needs_kafka_python_3(
            "cannot write idempotently, so that a lost answer may write a message twice",
            f"accept that with '{PREFIX}enable.idempotence' = 'false'",
        )
    if not required.idempotent:
        # Without idempotence a second request in flight could overtake the first one's retry.
        given.setdefault("max_in_flight_requests_per_connection", 1)
    delivery_ms = given["delivery_timeout_ms"]
    if IS_KAFKA_PYTHON_3:
        # As in the Java client, the time for one request and for lingering must be less than for all.
        request_ms = min(_REQUEST_MS, delivery_ms - given["linger_ms"] - 1)
        given.setdefault("request_timeout_ms", max(1, request_ms))
    else:
        # Its producer has one timeout for all: of a request, and of a message that waits to be tried again.
        request_ms = given.get("request_timeout_ms", _REQUEST_MS)
        given[CONNECTION_REQUEST_MS] = min(request_ms, delivery_ms)
        given["request_timeout_ms"] = delivery_ms
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
