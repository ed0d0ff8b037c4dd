"""What kafka-python's consumers are changed for: batches of records that they would not read as they should.

A header whose key is not UTF-8 makes the whole batch corrupt for them, and they fail at an answer that has null for no records.
kafka-python-ng gives transaction markers as if they were messages, compares no checksum, and fails at a batch of zstd that is more than
1 MB when it is unpacked and does not say so, as those of Java's and librdkafka's producers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, codec
from kafka.errors import CorruptRecordException
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch


class UnreadableHeaders(tuple[Any, ...]):
    """Headers that cannot be read: to the library there are none."""

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
        record._headers = UnreadableHeaders()  # noqa: SLF001
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
