"""Other implementations: what they read is compared with what we read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_upsert_kafka.formats.exact_types import with_type
from tools.fuzz.case import UNKNOWN


def unsure(answer: Any) -> bool:
    """Whether the peer has no say about a part of a row, which may be bad."""
    if isinstance(answer, dict):
        return any(map(unsure, answer.values()))
    return answer is UNKNOWN or (isinstance(answer, list | tuple) and any(map(unsure, answer)))


def agrees(ours: Any, peer: Any) -> bool:
    """Whether values are equal as far as the peer knows: NaN equals itself, -0.0 is not 0.0."""
    if peer is UNKNOWN:
        return True
    if isinstance(ours, dict) and isinstance(peer, dict):
        return ours.keys() == peer.keys() and all(agrees(ours[name], peer[name]) for name in ours)
    if isinstance(ours, list | tuple) and isinstance(peer, list | tuple):
        return len(ours) == len(peer) and all(map(agrees, ours, peer))
    if isinstance(ours, float) and isinstance(peer, float):
        return repr(ours) == repr(peer)
    return type(ours) is type(peer) and bool(ours == peer)


def as_numbers(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Times as numbers, days or microseconds: Python's own end with the year 9999."""
    columns = [with_type(column, _numbers(column.type)) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_numbers(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_numbers(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_numbers(kind.value_type)))
    return kind
