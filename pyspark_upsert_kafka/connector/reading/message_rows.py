"""Raw messages -> rows of the table, columns at a time.

The rules are those of Flink's ``DynamicKafkaDeserializationSchema``:

- the key is always decoded; a message without a key cannot be decoded;
- a null value is a delete: its key columns and metadata, NULL elsewhere;
- under ``ALL`` the value's copy of a key column wins over the key's, where the value has one;
- a message that a format skips (``ignore-parse-errors``) gives no row;
- the value of a CDC format says itself what it did: a null one is a delete where the key of messages is read, else nothing.

Messages that are read without an error and hardly as meant are warned of: those that lack columns of the table, a NULL
in a key column, a key column that differs between key and value, and those of a CDC format that change no row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.connector.bad_messages import (
    BadMessage,
    Stage,
    first_bad,
    format_hint,
)
from pyspark_upsert_kafka.connector.format_catalog import (
    change_spec,
    read_key_side,
    read_value_side,
    wanted_schema_ids,
)
from pyspark_upsert_kafka.connector.local_time import utc_timestamps
from pyspark_upsert_kafka.connector.reading.decoded_messages import (
    ChangedKeys,
    ChangedRows,
    DecodedSide,
    Indexes,
    Mask,
    Selection,
    decode_changes,
    decode_side,
    with_schema_ids,
)
from pyspark_upsert_kafka.connector.reading.later_columns import LaterColumns, raise_at
from pyspark_upsert_kafka.connector.reading.metadata_arrays import metadata_array
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.column_changes import near_name
from pyspark_upsert_kafka.core.errors import OptionError, shown, shown_names, warn_once
from pyspark_upsert_kafka.core.metadata import HEADERS, METADATA_OF_FORMATS
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.codec import Side
from pyspark_upsert_kafka.formats.row_hash import differing_keys, equal_keys
from pyspark_upsert_kafka.formats.writers_columns import SchemaStopError
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

logger = logging.getLogger("pyspark_upsert_kafka")

Values = DecodedSide | ChangedRows
"""The values of some messages, decoded: a row of each, or the rows that each changed."""

_SKIPS = "ignore-parse-errors"

_NO_KEY = "the message has no key, so it identifies no row ('read.mode' = 'append' reads topics without keys)"
_NO_VALUE = (
    "the value is null; in an append source every message is a row, and only a table has deletes"
)


@dataclass(frozen=True)
class Rows:
    """The rows of a batch of messages.

    Args:
        columns: One array per column of the table, all of one length.
        deletes: Whether each row is a delete; None = no row is.
        bad: The messages that cannot be decoded, in offset order.
        places: The place of each row's message in the batch, rising; None = each message has a row.
    """

    columns: list[pa.Array]
    deletes: pa.BooleanArray | None
    bad: list[BadMessage]
    places: Indexes | None = None

    def __len__(self) -> int:
        return len(self.columns[0])

    def where(self, mask: Mask) -> Rows:
        """The rows for which the mask is true, and all messages that cannot be decoded."""
        kept, chosen = pa.array(mask), np.flatnonzero(mask)
        return Rows(
            [column.filter(kept) for column in self.columns],
            None if self.deletes is None else self.deletes.filter(kept),
            self.bad,
            chosen if self.places is None else self.places[chosen],
        )

    def offsets_in(self, batch: RawBatch) -> np.ndarray:
        """The offset of each row's message in the batch that was decoded."""
        offsets = np.asarray(batch.offsets, dtype=np.int64)
        return offsets if self.places is None else offsets[self.places]


