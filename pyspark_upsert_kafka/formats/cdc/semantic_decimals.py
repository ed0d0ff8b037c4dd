"""Decimals: an unscaled number as big-endian two's complement, and a scale.

The scale stands in the schema (Connect's ``Decimal``) or beside each number (Debezium's ``VariableScaleDecimal``).

In JSON a decimal may be a number beside a schema that says bytes: ``decimal.format`` = ``NUMERIC`` in Kafka Connect. Such a number
becomes the text of the bytes that the converter writes otherwise. Whether a converter is set so, is seen from its messages: those
that cannot be read as they are, are looked into, and after the first of them all.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.core.bytes_column import some_of
from pyspark_upsert_kafka.formats.binary_values import Numbers, beyond, signed
from pyspark_upsert_kafka.formats.cdc.connect_schema import (
    BYTES,
    STRUCT,
    ConnectSchema,
    ReadAs,
    SemanticType,
)
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from pyspark_upsert_kafka.formats.decoding import UnreadableError, replaced
from pyspark_upsert_kafka.formats.json.json_document import Number, compact, parse

_DECIMAL = "org.apache.kafka.connect.data.Decimal"

_MOST_DIGITS = 38
# More than the largest NUMERIC of Postgres: 131,072 digits before the point and 16,383 behind it.
_MOST_BYTES, _MOST_PLACES = 65_536, 200_000
_MOST_AT_ONCE = 1_000
_EXACT = Context(prec=_MOST_PLACES, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_HALF_UP)
# Columns with more scales than this are read value by value.
_MOST_SCALES = 16

_Finish = Callable[[pa.Array], pa.Array]
"""Exact decimals to the column that is wanted; ValueError = one has no room in it."""


def _scale_of(schema: ConnectSchema) -> int | None:
    """The scale that a schema declares; None = it declares none."""
    try:
        return int(schema.parameters["scale"])
    except (KeyError, ValueError):
        return None


def _read_decimal(schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """Bytes, with the scale in the schema."""
    if isinstance(wanted, BinaryType):
        return ReadAs(wanted)
    scale, ways = _scale_of(schema), _ways(wanted)
    if scale is None or ways is None:
        return None
    finish, finish_one = ways
    return ReadAs(
        BinaryType(),
        lambda array: finish(_exact(array, scale)),
        lambda data: finish_one(_number(data, scale)),
    )


_VARIABLE = StructType([StructField("scale", IntegerType()), StructField("value", BinaryType())])


def _read_variable_decimal(_schema: ConnectSchema, wanted: DataType) -> ReadAs | None:
    """A struct of the scale and the bytes."""
    if isinstance(wanted, StructType):
        return ReadAs(wanted)
    ways = _ways(wanted)
    if ways is None:
        return None
    finish, finish_one = ways
    return ReadAs(
        _VARIABLE,
        partial(_of_scales, finish),
        lambda parts: finish_one(_variable(parts)),
    )


def _ways(wanted: DataType) -> tuple[_Finish, Callable[[Decimal], Any]] | None:
    """From decimals to a column, and from a decimal to a value of it."""
    if isinstance(wanted, DecimalType):
        kind = pa.decimal128(wanted.precision, wanted.scale)
        return partial(_rounded, kind), partial(_rounded_one, kind)
    if isinstance(wanted, StringType):
        return _texts, lambda number: f"{number:f}"
    return None


def _exact(array: pa.Array, scale: int) -> pa.Array:
    """A column of bytes as decimals of 38 digits. Raises ValueError for a number that is longer, or no number."""
    if not 0 <= scale <= _MOST_DIGITS:
        raise ValueError("a scale that Arrow's decimals do not have")
    array = array.cast(pa.large_binary())
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    high, low, lengths = _halves(array)
    odd = (lengths == 0) | (lengths > 16) | beyond(high, low.view(np.uint64), _MOST_DIGITS)
    if (odd & ~nulls).any():
        raise ValueError("no number of 38 digits")
    low[nulls], high[nulls] = 0, 0
    numbers = pa.py_buffer(np.stack([low, high], axis=1))
    valid = pa.array(~nulls).buffers()[1] if nulls.any() else None
    return pa.Array.from_buffers(pa.decimal128(_MOST_DIGITS, scale), len(array), [valid, numbers])


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
    if len(data) > _MOST_BYTES or abs(scale) > _MOST_PLACES:
        raise ValueError("a decimal larger than those of any database")
    return _whole(data).scaleb(-scale, _EXACT)


def _whole(data: bytes) -> Decimal:
    """The number in two's complement. Python takes the square of the bytes for a long one, which is put together of parts here."""
    if len(data) <= _MOST_AT_ONCE:
        return Decimal(int.from_bytes(data, "big", signed=True))
    number = _unsigned(data)
    return number if data[0] < 0x80 else _EXACT.subtract(number, _EXACT.power(256, len(data)))


def _unsigned(data: bytes) -> Decimal:
    if len(data) <= _MOST_AT_ONCE:
        return Decimal(int.from_bytes(data, "big"))
    half = len(data) // 2
    return _EXACT.fma(_unsigned(data[:-half]), _EXACT.power(256, half), _unsigned(data[-half:]))


def _variable(parts: Mapping[str, Any]) -> Decimal:
    if parts["scale"] is None or parts["value"] is None:
        raise ValueError("expected 'scale' and 'value'")
    return _number(parts["value"], parts["scale"])


