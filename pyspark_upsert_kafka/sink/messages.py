"""Rows of the table -> messages, columns at a time.

The cases, as Flink's ``DynamicKafkaRecordSerializationSchema`` has them: the key is the primary-key
columns; an upsert's value is the value's columns; a delete's value is null; metadata columns never enter
the key or the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.changes import SPELLINGS, Change, change_named
from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.core.metadata import CHANGE_TYPE, METADATA
from pyspark_upsert_kafka.core.options import FormatChoice, WriteOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.format_catalog import format_named
from pyspark_upsert_kafka.formats.codec import CodecSpec, Encoder
from pyspark_upsert_kafka.formats.conform import conform
from pyspark_upsert_kafka.kafka.interfaces import Headers, Messages
from pyspark_upsert_kafka.time_zone import moment


@dataclass(frozen=True)
class Changes:
    """The messages of some rows, and which of them only stand for what a row was before.

    Args:
        messages: One message for each row, in order; that of a preimage is a tombstone.
        preimages: For each message whether it is a preimage; None = none is.
    """

    messages: Messages
    preimages: np.ndarray | None = None


class RowEncoder:
    """Turns record batches into messages; codecs are compiled here, once."""

    def __init__(self, table: Table, options: WriteOptions, time_zone: str) -> None:
        choice = options.table
        self._topics = choice.topics.names
        self._key_columns = table.key_names
        self._value_columns = [field.name for field in table.value]
        self._key = _encoder(choice.key_format, table, "key", self._topics)
        self._value = _encoder(choice.value_format, table, "value", self._topics)
        self._key_names = table.key_message.names
        self._schema = arrow_schema(table.schema)
        self._names = {
            column.key: column.name for column in table.metadata if METADATA[column.key].writable
        }
        self._time_zone = time_zone

    def __call__(self, rows: pa.RecordBatch) -> Changes:
        """The messages of the rows, one each.

        Raises:
            EncodeError: A value cannot be written; nothing of these rows is.
        """
        if not rows.schema.equals(self._schema):
            # Spark hands over timestamps in the session's zone, which Arrow may not know, and large
            # types when told to; an encoder gets what its columns have by right.
            columns = zip(rows.columns, self._schema.types, strict=True)
            conformed = [conform(column, kind) for column, kind in columns]
            rows = pa.RecordBatch.from_arrays(conformed, schema=self._schema)
        kinds = self._kinds(rows)
        messages = Messages(
            topics=self._topic(rows),
            keys=self._keys(rows),
            values=self._values(rows, kinds),
            timestamps=self._timestamps(rows),
            headers=self._headers(rows),
        )
        preimages = None if kinds is None else kinds == Change.PREIMAGE
        return Changes(messages, preimages if preimages is not None and preimages.any() else None)

    def _kinds(self, rows: pa.RecordBatch) -> np.ndarray | None:
        """The kind of each row's change; None = all are upserts."""
        name = self._names.get(CHANGE_TYPE)
        if name is None:
            return None
        encoded = rows.column(name).dictionary_encode()
        kinds = [change_named(spelling) for spelling in encoded.dictionary.to_pylist()]
        if encoded.null_count or None in kinds:
            seen = (
                "NULL" if None not in kinds else repr(encoded.dictionary[kinds.index(None)].as_py())
            )
            raise EncodeError(name, f"{seen} is no kind of change; known kinds: {SPELLINGS}")
        codes = np.array(kinds, dtype=np.int8)[encoded.indices.to_numpy(zero_copy_only=False)]
        return codes if codes.any() else None

    def _keys(self, rows: pa.RecordBatch) -> list[bytes]:
        columns = [rows.column(name) for name in self._key_columns]
        for name, column in zip(self._key_columns, columns, strict=True):
            if column.null_count:
                raise EncodeError(
                    name,
                    f"Column '{name}' is NOT NULL, however, a null value is being written into it. It "
                    "is part of the primary key",
                )
        key = [_comparable(column) for column in columns]
        return self._key(pa.RecordBatch.from_arrays(key, self._key_names))

    def _values(self, rows: pa.RecordBatch, kinds: np.ndarray | None) -> list[bytes | None]:
        values = rows.select(self._value_columns)
        if kinds is None:
            return cast("list[bytes | None]", self._value(values))
        upserts = kinds == Change.UPSERT
        encoded = np.full(len(kinds), None, dtype=object)
        encoded[upserts] = self._value(values.filter(pa.array(upserts)))
        return cast("list[bytes | None]", encoded.tolist())

    def _topic(self, rows: pa.RecordBatch) -> str | list[str]:
        name = self._names.get("topic")
        if name is None or len(self._topics) == 1:
            return self._topics[0]
        chosen = rows.column(name).to_pylist()
        for topic in set(chosen):
            if topic not in self._topics:
                raise EncodeError(
                    name,
                    "The topic of the sink record is not valid. Expected topic to be in: "
                    f"[{', '.join(self._topics)}] but was: {topic or 'null'}",
                )
        return cast("list[str]", chosen)

    def _timestamps(self, rows: pa.RecordBatch) -> list[int] | None:
        name = self._names.get("timestamp")
        if name is None:
            return None
        column = rows.column(name)
        if column.type.tz is None:
            column = moment(column, self._time_zone)
        ms = pc.divide(column.cast(pa.int64()), 1000)
        if len(ms) > ms.null_count and pc.min(ms).as_py() <= 0:
            raise EncodeError(name, "a record timestamp must be later than 1970-01-01 00:00:00 UTC")
        return cast("list[int]", pc.fill_null(ms, 0).to_pylist())

    def _headers(self, rows: pa.RecordBatch) -> list[Headers | None] | None:
        name = self._names.get("header-list") or self._names.get("headers")
        if name is None:
            return None
        lists = rows.column(name).to_pylist()
        if "header-list" in self._names:
            lists = [each and [_pair(header) for header in each] for each in lists]
        for each in lists:
            if each and any(key is None for key, _ in each):
                raise EncodeError(name, "a header has no key")
        return cast("list[Headers | None]", lists)


def _comparable(column: pa.Array) -> pa.Array:
    """-0.0 equals 0.0, and a NaN every other; equal keys must give equal bytes."""
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, pa.scalar(0.0, column.type)))


def _pair(header: dict[str, Any] | None) -> tuple[str | None, bytes | None]:
    return (None, None) if header is None else (header["key"], header["value"])


def _encoder(
    choice: FormatChoice | None,
    table: Table,
    side: Literal["key", "value"],
    topics: tuple[str, ...],
) -> Encoder:
    chosen: Any = choice
    schema = table.key_message if side == "key" else table.value_message
    # Whether Spark knows a column to hold no nulls is an accident of the query that made it, and the
    # same rows must become the same bytes: only the primary key is sure, and only it counts.
    schema = schema.toNullable()
    spec = CodecSpec(schema, side, dict(chosen.options), topics, table.required(side))
    return format_named(chosen.name, side).encoder(spec)