class RowDecoder:
    """Turns raw batches into rows of the table; codecs are compiled here, once.

    Args:
        table: The table.
        options: How it is read.
        time_zone: The session's.
        shares_keys: Whether other tasks read the other keys of the same range.
        ends_at_bad: Whether reading ends at the first message that cannot be decoded: those behind it may be called bad too.
    """

    def __init__(
        self,
        table: Table,
        options: ReadOptions,
        time_zone: str,
        *,
        shares_keys: bool = False,
        ends_at_bad: bool = False,
    ) -> None:
        self._table = table
        self._shares_keys = shares_keys
        self._keep_bad = options.bad_messages_become == "column"
        self._keep_deletes = options.mode == "snapshot" or options.emit_deletes
        later = LaterColumns(table, options)
        key, value = read_key_side(table, options), read_value_side(table, options)
        # A side that cannot be decoded is no error where the format of the other one skips the message.
        skips = any(side.spec.options.get(_SKIPS) for side in (key, value) if side is not None)
        if ends_at_bad and not skips:
            key, value = key and key.ending_at_bad(), value.ending_at_bad()
        key = key and later.watching(key)
        value = later.watching(value)
        self._sides = key, value
        self._key = None if key is None else key.decoder()
        self._decode_values = _value_decoder(table, options, value)
        self._changed_keys, self._passed_over = ChangedKeys(table), _PassedOver()
        self._missing = _MissingColumns(value, table.key_names, is_table=options.mode == "snapshot")
        only_in_key = not (options.mode == "append" or options.table.is_cdc)
        self._null_keys = _NullKeys(table.key_message.names if only_in_key else [])
        self._formats = _formats(options)
        # Where deletes are dropped, the value's copy is all that is shown.
        compares = only_in_key and self._keep_deletes
        self._other_keys = _OtherKeys(table, self._formats["key"]) if compares else None
        self._schema = arrow_schema(table.schema)
        self._in_key = dict(zip(table.key_names, table.key_message.names, strict=True))
        self._in_value = {field.name for field in table.value}
        self._metadata = {column.name: column for column in table.metadata}
        self._time_zone = time_zone
        # Unreadable headers are an error only where headers are shown or sent on, or say what or how messages are read.
        self._wants_headers = (
            options.sends_dead_letters
            or bool(options.wanted_headers)
            or bool(wanted_schema_ids(key, value))
            or any(column.key in HEADERS for column in table.metadata)
        )

    def decode(self, batch: RawBatch) -> Rows:
        """The rows of a batch, in offset order.

        Raises:
            TooManyMessagesError: The rows would be too large together; fewer can be decoded.
            SchemaChangedError: A message has columns that the stream lacks, and a new start has.
        """
        read, wrong_ids = with_schema_ids(batch, *self._sides)
        try:
            keys, values = self._decode_sides(read)
        except SchemaStopError as stop:
            raise_at(stop, read)
        self._missing.look(read, values)
        if keys is not None:
            self._null_keys.look_at(batch, keys)
        skipped = {*(keys.skipped if keys else ()), *values.skipped}
        # In this order: of a message with two errors, that of a schema's name is reported, else that of the key.
        found = [
            *wrong_ids, *(keys.bad if keys else ()), *values.bad, *self._bad_headers(batch)
        ]  # fmt: skip
        if isinstance(values, ChangedRows):
            self._passed_over.look(batch, values.changes.passed_over)
            found += self._changed_keys.without_key(batch, values, keys)
        bad = first_bad(found, skipped, batch, self._formats)
        if self._other_keys is not None and keys is not None and isinstance(values, DecodedSide):
            self._other_keys.look_at(batch, keys, values, bad)
        hidden = skipped if self._keep_bad else skipped.union(message.index for message in bad)
        selection = values.selection(batch, bad, hidden=hidden, keep_deletes=self._keep_deletes)
        columns = [self._column(field, selection, keys, values) for field in self._schema]
        return Rows(columns, selection.deletes, bad, selection.indexes)

    def _decode_sides(self, read: RawBatch) -> tuple[DecodedSide | None, Values]:
        values = self._decode_values(read.values)
        if self._key is None:
            return None, values
        keys = decode_side(read.keys, self._key, "key")
        return keys.with_nulls_bad("null-key", _NO_KEY), values

    def _bad_headers(self, batch: RawBatch) -> list[BadMessage]:
        if not self._wants_headers:
            return []
        return [BadMessage(at, "headers", reason) for at, reason in batch.bad_headers.items()]

    def _column(
        self, field: pa.Field, selection: Selection, keys: DecodedSide | None, values: Values
    ) -> pa.Array:
        metadata = self._metadata.get(field.name)
        if metadata is not None:
            if isinstance(values, ChangedRows) and metadata.key in METADATA_OF_FORMATS:
                return values.metadata(metadata.key, selection, field.type, self._time_zone)
            return metadata_array(metadata.key, field.type, selection, self._time_zone)
        column = values.column(field.name, selection) if field.name in self._in_value else None
        in_key = self._in_key.get(field.name)
        if keys is not None and in_key is not None:
            column = self._key_column(field.name, column, keys, selection)
        if field.name in self._table.local_times:
            column = utc_timestamps(column, self._time_zone).cast(field.type)
        return _null_where_bad(column, selection) if self._keep_bad and selection.bad else column

    def _key_column(
        self, name: str, column: pa.Array | None, keys: DecodedSide, selection: Selection
    ) -> pa.Array:
        """A key column: the value's copy, and the key's where the value has none."""
        if column is not None and not column.null_count and not self._shares_keys:
            return column
        from_key = keys.column(self._in_key[name], selection)
        if column is None:
            return from_key
        if self._shares_keys:
            _refuse_other_keys(name, column, from_key, selection)
        return pc.coalesce(column, from_key)