def _of_scales(finish: _Finish, array: pa.StructArray) -> pa.Array:
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
    finish: _Finish, scales: pa.Array, numbers: pa.Array, found: list[int]
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
    rounded = number.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    if rounded and rounded.adjusted() >= digits:
        raise ValueError(expected)
    return rounded


def _texts(decimals: pa.Array) -> pa.Array:
    """All digits, without an exponent."""
    import polars as pl

    return pl.Series(decimals).cast(pl.String).to_arrow().cast(pa.string())


def _column(schema: ConnectSchema) -> DataType:
    """As many digits as the database's column, where Debezium says how many these are, and 38 otherwise."""
    scale, digits = _scale_of(schema), schema.parameters.get("connect.decimal.precision", "")
    if scale is None or not 0 <= scale <= _MOST_DIGITS:
        return StringType()
    precision = int(digits) if digits.isdecimal() and len(digits) <= 2 else _MOST_DIGITS
    return DecimalType(min(max(precision, scale, 1), _MOST_DIGITS), scale)


DECIMALS: Mapping[str, SemanticType] = {
    _DECIMAL: SemanticType(BYTES, _column, _read_decimal, "DECIMAL, STRING or BINARY"),
    "io.debezium.data.VariableScaleDecimal": SemanticType(
        STRUCT,
        DecimalType(_MOST_DIGITS, 18),
        _read_variable_decimal,
        "DECIMAL, STRING or STRUCT<scale: INT, value: BINARY>",
    ),
}
"""All of them by their names."""


def has_decimals(schema: ConnectSchema, wanted: DataType) -> bool:
    """Whether a column wants decimals of a value; see ``columns_by_schema.py`` for what is read of which schema."""
    if _is_decimal(schema):
        return True
    return any(has_decimals(part, kind) for _, part, kind in _parts(schema, wanted))


def _is_decimal(schema: ConnectSchema) -> bool:
    return schema.type == "bytes" and schema.name == _DECIMAL


def _parts(
    schema: ConnectSchema, wanted: DataType
) -> Iterator[tuple[str | None, ConnectSchema, DataType]]:
    """The parts of a value that a column wants: fields by their names; None = all items."""
    if isinstance(wanted, StructType) and schema.type == "struct":
        for field in wanted.fields:
            if field.name in schema.fields:
                yield field.name, schema.fields[field.name], field.dataType
    elif schema.items is not None and isinstance(wanted, ArrayType) and schema.type == "array":
        yield None, schema.items, wanted.elementType
    elif schema.items is not None and isinstance(wanted, MapType) and schema.type == "map":
        yield None, schema.items, wanted.valueType


class NumericDecimalsDecoder:
    """Decodes messages of a schema with decimals, be they bytes or numbers.

    Args:
        plain: Decodes messages whose decimals are bytes.
        schema: Their schema.
        columns: The columns.
        lenient: Whether the plain decoder reads a value as NULL that it cannot read, so that nothing shows that it was a number.
    """

    def __init__(
        self, plain: Decoder, schema: ConnectSchema, columns: StructType, *, lenient: bool
    ) -> None:
        self._plain, self._schema, self._columns = plain, schema, columns
        self._lenient = lenient
        self._are_numbers = False

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of some messages. Raises TooManyMessagesError as the plain decoder does."""
        if self._are_numbers or self._lenient:
            return self._plain.decode(self._rewritten(messages))
        decoded = self._plain.decode(messages)
        bad = sorted(decoded.errors)
        if not bad:
            return decoded
        some = some_of(messages, bad)
        again = self._rewritten(some)
        if all(old == new for old, new in zip(some, again, strict=True)):
            return decoded
        self._are_numbers = True
        return replaced(decoded, bad, self._plain.decode(again))

    def _rewritten(self, messages: Sequence[bytes]) -> list[bytes]:
        return [self._with_bytes(message) for message in messages]

    def _with_bytes(self, message: bytes) -> bytes:
        try:
            value = parse(message)
        except UnreadableError:
            return message
        return compact(_with_bytes(value, self._schema, self._columns)).encode()


def _with_bytes(value: Any, schema: ConnectSchema, wanted: DataType) -> Any:
    """A parsed value of a schema, in which each decimal that a column wants is the text of its bytes, if it is a number."""
    if _is_decimal(schema):
        return _text_of_bytes(value, schema) if type(value) is Number else value
    for name, part, kind in _parts(schema, wanted):
        if type(value) is dict and not isinstance(wanted, ArrayType):
            names = value if name is None else (name,)
            changed = {
                each: _with_bytes(value[each], part, kind) for each in names if each in value
            }
            value = {**value, **changed}
        elif type(value) is list and isinstance(wanted, ArrayType):
            value = [_with_bytes(each, part, kind) for each in value]
    return value


def _text_of_bytes(number: Number, schema: ConnectSchema) -> str:
    """The text of the unscaled number's bytes; a number with more digits than the scale has, or than any database, stays what it is."""
    scale = _scale_of(schema)
    try:
        exact = Decimal(number)
    except InvalidOperation:  # an exponent beyond all bounds
        return number
    longest = max(abs(exact.adjusted()), len(number))
    if scale is None or max(abs(scale), longest) > _MOST_PLACES:
        return number
    unscaled = exact.scaleb(scale, _EXACT)
    if unscaled != unscaled.to_integral_value(context=_EXACT):
        return number
    whole = int(unscaled)
    return b64encode(whole.to_bytes(whole.bit_length() // 8 + 1, "big", signed=True)).decode()
