"""Raw messages -> rows of the table, columns at a time.

The cases, as Flink's ``DynamicKafkaDeserializationSchema`` has them:

- the key is always decoded; a null key is a message that cannot be decoded;
- a null value is a delete: its key columns and metadata, NULL elsewhere;
- under ``ALL`` the value's copy of a key column wins over the key's, where the value has one;
- a message that a format's ``ignore-parse-errors`` passes over gives no row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.options import FormatChoice, ReadOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats import format_named
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder
from pyspark_upsert_kafka.kafka.interfaces import RawBatch
from pyspark_upsert_kafka.source.metadata import (
    HEADERS,
    BadMessage,
    Index,
    Shown,
    metadata_array,
)


@dataclass(frozen=True)
class Rows:
    """The rows of a batch of messages.

    Args:
        columns: One array per column of the table, all of one length.
        deletes: Whether each row is a delete; None = no row is.
        bad: The messages that cannot be decoded, in offset order.
    """

    columns: list[pa.Array]
    deletes: pa.BooleanArray | None
    bad: list[BadMessage]

    def __len__(self) -> int:
        return len(self.columns[0])


@dataclass(frozen=True)
class _Side:
    """What became of one side (key or value) of the messages of a batch."""

    rows: pa.RecordBatch
    index: Index  # for each message its row among the decoded ones; -1 = none
    bad: list[BadMessage]
    skipped: list[int]

    @property
    def whole(self) -> bool:
        """Whether each message has its row."""
        return bool(self.rows.num_rows == len(self.index))

    def column(self, name: str, shown: Shown) -> pa.Array:
        """The column for the shown messages, NULL for one that has no row."""
        array = self.rows.column(name)
        if self.whole:
            return shown.of(array)
        index = self.index if shown.messages is None else self.index[shown.messages]
        return array.take(pa.array(index, mask=index < 0))


class RowDecoder:
    """Turns raw batches into rows of the table; codecs are compiled here, once."""

    def __init__(self, table: Table, options: ReadOptions, time_zone: str) -> None:
        self._table = table
        self._keep_bad = options.error_mode == "column"
        self._keep_deletes = options.mode == "snapshot" or options.emit_deletes
        choice = options.table
        topics = choice.topics.names
        self._key = (
            _decoder(choice.key_format, table.key_message, "key", topics, table.required("key"))
            if choice.key_format is not None
            else None
        )
        self._value = _decoder(
            choice.value_format, _value_schema(table), "value", topics, table.required("value")
        )
        # Only now: a type that cannot travel to Spark is refused best by the format, in its words.
        self._schema = arrow_schema(table.schema)
        self._in_key = _names_in_key(table)
        self._in_value = {field.name for field in table.value}
        self._metadata = {column.name: column for column in table.metadata}
        self._time_zone = time_zone
        # Of messages that nobody sees the headers of nothing is wrong with the headers.
        self._wants_headers = options.error_mode == "log" or any(
            column.key in HEADERS for column in table.metadata
        )

    def __call__(self, batch: RawBatch) -> Rows:
        """The rows of a batch, in offset order."""
        values = _decoded(batch.values, self._value, "value")
        keys = None
        deletes = None
        if self._key is not None:
            keys = _decoded(batch.keys, self._key, "key")
            keys = _with_null_keys_bad(keys, batch.keys)
            deletes = _tombstones(batch.values)
        else:
            values = _with_null_values_bad(values, batch.values)
        skipped = {*(keys.skipped if keys else ()), *values.skipped}
        found = [*(keys.bad if keys else ()), *values.bad]
        if self._wants_headers:
            found += [BadMessage(at, "headers", why) for at, why in batch.bad_headers.items()]
        bad = _first_per_message(found, skipped)
        messages = self._messages(len(batch), skipped, bad, deletes)
        shown = Shown(batch, messages, deletes, bad)
        columns = [self._column(field, shown, keys, values) for field in self._schema]
        if deletes is not None:
            deletes = shown.of(pa.array(deletes))
        return Rows(columns, deletes, bad)

    def _messages(
        self, count: int, skipped: set[int], bad: list[BadMessage], deletes: Index | None
    ) -> Index | None:
        """The messages that give a row; None = all of them."""
        hidden = list(skipped)
        if not self._keep_bad:
            hidden += [message.index for message in bad]
        dropped = None if self._keep_deletes else deletes
        if not hidden and dropped is None:
            return None
        shown = np.ones(count, dtype=bool)
        if dropped is not None:
            shown = ~dropped
            shown[[message.index for message in bad]] = True
        shown[hidden] = False
        return np.flatnonzero(shown)

    def _column(self, field: pa.Field, shown: Shown, keys: _Side | None, values: _Side) -> pa.Array:
        metadata = self._metadata.get(field.name)
        if metadata is not None:
            return metadata_array(metadata.key, field.type, shown, self._time_zone)
        column = values.column(field.name, shown) if field.name in self._in_value else None
        in_key = self._in_key.get(field.name)
        if keys is not None and in_key is not None and (column is None or column.null_count):
            from_key = keys.column(in_key, shown)
            column = from_key if column is None else pc.coalesce(column, from_key)
        return _blanked(column, shown) if self._keep_bad and shown.bad else column


def _decoder(
    choice: FormatChoice,
    schema: StructType,
    side: Literal["key", "value"],
    topics: tuple[str, ...],
    required: frozenset[str],
) -> Decoder:
    format_ = format_named(choice.name, side)
    return format_.decoder(CodecSpec(schema, side, dict(choice.options), topics, required))


def _value_schema(table: Table) -> StructType:
    """The value's columns; a key column may be missing there, since the key has it."""
    return StructType(
        [
            StructField(field.name, field.dataType, field.nullable or field in table.key)
            for field in table.value
        ]
    )


