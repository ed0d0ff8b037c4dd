"""The client librdkafka, by confluent-kafka: the fast one.

The modules that read and write are imported when they are used: a process that plans a query needs neither.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.clients import (
    RangeReader,
    ReadSettings,
    Sender,
    TransactionalSender,
)
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.librdkafka.cluster import LibrdkafkaCluster


class LibrdkafkaClient:
    """A reader, senders and a cluster, by librdkafka."""

    packages = ("confluent-kafka",)

    def cluster(self, properties: Properties, role: str) -> Cluster:
        """Opens a connection for admin requests."""
        return LibrdkafkaCluster(properties, role)

    def reader(self, settings: ReadSettings) -> RangeReader:
        """A reader of ranges."""
        from pyspark_upsert_kafka.kafka.librdkafka.reader import LibrdkafkaReader

        return LibrdkafkaReader(settings)

    def sender(
        self,
        properties: Properties,
        topics: Sequence[str],
        guarantee: DeliveryGuarantee,
        *,
        with_metadata: bool = True,
    ) -> Sender:
        """Opens a sender after checking that the topics exist."""
        from pyspark_upsert_kafka.kafka.librdkafka.sender import LibrdkafkaSender, pooled_producer

        return LibrdkafkaSender(
            pooled_producer(properties, tuple(topics), guarantee, with_metadata=with_metadata)
        )

    def transactional_sender(
        self,
        properties: Properties,
        topics: Sequence[str],
        transactional_id: str,
        *,
        with_metadata: bool = True,
    ) -> TransactionalSender:
        """The same for a transaction; fences off whatever had the transactional id before."""
        from pyspark_upsert_kafka.kafka.librdkafka.transaction import open_transaction

        return open_transaction(
            properties, tuple(topics), transactional_id, with_metadata=with_metadata
        )


CLIENT = LibrdkafkaClient()
