"""kafka-python's producers, kept from task to task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaProducer

from pyspark_upsert_kafka.core.cluster_view import TopicInfo
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka import timeouts
from pyspark_upsert_kafka.kafka.kafka_python.admin_pool import pooled_admin
from pyspark_upsert_kafka.kafka.kafka_python.errors import connect_timeouts, retrying
from pyspark_upsert_kafka.kafka.kafka_python.producer_config import producer_config, with_sizes
from pyspark_upsert_kafka.kafka.kafka_python.properties import create_no_topics, open_client
from pyspark_upsert_kafka.kafka.kafka_python.translations import QUEUED_MESSAGES
from pyspark_upsert_kafka.kafka.partition_lookups import PartitionLookups
from pyspark_upsert_kafka.kafka.pool import Lease, Pool
from pyspark_upsert_kafka.kafka.sizes import max_message_bytes
from pyspark_upsert_kafka.kafka.timeouts import Timeouts


@dataclass(frozen=True)
class OpenProducer:
    """A producer, what it writes to, and how much of what it is given may be unconfirmed.

    Args:
        producer: The producer.
        topics: The topics with their partitions as they were when it was opened.
        lookups: When the topics were last looked up.
        max_messages: So many messages.
        max_bytes: So many bytes of keys and values.
    """

    producer: KafkaProducer
    topics: Mapping[str, TopicInfo]
    lookups: PartitionLookups
    max_messages: int
    max_bytes: int


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
        try:
            has_changed = look_up() != lease.client.topics
        except BaseException:
            POOL.discard(lease)
            raise
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
    return OpenProducer(producer, topics, lookups, config[QUEUED_MESSAGES], config["buffer_memory"])


def end_thread(producer: KafkaProducer) -> None:
    """Has the producer's thread end, and fail what is unsent, which ``close()`` would wait for."""
    producer._sender.force_close()  # noqa: SLF001


def _close(opened: OpenProducer) -> None:
    producer = opened.producer
    end_thread(producer)
    producer._sender.join(timeouts.CLOSE_TIMEOUT_S)  # noqa: SLF001
    producer.close(timeout=0)


POOL: Pool[OpenProducer] = Pool(_close)
