"""Rows to JSON, column by column: each column becomes texts, and the texts are joined.

There is no row path, so equal rows give equal bytes, whatever other rows are in their batch. The rules are those of
Flink's ``RowDataToJsonConverters``. The schema is compiled into a tree of functions once. How each type is read: ``row_path.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from pyspark_upsert_kafka.formats.batches import as_lists
from pyspark_upsert_kafka.formats.json import JsonSettings
from pyspark_upsert_kafka.formats.json.json_document import variant_text
from pyspark_upsert_kafka.formats.text_columns import (
    TextParts,
    as_binary,
    base64_texts,
    float_texts,
    java_texts,
    joined,
    naming_column,
    per_list,
)
from pyspark_upsert_kafka.formats.timestamp_text import TimestampText, date_texts

_Writer = Callable[[pa.Array], TextParts]
"""A column of values to their JSON texts; the text of a null does not matter, since it is replaced."""

_Fields = list[tuple[str, _Writer]]
"""The fields of an object: each name with the comma before and the colon behind it, its writer."""

# Jackson escapes what JSON demands, and what takes two UTF-16 units.
_WIDE = r"[\x{10000}-\x{10FFFF}]"
_WIDE_FROM = 0xF0  # the first byte of such a character in UTF-8
_SHORT_ESCAPES = {
    "\b": r"\b",
    "\t": r"\t",
    "\n": r"\n",
    "\f": r"\f",
    "\r": r"\r",
    '"': r"\"",
    "\\": r"\\",
}
_ESCAPES = {chr(code): f"\\u{code:04X}" for code in range(0x20)} | _SHORT_ESCAPES
# Jackson writes what JSON has no number for as strings.
_NOT_FINITE = {name: f'"{name}"' for name in ("NaN", "Infinity", "-Infinity")}
_MILLISECOND = 1_000


class JsonEncoder:
    """Rows to JSON objects.

    Args:
        columns: The columns of the rows.
        settings: How they are written.
    """

    def __init__(self, columns: StructType, settings: JsonSettings) -> None:
        self._write = _object(columns, settings, "")

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One object for each row. Raises EncodeError."""
        texts = joined(self._write(rows.to_struct_array()), rows.num_rows)
        return as_binary(texts)


def _object(columns: StructType, settings: JsonSettings, path: str) -> _Writer:
    fields = [
        (
            f",{_string(field.name)}:",
            _writer(field.dataType, settings, path + field.name),
        )
        for field in columns.fields
    ]
    return partial(_without_nulls if settings.ignore_null_fields else _with_nulls, fields)


def _with_nulls(fields: _Fields, array: pa.Array) -> TextParts:
    parts: TextParts = []
    for (name, write), child in zip(fields, array.flatten(), strict=True):
        parts += [name if parts else name[1:], *_or_else(write(child), child, "null")]
    return ["{", *parts, "}"]


def _without_nulls(fields: _Fields, array: pa.Array) -> TextParts:
    parts: TextParts = []
    for (name, write), child in zip(fields, array.flatten(), strict=True):
        parts += _or_else([name, *write(child)], child, "")
    texts = joined(parts or [""], len(array)).str.strip_prefix(",")
    return ["{", texts, "}"]


def _value(kind: DataType, settings: JsonSettings, path: str) -> _Writer:
    write = _writer(kind, settings, path)
    return lambda array: _or_else(write(array), array, "null")


def _or_else(parts: TextParts, array: pa.Array, instead: str) -> TextParts:
    """The parts, with another text in the places where the array is null."""
    if not array.null_count:
        return parts
    texts = joined(parts, len(array))
    valid = pl.Series(array.is_valid())
    return [pl.select(pl.when(valid).then(texts).otherwise(pl.lit(instead))).to_series()]


def _array(element: _Writer, array: pa.Array) -> TextParts:
    values = array.flatten()
    texts = joined(element(values), len(values))
    return ["[", _per_row(array, texts), "]"]


def _map(key: _Writer, value: _Writer, array: pa.Array) -> TextParts:
    lists = as_lists(array)
    keys, values = lists.flatten().flatten()
    texts = joined([*key(keys), ":", *value(values)], len(keys))
    return ["{", _per_row(lists, texts), "}"]


def _per_row(lists: pa.Array, texts: pl.Series) -> pl.Series:
    """The texts of each list's elements, with commas between them."""
    return per_list(lists, texts).list.join(",", ignore_nulls=True)


def _writer(kind: DataType, settings: JsonSettings, path: str) -> _Writer:
    if isinstance(kind, StructType):
        return _object(kind, settings, f"{path}.")
    if isinstance(kind, ArrayType):
        return partial(_array, _value(kind.elementType, settings, f"{path}[]"))
    if isinstance(kind, MapType):
        return _map_writer(kind, settings, path)
    return naming_column(path, _leaf_writer(kind, settings))