def _value_decoder(
    table: Table, options: ReadOptions, value: Side
) -> Callable[[BytesColumn], Values]:
    spec = change_spec(table, options)
    if spec is not None:
        changes = value.change_decoder(replace(spec, value=value.spec))
        nulls_delete = spec.reads_key
        return lambda values: decode_changes(values, changes, nulls_delete=nulls_delete)
    decoder = value.decoder()
    if options.mode == "append":
        return lambda values: decode_side(values, decoder, "value").with_nulls_bad(
            "value", _NO_VALUE
        )
    return lambda values: decode_side(values, decoder, "value")


def _refuse_other_keys(
    name: str, column: pa.Array, from_key: pa.Array, selection: Selection
) -> None:
    """The value's copy of a key column wins over the key's, so keys that are shared must be the same in both.

    Raises:
        OptionError: They differ in a message: its row has a key that another task may keep.
    """
    # A value without a copy takes the key's, so that the two cannot differ.
    differs = pc.and_(column.is_valid(), pc.invert(equal_keys(column, from_key)))
    at = pc.index(differs, True).as_py()
    if at >= 0:
        batch, index = selection.batch, at if selection.indexes is None else selection.indexes[at]
        raise OptionError(
            f"'minPartitions' divides the keys of a snapshot among tasks, but in topic {batch.topic!r}, partition "
            f"{batch.partition}, offset {batch.offsets[index]} column {name!r} differs between value and key. "
            "Leave 'minPartitions' out, or read the key alone with 'value.fields-include' = 'EXCEPT_KEY' if "
            "the values have no key columns of their own."
        )


def _formats(options: ReadOptions) -> dict[Stage, str]:
    """The names of the formats by stage."""
    key, value = options.table.key_format, options.table.value_format
    return {"value": value.name} if key is None else {"key": key.name, "value": value.name}


def _null_where_bad(array: pa.Array, selection: Selection) -> pa.Array:
    """The array with NULL in the rows of bad messages."""
    bad = selection.take(pa.array(selection.bad_mask))
    return pc.if_else(bad, pa.nulls(len(array), array.type), array)


_LOOKED_AT = 10


_Path = tuple[str, ...]
"""The names of a column and of what it is within, from the outermost on."""


