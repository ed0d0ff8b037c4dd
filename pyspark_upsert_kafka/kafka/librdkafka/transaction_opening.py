"""Opens a transaction with librdkafka: by the batch, where messages have neither timestamps nor headers."""

from __future__ import annotations

from pyspark_upsert_kafka.core.closing import undone_on_failure
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.cluster import max_message_bytes
from pyspark_upsert_kafka.kafka.librdkafka.admin_requests import pooled_admin
from pyspark_upsert_kafka.kafka.librdkafka.library import takes
from pyspark_upsert_kafka.kafka.librdkafka.producer import (
    connected,
    open_producer,
    transaction_config,
)
from pyspark_upsert_kafka.kafka.librdkafka.sender import BatchSender
from pyspark_upsert_kafka.kafka.librdkafka.transaction import LibrdkafkaTransactionalSender


def open_transaction(
    properties: Properties,
    topics: tuple[str, ...],
    transactional_id: str,
    *,
    with_metadata: bool,
) -> LibrdkafkaTransactionalSender:
    """A sender for these topics, which are checked to exist; fences off whatever had the id before.

    Args:
        properties: As the user gave them.
        topics: The topics.
        transactional_id: The id.
        with_metadata: Whether messages have timestamps or headers; without, they may be sent by the batch.

    Raises:
        BrokerError: No broker answers, a topic does not exist, or access is denied.
        OptionError: The client does not take a property, or one contradicts ``exactly-once``.
    """
    with pooled_admin(properties, "writer") as admin:
        limits = max_message_bytes(admin, topics)
    config = transaction_config(properties, limits, transactional_id)
    in_batches = not with_metadata and takes(config)
    opened = connected(open_producer(config, topics, in_batches=in_batches), topics)
    kind = BatchTransactionalSender if in_batches else LibrdkafkaTransactionalSender
    sender = kind(opened, properties, transactional_id)
    with undone_on_failure(sender.close):
        sender.take_over()
    return sender


class BatchTransactionalSender(LibrdkafkaTransactionalSender, BatchSender):
    """The same with a `TransactionalBatchProducer`, for messages without timestamps and headers."""

    def _group_to_send(self) -> object:
        return self._id
