"""The client kafka-python, in pure Python: kafka-python-ng, or its successor kafka-python 3 in its place."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.clients import (
    RangeReader,
    ReadSettings,
    Sender,
    TransactionalSender,
)
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.kafka_python import installed  # first: says what is missing
from pyspark_upsert_kafka.kafka.kafka_python.cluster import open_cluster
from pyspark_upsert_kafka.kafka.kafka_python.reader import KafkaPythonReader
from pyspark_upsert_kafka.kafka.kafka_python.sender import KafkaPythonSender, pooled_producer


class KafkaPythonClient:
    """A reader, a sender and a cluster, by kafka-python."""

    packages = ("kafka-python-ng", "kafka-python")

    def cluster(self, properties: Properties, role: str) -> Cluster:
        """Opens a connection for admin requests."""
        return open_cluster(properties, role)

    def reader(self, settings: ReadSettings) -> RangeReader:
        """A reader of ranges.

        Raises:
            OptionError: The installed library cannot tell aborted messages.
        """
        if settings.read_committed and not installed.IS_KAFKA_PYTHON_3:
            raise installed.no_read_committed()
        return KafkaPythonReader(settings)

    def sender(
        self,
        properties: Properties,
        topics: Sequence[str],
        guarantee: DeliveryGuarantee,
        *,
        with_metadata: bool = True,  # noqa: ARG002 - all messages cost the same
    ) -> Sender:
        """Opens a sender after checking that the topics exist."""
        return KafkaPythonSender(pooled_producer(properties, tuple(topics), guarantee))

    def transactional_sender(
        self,
        properties: Properties,  # noqa: ARG002 - each client has it
        topics: Sequence[str],  # noqa: ARG002
        transactional_id: str,  # noqa: ARG002
        *,
        with_metadata: bool = True,  # noqa: ARG002
    ) -> TransactionalSender:
        """Refused.

        Raises:
            OptionError: Always.
        """
        raise OptionError(
            "'sink.delivery-guarantee' = 'exactly-once' needs transactions, and 'kafka.client' = 'kafka-python' has "
            "none that are safe: kafka-python-ng has no transactions, and kafka-python 3 waits for ever for the "
            "answer to a commit. Set 'kafka.client' to 'librdkafka', or accept 'at-least-once'."
        )


CLIENT = KafkaPythonClient()
