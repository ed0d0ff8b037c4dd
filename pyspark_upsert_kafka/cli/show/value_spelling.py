"""Values as text: the ``json`` format's spelling, with timestamps in ISO-8601 and decimals in full.

Two things that this format cannot write are written here: keys of a map that are not strings, as text, and an interval, as a
number of milliseconds with three digits after the point.
"""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.formats.json.encoding import JsonEncoder
from pyspark_upsert_kafka.formats.json.settings import Settings

ISO = Settings(
    fail_on_missing_field=False,
    ignore_parse_errors=False,
    timestamp_standard="ISO-8601",
    map_null_key_mode="LITERAL",
    map_null_key_literal="null",
    plain_decimals=True,
    ignore_null_fields=False,
    is_key=False,
)
"""How JSON is written, and how the values of ``--key`` are read."""

_MILLISECONDS = DecimalType(23, 3)
_BEFORE, _AFTER = len('{"":'), len("}")


class Spelling:
    """Rows as JSON objects, and their values as texts of cells.

    Args:
        schema: The columns of the rows.
    """

    def __init__(self, schema: StructType) -> None:
        self._schema = schema
        self._encoder = JsonEncoder(_encodable_columns(schema), ISO)

    def objects(self, rows: pa.RecordBatch) -> pl.Series:
        """A JSON object for each row."""
        columns = zip(self._schema, rows.columns, strict=True)
        converted = [_encodable(column, field.dataType) for field, column in columns]
        encoded = self._encoder.encode(pa.RecordBatch.from_arrays(converted, self._schema.names))
        return pl.Series(encoded.cast(pa.large_string()))

    def cells(self, rows: pa.RecordBatch) -> list[pl.Series]:
        """The texts of each column; null = NULL."""
        columns = zip(self._schema, rows.columns, strict=True)
        return [texts(column, field.dataType) for field, column in columns]


def texts(column: pa.Array, kind: DataType) -> pl.Series:
    """The values of a column as text: a string as it is, another simple value as in JSON but without quotes."""
    if isinstance(kind, StringType):
        return pl.Series(column, dtype=pl.String)
    # The encoder of an object with this field alone writes it, between what is cut off here.
    encoder = JsonEncoder(StructType([StructField("", encodable_type(kind))]), ISO)
    encoded = encoder.encode(pa.RecordBatch.from_arrays([_encodable(column, kind)], [""]))
    found = pl.Series(encoded.cast(pa.large_string())).str.slice(_BEFORE).str.head(-_AFTER)
    if not isinstance(kind, StructType | ArrayType | MapType | VariantType):
        found = found.str.strip_chars('"')
    valid = pl.Series(column.is_valid())
    return pl.select(pl.when(valid).then(found)).to_series()


def _encodable_columns(columns: StructType) -> StructType:
    fields = [StructField(f.name, encodable_type(f.dataType), f.nullable) for f in columns]
    return StructType(fields)


def encodable_type(kind: DataType) -> DataType:
    """The type that the JSON format has for it: an interval is a number of milliseconds."""
    if isinstance(kind, StructType):
        return _encodable_columns(kind)
    if isinstance(kind, ArrayType):
        return ArrayType(encodable_type(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(StringType(), encodable_type(kind.valueType), kind.valueContainsNull)
    return _MILLISECONDS if isinstance(kind, DayTimeIntervalType) else kind


def _encodable(array: pa.Array, kind: DataType) -> pa.Array:
    """The values in that type."""
    if encodable_type(kind) == kind:
        return array
    if isinstance(kind, StructType):
        children = zip(kind, array.flatten(), strict=True)
        fields = [_encodable(child, field.dataType) for field, child in children]
        return pa.StructArray.from_arrays(fields, kind.names, mask=array.is_null())
    if isinstance(kind, ArrayType):
        values = _encodable(array.values, kind.elementType)
        return _around(array, pa.list_(values.type), values)
    if isinstance(kind, MapType):
        keys = texts(array.keys, kind.keyType).to_arrow().cast(pa.string())
        items = _encodable(array.items, kind.valueType)
        entries = pa.StructArray.from_arrays(
            [keys, items],
            fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", items.type)],
        )
        return _around(array, pa.map_(pa.string(), items.type), entries)
    micros = array.cast(pa.duration("us")).cast(pa.int64())
    milliseconds = pc.multiply(micros.cast(pa.decimal128(19, 0)), pa.scalar(Decimal("0.001")))
    return milliseconds.cast(pa.decimal128(23, 3))


def _around(lists: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """The same lists or maps with other values in them."""
    own = lists.buffers()[:2]
    return pa.Array.from_buffers(kind, len(lists), own, offset=lists.offset, children=[values])
