"""Messages that a broker refuses together: which of them is told."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import DeliveryError, RetriableDeliveryError
from pyspark_upsert_kafka.kafka.outgoing_messages import Undelivered

INVALID_TIMESTAMP, TIMED_OUT = 32, -192


def failed(*reports: tuple[int, bytes, int]) -> str:
    """What is told of messages with these error codes, keys and partitions."""
    undelivered = Undelivered()
    for code, key, partition in reports:
        undelivered.add(DeliveryError("t", partition, key, "refused"), code)
    with pytest.raises(DeliveryError) as error:
        undelivered.raise_first()
    return str(error.value)


def test_nothing_is_told_when_all_was_delivered() -> None:
    """There is no error to raise."""
    undelivered = Undelivered()
    undelivered.raise_first()
    assert not undelivered


def test_a_batch_refused_for_one_message_is_told_as_a_batch() -> None:
    """Those of the same partition with the same error are counted, others are not."""
    told = failed(
        *[(INVALID_TIMESTAMP, b"k%d" % n, n % 2) for n in range(10)], (TIMED_OUT, b"x", 0)
    )
    assert "key k0 was not delivered" in told
    assert "at least one of the 5 messages of the batch that begins with this key" in told
    assert "(11 messages of this task failed" in told


def test_a_message_that_fails_on_its_own_is_the_one_at_fault() -> None:
    """One message alone in its batch, and messages that time out, need no such words."""
    assert "at least one" not in failed((INVALID_TIMESTAMP, b"k", 0))
    assert "at least one" not in failed(*[(TIMED_OUT, b"k%d" % n, 0) for n in range(3)])


def test_a_message_that_failed_for_the_sake_of_another_is_not_told() -> None:
    """Where the client knows which message was at fault, that one is told, and all are counted."""
    undelivered = Undelivered()
    for key in (b"before", b"culprit", b"after"):
        error = DeliveryError("t", 0, key, "refused")
        undelivered.add(error, None, refused_with_batch=key != b"culprit")

    with pytest.raises(DeliveryError, match=r"key culprit was not delivered.*3 messages"):
        undelivered.raise_first()


@pytest.mark.parametrize("raised", [DeliveryError, RetriableDeliveryError])
def test_the_error_says_by_its_class_whether_it_passes(raised: type[DeliveryError]) -> None:
    """As the first message's error does, with the count of all."""
    undelivered = Undelivered()
    for key in (b"first", b"second"):
        undelivered.add(raised("t", 0, key, "refused"), TIMED_OUT)

    with pytest.raises(DeliveryError) as error:
        undelivered.raise_first()

    assert (type(error.value), error.value.key, error.value.failed) == (raised, b"first", 2)
