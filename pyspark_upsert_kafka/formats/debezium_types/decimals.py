"""Decimals that are sent as bytes: an unscaled number as big-endian two's complement, and a scale.

The scale stands in the schema (Connect's ``Decimal``) or beside each number (Debezium's ``VariableScaleDecimal``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DecimalType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.formats.binary.decimals import beyond, signed
from pyspark_upsert_kafka.formats.binary.numbers import Numbers
from pyspark_upsert_kafka.formats.debezium_types.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.debezium_types.reading import Reading, plain

MOST_DIGITS = 38
# More than the largest NUMERIC of Postgres: 131,072 digits before the point and 16,383 behind it.
_MOST_BYTES, MOST_PLACES = 65_536, 200_000
_MOST_AT_ONCE = 1_000
EXACT = Context(prec=MOST_PLACES, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_HALF_UP)
# Columns with more scales than this are read value by value.
_MOST_SCALES = 16

Finish = Callable[[pa.Array], pa.Array]
"""Exact decimals to the column that is wanted; ValueError = one has no room in it."""


def scale_of(schema: ConnectSchema) -> int | None:
    """The scale that a schema declares; None = it declares none."""
    try:
        return int(schema.parameters["scale"])
    except (KeyError, ValueError):
        return None


def read_decimal(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """Bytes, with the scale in the schema."""
    if isinstance(wanted, BinaryType):
        return plain(wanted)
    scale, ways = scale_of(schema), _ways(wanted)
    if scale is None or ways is None:
        return None
    finish, finish_one = ways
    return Reading(
        BinaryType(),
        lambda array: finish(_exact(array, scale)),
        lambda data: finish_one(_number(data, scale)),
    )


VARIABLE = StructType([StructField("scale", IntegerType()), StructField("value", BinaryType())])
"""The parts of a VariableScaleDecimal."""


def read_variable_decimal(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """A struct of the scale and the bytes."""
    del schema
    if isinstance(wanted, StructType):
        return plain(wanted)
    ways = _ways(wanted)
    if ways is None:
        return None
    finish, finish_one = ways
    return Reading(
        VARIABLE,
        partial(_of_scales, finish),
        lambda parts: finish_one(_variable(parts)),
    )


def _ways(wanted: DataType) -> tuple[Finish, Callable[[Decimal], Any]] | None:
    """From decimals to a column, and from a decimal to a value of it."""
    if isinstance(wanted, DecimalType):
        kind = pa.decimal128(wanted.precision, wanted.scale)
        return partial(_rounded, kind), partial(_rounded_one, kind)
    if isinstance(wanted, StringType):
        return _texts, lambda number: f"{number:f}"
    return None


def _exact(array: pa.Array, scale: int) -> pa.Array:
    """A column of bytes as decimals of 38 digits. Raises ValueError for a number that is longer, or no number."""
    if not 0 <= scale <= MOST_DIGITS:
        raise ValueError("a scale that Arrow's decimals do not have")
    array = array.cast(pa.large_binary())
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    high, low, lengths = _halves(array)
    odd = (lengths == 0) | (lengths > 16) | beyond(high, low.view(np.uint64), MOST_DIGITS)
    if (odd & ~nulls).any():
        raise ValueError("no number of 38 digits")
    low[nulls], high[nulls] = 0, 0
    numbers = pa.py_buffer(np.stack([low, high], axis=1))
    valid = pa.array(~nulls).buffers()[1] if nulls.any() else None
    return pa.Array.from_buffers(pa.decimal128(MOST_DIGITS, scale), len(array), [valid, numbers])


def _halves(array: pa.LargeBinaryArray) -> tuple[Numbers, Numbers, Numbers]:
    """The last sixteen bytes of each value as two numbers, the sign spread over them, and how long the value is."""
    if not len(array):
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset :][: len(array) + 1]
    taken = b"" if data is None else memoryview(data)[ends[0] : ends[-1]]
    padded = np.frombuffer(b"".join([bytes(16), taken]), np.uint8)
    last = np.lib.stride_tricks.sliding_window_view(padded, 16)[ends[1:] - ends[0]]
    words = np.ascontiguousarray(last).view(">i8").astype(np.int64)
    lengths = np.diff(ends)
    short = lengths <= 8
    low = np.where(short, signed(words[:, 1], lengths), words[:, 1])
    high = np.where(short, low >> 63, signed(words[:, 0], lengths - 8))
    return high, low, lengths


def _number(data: bytes, scale: int) -> Decimal:
    if not data:
        raise ValueError("a decimal of no bytes")
    if len(data) > _MOST_BYTES or abs(scale) > MOST_PLACES:
        raise ValueError("a decimal larger than those of any database")
    return _whole(data).scaleb(-scale, EXACT)


def _whole(data: bytes) -> Decimal:
    """The number in two's complement. Python takes the square of the bytes for a long one, which is put together of parts here."""
    if len(data) <= _MOST_AT_ONCE:
        return Decimal(int.from_bytes(data, "big", signed=True))
    number = _unsigned(data)
    return number if data[0] < 0x80 else EXACT.subtract(number, EXACT.power(256, len(data)))


