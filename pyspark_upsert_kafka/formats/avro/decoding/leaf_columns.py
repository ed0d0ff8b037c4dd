"""Columns of simple types, read in step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.decoding.byte_columns import (
    binaries,
    decimals,
    skipped,
    texts,
    uuids,
)
from pyspark_upsert_kafka.formats.avro.decoding.plan import Misfit, Null, Number, Sized, Symbol
from pyspark_upsert_kafka.formats.avro.decoding.positions import Positions
from pyspark_upsert_kafka.formats.bytewise.numbers import Numbers

Read = Callable[[Positions], Any]
"""Reads one node of all messages and gives its column; None when no column wants it."""


def _null(node: Null) -> Read:
    kind = node.arrow
    return lambda positions: None if kind is None else pa.nulls(len(positions.at), kind)


def _misfit(node: Misfit) -> Read:
    def read(positions: Positions) -> pa.Array:
        positions.leave(np.ones(len(positions.at), bool))
        return pa.nulls(len(positions.at), node.arrow)

    return read


def _number(node: Number) -> Read:
    raw = _integers(node) if node.wire in ("int", "long") else _RAW[node.wire]
    kind, through = node.arrow, node.through
    if kind is None:
        return lambda positions: _nothing(raw(positions))
    if pa.types.is_boolean(kind):
        return lambda positions: pa.array(raw(positions))
    last = [] if through else [f"int{kind.bit_width}"]

    def read(positions: Positions) -> pa.Array:
        numbers = raw(positions)
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            for dtype in (*through, *last):
                numbers = numbers.astype(dtype, copy=False)
        return pa.Array.from_buffers(kind, numbers.size, [None, pa.py_buffer(numbers)])

    return read


def _nothing(_: Any) -> None:
    return None


def _integers(node: Number) -> Callable[[Positions], Numbers]:
    bound = 1 << (31 if node.wire == "int" else 63)
    scale = node.scale
    low, high = max(scale.low, -bound), min(scale.high, bound - 1)
    checked = (low, high) != (-(1 << 63), (1 << 63) - 1)

    def numbers(positions: Positions) -> Numbers:
        seen = positions.longs()
        if checked:
            positions.leave((seen < low) | (seen > high))
        if scale.times != 1:
            seen *= scale.times
        return seen if scale.over == 1 else seen // scale.over

    return numbers


def _booleans(positions: Positions) -> Numbers:
    seen = positions.bytes()
    positions.leave(seen > 1)
    return np.asarray(seen == 1)


_RAW: dict[str, Callable[[Positions], Numbers]] = {
    "boolean": _booleans,
    "float": lambda positions: positions.next_words(4).astype("<u4").view("<f4"),
    "double": lambda positions: positions.next_words(8).view("<f8"),
}


def _sized(node: Sized) -> Read:
    size, kind = node.size, node.arrow
    if kind is None:
        return lambda positions: _nothing(skipped(positions, size))
    if node.form == "decimal":
        return lambda positions: decimals(positions, skipped(positions, size), kind)
    column = {"bytes": binaries, "text": texts, "uuid": uuids}[node.form]
    return lambda positions: column(positions, skipped(positions, size))


def _symbol(node: Symbol) -> Read:
    count = len(node.symbols)
    passed = node.arrow is None
    known = np.array([passed or symbol is not None for symbol in node.symbols] + [False])
    symbols = pa.array([*node.symbols, None], pa.string())

    def read(positions: Positions) -> pa.Array | None:
        numbers = positions.longs()
        numbers[(numbers < 0) | (numbers > count)] = count
        positions.leave(~known[numbers])
        return None if passed else symbols.take(pa.array(numbers))

    return read


LEAVES: dict[type[Any], Callable[[Any], Read]] = {
    Misfit: _misfit,
    Null: _null,
    Number: _number,
    Sized: _sized,
    Symbol: _symbol,
}
