"""librdkafka's producers, kept from task to task."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.delivery.guarantee import DeliveryGuarantee, required_acks
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.cluster import max_message_bytes
from pyspark_upsert_kafka.kafka.connections.pool import Lease, Pool
from pyspark_upsert_kafka.kafka.librdkafka.admin_requests import pooled_admin
from pyspark_upsert_kafka.kafka.librdkafka.batch_producer import BatchProducer
from pyspark_upsert_kafka.kafka.librdkafka.batch_transaction import TransactionalBatchProducer
from pyspark_upsert_kafka.kafka.librdkafka.delivery_reports import DeliveryReports
from pyspark_upsert_kafka.kafka.librdkafka.library import takes
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, open_client
from pyspark_upsert_kafka.kafka.sending.partition_lookups import PartitionLookups

logger = logging.getLogger("pyspark_upsert_kafka")

_LOOKUP_S = 5.0
"""How long an answer about partitions is waited for."""

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


@dataclass(frozen=True)
class OpenProducer:
    """A producer.

    Args:
        producer: The producer.
        reports: Where it reports to.
        lookups: When it looked up partitions.
        open_another: Opens one like it.
    """

    producer: ck.Producer | BatchProducer
    reports: DeliveryReports
    lookups: PartitionLookups
    open_another: Callable[[], OpenProducer] = field(repr=False)  # holds secrets


def pooled_producer(
    properties: Properties,
    topics: tuple[str, ...],
    guarantee: DeliveryGuarantee,
    *,
    with_metadata: bool,
) -> Lease[OpenProducer]:
    """A producer for these topics, which are checked to exist when it is opened.

    Args:
        properties: As the user gave them.
        topics: The topics.
        guarantee: What the sink promises.
        with_metadata: Whether messages have timestamps or headers; without, it may be a `BatchProducer`.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        OptionError: The client does not take a property.
    """

    def connect() -> OpenProducer:
        with pooled_admin(properties, "writer") as admin:
            limits = max_message_bytes(admin, topics)
        config = producer_config(properties, limits, guarantee)
        return connected(
            open_producer(config, topics, in_batches=not with_metadata and takes(config)), topics
        )

    settings = (properties.resolved(), topics, guarantee, with_metadata)
    lease = POOL.take(settings, connect)
    if not lease.client.lookups.is_due or knows_partitions(lease.client, topics):
        return lease
    POOL.discard(lease)
    # This one knows none: it asks when it sends, for as long as messages may wait.
    return replace(lease, client=lease.client.open_another())


def connected(opened: OpenProducer, topics: Sequence[str]) -> OpenProducer:
    """A new producer that can send at once, if brokers answer.

    librdkafka asks for the id of an idempotent producer, and for the coordinator of a transaction, when metadata arrive over
    a connection that it keeps, or else after half a second, and again after another. The first metadata may arrive from a
    bootstrap server, whose connection it drops because of them. The second never do.
    """
    for _ in range(2):
        if not knows_partitions(opened, topics):
            break
    return opened


def knows_partitions(opened: OpenProducer, topics: Sequence[str]) -> bool:
    """Has a producer look up how many partitions its topics have now; false = no broker has answered."""
    try:
        if isinstance(opened.producer, BatchProducer):
            opened.producer.refresh(topics, _LOOKUP_S)
        else:
            for topic in topics:
                opened.producer.list_topics(topic, timeout=_LOOKUP_S)
    except ck.KafkaException as error:
        logger.info("The partitions of %s are not known: %s", ", ".join(topics), error)
        return False
    opened.lookups.note()
    return True


def open_producer(
    config: Mapping[str, Any], topics: Sequence[str], *, in_batches: bool = False
) -> OpenProducer:
    """A producer of its own with this configuration.

    Args:
        config: librdkafka's configuration.
        topics: What it will write to.
        in_batches: Whether it is a `BatchProducer`.

    Raises:
        OptionError: The client does not take a property.
    """
    reports, lookups = DeliveryReports(config), PartitionLookups(len(topics))
    another = partial(open_producer, config, topics, in_batches=in_batches)
    if in_batches:
        kind = TransactionalBatchProducer if "transactional.id" in config else BatchProducer
        opening = partial(kind, reports=reports)
        return OpenProducer(open_client(opening, dict(config)), reports, lookups, another)
    callbacks = {"on_delivery": reports.on_delivery, "error_cb": reports.errors.on_error}
    producer = open_client(ck.Producer, {**config, **callbacks})
    return OpenProducer(producer, reports, lookups, another)


def _close(opened: OpenProducer) -> None:
    """Drops what is unsent; librdkafka's threads end with the last reference."""
    opened.producer.purge()
    opened.producer.flush(0)


POOL: Pool[OpenProducer] = Pool(_close)


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
    required = required_acks(properties.resolved(), guarantee)
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
        **({} if required.idempotent else {"max.in.flight.requests.per.connection": 1}),
        **given,
        "acks": required.acks,
        "enable.idempotence": required.idempotent,
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
    # librdkafka takes no other timeout that is longer than the transaction's.
    for name in ("delivery.timeout.ms", "socket.timeout.ms"):
        if timeout_ms.isdigit() and name not in properties:
            config[name] = min(config[name], int(timeout_ms))
    return {**config, "transactional.id": transactional_id}


def _queue_kbytes(largest: str) -> int:
    """A queue that the largest message fits into; what is no number librdkafka refuses itself."""
    return max(_QUEUE_KBYTES, int(largest) // 1024 + 1) if largest.isdigit() else _QUEUE_KBYTES
