"""What an error means for the next attempt."""

from __future__ import annotations

from pyspark_upsert_kafka.kafka.failures import FailureKind, kind_of

RETRIABLE_IN_JAVA = {
    2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89,
    100, 103, 106, 122, 123, 133,
}  # fmt: skip
"""Codes in ``org.apache.kafka.common.protocol.Errors`` of Kafka 4.3.1 whose exception is a
``RetriableException``, as a small Java program lists them."""


def test_errors_that_java_retries_are_retried():
    """All of them but a corrupt message; an unknown topic is for the caller."""
    retried = {code for code in range(-1, 200) if kind_of(code) is FailureKind.RETRIABLE}

    assert retried == (RETRIABLE_IN_JAVA - {2, 3}) | {8}
    assert kind_of(3) is FailureKind.UNKNOWN_TOPIC
    assert {code for code in range(200) if kind_of(code) is FailureKind.SECURITY} == {33, 34, 58}
    assert kind_of(29) is FailureKind.FATAL  # TOPIC_AUTHORIZATION_FAILED