def _unsigned(data: bytes) -> Decimal:
    if len(data) <= _MOST_AT_ONCE:
        return Decimal(int.from_bytes(data, "big"))
    half = len(data) // 2
    return EXACT.fma(_unsigned(data[:-half]), EXACT.power(256, half), _unsigned(data[-half:]))


def _variable(parts: Mapping[str, Any]) -> Decimal:
    if parts["scale"] is None or parts["value"] is None:
        raise ValueError("expected 'scale' and 'value'")
    return _number(parts["value"], parts["scale"])


def _of_scales(finish: Finish, array: pa.StructArray) -> pa.Array:
    """Numbers of some scales: those of each scale together. Raises ValueError."""
    scales, numbers = pc.struct_field(array, "scale"), pc.struct_field(array, "value")
    if scales.null_count != array.null_count or numbers.null_count != array.null_count:
        raise ValueError("a part is missing")
    found = pc.unique(scales.drop_null()).to_pylist()
    if len(found) > _MOST_SCALES:
        raise ValueError("many scales")
    if len(found) <= 1:
        return finish(_exact(numbers, *(found or [0])))
    parts = list(_by_scale(finish, scales, numbers, found))
    places = np.concatenate([at for at, _ in parts])
    return pa.concat_arrays([part for _, part in parts]).take(pa.array(np.argsort(places)))


def _by_scale(
    finish: Finish, scales: pa.Array, numbers: pa.Array, found: list[int]
) -> Iterator[tuple[Numbers, pa.Array]]:
    """The numbers of each scale, and where they stand; what is null counts to the first."""
    each = scales.fill_null(found[0]).to_numpy()
    for scale in found:
        places = np.flatnonzero(each == scale)
        yield places, finish(_exact(numbers.take(pa.array(places)), scale))


def _rounded(kind: pa.Decimal128Type, decimals: pa.Array) -> pa.Array:
    """In the digits of the column, rounded half up behind them. Raises ValueError."""
    if decimals.type.scale > kind.scale:
        wide = decimals.cast(pa.decimal256(76, decimals.type.scale))
        return pc.round(wide, kind.scale, "half_towards_infinity").cast(kind)
    return decimals.cast(pa.decimal256(76, kind.scale)).cast(kind)


def _rounded_one(kind: pa.Decimal128Type, number: Decimal) -> Decimal:
    expected = f"expected a DECIMAL({kind.precision},{kind.scale})"
    digits = kind.precision - kind.scale
    if number and number.adjusted() >= digits:
        raise ValueError(expected)
    rounded = number.quantize(Decimal(1).scaleb(-kind.scale), context=EXACT)
    if rounded and rounded.adjusted() >= digits:
        raise ValueError(expected)
    return rounded


def _texts(decimals: pa.Array) -> pa.Array:
    """All digits, without an exponent."""
    import polars as pl

    return pl.Series(decimals).cast(pl.String).to_arrow().cast(pa.string())
