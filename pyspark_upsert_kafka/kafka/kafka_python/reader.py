"""Reads ranges with kafka-python, whose consumers are changed for batches of records that they would not read as they should.

A header whose key is not UTF-8 makes the whole batch corrupt for them, and they fail at an answer that has null for no records.
kafka-python-ng gives transaction markers as if they were messages, compares no checksum, and fails at a batch of zstd that is more than
1 MB when it is unpacked and does not say so, as those of Java's and librdkafka's producers.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from kafka import KafkaConsumer, codec
from kafka import TopicPartition as ClientPartition
from kafka import errors as kafka_errors
from kafka.errors import CorruptRecordException
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.metadata import IN_HEADERS, Detail
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.client_pool import Pool
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.failures import FailureKind
from pyspark_upsert_kafka.kafka.kafka_python.cluster import pooled_cluster
from pyspark_upsert_kafka.kafka.kafka_python.errors import (
    connect_timeouts,
    describe_error,
    errors_of,
    kind_of,
    retrying,
)
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from pyspark_upsert_kafka.kafka.kafka_python.properties import (
    client_config,
    create_no_topics,
    open_client,
)
from pyspark_upsert_kafka.kafka.pooled_reader import PooledReader
from pyspark_upsert_kafka.kafka.range_fetch import (
    BATCH_BYTES,
    Fetched,
    Fetcher,
    header_bytes,
)
from pyspark_upsert_kafka.kafka.raw_batch import BAD_HEADERS, RawBatch
from pyspark_upsert_kafka.kafka.retrying import Outage, Timeouts

logger = logging.getLogger("pyspark_upsert_kafka")


class UnreadableHeaders(tuple[Any, ...]):
    """Headers of which one has a name that is no text: their names as if they were of Latin 1, which is right for ASCII."""

    __slots__ = ()


def lenient(batch: Any) -> Any:
    """The batch, changed so that zstd is unpacked, and that a message whose headers cannot be read has `UnreadableHeaders`."""
    if type(batch) is DefaultRecordBatch:  # older formats have neither
        batch.__class__ = _LenientBatch
    return batch


def with_null_records(consumer: Any) -> None:
    """Has a consumer take null, which a broker may answer, for no records."""
    fetcher = consumer._fetcher  # noqa: SLF001
    parse = fetcher._parse_fetched_data  # noqa: SLF001

    def parse_null(completed: Any) -> Any:
        data = completed.partition_data
        if isinstance(data, tuple):  # kafka-python-ng: the records come last
            if data[-1] is None:
                completed = completed._replace(partition_data=(*data[:-1], b""))
        elif data.records is None:
            data.records = b""
        return parse(completed)

    fetcher._parse_fetched_data = parse_null  # noqa: SLF001


def with_lenient_batches(consumer: Any) -> None:
    """Has a consumer of kafka-python 3 read such batches; one of kafka-python-ng does so by `without_markers`."""
    fetcher = consumer._fetcher  # noqa: SLF001
    unpacking = fetcher.PartitionRecords

    def unpacking_lenient(offset: int, partition: Any, records: Any, **more: Any) -> Any:
        return unpacking(offset, partition, _LenientBatches(records), **more)

    fetcher.PartitionRecords = unpacking_lenient


class _LenientBatches:
    def __init__(self, records: Any) -> None:
        self._records = records

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        return batch if batch is None else lenient(batch)


class _LenientBatch(DefaultRecordBatch):  # type: ignore[misc]
    __slots__ = ()

    def _maybe_uncompress(self) -> None:
        _unpack_zstd(self)
        super()._maybe_uncompress()

    def _read_msg(self, *args: Any) -> DefaultRecord:
        try:
            return super()._read_msg(*args)
        except UnicodeDecodeError:
            pass
        # The place in the buffer moves on only when a message is read to its end: read it again.
        buffer = self._buffer  # type: ignore[has-type]
        self._buffer = _AnyText(buffer)  # type: ignore[misc]
        try:
            record = super()._read_msg(*args)
        finally:
            self._buffer = buffer  # type: ignore[misc]
        record._headers = UnreadableHeaders(record._headers)  # noqa: SLF001
        return record


def _unpack_zstd(batch: Any) -> None:
    if batch._decompressed or batch.compression_type != batch.CODEC_ZSTD:  # noqa: SLF001
        return
    batch._assert_has_codec(batch.CODEC_ZSTD)  # noqa: SLF001
    packed = memoryview(batch._buffer)[batch._pos :]  # noqa: SLF001
    with codec.zstd.ZstdDecompressor().stream_reader(packed) as unpacked:
        batch._buffer = bytearray(unpacked.read())  # noqa: SLF001
    batch._pos, batch._decompressed = 0, True  # noqa: SLF001


class _AnyText(bytearray):
    """Bytes of which every part is a text."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return _AnyText(found) if isinstance(at, slice) else found

    def decode(self, *_: Any) -> str:
        return super().decode("latin-1")


