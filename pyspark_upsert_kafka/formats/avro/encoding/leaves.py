"""Columns of simple types as Avro's bytes (Avro specification 1.12, "Binary Encoding").

Every function takes a column without nulls; a value that cannot be written is a ValueError.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.avro.model import Enum, Logical
from pyspark_upsert_kafka.formats.binary.byte_parts import (
    ByteParts,
    Cells,
    fixed,
    varints,
)
from pyspark_upsert_kafka.formats.binary.numbers import Numbers, zigzag

_LAST_NANOS = (2**63 - 1) // 1000
_SHOWN_SYMBOLS = 20
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def longs(values: Numbers) -> Cells:
    """The numbers of a column."""
    return varints(zigzag(values))


def whole_numbers(array: pa.Array) -> ByteParts:
    """``int`` and ``long``."""
    return [longs(array.to_numpy())]


def floats(array: pa.Array) -> ByteParts:
    """``float``."""
    return [fixed(_with_one_nan(array.to_numpy().astype("<f4", copy=False)))]


def doubles(array: pa.Array) -> ByteParts:
    """``double``."""
    return [fixed(_with_one_nan(array.to_numpy().astype("<f8", copy=False)))]


def _with_one_nan(values: Numbers) -> Numbers:
    """Every NaN equals every other, and equal values must give equal bytes."""
    nans = np.isnan(values)
    return np.where(nans, values.dtype.type("nan"), values) if nans.any() else values


def booleans(array: pa.Array) -> ByteParts:
    """``boolean``."""
    return [fixed(array.to_numpy(zero_copy_only=False))]


def byte_strings(array: pa.Array) -> ByteParts:
    """``string`` and ``bytes``."""
    data = array.cast(pa.large_binary())
    return [longs(pc.binary_length(data).to_numpy()), data]


def fixed_bytes(size: int, array: pa.Array) -> ByteParts:
    """``fixed``."""
    sizes = pc.binary_length(array)
    for seen in pc.unique(sizes).to_pylist():
        if seen != size:
            raise ValueError(
                f"a value of {seen} bytes; the type in the Avro schema is fixed({size})"
            )
    return [array.cast(pa.large_binary())]


def uuids(array: pa.Array) -> ByteParts:
    """``uuid`` in ``fixed``; in a ``string`` it is the text itself."""
    texts = pl.Series(array)
    wrong = texts.filter(~texts.str.contains(_UUID))
    if len(wrong):
        raise ValueError(f"{wrong[0]!r} is no UUID")
    data = texts.str.replace_all("-", "", literal=True).str.decode("hex")
    return [data.to_arrow().cast(pa.large_binary())]


def symbols(enum: Enum, array: pa.Array) -> ByteParts:
    """``enum``."""
    positions = pc.index_in(array, value_set=pa.array(enum.symbols, array.type))
    if positions.null_count:
        seen = array.filter(positions.is_null())[0].as_py()
        known = ", ".join(enum.symbols[:_SHOWN_SYMBOLS])
        raise ValueError(f"{seen!r} is no symbol of the enum {enum.name!r}: {known}")
    return whole_numbers(positions)


def days(array: pa.Array) -> ByteParts:
    """``date``."""
    return whole_numbers(array.cast(pa.int32()))


def microseconds(array: pa.Array) -> ByteParts:
    """``timestamp-micros`` and its like, and intervals."""
    return whole_numbers(array.cast(pa.int64()))


def milliseconds(array: pa.Array) -> ByteParts:
    """``timestamp-millis`` and its like: rounded down, as Spark and Flink do."""
    return [longs(array.cast(pa.int64()).to_numpy() // 1000)]


def whole_milliseconds(remedy: str, array: pa.Array) -> ByteParts:
    """Milliseconds that lose nothing; a finer value is refused with what to do about it."""
    finer = array.cast(pa.int64()).to_numpy() % 1000 != 0
    if finer.any():
        first = array.slice(int(finer.argmax()), 1).cast(pa.int64())
        # By numpy: Python's own datetime ends with the year 9999.
        shown = str(first.to_numpy().astype("datetime64[us]")[0]).replace("T", " ")
        raise ValueError(f"{shown} is finer than milliseconds; {remedy}")
    return milliseconds(array)


def nanoseconds(array: pa.Array) -> ByteParts:
    """``timestamp-nanos`` and its like."""
    micros = array.cast(pa.int64()).to_numpy()
    if len(micros) and not -_LAST_NANOS <= micros.min() <= micros.max() <= _LAST_NANOS:
        raise ValueError("nanoseconds in 64 bits reach from the year 1677 to 2262 only")
    return [longs(micros * 1000)]


def decimals(logical: Logical, array: pa.Array) -> ByteParts:
    """``decimal`` in ``bytes``, as Java's ``BigInteger.toByteArray``: as few bytes as will do."""
    data = _big_endian(array, logical)
    inverted = data ^ _sign(data)
    kept = np.ones(data.shape, np.bool_)
    needed = np.zeros(len(data), np.bool_)
    for at in range(data.shape[1] - 1):
        # Needed is a byte that differs from the sign, all behind it, and one to hold the sign's bit.
        needed |= inverted[:, at] != 0
        kept[:, at] = needed | (inverted[:, at + 1] > 0x7F)
    return [longs(np.einsum("ij->i", kept.view(np.uint8))), Cells(data, kept)]


def fixed_decimals(logical: Logical, size: int, array: pa.Array) -> ByteParts:
    """``decimal`` in ``fixed``: filled up with the sign."""
    data = _big_endian(array, logical)
    lacking = size - data.shape[1]
    if lacking > 0:
        data = np.hstack([np.repeat(_sign(data), lacking, axis=1), data])
    return [fixed(data[:, -size:])]


def _sign(data: Numbers) -> Numbers:
    return np.where(data[:, :1] > 0x7F, np.uint8(0xFF), np.uint8(0))


def _big_endian(array: pa.Array, logical: Logical) -> Numbers:
    """Unscaled values as rows of bytes, of which there are eight when that is enough for all."""
    if array.type.precision > logical.precision:
        array = array.cast(pa.decimal128(logical.precision, logical.scale))
    values = np.frombuffer(array.buffers()[1], np.uint8)[16 * array.offset :][: 16 * len(array)]
    width = 8 if logical.precision <= 18 or array.type.precision <= 18 else 16
    return np.ascontiguousarray(values.reshape(-1, 16)[:, width - 1 :: -1])