@dataclass(frozen=True)
class _Level:
    """A row, or a STRUCT within it, also in an ARRAY or as the value of a MAP.

    Args:
        path: Where it is; empty = it is the row.
        types: What leads to it from the row: the type of each name of the path.
        names: The columns in it.
    """

    path: _Path
    types: tuple[DataType, ...]
    names: tuple[str, ...]

    @property
    def columns(self) -> list[_Path]:
        """The paths of its columns."""
        return [(*self.path, name) for name in self.names]

    def objects(self, row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The objects that a parsed message has for it."""
        found: list[Any] = [row]
        for name, kind in zip(self.path, self.types, strict=True):
            within = [each[name] for each in found if type(each) is dict and name in each]
            found = [part for each in within for part in _parts(each, kind)]
        yield from (each for each in found if type(each) is dict)


def _levels(
    row: StructType, path: _Path = (), types: tuple[DataType, ...] = ()
) -> Iterator[_Level]:
    """The row and all STRUCTs in it, the outer ones first."""
    yield _Level(path, types, tuple(row.names))
    for field in row:
        inner = field.dataType
        while isinstance(inner, ArrayType | MapType):
            inner = inner.elementType if isinstance(inner, ArrayType) else inner.valueType
        if isinstance(inner, StructType):
            yield from _levels(inner, (*path, field.name), (*types, field.dataType))


def _parts(value: Any, kind: DataType) -> Iterator[Any]:
    """The value itself, or what an ARRAY or a MAP holds."""
    if isinstance(kind, ArrayType) and type(value) is list:
        for each in value:
            yield from _parts(each, kind.elementType)
    elif isinstance(kind, MapType) and type(value) is dict:
        for each in value.values():
            yield from _parts(each, kind.valueType)
    else:
        yield value


def _has_value(rows: pa.RecordBatch, path: _Path) -> bool:
    """Whether a column has a value in any row."""
    column = rows.column(path[0])
    for name in path[1:]:
        while pa.types.is_list(column.type) or pa.types.is_map(column.type):
            column = column.flatten() if pa.types.is_list(column.type) else column.items
        # By its place: a name that begins with a point is a path to Arrow.
        column = pc.struct_field(column, [column.type.get_field_index(name)])
    return bool(column.null_count < len(column))


class _MissingColumns:
    """Logs a warning, once for each column, when no message of a batch has it: most often its field has another name.

    The same is said of what is in a STRUCT. A column that is there and NULL is no reason. Only while a column has no value yet, a
    few messages are looked into, and once for each column; one that has a value, or a field, is not asked about again. A field
    without a value may be left out, so that a few messages of a stream say nothing, unless they have one with nearly the same name.

    Args:
        value: The value's format and columns.
        of_key: The columns of the primary key, which the value may lack.
        is_table: Whether all messages are read, so that few are all there are.
    """

    def __init__(self, value: Side, of_key: Collection[str], *, is_table: bool) -> None:
        self._fields = value.format.fields
        self._levels = [*_levels(value.spec.schema)] if self._fields is not None else []
        self._of_key, self._is_table = {(name,) for name in of_key}, is_table
        self._without_value = {path for level in self._levels for path in level.columns}

    def look(self, batch: RawBatch, values: DecodedSide | ChangedRows) -> None:
        """Logs the warnings, as far as they are not logged yet and a batch lacks columns.

        Args:
            batch: The messages.
            values: What was read of their values.
        """
        rows = values.rows
        self._without_value -= {path for path in self._without_value if _has_value(rows, path)}
        for level in self._levels:
            # What is in a STRUCT that has no value itself is not looked for.
            if level.path and level.path in self._without_value:
                continue
            if not self._without_value.isdisjoint(level.columns):
                self._look_at(level, batch, values)

    def _look_at(self, level: _Level, batch: RawBatch, values: DecodedSide | ChangedRows) -> None:
        places = values.places
        if level.path:
            has_it = values.rows.column(level.path[0]).is_valid().to_numpy(zero_copy_only=False)
            # The rows of a CDC format are those of its places; others are there for each message.
            places = places[has_it if len(has_it) == len(places) else has_it[places]]
        looked_at = places[:_LOOKED_AT].tolist()
        objects = self._objects(level, batch, looked_at)
        found = [*dict.fromkeys(name for each in objects for name in each)]
        # An object without fields is how a row of NULLs may be written.
        if not found:
            return
        missing = [
            path for path in level.columns if path in self._without_value and path[-1] not in found
        ]
        self._without_value -= {*level.columns}.difference(missing)
        if not level.path and len(missing) == len(level.names):
            warn_once(_text(batch, looked_at[0], found, level.names))
            self._without_value.clear()
            return
        free = [field for field in found if field not in level.names]
        for path in missing:
            near = near_name(path[-1], free)
            enough = self._is_table or len(objects) >= _LOOKED_AT
            if path not in self._of_key and (near or enough):
                self._without_value.remove(path)
                warn_once(_text_of_one(batch.topic, path, near, found))

    def _objects(
        self, level: _Level, batch: RawBatch, places: Sequence[int]
    ) -> list[Mapping[str, Any]]:
        """What the messages at these places have for a level."""
        if self._fields is None:
            return []
        messages = [batch.values[at] for at in places]
        rows = [self._fields(each) for each in messages if each is not None]
        return [each for row in rows for each in level.objects(row)]


def _text(batch: RawBatch, at: int, fields: Sequence[str], columns: Sequence[str]) -> str:
    return (
        f"Topic {batch.topic!r}, partition {batch.partition}, offset {batch.offsets[at]} and following messages: the values "
        f"have none of the columns {shown_names(columns)}, so these columns are NULL, except those of the key. The values have the "
        f"fields {shown_names(fields)}. Check the schema: a column must have the name of its field, with the same capital letters. "
        "If the row is within an envelope, as in Debezium's messages, a CDC format reads it: 'value.format' = 'debezium-json'."
    )


def _text_of_one(topic: str, column: _Path, near: str | None, fields: Sequence[str]) -> str:
    within = column[:-1]
    shown_fields = shown_names([".".join((*within, name)) for name in ([near] if near else fields)])
    has = f"They have {shown_fields}" if near else f"They have the fields {shown_fields}"
    return (
        f"Column {shown_names(['.'.join(column)])} is NULL: no value that was looked at in topic {topic!r} has a field of this name. {has}. "
        "A column must have the name of its field, with the same capital letters; if a field is only sent where it is not NULL, "
        "all is well."
    )


class _NullKeys:
    """Warns once for each topic and column: most often the column has another name in the messages.

    Args:
        names: The columns of the message key.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._told: set[tuple[str, str]] = set()

    def look_at(self, batch: RawBatch, keys: DecodedSide) -> None:
        """Warns if a column is NULL in a key of the batch."""
        for name in self._names:
            column = keys.rows.column(name)
            if not column.null_count or (batch.topic, name) in self._told:
                continue
            is_null = keys.read & column.is_null().to_numpy(zero_copy_only=False)
            null = np.flatnonzero(is_null)
            if null.size:
                self._told.add((batch.topic, name))
                self._warn(batch, int(null[0]), name)

    def _warn(self, batch: RawBatch, at: int, name: str) -> None:
        logger.warning(
            "Key column %r is NULL in the message at topic %r, partition %d, offset %d, whose key is %s. Messages "
            "with equal keys are changes of one row. Check that the messages have a field of this name, with the same capital "
            "letters.",
            name, batch.topic, batch.partition, batch.offsets[at], shown(batch.keys[at]),
        )  # fmt: skip


_COMPARED = 1_000


class _OtherKeys:
    """Warns once for each topic if a key column differs between key and value, both of which have it.

    The first messages of a topic tell: a wrong format or order of the key is wrong in all of them.

    Args:
        table: The table.
        key_format: The name of the key's format.
    """

    def __init__(self, table: Table, key_format: str) -> None:
        in_value = {field.name for field in table.value}
        names = zip(table.key_names, table.key_message.names, strict=True)
        self._names = {name: in_key for name, in_key in names if name in in_value}
        self._key_format = key_format
        self._left: dict[str, int] = {}

    def look_at(
        self, batch: RawBatch, keys: DecodedSide, values: DecodedSide, bad: Sequence[BadMessage]
    ) -> None:
        """Compares those of the messages that are rows, until enough of the topic are compared.

        Args:
            batch: The messages.
            keys: Their keys.
            values: Their values.
            bad: Those that become no row.
        """
        left = self._left.get(batch.topic, _COMPARED)
        if not left or not self._names:
            return
        are_rows = values.read.copy()
        are_rows[[message.index for message in bad]] = False
        places = np.flatnonzero(are_rows)[:left]
        self._left[batch.topic] = left - len(places)
        copies = {
            name: (_at(keys.rows.column(in_key), places), _at(values.rows.column(name), places))
            for name, in_key in self._names.items()
        }
        if all(_are_alike(of_key, of_value) for of_key, of_value in copies.values()):
            return
        differ = {name: _differ(of_key, of_value) for name, (of_key, of_value) in copies.items()}
        any_differs = np.flatnonzero(np.logical_or.reduce([*differ.values()]))
        if any_differs.size:
            self._left[batch.topic] = 0
            first = any_differs[0]
            self._warn(batch, int(places[first]), [name for name in differ if differ[name][first]])

    def _warn(self, batch: RawBatch, at: int, names: Sequence[str]) -> None:
        logger.warning(
            "Topic %r, partition %d, offset %d: of the primary key, %s differs between the value and the message key%s. The "
            "row has what its value says, but a message whose value is null deletes the row of its key: deletes may miss their rows, or "
            "delete others. Check 'key.format' and its options, the order of 'primary-key', and what writes the messages. If the field "
            "of the value has another meaning, read that of the key with 'value.fields-include' = 'EXCEPT_KEY' and 'key.fields-prefix'. "
            "Further messages of this topic are not looked at.",
            batch.topic, batch.partition, batch.offsets[at], shown_names(names),
            format_hint(batch.keys[at] or b"", self._key_format),
        )  # fmt: skip


def _at(column: pa.Array, places: Indexes) -> pa.Array:
    """The column at these places, which rise; most often they are its first ones."""
    are_first = not len(places) or places[-1] == len(places) - 1
    return column.slice(0, len(places)) if are_first else column.take(pa.array(places))


def _are_alike(of_key: pa.Array, of_value: pa.Array) -> bool:
    """Whether nothing can differ, as in most batches: this takes a tenth of the time that comparing each takes."""
    return bool(of_value.null_count == len(of_value) or of_key.equals(of_value))


def _differ(of_key: pa.Array, of_value: pa.Array) -> Mask:
    """For each message whether its key and its value have a column, but not the same.

    The value may lack its copy: the row has the key's then. A key that lacks it has a warning of its own.
    """
    return differing_keys(of_key, of_value).to_numpy(zero_copy_only=False)


class _PassedOver:
    """Logs the warning once for each topic and kind of message."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def look(self, batch: RawBatch, messages: Mapping[int, str]) -> None:
        """Logs it for the first of some messages.

        Args:
            batch: All messages.
            messages: The index of each that changes no row, and what it is.
        """
        for at in sorted(messages):
            what = messages[at]
            if (batch.topic, what) not in self._told:
                self._told.add((batch.topic, what))
                logger.warning(
                    "Topic %r, partition %d, offset %d is %s: it is skipped, and no row changes. Further ones in this topic "
                    "are skipped without a warning.",
                    batch.topic, batch.partition, batch.offsets[at], what,
                )  # fmt: skip
