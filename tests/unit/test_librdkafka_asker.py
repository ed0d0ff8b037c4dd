"""librdkafka's answers about offsets."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from pyspark_upsert_kafka.kafka.failures import AttemptError, Kind
from pyspark_upsert_kafka.kafka.librdkafka.asker import known
from pyspark_upsert_kafka.kafka.librdkafka.asking import ClientTrouble


def test_an_offset_that_is_none_is_asked_for_again():
    """It comes without an error after a lost connection; -1 says that no message is so young."""
    assert [known(offset) for offset in (-1, 0, 42)] == [-1, 0, 42]

    with pytest.raises(AttemptError) as error:
        known(-1001)

    assert error.value.failure.kind is Kind.RETRIABLE


def test_that_all_brokers_are_down_does_not_hide_why():
    """It is told right after what went wrong with the last one; and alone when there is nothing else."""
    all_down = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
    trouble = ClientTrouble()

    trouble(all_down)
    assert trouble.describe() == " Last seen: 1/1 brokers are down"
    trouble(KafkaError(KafkaError._TRANSPORT, "connection closed by peer"))
    trouble(all_down)

    assert trouble.describe() == " Last seen: connection closed by peer"
    assert trouble.unreachable is all_down
