"""Metadata columns: from raw messages to Arrow arrays of exactly the wanted type."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.connector.local_time import local_time
from pyspark_upsert_kafka.connector.reading.decoded_messages import Selection
from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.core.metadata import CHANGE_TYPE, ERROR, Headers
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

_TIMESTAMP_TYPES = pa.array(["NoTimestampType", "CreateTime", "LogAppendTime"])

_KINDS = pa.array([kind.name.lower() for kind in Change])

_MIN_MS, _MAX_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999; a timestamp beyond them is shown as NULL."""


def metadata_array(key: str, type_: pa.DataType, selection: Selection, time_zone: str) -> pa.Array:
    """A metadata column.

    Args:
        key: The metadata key, such as ``offset``.
        type_: The Arrow type of the column.
        selection: The messages to show.
        time_zone: The session's, for ``TIMESTAMP_NTZ``.
    """
    return _ARRAYS[key](selection, type_, time_zone)


def _topic(selection: Selection, type_: pa.DataType, _: str) -> pa.Array:
    return pa.repeat(pa.scalar(selection.batch.topic, type_), len(selection))


def _partition(selection: Selection, type_: pa.DataType, _: str) -> pa.Array:
    return pa.repeat(pa.scalar(selection.batch.partition, type_), len(selection))


def _offset(selection: Selection, type_: pa.DataType, _: str) -> pa.Array:
    return selection.take(pa.array(np.asarray(selection.batch.offsets, np.int64), type_))


def _leader_epoch(selection: Selection, type_: pa.DataType, _: str) -> pa.Array:
    return selection.take(pa.array(selection.batch.leader_epochs, type_))


def _timestamp_type(selection: Selection, _type: pa.DataType, _: str) -> pa.Array:
    types = pa.array(np.asarray(selection.batch.timestamp_types, np.int64))
    return selection.take(_TIMESTAMP_TYPES.take(types))


def _change_type(selection: Selection, _type: pa.DataType, _: str) -> pa.Array:
    if selection.kinds is None and not selection.bad:
        return pa.repeat(pa.scalar(_KINDS[0].as_py()), len(selection))
    kinds = np.zeros(len(selection), np.int8) if selection.kinds is None else selection.kinds
    is_bad = selection.take(pa.array(selection.bad_mask)).to_numpy(zero_copy_only=False)
    return _KINDS.take(pa.array(kinds, mask=is_bad))


def _error(selection: Selection, type_: pa.DataType, _: str) -> pa.Array:
    if not selection.bad:
        return pa.nulls(len(selection), type_)
    errors: list[dict[str, Any] | None] = [None] * len(selection.batch)
    for message in selection.bad:
        errors[message.index] = {
            "stage": message.stage,
            "message": message.reason,
            "key": selection.batch.keys[message.index],
            "value": selection.batch.values[message.index],
        }
    return selection.take(pa.array(errors, type_))


def _timestamp(selection: Selection, type_: pa.DataType, time_zone: str) -> pa.Array:
    return selection.take(_timestamps(selection.batch, type_, time_zone))


def _headers(selection: Selection) -> Sequence[Headers | None]:
    """The headers of each row; None = they cannot be read."""
    headers: Sequence[Headers | None] = selection.batch.headers
    if selection.batch.bad_headers:
        bad = selection.batch.bad_headers
        headers = [None if at in bad else each for at, each in enumerate(headers)]
    return headers if selection.indexes is None else [headers[at] for at in selection.indexes]


def _timestamps(batch: RawBatch, type_: pa.DataType, time_zone: str) -> pa.Array:
    types, ms = (np.asarray(each, np.int64) for each in (batch.timestamp_types, batch.timestamps))
    known = (types != 0) & (ms >= _MIN_MS) & (ms <= _MAX_MS) & (ms != -1)
    micros = np.where(known, ms, 0) * 1000
    utc = pa.array(micros, mask=~known).cast(pa.timestamp("us", "UTC"))
    return local_time(utc, time_zone) if type_.tz is None else utc.cast(type_)


def _header_list(selection: Selection, type_: pa.DataType, _: str) -> pa.Array:
    headers, struct = _headers(selection), type_.value_type
    flat = [pair for each in headers for pair in each or ()]
    children = [
        pa.array([key for key, _ in flat], struct.field(0).type),
        pa.array([value for _, value in flat], struct.field(1).type),
    ]
    entries = pa.StructArray.from_arrays(children, fields=list(struct))
    return pa.ListArray.from_arrays(_starts(headers), entries, type=type_)


def _header_map(selection: Selection, type_: pa.DataType, _: str) -> pa.Array:
    last = [None if each is None else dict(each) for each in _headers(selection)]
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
