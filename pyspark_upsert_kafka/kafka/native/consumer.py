"""librdkafka's own call for many messages, through the library that confluent-kafka brings.

confluent-kafka makes an object of each message. What the call cannot give cheaply (all headers, leader epochs), its own consumer
reads.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import confluent_kafka as ck
import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.bytes_column import BytesColumn, first_bytes
from pyspark_upsert_kafka.core.metadata import ID_IS_SEEN, LAST_BYTE_OF_IDS, SCHEMA_IDS, Detail
from pyspark_upsert_kafka.kafka.native.library import (
    CONSUMER,
    ErrorReports,
    EventQueue,
    Handles,
    is_on,
    library,
)
from pyspark_upsert_kafka.kafka.native.message_pointers import (
    HeaderValues,
    MessagePointers,
    bytes_at,
    can_be_read,
    fields_of,
    timestamps_of,
)
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch, numbers

CHUNK = 5_000
"""Messages taken at once at most."""


_TAKEN = {Detail.TIMESTAMP, *SCHEMA_IDS.values(), *ID_IS_SEEN.values()}


def can_take(details: frozenset[Detail]) -> bool:
    """Whether messages can be taken so, with these details."""
    return details <= _TAKEN and is_on() and can_be_read()


class Event(NamedTuple):
    """What a consumer gives in the place of a message: an error, or the end of a partition."""

    error: ck.KafkaError
    topic: str | None
    partition: int
    offset: int


class BatchConsumer:
    """A consumer of librdkafka with what is asked of confluent-kafka's, and `take`.

    Errors of its own are reported from within `poll`.

    Args:
        config: librdkafka's configuration, and a ``logger``.
        errors: Where it reports to.

    Raises:
        KafkaException: The configuration is wrong.
    """

    def __init__(self, config: Mapping[str, Any], errors: ErrorReports) -> None:
        found: Any = library()
        given = dict(config)
        logger = given.pop("logger")
        self.handles = handles = Handles()
        self._pointers = MessagePointers(CHUNK)
        self.close = weakref.finalize(self, _close, found, handles, self._pointers)
        # Who still reads when Python ends, in a thread that nobody waits for, must not lose it; the pool ends the others.
        self.close.atexit = False
        self._library, self._handle = found, handles.open(found, CONSUMER, given)
        self._events = EventQueue(found, handles, errors, logger)
        self._queue = handles.queue(found.rd_kafka_queue_get_consumer)

    def poll(self, timeout_s: float) -> None:
        """Waits for reports and passes them on."""
        self._events.poll(timeout_s)

    def assign(self, partitions: Sequence[ck.TopicPartition]) -> None:
        """Fetches these partitions from their offsets on, and no others."""
        found = self._library
        wanted = found.rd_kafka_topic_partition_list_new(len(partitions))
        try:
            for each in partitions:
                place = (wanted, each.topic.encode(), each.partition)
                found.rd_kafka_topic_partition_list_add(*place)
                found.rd_kafka_topic_partition_list_set_offset(*place, each.offset)
            self._check(found.rd_kafka_assign(self._handle, wanted))
        finally:
            found.rd_kafka_topic_partition_list_destroy(wanted)

    def unassign(self) -> None:
        """Fetches nothing."""
        self._check(self._library.rd_kafka_assign(self._handle, None))

    @contextmanager
    def taken(self, count: int, timeout_s: float) -> Iterator[Any]:
        """Takes messages, waiting for a number of them: their places in memory, as long as the context lasts.

        Raises:
            KafkaException: None can be taken.
        """
        try:
            self._pointers.take(self._queue, min(count, CHUNK), timeout_s)
            yield self._pointers.pointers
        finally:
            self._pointers.free()

    def take(
        self, partition: ck.TopicPartition, count: int, timeout_s: float, details: frozenset[Detail]
    ) -> tuple[RawBatch, list[Event]]:
        """Takes messages as columns, waiting for a number of them, and the events between them.

        Args:
            partition: What is assigned.
            count: The most messages.
            timeout_s: How long they are waited for, in seconds.
            details: What is taken out of them beside key, value and offset; `can_take` says what there may be.

        Raises:
            KafkaException: None can be taken.
        """
        with self.taken(count, timeout_s) as pointers:
            fields = fields_of(pointers)
            if not fields["err"].any():
                return self._columns(partition, fields, pointers, details), []
            is_event = fields["err"] != 0
            found = zip(fields[is_event], pointers[is_event], strict=True)
            events = [self._event(message, int(pointer)) for message, pointer in found]
            found_rest = fields[~is_event], pointers[~is_event]
            return self._columns(partition, *found_rest, details), events

    def _columns(
        self,
        partition: ck.TopicPartition,
        fields: Any,
        pointers: Any,
        details: frozenset[Detail],
    ) -> RawBatch:
        batch = RawBatch(
            partition.topic,
            partition.partition,
            bytes_at(fields["key"], fields["key_size"]),
            bytes_at(fields["value"], fields["value_size"]),
            numbers(fields["offset"]),
        )
        if Detail.TIMESTAMP in details:
            found = timestamps_of(pointers)
            batch.timestamp_types.extend(numbers(found.types))
            batch.timestamps.extend(numbers(found.ms))
        batch.schema_ids.update(self._schema_ids(batch, pointers, details))
        return batch

    def _schema_ids(
        self, batch: RawBatch, pointers: Any, details: frozenset[Detail]
    ) -> dict[Detail, BytesColumn]:
        """The headers that name the schemas of messages, as far as these do not begin with an id themselves."""
        ids = details.intersection(SCHEMA_IDS.values())
        asked = np.zeros(len(pointers), bool)
        for each in ids:
            messages = batch.keys if each is Detail.KEY_SCHEMA_ID else batch.values
            is_seen = ID_IS_SEEN[each] in details
            asked |= first_bytes(messages.column) > LAST_BYTE_OF_IDS if is_seen else True
        if not asked.any():
            return {}
        values = self._headers.last(pointers[asked], [detail.value for detail in ids])
        found = {each: values[each.value] for each in ids if each.value in values}
        if asked.all():
            return found
        at = pa.array(np.cumsum(asked) - 1, mask=~asked)
        return {each: BytesColumn(column.column.take(at)) for each, column in found.items()}

    @cached_property
    def _headers(self) -> HeaderValues:
        return HeaderValues(CHUNK)

    def _event(self, message: Any, pointer: int) -> Event:
        """What stands in the place of a message, given its fields; an error may be of no topic."""
        topic = int(message["topic"])
        name = self._library.rd_kafka_topic_name(topic).decode() if topic else None
        reason = self._library.rd_kafka_message_errstr(pointer) or b""
        error = ck.KafkaError(int(message["err"]), reason.decode(errors="replace"))
        return Event(error, name, int(message["partition"]), int(message["offset"]))

    def get_watermark_offsets(
        self, partition: ck.TopicPartition, timeout: float
    ) -> tuple[int, int]:
        """The earliest and the high offset of a partition, as its leader tells them.

        Raises:
            KafkaException: It does not, or not in time (seconds).
        """
        earliest, high = ctypes.c_int64(), ctypes.c_int64()
        place = self._handle, partition.topic.encode(), partition.partition
        self._check(
            self._library.rd_kafka_query_watermark_offsets(
                *place, earliest, high, int(timeout * 1000)
            )
        )
        return earliest.value, high.value

    def list_topics(self, topic: str, timeout: float) -> None:
        """Has brokers tell the leaders of a topic; of that one only, since the answer for all that were read would grow.

        Raises:
            KafkaException: None does in time (seconds).
        """
        found, answer = self._library, ctypes.c_void_p()
        wanted = found.rd_kafka_topic_new(self._handle, topic.encode(), None)
        try:
            asked = (self._handle, 0, wanted, answer, int(timeout * 1000))
            self._check(found.rd_kafka_metadata(*asked))
            found.rd_kafka_metadata_destroy(answer)
        finally:
            found.rd_kafka_topic_destroy(wanted)

    def _check(self, code: int) -> None:
        if code:
            raise ck.KafkaException(ck.KafkaError(code))


def _close(found: Any, handles: Handles, pointers: MessagePointers) -> None:
    try:
        if handles.is_ours:
            pointers.free()  # librdkafka waits for them
    finally:
        handles.end(found)