def _map_writer(kind: MapType, settings: JsonSettings, path: str) -> _Writer:
    mode, literal = settings.map_null_key_mode, settings.map_null_key_literal
    key = naming_column(path, lambda keys: _map_keys(keys, mode, literal))
    return partial(_map, key, _value(kind.valueType, settings, f"{path}{{}}"))


def _plain(array: pa.Array) -> TextParts:
    """Whole numbers, booleans, and decimals with every digit of their scale."""
    return [pl.Series(array).cast(pl.String)]


def _quoted(texts: pl.Series, suffix: str = "") -> TextParts:
    """Texts in double quotes; none of them holds a character that needs an escape."""
    return ['"', texts, f'{suffix}"']


def _strings(array: pa.Array) -> TextParts:
    """Texts, escaped where they must be."""
    texts = pl.Series(array)
    return _quoted(_escaped(texts) if _needs_escape(array) else texts)


def _string(text: str) -> str:
    """One text, escaped where it must be."""
    return str(joined(_strings(pa.array([text])), 1)[0])


def _needs_escape(texts: pa.Array) -> bool:
    """Whether any text may; by bytes, since a search in each text costs ten times as much."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return False
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    bounds = np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1]
    octets = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    special = (octets < ord(" ")) | (octets == ord('"')) | (octets == ord("\\"))
    return bool((special | (octets >= _WIDE_FROM)).any())


def _escaped(texts: pl.Series) -> pl.Series:
    wide = texts.str.extract_all(_WIDE).explode().drop_nulls().unique()
    escapes = _ESCAPES | {character: _surrogates(character) for character in wide}
    return texts.str.replace_many(list(escapes), list(escapes.values()))


def _surrogates(character: str) -> str:
    units = character.encode("utf-16-be").hex().upper()
    return f"\\u{units[:4]}\\u{units[4:]}"


def _binaries(array: pa.Array) -> TextParts:
    """Binary as base64."""
    return _quoted(base64_texts(array))


def _floats(array: pa.Array) -> TextParts:
    """Floats in the spelling of Java."""
    texts = float_texts(array)
    return [texts if pl.Series(array).is_finite().all() else texts.replace(_NOT_FINITE)]


def _decimals(array: pa.Array) -> TextParts:
    """Decimals as Java's ``stripTrailingZeros().toString()``: 100.00 is 1E+2."""
    return [java_texts(array)]


def _dates(array: pa.Array) -> TextParts:
    """``yyyy-MM-dd``."""
    return _quoted(pl.Series(date_texts(array)))


def _timestamps(timestamp_format: TimestampText, array: pa.Array) -> TextParts:
    """In the standard's timestamp_format, in UTC when the type has a zone."""
    return _quoted(pl.Series(timestamp_format.texts(array)), timestamp_format.suffix)


def _intervals(array: pa.Array) -> TextParts:
    """INTERVAL DAY TO SECOND as whole milliseconds."""
    micros = pl.Series(array.cast(pa.duration("us")).cast(pa.int64()))
    if (micros % _MILLISECOND != 0).any():
        raise ValueError("an interval finer than milliseconds; JSON carries whole milliseconds")
    return [(micros // _MILLISECOND).cast(pl.String)]


def _variants(array: pa.Array) -> TextParts:
    """Variants as the JSON they stand for."""
    texts = [None if halves is None else variant_text(halves) for halves in array.to_pylist()]
    return [pl.Series(texts, dtype=pl.String)]


def _map_keys(keys: pa.Array, mode: str, literal: str) -> TextParts:
    """Names of a map's entries; null = the entry is dropped. Raises ValueError with mode FAIL."""
    if keys.null_count and mode == "FAIL":
        raise ValueError(
            "JSON format doesn't support to serialize map data with null keys. You can drop null "
            "key entries or encode null in literals by specifying map-null-key.mode option."
        )
    if mode == "LITERAL":
        keys = keys.fill_null(literal)
    return [joined(_strings(keys), len(keys))]


def _leaf_writer(kind: DataType, settings: JsonSettings) -> _Writer:
    """The writer of a type without parts."""
    if isinstance(kind, TimestampType | TimestampNTZType):
        zoned = isinstance(kind, TimestampType)
        return partial(_timestamps, TimestampText(settings.timestamp_standard, zoned))
    if isinstance(kind, DecimalType) and not settings.plain_decimals:
        return _decimals
    if isinstance(kind, DoubleType | FloatType):
        return _floats
    return _LEAVES.get(type(kind), _plain)


_LEAVES: dict[type[DataType], _Writer] = {
    BinaryType: _binaries,
    DateType: _dates,
    DayTimeIntervalType: _intervals,
    StringType: _strings,
    VariantType: _variants,
}
