"""How large a producer's batches, messages and queue are, given what the topics allow."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.kafka_python.sender import (
    producer_config as arguments,
)
from pyspark_upsert_kafka.kafka.kafka_python.sender import (
    with_sizes,
)
from pyspark_upsert_kafka.kafka.librdkafka.sender import producer_config

MB = 1_000_000


def librdkafka(limits: list[int], **given: str) -> tuple[int, int, int]:
    """Bytes of a batch, of the largest message, and of the queue."""
    properties = {name.replace("_", "."): value for name, value in given.items()}
    made = producer_config(Properties(properties), limits, DeliveryGuarantee.AT_LEAST_ONCE)
    sizes = ("batch.size", "message.max.bytes", "queue.buffering.max.kbytes")
    batch, message, queue = (int(made[name]) for name in sizes)
    return batch, message, queue * 1024


def kafka_python(limits: list[int], **given: str) -> tuple[int, int, int]:
    """The same for the other client."""
    properties = {name.replace("_", "."): value for name, value in given.items()}
    accepted = Properties({"enable.idempotence": "false", **properties})
    made = with_sizes(arguments(accepted, DeliveryGuarantee.AT_LEAST_ONCE), limits)
    return made["batch_size"], made["max_request_size"], made["buffer_memory"]


@pytest.mark.parametrize("sizes", [librdkafka, kafka_python])
@pytest.mark.parametrize("limits", [[], [MB], [90 * MB], [10_000, 90 * MB], [10_000]])
def test_the_queue_holds_the_largest_message_that_a_topic_takes(sizes, limits):
    """And a batch is no larger than what every topic takes, or innocent messages would be refused."""
    batch, message, queue = sizes(limits)

    assert batch <= min([MB, *limits])
    assert max([MB, *limits]) <= message <= queue


@pytest.mark.parametrize("sizes", [librdkafka, kafka_python])
def test_the_queue_follows_the_largest_message_that_the_user_wants(sizes):
    """Given alone it widens the queue; a queue that is given stays as it is."""
    _, message, queue = sizes([MB], max_request_size=str(200 * MB))
    assert message == 200 * MB <= queue

    batch, _, queue = sizes([90 * MB], queue_buffering_max_kbytes="100")
    assert queue == 100 * 1024
    assert batch <= (queue if sizes is kafka_python else MB)


@pytest.mark.parametrize("limit", [0, 2**31 - 1])
def test_any_limit_of_a_topic_is_one_that_the_client_takes(limit):
    """A topic may take messages of any size or none, and librdkafka refuses such numbers."""
    properties = Properties({"bootstrap.servers": "localhost:1"})
    config = producer_config(properties, [limit], DeliveryGuarantee.AT_LEAST_ONCE)
    Producer(config).purge()

    batch, _, _ = kafka_python([limit])
    assert batch > 0


@pytest.mark.parametrize(("idempotent", "in_flight"), [("true", None), ("false", 1)])
def test_only_an_idempotent_producer_has_several_requests_in_flight(idempotent, in_flight):
    """Else a retry comes behind what was sent after it, and the older change of a key is its last."""
    properties = Properties({"enable.idempotence": idempotent})
    config = producer_config(properties, [], DeliveryGuarantee.AT_LEAST_ONCE)

    assert config.get("max.in.flight.requests.per.connection") == in_flight
