"""Metadata columns: from raw messages to Arrow arrays of exactly the wanted type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.metadata import CHANGE_TYPE, ERROR
from pyspark_upsert_kafka.kafka.interfaces import Headers, RawBatch
from pyspark_upsert_kafka.time_zone import local_time

HEADERS = frozenset({"headers", "header-list"})
"""Metadata that shows a message's headers."""

DETAILS = frozenset({"timestamp", "timestamp-type", "leader-epoch"}) | HEADERS
"""Metadata that a client takes out of a message only when it is asked to."""

Index = Any
"""A numpy array of message indexes."""


@dataclass(frozen=True)
class BadMessage:
    """A message that cannot be decoded: its place in the batch, what failed and why."""

    index: int
    stage: Literal["key", "value", "null-key", "headers"]
    reason: str


@dataclass(frozen=True)
class Shown:
    """The messages of a batch, which of them give rows, and what those are.

    Args:
        batch: The messages.
        messages: Which of them give a row; None = all.
        deletes: For each of all messages whether it is a delete; None = none is.
        bad: Those of all that cannot be decoded, in offset order.
    """

    batch: RawBatch
    messages: Index | None
    deletes: Index | None
    bad: Sequence[BadMessage]

    def __len__(self) -> int:
        return len(self.batch) if self.messages is None else len(self.messages)

    def of(self, array: pa.Array) -> pa.Array:
        """The rows of an array that has one for each message."""
        return array if self.messages is None else array.take(pa.array(self.messages))


_TIMESTAMP_TYPES = pa.array(["NoTimestampType", "CreateTime", "LogAppendTime"])

_MIN_MS, _MAX_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: what lies beyond is no date, and is shown as NULL."""


def metadata_array(key: str, type_: pa.DataType, shown: Shown, time_zone: str) -> pa.Array:
    """A metadata column.

    Args:
        key: The metadata key (contract 1.1).
        type_: The Arrow type of the column.
        shown: The messages.
        time_zone: The session's, for ``TIMESTAMP_NTZ``.
    """
    return _ARRAYS[key](shown, type_, time_zone)


def _topic(shown: Shown, type_: pa.DataType, _: str) -> pa.Array:
    return pa.repeat(pa.scalar(shown.batch.topic, type_), len(shown))


def _partition(shown: Shown, type_: pa.DataType, _: str) -> pa.Array:
    return pa.repeat(pa.scalar(shown.batch.partition, type_), len(shown))


def _offset(shown: Shown, type_: pa.DataType, _: str) -> pa.Array:
    return shown.of(pa.array(shown.batch.offsets, type_))


def _leader_epoch(shown: Shown, type_: pa.DataType, _: str) -> pa.Array:
    return shown.of(pa.array(shown.batch.leader_epochs, type_))


def _timestamp_type(shown: Shown, _type: pa.DataType, _: str) -> pa.Array:
    kinds = pa.array([kind for kind, _ in shown.batch.timestamps], pa.int8())
    return shown.of(_TIMESTAMP_TYPES.take(kinds))


def _change_type(shown: Shown, _type: pa.DataType, _: str) -> pa.Array:
    deletes, bad = shown.deletes, shown.bad
    if deletes is None and not bad:
        return pa.repeat(pa.scalar("upsert"), len(shown))
    count = len(shown.batch)
    kinds = np.zeros(count, dtype=np.int8) if deletes is None else deletes.astype(np.int8)
    mask = np.zeros(count, dtype=bool)
    mask[[message.index for message in bad]] = True
    return shown.of(pa.array(["upsert", "delete"]).take(pa.array(kinds, mask=mask)))


def _error(shown: Shown, type_: pa.DataType, _: str) -> pa.Array:
    if not shown.bad:
        return pa.nulls(len(shown), type_)
    errors: list[dict[str, Any] | None] = [None] * len(shown.batch)
    for message in shown.bad:
        errors[message.index] = {
            "stage": message.stage,
            "message": message.reason,
            "key": shown.batch.keys[message.index],
            "value": shown.batch.values[message.index],
        }
    return shown.of(pa.array(errors, type_))


def _timestamp(shown: Shown, type_: pa.DataType, time_zone: str) -> pa.Array:
    return shown.of(_timestamps(shown.batch.timestamps, type_, time_zone))


def _headers(shown: Shown) -> Sequence[Headers | None]:
    """The headers of each row; None = they cannot be read."""
    headers: Sequence[Headers | None] = shown.batch.headers
    if shown.batch.bad_headers:
        bad = shown.batch.bad_headers
        headers = [None if at in bad else each for at, each in enumerate(headers)]
    return headers if shown.messages is None else [headers[at] for at in shown.messages]


def _timestamps(
    timestamps: Sequence[tuple[int, int]], type_: pa.DataType, time_zone: str
) -> pa.Array:
    ms = np.fromiter((ms for _, ms in timestamps), dtype=np.int64, count=len(timestamps))
    known = np.fromiter((kind != 0 for kind, _ in timestamps), dtype=bool, count=len(timestamps))
    known &= (ms >= _MIN_MS) & (ms <= _MAX_MS) & (ms != -1)
    micros = np.where(known, ms, 0) * 1000
    utc = pa.array(micros, mask=~known).cast(pa.timestamp("us", "UTC"))
    return local_time(utc, time_zone) if type_.tz is None else utc.cast(type_)


def _header_list(shown: Shown, type_: pa.DataType, _: str) -> pa.Array:
    headers, struct = _headers(shown), type_.value_type
    flat = [pair for each in headers for pair in each or ()]
    children = [
        pa.array([key for key, _ in flat], struct.field(0).type),
        pa.array([value for _, value in flat], struct.field(1).type),
    ]
    entries = pa.StructArray.from_arrays(children, fields=list(struct))
    return pa.ListArray.from_arrays(_starts(headers), entries, type=type_)


def _header_map(shown: Shown, type_: pa.DataType, _: str) -> pa.Array:
    last = [None if each is None else dict(each) for each in _headers(shown)]
    keys = pa.array([key for each in last for key in each or ()], type_.key_type)
    items = pa.array([value for each in last if each for value in each.values()], type_.item_type)
    return pa.MapArray.from_arrays(_starts(last), keys, items, type_)


def _starts(lists: Sequence[Any]) -> pa.Array:
    """Where each list begins, a null one nowhere, and where the last one ends."""
    offsets = list(accumulate((len(each or ()) for each in lists), initial=0))
    starts = [None if each is None else at for each, at in zip(lists, offsets, strict=False)]
    return pa.array([*starts, offsets[-1]], pa.int32())


_ARRAYS = {
    "topic": _topic,
    "partition": _partition,
    "offset": _offset,
    "timestamp": _timestamp,
    "timestamp-type": _timestamp_type,
    "headers": _header_map,
    "header-list": _header_list,
    "leader-epoch": _leader_epoch,
    CHANGE_TYPE: _change_type,
    ERROR: _error,
}
