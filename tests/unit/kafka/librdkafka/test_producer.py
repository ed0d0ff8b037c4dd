"""What a new producer of librdkafka asks before it sends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import confluent_kafka as ck
import pytest

from pyspark_upsert_kafka.kafka.client_pool import PartitionLookups
from pyspark_upsert_kafka.kafka.librdkafka.errors import client_log
from pyspark_upsert_kafka.kafka.librdkafka.sender import DeliveryReports, OpenProducer, connected


@dataclass
class Lookups:
    """A producer that only looks topics up.

    Args:
        answers: How many lookups brokers answer before they are away.
    """

    answers: int
    asked: list[str] = field(default_factory=list)

    def list_topics(self, topic: str, timeout: float) -> None:
        """Looks a topic up."""
        self.asked.append(topic)
        if len(self.asked) > self.answers:
            raise ck.KafkaException(ck.KafkaError(ck.KafkaError._ALL_BROKERS_DOWN))


@pytest.mark.parametrize(("answers", "asked"), [(2, 2), (1, 2), (0, 1)])
def test_a_new_producer_looks_its_topic_up_twice(answers: int, asked: int) -> None:
    """The connection of the first answer may be dropped because of it; while brokers are away there is no second lookup."""
    lookups = Lookups(answers)
    reports = DeliveryReports({"logger": client_log})
    opened = OpenProducer(cast("Any", lookups), reports, PartitionLookups(1), lambda: opened)

    assert connected(opened, ("users",)) is opened

    assert lookups.asked == ["users"] * asked