def without_markers(consumer: KafkaConsumer) -> None:
    """Has this consumer pass over transaction markers, and its position with it, and compare checksums.

    A batch's attributes say that it is a marker, and only the consumer's fetcher sees batches; the
    versions of which this is known are those that `installed` lets through.
    """
    fetcher = consumer._fetcher  # noqa: SLF001
    unpack = fetcher._unpack_message_set  # noqa: SLF001
    assignment = consumer._subscription.assignment  # noqa: SLF001
    checks = consumer.config["check_crcs"]

    def unpack_messages(tp: Any, records: Any) -> Iterator[Any]:
        yield from unpack(tp, _Messages(records, is_checked=checks))
        if assignment[tp].last_offset_from_message_batch == 0:
            assignment[tp].last_offset_from_message_batch = _ZERO

    fetcher._unpack_message_set = unpack_messages  # noqa: SLF001


@dataclass(frozen=True)
class _Marker:
    """What the position needs of a transaction marker, to pass it."""

    base_offset: int
    last_offset_delta: int

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class _Messages:
    """Batches of records of which none is a transaction marker, or corrupt because of a header.

    Args:
        records: The batches of one answer.
        is_checked: Whether checksums are compared.
    """

    def __init__(self, records: Any, *, is_checked: bool) -> None:
        self._records, self._is_checked = records, is_checked
        self._is_first = True

    def next_batch(self) -> Any:
        """The next batch; None at the end, and before one that is damaged: the next fetch begins there.

        Raises:
            CorruptRecordException: The first batch is damaged.
        """
        batch = self._records.next_batch()
        if batch is not None and self._is_checked and not batch.validate_crc():
            if not self._is_first:
                return None
            raise CorruptRecordException("the checksum of a batch of messages is wrong")
        self._is_first = False
        if getattr(batch, "is_control_batch", False):  # batches of before Kafka 0.11 do not have it
            return _Marker(batch.base_offset, batch.last_offset_delta)
        return lenient(batch)


class _Zero(int):
    """A last offset of 0, which kafka-python-ng otherwise takes for none and never passes."""

    def __bool__(self) -> bool:
        return True


_ZERO = _Zero(0)


_BATCH = 5_000
"""Messages in a batch at most."""

_POLL_MS = 50

_NO_DELAY = {"timeout_ms": 0} if IS_KAFKA_PYTHON_3 else {}
"""Arguments of ``position``, which is known here without asking a broker."""

_OUT_OF_RANGE = tuple(
    found
    for name in ("OffsetOutOfRangeError", "LogTruncationError")
    if (found := getattr(kafka_errors, name, None))
)


