"""How ``pyarrow.json`` reads each type.

Numbers, booleans and texts it reads itself. Dates, timestamps and binary are read as texts and then
converted as columns; inside arrays and structs too.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.base64_text import binaries
from pyspark_upsert_kafka.formats.conversion import Conversion, finite
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.timestamp_text import TimestampText, dates


def conversion(kind: pa.DataType, settings: Settings) -> Conversion:
    """How a column of that type is read."""
    if pa.types.is_struct(kind):
        return _struct(kind, settings)
    if pa.types.is_list(kind):
        return _list(kind, settings)
    if pa.types.is_timestamp(kind):
        timestamps = TimestampText(settings.timestamp_standard, zoned=kind.tz is not None)
        return Conversion(pa.string(), timestamps.column)
    if pa.types.is_floating(kind):
        return Conversion(kind, finite)
    if pa.types.is_decimal(kind):
        return Conversion(_wide(kind), lambda array: array.cast(kind))
    return _SIMPLE.get(kind, Conversion(kind))


def _struct(kind: pa.StructType, settings: Settings) -> Conversion:
    inner = [conversion(field.type, settings) for field in kind]
    parsed = pa.struct([(f.name, each.parsed) for f, each in zip(kind, inner, strict=True)])

    def convert(array: pa.Array) -> pa.Array:
        children = [each.convert(array.field(i)) for i, each in enumerate(inner)]
        fields = [pa.field(f.name, c.type) for f, c in zip(kind, children, strict=True)]
        return _rebuilt(array, pa.struct(fields), own_buffers=1, children=children)

    return Conversion(parsed, convert)


def _list(kind: pa.ListType, settings: Settings) -> Conversion:
    inner = conversion(kind.value_type, settings)

    def convert(array: pa.Array) -> pa.Array:
        values = inner.convert(array.values)
        return _rebuilt(array, pa.list_(values.type), own_buffers=2, children=[values])

    return Conversion(pa.list_(inner.parsed), convert)


def _rebuilt(
    array: pa.Array, kind: pa.DataType, own_buffers: int, children: list[pa.Array]
) -> pa.Array:
    own = array.buffers()[:own_buffers]
    return pa.Array.from_buffers(kind, len(array), own, array.null_count, children=children)


def _wide(kind: pa.Decimal128Type) -> pa.DataType:
    """Room for 38 digits as they stand and 38 more that the scale adds.

    The parser counts the digits it is given, and then scales without a check: in 128 bits 11 would
    become a wrong DECIMAL(38,38). The cast back to 128 bits refuses what does not fit.
    """
    return pa.decimal256(38, kind.scale)


def _interval(array: pa.Array) -> pa.Array:
    return pc.multiply_checked(array, 1_000).cast(pa.duration("us"))


_SIMPLE = {
    pa.date32(): Conversion(pa.string(), dates),
    pa.binary(): Conversion(pa.string(), binaries),
    pa.duration("us"): Conversion(pa.int64(), _interval),
}
