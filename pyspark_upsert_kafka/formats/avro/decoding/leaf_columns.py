"""Columns of simple types, read from all messages at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.decoding.byte_columns import (
    binaries,
    decimals,
    skip_bytes,
    texts,
    uuids,
)
from pyspark_upsert_kafka.formats.avro.decoding.cursors import Cursors
from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    BytesNode,
    EnumNode,
    MismatchNode,
    NullNode,
    NumberNode,
)
from pyspark_upsert_kafka.formats.binary.numbers import Numbers

Read = Callable[[Cursors], Any]
"""Reads one node of all messages and gives its column; None when no column wants it."""


def _null(node: NullNode) -> Read:
    kind = node.arrow
    return lambda cursors: None if kind is None else pa.nulls(len(cursors.at), kind)


def _mismatch(node: MismatchNode) -> Read:
    def read(cursors: Cursors) -> pa.Array:
        cursors.defer(np.ones(len(cursors.at), bool))
        return pa.nulls(len(cursors.at), node.arrow)

    return read


def _number(node: NumberNode) -> Read:
    raw = _integers(node) if node.wire in ("int", "long") else _RAW[node.wire]
    kind, through = node.arrow, node.through
    if kind is None:
        return lambda cursors: _nothing(raw(cursors))
    if pa.types.is_boolean(kind):
        return lambda cursors: pa.array(raw(cursors))
    last = [] if through else [f"int{kind.bit_width}"]

    def read(cursors: Cursors) -> pa.Array:
        numbers = raw(cursors)
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            for dtype in (*through, *last):
                numbers = numbers.astype(dtype, copy=False)
        return pa.Array.from_buffers(kind, numbers.size, [None, pa.py_buffer(numbers)])

    return read


def _nothing(_: Any) -> None:
    return None


def _integers(node: NumberNode) -> Callable[[Cursors], Numbers]:
    bound = 1 << (31 if node.wire == "int" else 63)
    scale = node.scale
    low, high = max(scale.low, -bound), min(scale.high, bound - 1)
    checked = (low, high) != (-(1 << 63), (1 << 63) - 1)

    def numbers(cursors: Cursors) -> Numbers:
        seen = cursors.longs()
        if checked:
            cursors.defer((seen < low) | (seen > high))
        if scale.times != 1:
            seen *= scale.times
        return seen if scale.over == 1 else seen // scale.over

    return numbers


def _booleans(cursors: Cursors) -> Numbers:
    seen = cursors.bytes()
    cursors.defer(seen > 1)
    return np.asarray(seen == 1)


_RAW: dict[str, Callable[[Cursors], Numbers]] = {
    "boolean": _booleans,
    "float": lambda cursors: cursors.next_words(4).astype("<u4").view("<f4"),
    "double": lambda cursors: cursors.next_words(8).view("<f8"),
}


def _sized(node: BytesNode) -> Read:
    size, kind = node.size, node.arrow
    if kind is None:
        return lambda cursors: _nothing(skip_bytes(cursors, size))
    if node.form == "decimal":
        return lambda cursors: decimals(cursors, skip_bytes(cursors, size), kind)
    column = {"bytes": binaries, "text": texts, "uuid": uuids}[node.form]
    return lambda cursors: column(cursors, skip_bytes(cursors, size))


def _symbol(node: EnumNode) -> Read:
    count = len(node.symbols)
    skipped = node.arrow is None
    known = np.array([skipped or symbol is not None for symbol in node.symbols] + [False])
    symbols = pa.array([*node.symbols, None], pa.string())

    def read(cursors: Cursors) -> pa.Array | None:
        numbers = cursors.longs()
        numbers[(numbers < 0) | (numbers > count)] = count
        cursors.defer(~known[numbers])
        return None if skipped else symbols.take(pa.array(numbers))

    return read


LEAVES: dict[type[Any], Callable[[Any], Read]] = {
    MismatchNode: _mismatch,
    NullNode: _null,
    NumberNode: _number,
    BytesNode: _sized,
    EnumNode: _symbol,
}
