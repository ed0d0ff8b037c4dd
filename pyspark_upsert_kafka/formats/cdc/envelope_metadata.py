"""Metadata in an envelope: where each stands, and how it becomes the type that a column shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DataType, LongType, MapType, StringType, StructField, StructType

from pyspark_upsert_kafka.formats.timestamp_text import TimestampText

_TEXT = StringType()
_TIMESTAMP = pa.timestamp("us", "UTC")
_MIN_US, _MAX_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999; a time beyond them is shown as NULL."""

_STANDARDS = (TimestampText("SQL", zoned=False), TimestampText("ISO-8601", zoned=False))

PROPERTIES = MapType(StringType(), StringType())
"""An object whose values are shown as texts."""


def as_it_is(column: pa.Array) -> pa.Array:
    """The column itself."""
    return column


def millis(column: pa.Array) -> pa.Array:
    """Milliseconds since 1970 as timestamps."""
    return _times(column, 1000)


def seconds(column: pa.Array) -> pa.Array:
    """Seconds since 1970 as timestamps."""
    return _times(column, 1_000_000)


def _times(column: pa.Array, micros: int) -> pa.Array:
    """Numbers of some microseconds each as timestamps."""
    first, last = _MIN_US // micros, _MAX_US // micros
    known = pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
    kept = pc.if_else(known, column, pa.scalar(None, column.type))
    return pc.multiply(kept, micros).cast(_TIMESTAMP)


def local_texts(column: pa.Array) -> pa.Array:
    """Times like ``2024-01-31 12:30:00.123456``, with a space or a ``T``, as timestamps in UTC; another text is NULL."""
    return pa.array(
        [None if text is None else _local(text) for text in column.to_pylist()], _TIMESTAMP
    )


def _local(text: str) -> int | None:
    for standard in _STANDARDS:
        try:
            return standard.micros(text)
        except ValueError:
            continue
    return None


@dataclass(frozen=True)
class Place:
    """Where metadata stands in an envelope.

    Args:
        path: The names of the fields that lead to it.
        type: The type as which the format reads it.
        convert: From that type to the type that a column shows.
    """

    path: tuple[str, ...]
    type: DataType = _TEXT
    convert: Callable[[pa.Array], pa.Array] = as_it_is


def fields_of(places: Iterable[Place]) -> list[StructField]:
    """The fields of an envelope that hold metadata.

    An object of which all is wanted is read as a map of texts, which holds its parts too.
    """
    found: dict[str, StructField] = {}
    parts: dict[str, dict[str, StructField]] = {}
    for place in places:
        name = place.path[0]
        if len(place.path) == 1:
            found[name] = StructField(name, place.type)
        else:
            part = place.path[1]
            parts.setdefault(name, {})[part] = StructField(part, place.type)
    objects = [
        StructField(name, StructType([*fields.values()]))
        for name, fields in parts.items()
        if name not in found
    ]
    return [*found.values(), *objects]


def shown(place: Place, envelopes: Mapping[str, pa.Array]) -> pa.Array:
    """What a column shows of each envelope.

    Args:
        place: Where it stands.
        envelopes: The fields of the envelopes by name, those of `fields_of` among them.
    """
    column = envelopes[place.path[0]]
    if len(place.path) == 1:
        return place.convert(column)
    if pa.types.is_map(column.type):
        part = pc.map_lookup(column, pa.scalar(place.path[1]), "last")
        return place.convert(_number(part) if isinstance(place.type, LongType) else part)
    at = column.type.get_field_index(place.path[1])
    return place.convert(column.flatten()[at])


def _number(texts: pa.Array) -> pa.Array:
    """Texts as whole numbers, NULL where a text is none."""
    is_number = pc.match_substring_regex(texts, "^-?[0-9]{1,18}$")
    return pc.if_else(is_number, texts, pa.scalar(None, texts.type)).cast(pa.int64())


def metadata_reader(
    places: Mapping[str, Place], keys: Iterable[str]
) -> Callable[[pa.RecordBatch], dict[str, pa.Array]]:
    """Compiles what columns show of envelopes: for each of the keys that has a place."""
    wanted = {key: places[key] for key in keys if key in places}

    def read(envelopes: pa.RecordBatch) -> dict[str, pa.Array]:
        columns = dict(zip(envelopes.schema.names, envelopes.columns, strict=True))
        return {key: shown(place, columns) for key, place in wanted.items()}

    return read
