"""librdkafka's answers about offsets."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from pyspark_upsert_kafka.kafka.connections.failures import AttemptError, Kind
from pyspark_upsert_kafka.kafka.librdkafka.admin_requests import valid_offset
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors


def test_a_lookup_that_gives_no_offset_is_retried():
    """It comes without an error after a lost connection; -1 says that no message is so young."""
    assert [valid_offset(offset) for offset in (-1, 0, 42)] == [-1, 0, 42]

    with pytest.raises(AttemptError) as error:
        valid_offset(-1001)

    assert error.value.failure.kind is Kind.RETRIABLE


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
