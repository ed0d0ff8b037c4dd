"""Messages whose header keys are not UTF-8, at which kafka-python calls the whole batch corrupt."""

from __future__ import annotations

from typing import Any

from kafka.record.default_records import DefaultRecord, DefaultRecordBatch


class UnreadableHeaders(tuple[Any, ...]):
    """Headers that cannot be read: to the library there are none."""

    __slots__ = ()


def lenient(batch: Any) -> Any:
    """The batch, which gives a message whose headers cannot be read `UnreadableHeaders`."""
    if type(batch) is DefaultRecordBatch:  # older formats have no headers
        batch.__class__ = _LenientBatch
    return batch


def with_lenient_batches(consumer: Any) -> None:
    """Has a consumer of kafka-python 3 read batches so; that of kafka-python-ng is changed anyway."""
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


class _AnyText(bytearray):
    """Bytes of which every part is a text."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return _AnyText(found) if isinstance(at, slice) else found

    def decode(self, *_: Any) -> str:
        return super().decode("latin-1")
