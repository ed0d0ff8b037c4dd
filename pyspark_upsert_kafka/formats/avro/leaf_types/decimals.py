"""decimal, in bytes or in a fixed: an unscaled number as big-endian two's complement."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DecimalType

from pyspark_upsert_kafka.formats.avro.cursors import Cursors
from pyspark_upsert_kafka.formats.avro.leaf_types import Leaf, ReadField, Writer, WrittenField
from pyspark_upsert_kafka.formats.avro.leaf_types.numbers import longs
from pyspark_upsert_kafka.formats.avro.leaf_types.texts import Bytes, size_of
from pyspark_upsert_kafka.formats.avro.model import Fixed, Logical, logical_of
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts, Cells, fixed
from pyspark_upsert_kafka.formats.binary.decimals import beyond, signed
from pyspark_upsert_kafka.formats.binary.numbers import Numbers

_PLENTY = Context(prec=100)


def read_decimal(field: ReadField) -> Leaf | None:
    """Into a DECIMAL of the same scale, which a number may have too many digits for."""
    column, logical = field.column, field.logical
    if not pa.types.is_decimal(column) or logical is None or logical.scale != column.scale:
        return None
    return DecimalNumber(field.path, size_of(field.written), column)


class DecimalNumber(Bytes):
    """The bytes of a decimal."""

    def column_of(self, cursors: Cursors, start: Numbers) -> pa.Array:
        """Numbers whose sign is spread over sixteen bytes.

        Longer ones are left to the row path: they may still be a small number.
        """
        arrow: Any = self.arrow
        lengths = cursors.at - start
        low = cursors.buffer.words[cursors.at - 8].byteswap().view(np.int64)
        high = cursors.buffer.words[cursors.at - 16].byteswap().view(np.int64)
        cursors.leave((lengths == 0) | (lengths > 16))
        short = lengths <= 8
        low = np.where(short, signed(low, lengths), low)
        high = np.where(short, low >> 63, signed(high, lengths - 8))
        cursors.leave(beyond(high, low.view(np.uint64), arrow.precision))
        buffer = pa.py_buffer(np.stack([low, high], axis=1))
        return pa.Array.from_buffers(arrow, start.size, [None, buffer])

    def value_of(self) -> Callable[[bytes], Decimal]:
        """A number of no more digits than the column has."""
        arrow: Any = self.arrow
        bound = 10**arrow.precision

        def decimal(data: bytes) -> Decimal:
            if not data:
                raise ValueError("a decimal of no bytes")
            unscaled = int.from_bytes(data, "big", signed=True)
            if not -bound < unscaled < bound:
                digits = f"DECIMAL({arrow.precision},{arrow.scale})"
                raise ValueError(f"a number of more digits than {digits}")
            return Decimal(unscaled).scaleb(-arrow.scale, _PLENTY)

        return decimal


def write_decimal(field: WrittenField) -> Writer | None:
    """A DECIMAL of the same scale."""
    column, logical = field.column, logical_of(field.written)
    if not isinstance(column, DecimalType) or logical is None or logical.scale != column.scale:
        return None
    if isinstance(field.written, Fixed):
        return partial(_in_fixed, logical, field.written.size)
    return partial(_in_bytes, logical)


def _in_bytes(logical: Logical, array: pa.Array) -> ByteParts:
    """The fewest bytes that hold the number, as Java's ``BigInteger.toByteArray`` gives them."""
    data = _big_endian(array, logical)
    inverted = data ^ _sign(data)
    kept = np.ones(data.shape, np.bool_)
    needed = np.zeros(len(data), np.bool_)
    for at in range(data.shape[1] - 1):
        # Needed is a byte that differs from the sign, all behind it, and one to hold the sign's bit.
        needed |= inverted[:, at] != 0
        kept[:, at] = needed | (inverted[:, at + 1] > 0x7F)
    return [longs(np.einsum("ij->i", kept.view(np.uint8))), Cells(data, kept)]


def _in_fixed(logical: Logical, size: int, array: pa.Array) -> ByteParts:
    """Filled up with the sign."""
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
