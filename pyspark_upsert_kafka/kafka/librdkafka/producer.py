"""librdkafka's producers, kept from task to task."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.librdkafka.admin_pool import pooled_admin
from pyspark_upsert_kafka.kafka.librdkafka.batch_producer import BatchProducer, takes
from pyspark_upsert_kafka.kafka.librdkafka.delivery_reports import DeliveryReports
from pyspark_upsert_kafka.kafka.librdkafka.producer_config import producer_config
from pyspark_upsert_kafka.kafka.librdkafka.properties import open_client
from pyspark_upsert_kafka.kafka.partition_lookups import PartitionLookups
from pyspark_upsert_kafka.kafka.pool import Lease, Pool
from pyspark_upsert_kafka.kafka.sizes import max_message_bytes

logger = logging.getLogger("pyspark_upsert_kafka")

_LOOKUP_S = 5.0
"""How long an answer about partitions is waited for."""


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
        return open_producer(config, topics, in_batches=not with_metadata and takes(config))

    settings = (properties.resolved(), topics, guarantee, with_metadata)
    lease = POOL.take(settings, connect)
    if not lease.client.lookups.is_due or _knows_partitions(lease.client, topics):
        return lease
    POOL.discard(lease)
    # This one knows none: it asks when it sends, for as long as messages may wait.
    return replace(lease, client=lease.client.open_another())


def _knows_partitions(opened: OpenProducer, topics: Sequence[str]) -> bool:
    """Has a producer know how many partitions its topics have by now; whether brokers have told it."""
    try:
        if isinstance(opened.producer, BatchProducer):
            opened.producer.refresh(_LOOKUP_S)
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
        opening = partial(BatchProducer, reports=reports)
        return OpenProducer(open_client(opening, dict(config)), reports, lookups, another)
    callbacks = {"on_delivery": reports.on_delivery, "error_cb": reports.errors.on_error}
    producer = open_client(ck.Producer, {**config, **callbacks})
    return OpenProducer(producer, reports, lookups, another)


def _close(opened: OpenProducer) -> None:
    """Drops what is unsent; librdkafka's threads end with the last reference."""
    opened.producer.purge()
    opened.producer.flush(0)


POOL: Pool[OpenProducer] = Pool(_close)
