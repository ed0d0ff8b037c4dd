"""Transaction markers, which kafka-python-ng hands out as messages, made empty batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer

from pyspark_upsert_kafka.kafka.kafka_python.headers import lenient


def without_markers(consumer: KafkaConsumer) -> None:
    """Has this consumer pass over transaction markers, and its position with it.

    A batch's attributes say that it is a marker, and only the consumer's fetcher sees batches; the
    versions of which this is known are those that `installed` lets through.
    """
    fetcher = consumer._fetcher  # noqa: SLF001
    unpack = fetcher._unpack_message_set  # noqa: SLF001
    assignment = consumer._subscription.assignment  # noqa: SLF001

    def unpack_messages(tp: Any, records: Any) -> Iterator[Any]:
        yield from unpack(tp, _Messages(records))
        if assignment[tp].last_offset_from_message_batch == 0:
            assignment[tp].last_offset_from_message_batch = _ZERO

    fetcher._unpack_message_set = unpack_messages  # noqa: SLF001


@dataclass(frozen=True)
class _Marker:
    """Of a transaction marker what the position needs to pass it."""

    base_offset: int
    last_offset_delta: int

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class _Messages:
    """Batches of records of which none is a transaction marker, or corrupt for the sake of a header."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def next_batch(self) -> Any:
        """The next batch; None at the end."""
        batch = self._records.next_batch()
        if getattr(batch, "is_control_batch", False):  # batches of before Kafka 0.11 do not have it
            return _Marker(batch.base_offset, batch.last_offset_delta)
        return lenient(batch)


class _Zero(int):
    """A last offset of 0, which kafka-python-ng otherwise takes for none and never passes."""

    def __bool__(self) -> bool:
        return True


_ZERO = _Zero(0)