def _names_in_key(table: Table) -> Mapping[str, str]:
    return dict(zip(table.key_names, table.key_message.names, strict=True))


def _decoded(
    messages: Sequence[bytes | None], decoder: Decoder, stage: Literal["key", "value"]
) -> _Side:
    """One side, decoded; a null message has no row and is no error."""
    count = len(messages)
    present: Sequence[bytes]
    if None in messages:
        places = np.fromiter((i for i, m in enumerate(messages) if m is not None), np.int64)
        present = [message for message in messages if message is not None]
    else:
        places = np.arange(count)
        present = cast("Sequence[bytes]", messages)
    decoded = decoder(present)
    bad = [
        BadMessage(int(places[at]), stage, reason) for at, reason in sorted(decoded.errors.items())
    ]
    skipped = [int(places[at]) for at in sorted(decoded.skipped)]
    if len(present) == count and not bad and not skipped:
        return _Side(decoded.rows, places, bad, skipped)
    with_row = np.ones(count, dtype=bool)
    if len(present) < count:
        with_row[:] = False
        with_row[places] = True
    with_row[[message.index for message in bad]] = False
    with_row[skipped] = False
    index = np.full(count, -1, dtype=np.int64)
    index[with_row] = np.arange(int(with_row.sum()))
    return _Side(decoded.rows, index, bad, skipped)


def _with_null_keys_bad(side: _Side, keys: Sequence[bytes | None]) -> _Side:
    if None not in keys:
        return side
    bad = [
        BadMessage(
            at, "null-key", "the message has no key, so no row of a table can be meant by it"
        )
        for at, key in enumerate(keys)
        if key is None
    ]
    return _Side(side.rows, side.index, sorted([*side.bad, *bad], key=_index), side.skipped)


def _with_null_values_bad(side: _Side, values: Sequence[bytes | None]) -> _Side:
    if None not in values:
        return side
    bad = [
        BadMessage(at, "value", "the value is null; in an append source every message is a row")
        for at, value in enumerate(values)
        if value is None
    ]
    return _Side(side.rows, side.index, sorted([*side.bad, *bad], key=_index), side.skipped)


def _index(message: BadMessage) -> int:
    return message.index


def _first_per_message(bad: list[BadMessage], skipped: set[int]) -> list[BadMessage]:
    """One entry a message, the key's before the value's before the headers', in offset order.

    A message of which a format passed over one side is gone, whatever is wrong with the other.
    """
    first: dict[int, BadMessage] = {}
    for message in bad:
        if message.index not in skipped:
            first.setdefault(message.index, message)
    return [first[index] for index in sorted(first)]


def _tombstones(values: Sequence[bytes | None]) -> Index | None:
    if None not in values:
        return None
    return np.fromiter((value is None for value in values), dtype=bool, count=len(values))


def _blanked(array: pa.Array, shown: Shown) -> pa.Array:
    """The array with NULL in the rows of bad messages."""
    mask = np.zeros(len(shown.batch), dtype=bool)
    mask[[message.index for message in shown.bad]] = True
    return pc.if_else(shown.of(pa.array(mask)), pa.nulls(len(array), array.type), array)
