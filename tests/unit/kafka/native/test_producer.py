"""Messages as librdkafka takes them by the batch, and when it does."""

from __future__ import annotations

import ctypes

import confluent_kafka as ck
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.errors import DeliveryError
from pyspark_upsert_kafka.kafka.librdkafka.errors import client_log
from pyspark_upsert_kafka.kafka.librdkafka.sender import DeliveryReports
from pyspark_upsert_kafka.kafka.native import library as library_module
from pyspark_upsert_kafka.kafka.native.library import Message, library, takes
from pyspark_upsert_kafka.kafka.native.producer import BatchProducer, MessageBatch, _note
from pyspark_upsert_kafka.kafka.outgoing_messages import octets

values = st.lists(st.none() | st.binary(max_size=3), max_size=20)


def at(place: int, size: int) -> bytes | None:
    """What librdkafka sees there."""
    return ctypes.string_at(place, size) if place else None


@given(keys=values, cut=st.integers(0, 20))
def test_librdkafka_sees_each_message_as_it_is(keys: list[bytes | None], cut: int) -> None:
    """Null is not empty; a column may be a part of a longer one."""
    column = octets(keys)[cut:]
    batch = MessageBatch("t", column, column)

    for kind in ("key", "value"):
        seen = map(at, batch.messages[kind].tolist(), batch.messages[f"{kind}_size"].tolist())
        assert list(seen) == keys[cut:]
    assert [batch.key(number) for number in range(len(batch))] == keys[cut:]
    assert [batch.size(number) for number in range(len(batch))] == [
        2 * len(key or b"") for key in keys[cut:]
    ]


def test_the_library_of_confluent_kafka_is_found() -> None:
    """Here it must be, or every other test is of the slower way only."""
    found = library()

    assert found is not None
    assert found.rd_kafka_version() == ck.libversion()[1]


def test_what_it_cannot_take_is_for_confluent_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callbacks that it does not know, and any producer where the library is not found."""
    config = {"logger": client_log, "acks": "all", "linger.ms": 5, "enable.idempotence": True}

    assert takes(config)
    assert not takes({**config, "oauth_cb": print})
    monkeypatch.setattr(library_module, "library", lambda: None)
    assert not takes(config)


def test_a_wrong_property_is_the_error_of_confluent_kafka() -> None:
    """Whoever opens a producer reads one kind of error, whichever producer it is."""
    with pytest.raises(ck.KafkaException, match=r'No such configuration property: "no\.such"'):
        BatchProducer({"logger": client_log, "no.such": 1}, DeliveryReports({}))


class NoLibrary:
    """What names topics."""

    @staticmethod
    def rd_kafka_topic_name(_topic: int) -> bytes:
        """The topic of each message."""
        return b"t"


@pytest.mark.parametrize(("number", "named"), [(-1, "not assigned"), (0, "0"), (7, "7")])
def test_a_message_that_had_no_partition_yet_is_told_so(number: int, named: str) -> None:
    """Librdkafka's -1 is no partition: confluent-kafka does not show it either."""
    reports = DeliveryReports({})
    _note(NoLibrary(), reports, Message(err=3, partition=number))  # type: ignore[arg-type]

    with pytest.raises(DeliveryError, match=f"partition {named},"):
        reports.raise_first()
