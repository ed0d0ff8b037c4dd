"""What errors of librdkafka mean in a transaction."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from pyspark_upsert_kafka.core.errors import DeliveryError
from pyspark_upsert_kafka.core.query_end import why_it_ended
from pyspark_upsert_kafka.kafka.failures import FailureKind
from pyspark_upsert_kafka.kafka.librdkafka.sender import DeliveryReports
from pyspark_upsert_kafka.kafka.librdkafka.transaction import (
    LibrdkafkaTransactionalSender,
    explained_in_transaction,
    kind_in_transaction,
)


@pytest.mark.parametrize(
    ("code", "is_fenced"),
    [
        (KafkaError.INVALID_PRODUCER_EPOCH, True),
        (KafkaError.TRANSACTION_COORDINATOR_FENCED, True),
        (90, True),  # PRODUCER_FENCED
        (67, False),  # INVALID_PRINCIPAL_TYPE
        (KafkaError.INVALID_TXN_STATE, False),
        (KafkaError.REQUEST_TIMED_OUT, False),
    ],
)
def test_who_is_fenced_off_is_told_so(code, is_fenced):
    """By the codes of Kafka's protocol that mean it, and by no other."""
    assert ("fenced off" in explained_in_transaction("id", code, "the reason")) is is_fenced


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KafkaError(KafkaError._TIMED_OUT, "", False, True, False), FailureKind.RETRIABLE),
        (KafkaError(KafkaError._DESTROY_BROKER), FailureKind.RETRIABLE),
        (KafkaError(KafkaError._TRANSPORT), FailureKind.RETRIABLE),
        (KafkaError(KafkaError._DESTROY_BROKER, "", False, False, True), FailureKind.FATAL),
        (KafkaError(KafkaError._DESTROY_BROKER, "", True), FailureKind.FATAL),
        (KafkaError(KafkaError._STATE), FailureKind.FATAL),
        (KafkaError(KafkaError._CONFLICT), FailureKind.FATAL),
    ],
)
def test_a_call_of_a_transaction_is_repeated_where_that_can_help(error, kind):
    """Not where the transaction has ended with the error."""
    assert kind_in_transaction(error) is kind


@pytest.mark.parametrize(
    ("error", "restart"),
    [
        (KafkaError(KafkaError._DESTROY_BROKER, "gone", False, False, True), True),
        (KafkaError(KafkaError._TIMED_OUT, "late", False, False, True), True),
        (KafkaError(KafkaError.INVALID_PRODUCER_EPOCH, "old", True), False),
        (KafkaError(KafkaError._STATE, "wrong", False, False, True), False),
    ],
)
def test_a_transaction_that_ended_with_an_error_that_passes_is_no_reason_to_stop(error, restart):
    """The call cannot be repeated, as where the coordinator has left the cluster; the query can."""
    sender = LibrdkafkaTransactionalSender.__new__(LibrdkafkaTransactionalSender)
    sender._id, sender._reports = "id", DeliveryReports({})

    failure = sender._failure(KafkaException(error))

    assert failure.kind is (FailureKind.ENDED if restart else FailureKind.FATAL)
    assert why_it_ended(sender._nothing_written(KafkaException(error))).restart is restart


@pytest.mark.parametrize(
    ("code", "restart"),
    [(KafkaError._MSG_TIMED_OUT, True), (KafkaError.MSG_SIZE_TOO_LARGE, False)],
)
def test_a_message_that_no_broker_has_confirmed_in_time_can_be_sent_later(code, restart):
    """The query that is started again sends it; what was refused is refused again."""
    reports = DeliveryReports({})
    reports.add("t", 0, b"k", KafkaError(code))

    with pytest.raises(DeliveryError) as error:
        reports.raise_first()
    assert why_it_ended(error.value).restart is restart
