"""What librdkafka's admin client reports."""

from __future__ import annotations

from confluent_kafka import KafkaError

from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors


def test_that_all_brokers_are_down_does_not_hide_why():
    """It is reported right after the last broker's error; and it stands alone when there is no other."""
    all_down = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
    errors = ReportedErrors()

    errors.on_error(all_down)
    assert errors.describe() == " Last seen: 1/1 brokers are down"
    errors.on_error(KafkaError(KafkaError._TRANSPORT, "connection closed by peer"))
    errors.on_error(all_down)

    assert errors.describe() == " Last seen: connection closed by peer"
    assert errors.unreachable is all_down