class KafkaPythonFetcher:
    """Fetches the partition of a range.

    Args:
        consumer: Used by nobody else.
        cluster: Lends a cluster.
        range_: Its topic and partition.
        details: What is taken out of messages beside key, value and offset.
    """

    def __init__(
        self,
        consumer: KafkaConsumer,
        cluster: Callable[[], AbstractContextManager[Cluster]],
        range_: Range,
        *,
        details: frozenset[Detail],
    ) -> None:
        self._consumer, self._cluster, self._details = consumer, cluster, details
        self._wants_headers = not details.isdisjoint(IN_HEADERS)
        self._partition = ClientPartition(range_.topic, range_.partition)
        self.errors = errors_of(consumer)
        self.errors.clear()
        self._left: list[Any] = []
        self._reached = 0
        consumer.assign([self._partition])

    def seek(self, offset: int) -> None:
        """Lets the next poll begin at this offset."""
        self._left = []
        self._consumer.seek(self._partition, offset)

    def poll(self, position: int, end: int) -> Fetched:
        """The messages of the next fetch, if it arrives within `_POLL_MS`. A large fetch comes in several batches."""
        if self._left:
            return self._next_batch()
        try:
            polled = self._consumer.poll(timeout_ms=_POLL_MS, max_records=_BATCH)
            reached = self._consumer.position(self._partition, **_NO_DELAY)
        except _OUT_OF_RANGE:
            return Fetched(self._batch([]), position, is_out_of_range=True)
        except (kafka_errors.KafkaError, OSError) as error:
            return self._fetched_nothing(error, position)
        if reached > position:
            self.errors.note_progress()
        records: list[Any] = polled.get(self._partition, [])
        if reached > end:
            records = records[: bisect_left(records, end, key=attrgetter("offset"))]
        self._left, self._reached = records, reached
        return self._next_batch()

    def _next_batch(self) -> Fetched:
        """As many of the records that are left as a batch may hold; with the last one it may hold more."""
        count, size_bytes = 0, 0
        while count < len(self._left) and size_bytes < BATCH_BYTES:
            size_bytes += self._size_bytes(self._left[count])
            count += 1
        records, self._left = self._left[:count], self._left[count:]
        position = records[-1].offset + 1 if self._left else self._reached
        return Fetched(self._batch(records), position, size_bytes)

    def _size_bytes(self, record: Any) -> int:
        headers = header_bytes([record.headers]) if self._wants_headers else 0
        return len(record.key or b"") + len(record.value or b"") + headers

    def bounds(self) -> Bounds:
        """The bounds of the partition as its leader knows them now."""
        with self._cluster() as cluster:
            (found,) = cluster.bounds(
                [TopicPartition(*self._partition)], read_committed=False
            ).values()
        return found

    def close(self) -> None:
        """Ends fetching, so that the consumer can be used for another range."""
        self._consumer.unsubscribe()

    def _fetched_nothing(self, error: Exception, position: int) -> Fetched:
        fetched, kind = Fetched(self._batch([]), position), kind_of(error)
        said = self.errors.shown(describe_error(error))
        if isinstance(error, kafka_errors.CorruptRecordException):
            self._drop_fetched(position)
            fetched.damage = said
            return fetched
        if kind is FailureKind.FATAL:
            self._drop_fetched(position)  # a later range may begin here too
            fetched.fatal_error = said
            return fetched
        self.errors.add(said, security=kind is FailureKind.SECURITY)
        logger.info(
            "Topic %r, partition %s: fetching continues at offset %s after %s",
            *self._partition, position, said,
        )  # fmt: skip
        # The client may have passed messages that it had no more time to give.
        self.seek(position)
        return fetched

    def _drop_fetched(self, position: int) -> None:
        """Lets the client forget the fetch whose next messages are damaged.

        kafka-python 3 would look into it for ever: it drops a fetch only once that ends, or begins elsewhere than it shall go on.
        """
        self._consumer.seek(self._partition, position + 1)
        with suppress(kafka_errors.KafkaError):
            self._consumer.poll(timeout_ms=0, max_records=1)
        self._consumer.seek(self._partition, position)

    def _batch(self, records: Sequence[Any]) -> RawBatch:
        timestamps, epochs = (
            records if detail in self._details else []
            for detail in (Detail.TIMESTAMP, Detail.LEADER_EPOCH)
        )
        headers = [record.headers for record in records] if self._wants_headers else []
        bad_headers: dict[int, str] = {}
        if (
            Detail.HEADERS in self._details
        ):  # those that name schemas have names of ASCII, and can be read
            unreadable = [
                at for at, each in enumerate(headers) if isinstance(each, UnreadableHeaders)
            ]
            for at in unreadable:
                headers[at], bad_headers[at] = (), BAD_HEADERS
        times = [_timestamp(record.timestamp_type, record.timestamp) for record in timestamps]
        return RawBatch(
            self._partition.topic,
            self._partition.partition,
            BytesColumn.of(record.key for record in records),
            BytesColumn.of(record.value for record in records),
            [record.offset for record in records],
            [kind for kind, _ in times],
            [ms for _, ms in times],
            headers,
            [_leader_epoch(record) for record in epochs],
            bad_headers,
        )


def _timestamp(kind: int, ms: int | None) -> tuple[int, int]:
    """The protocol has 0 for CreateTime and 1 for LogAppendTime, and -1 ms for none."""
    return (kind + 1, ms) if ms not in (None, -1) else (0, -1)


def _leader_epoch(record: Any) -> int | None:
    epoch = getattr(record, "leader_epoch", -1)  # kafka-python-ng does not tell
    return None if epoch < 0 else epoch


_CONFIG = {
    "request_timeout_ms": 30_000,
    "reconnect_backoff_max_ms": 1_000,
    # A fetch at the end of the log tells only after this that there is no more.
    "fetch_max_wait_ms": 20,
}

POOL: Pool[KafkaConsumer] = Pool(lambda consumer: consumer.close(autocommit=False))


class KafkaPythonReader(PooledReader[KafkaConsumer]):
    """Reads ranges, each with a consumer that nobody else uses meanwhile."""

    _pool = POOL

    def _cluster(self) -> AbstractContextManager[Cluster]:
        return pooled_cluster(self._properties, "reader", self._settings.outage_s)

    def _connect(self, fetch_bytes: int) -> KafkaConsumer:
        ours = {**_CONFIG, "max_partition_fetch_bytes": fetch_bytes}
        config = client_config(self._properties, "reader", ours)
        servers = str(config["bootstrap_servers"])
        config |= {
            "auto_offset_reset": "none",
            "enable_auto_commit": False,
            "group_id": None,
        }

        def connect(timeout: float) -> KafkaConsumer:
            return open_client(KafkaConsumer, {**config, **connect_timeouts(timeout)})

        errors = config["client_id"].errors
        times = Timeouts.from_properties(self._properties.resolved())
        outage = Outage(self._settings.outage_s)
        consumer = retrying(servers, times, errors, outage=outage).call("connect", connect)
        if IS_KAFKA_PYTHON_3:
            with_lenient_batches(consumer)
        else:
            without_markers(consumer)
        with_null_records(consumer)
        return consumer

    def _fetcher(self, client: KafkaConsumer, range_: Range) -> Fetcher:
        # What was planned is there, or is lost; kafka-python-ng forgets this with each assignment.
        create_no_topics(client._client.cluster)  # noqa: SLF001
        return KafkaPythonFetcher(client, self._cluster, range_, details=self._settings.details)
