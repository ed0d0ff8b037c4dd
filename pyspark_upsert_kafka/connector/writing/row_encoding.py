"""Rows of the table -> messages, columns at a time.

The cases are those of Flink's ``DynamicKafkaRecordSerializationSchema``: the key is the primary-key
columns; an upsert's value is the value's columns; a delete's value is null; metadata columns never enter
the key or the value.

``update_preimage``: such a row becomes a tombstone, unless a later change of its key follows in the task. An update that keeps
its key arrives as preimage and postimage: the preimage is dropped. One that changes the key leaves the old key with nothing
after its preimage: that becomes a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.connector.format_catalog import wanted_schema_ids, written_side
from pyspark_upsert_kafka.connector.local_time import local_time, utc_timestamps
from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES, arrow_schema, canonical_keys
from pyspark_upsert_kafka.core.changes import Change, change_named, unknown_kind
from pyspark_upsert_kafka.core.errors import EncodeError, OptionError
from pyspark_upsert_kafka.core.metadata import ALL_METADATA, CHANGE_TYPE, HEADERS, Headers
from pyspark_upsert_kafka.core.options.frozen_options import PreimageOrder, WriteOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.batches import with_type
from pyspark_upsert_kafka.formats.codec import Encoder, HeaderEncoder, Side
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages

_IS_NOT_NULL = "it is NOT NULL, however, a null value is being written into it"


_OF_MESSAGES = {"timestamp", *HEADERS}


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
        self._key_columns = table.key_names
        self._value_columns = [field.name for field in table.value]
        self._not_null = [name for name in self._value_columns if name in table.ddl_not_null]
        sides = [written_side(table, options, name) for name in ("key", "value")]
        self._key, self._value = (side.encoder() for side in sides)
        self._key_names = table.key_message.names
        self._schema = arrow_schema(table.schema)
        self._missing = [
            each
            for each in arrow_schema(table.value_message)
            if each.name not in table.schema.names
        ]
        self._change_column = table.metadata_column(CHANGE_TYPE)
        self._local_times, self._time_zone = table.local_times, time_zone
        self._metadata = _WrittenMetadata(table, options.table.topics.names, time_zone)
        self._schema_ids = _SchemaIdHeaders(sides, self._key, self._value)
        self.sets_metadata = self._schema_ids.are_written or any(
            column.key in _OF_MESSAGES for column in table.metadata
        )
        """Whether messages may have timestamps or headers; if not, a sender is opened that takes none."""

    def messages(
        self, batches: Iterable[pa.RecordBatch], order: PreimageOrder
    ) -> Iterator[Messages]:
        """The messages of a task's rows; of its preimages those that stay tombstones.

        Args:
            batches: The rows.
            order: In which order the changes of a key come.

        Raises:
            EncodeError: A value cannot be written.
        """
        preimages = preimages_in(order)
        for rows in batches:
            yield preimages.settle(self.encode(rows))
        rest = preimages.rest()
        if rest is not None:
            yield rest

    def encode(self, rows: pa.RecordBatch) -> Changes:
        """The messages of the rows, one each.

        Raises:
            EncodeError: A value cannot be written; nothing of these rows is.
        """
        rows = self._with_missing(self._in_local_time(self._conformed(rows)))
        kinds = self._kinds(rows)
        keys, values = self._keys(rows), self._values(rows, kinds)
        messages = Messages(
            topics=self._metadata.topics(rows),
            keys=keys,
            values=values,
            timestamps=self._metadata.timestamps(rows),
            headers=self._schema_ids.beside(self._metadata.headers(rows), values),
        )
        preimages = None if kinds is None else kinds == Change.UPDATE_PREIMAGE
        return Changes(messages, preimages if preimages is not None and preimages.any() else None)

    def _conformed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows in the table's types.

        Spark hands over timestamps in the session's zone, which Arrow may not know, and large types when
        its settings ask for them.
        """
        if rows.schema.equals(self._schema):
            return rows
        columns = zip(rows.columns, self._schema.types, strict=True)
        conformed = [with_type(column, type_) for column, type_ in columns]
        return pa.RecordBatch.from_arrays(conformed, schema=self._schema)

    def _in_local_time(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with what a clock in the session's zone shows where messages have no zone."""
        for name in self._local_times:
            at = rows.schema.get_field_index(name)
            local = local_time(rows.column(at), self._time_zone)
            rows = rows.set_column(at, name, local)
        return rows

    def _with_missing(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with NULL in each column that the table declares and they have not."""
        for column in self._missing:
            rows = rows.append_column(column, pa.nulls(rows.num_rows, column.type))
        return rows

    def _kinds(self, rows: pa.RecordBatch) -> np.ndarray | None:
        """The kind of each row's change; None = all are upserts."""
        if self._change_column is None:
            return None
        encoded = rows.column(self._change_column.name).dictionary_encode()
        kinds = [change_named(spelling) for spelling in encoded.dictionary.to_pylist()]
        if encoded.null_count or None in kinds:
            seen = None if None not in kinds else encoded.dictionary[kinds.index(None)].as_py()
            raise EncodeError(self._change_column.name, unknown_kind(seen))
        codes = np.array(kinds, dtype=np.int8)[encoded.indices.to_numpy(zero_copy_only=False)]
        return codes if codes.any() else None

    def _keys(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        columns = [rows.column(name) for name in self._key_columns]
        for name, column in zip(self._key_columns, columns, strict=True):
            if column.null_count:
                raise EncodeError(
                    name,
                    _IS_NOT_NULL
                    + ". It is part of the primary key: leave such rows out, or give them a value",
                )
        return self._key.encode(
            canonical_keys(pa.RecordBatch.from_arrays(columns, self._key_names))
        )

    def _values(self, rows: pa.RecordBatch, kinds: np.ndarray | None) -> pa.LargeBinaryArray:
        values = rows.select(self._value_columns)
        if kinds is None:
            return self._encoded(values)
        upserts = kinds == Change.UPSERT
        encoded = self._encoded(values.filter(pa.array(upserts)))
        return encoded.take(pa.array(np.cumsum(upserts) - 1, mask=~upserts))

    def _encoded(self, values: pa.RecordBatch) -> pa.LargeBinaryArray:
        for name in self._not_null:
            if values.column(name).null_count:
                raise EncodeError(name, _IS_NOT_NULL + ". The DDL declares it so")
        return self._value.encode(values)


class _WrittenMetadata:
    """Reads the metadata columns of rows that are written.

    Args:
        table: The table; where it has no such column, there is nothing to set.
        topics: Those that may be written to; the first one unless a row chooses among several.
        time_zone: The session's, for timestamps without one.
    """

    def __init__(self, table: Table, topics: tuple[str, ...], time_zone: str) -> None:
        self._topics, self._time_zone = topics, time_zone
        self._names = {
            column.key: column.name
            for column in table.metadata
            if ALL_METADATA[column.key].writable
        }

    def topics(self, rows: pa.RecordBatch) -> str | list[str]:
        """One topic for all messages, or that of each."""
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

    def timestamps(self, rows: pa.RecordBatch) -> list[int] | None:
        """The timestamp of each message in ms since the epoch, 0 = now; None = now for all."""
        name = self._names.get("timestamp")
        if name is None:
            return None
        column = rows.column(name)
        if column.type.tz is None:
            column = utc_timestamps(column, self._time_zone)
        ms = pc.divide(column.cast(pa.int64()), 1000)
        if len(ms) > ms.null_count and pc.min(ms).as_py() <= 0:
            raise EncodeError(name, "a record timestamp must be later than 1970-01-01 00:00:00 UTC")
        return cast("list[int]", pc.fill_null(ms, 0).to_pylist())

    def headers(self, rows: pa.RecordBatch) -> list[Headers | None] | None:
        """The headers of each message; None = none has any."""
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


class _SchemaIdHeaders:
    """Puts the headers that name schemas behind those of the rows, as Confluent's serializers do.

    A row's own headers of these names are left out, also where the schema is named elsewhere: those of a row that was read
    would tell readers of another schema.

    Args:
        sides: Both sides.
        key: The encoder of keys.
        value: That of values.
    """

    def __init__(self, sides: Sequence[Side], key: Encoder, value: Encoder) -> None:
        self._key = key if isinstance(key, HeaderEncoder) else None
        self._value = value if isinstance(value, HeaderEncoder) else None
        self._names = {detail.value for detail in wanted_schema_ids(*sides)}

    @property
    def are_written(self) -> bool:
        """Whether schemas are named in headers."""
        return self._key is not None or self._value is not None

    def beside(
        self, given: list[Headers | None] | None, values: pa.LargeBinaryArray
    ) -> list[Headers | None] | None:
        """The headers of each message; None = none has any. A tombstone has no value, and so no schema of it."""
        if given is not None and self._names:
            given = [
                each and [pair for pair in each if pair[0] not in self._names] for each in given
            ]
        if not self.are_written:
            return given
        of_deletes: Headers = [] if self._key is None else [self._key.header()]
        of_upserts = of_deletes if self._value is None else [*of_deletes, self._value.header()]
        nulls = values.is_null().to_numpy(zero_copy_only=False).tolist()
        ours: list[Headers | None] = [of_deletes if null else of_upserts for null in nulls]
        if given is None:
            return ours
        return [[*(each or ()), *(more or ())] for each, more in zip(given, ours, strict=True)]


def _pair(header: dict[str, Any] | None) -> tuple[str | None, bytes | None]:
    return (None, None) if header is None else (header["key"], header["value"])


_Extras = tuple[int, "Headers | None"]
"""Timestamp and headers of a message that has any."""

_ENTRY_BYTES = 150
"""What a waiting tombstone holds besides its key: an entry of a dict, and an object."""


class _WaitingTombstones:
    """At most one tombstone per topic and key: that of its last preimage."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[bytes | None, _Extras | None]] = {}
        self.size = 0
        """Bytes that they hold, about; 0 = there are none."""

    def add(self, topic: str, key: bytes | None, timestamp: int, headers: Headers | None) -> None:
        """Lets a tombstone wait."""
        waiting = self._waiting.setdefault(topic, {})
        if key not in waiting:
            self.size += _size(key)
        waiting[key] = (timestamp, headers) if timestamp or headers else None

    def discard(self, topic: str, key: bytes | None) -> None:
        """Drops the tombstone of a key that has changed again, if there is one."""
        waiting = self._waiting.get(topic)
        if waiting is not None and key in waiting:
            del waiting[key]
            self.size -= _size(key)

    def drain(self) -> Messages | None:
        """All of them, which then wait no more; None = there are none."""
        rows = [
            (topic, key, None, *(extras or (0, None)))
            for topic, waiting in self._waiting.items()
            for key, extras in waiting.items()
        ]
        self._waiting, self.size = {}, 0
        return Messages.from_rows(rows) if rows else None


def _size(key: bytes | None) -> int:
    return _ENTRY_BYTES + len(key or b"")


class Preimages(Protocol):
    """Turns changes into the messages to send."""

    def settle(self, changes: Changes) -> Messages:
        """The messages to send now.

        Raises:
            OptionError: Preimages cannot be settled, since the order of changes is not known.
        """

    def rest(self) -> Messages | None:
        """What is left to send when all changes are there; None = nothing."""


def preimages_in(order: PreimageOrder) -> Preimages:
    """How preimages are settled when the changes of a task come in this order."""
    if order == "by-key":
        return _SortedPreimages()
    return _RefusedPreimages() if order == "unknown" else _HeldPreimages()


class _RefusedPreimages:
    """The changes of a key may be in other tasks too, where a tombstone could come last: preimages are rejected."""

    def settle(self, changes: Changes) -> Messages:
        """The messages as they are.

        Raises:
            OptionError: One is a preimage.
        """
        if changes.preimages is not None:
            raise OptionError(
                "The batch has update_preimage (-U) rows, and the changes of a key may be in several tasks, "
                "whose order is not known: the tombstone of a preimage could come last and delete a live "
                "row. Give 'sequence-by', a column or an expression that orders the changes of a key, or "
                "write rows of one partition without 'sink.parallelism'. Nothing of these rows was written."
            )
        return changes.messages

    def rest(self) -> None:
        """Nothing is held back."""


class _SortedPreimages:
    """All changes of a key follow one another: what comes next decides, so one preimage waits at most."""

    def __init__(self) -> None:
        self._last: Messages | None = None

    def settle(self, changes: Changes) -> Messages:
        """The messages to send now: a preimage before a change of the same key is dropped."""
        if self._last is None and changes.preimages is None:
            return changes.messages
        messages, flags = changes.messages, _flags(changes)
        if self._last is not None:
            messages = Messages.joined([self._last, messages])
            flags = np.concatenate([[True], flags])
        waits = bool(len(flags) and flags[-1])
        kept = ~(flags & _followed(messages))
        kept[-1:] &= not waits
        self._last = messages.filter(np.arange(len(flags)) == len(flags) - 1) if waits else None
        return messages if kept.all() else messages.filter(kept)

    def rest(self) -> Messages | None:
        """The tombstone of the last preimage, when nothing followed it."""
        last, self._last = self._last, None
        return last


class _HeldPreimages:
    """Changes come in their order, keys in any: a preimage waits until its key changes again.

    The tombstones of those that no change has followed are sent at the end, which is soon enough: no change of their
    keys came after them.
    """

    def __init__(self) -> None:
        self._tombstones = _WaitingTombstones()

    def settle(self, changes: Changes) -> Messages:
        """The messages to send now: all but the preimages, which wait.

        Raises:
            OptionError: Too many wait.
        """
        messages = changes.messages
        if changes.preimages is None and not self._tombstones.size:
            return messages
        flags = _flags(changes)
        waiting = flags & ~_followed(messages)
        if self._tombstones.size or waiting.any():
            self._settle_each(messages, flags.tolist(), waiting.tolist())
        if self._tombstones.size > MAX_HELD_BYTES:
            raise OptionError(
                f"More than {MAX_HELD_BYTES // 2**20} MiB of update_preimage (-U) rows of one task wait for a "
                "later change of their keys. Write by upsert_sink with 'sequence-by', which sorts the "
                "changes so that none has to wait, or write smaller batches."
            )
        return messages if changes.preimages is None else messages.filter(~flags)

    def rest(self) -> Messages | None:
        """The tombstones of keys that nothing followed; None = there are none."""
        return self._tombstones.drain()

    def _settle_each(self, messages: Messages, preimages: list[bool], waiting: list[bool]) -> None:
        """Holds what waits, and drops what need not wait any more."""
        for row, preimage, waits in zip(messages.rows(), preimages, waiting, strict=True):
            topic, key, _, timestamp, headers = row
            if waits:
                self._tombstones.add(topic, key, timestamp, headers)
            elif not preimage and self._tombstones.size:
                self._tombstones.discard(topic, key)


def _flags(changes: Changes) -> np.ndarray:
    """For each message whether it is a preimage."""
    if changes.preimages is None:
        return np.zeros(len(changes.messages), dtype=bool)
    return changes.preimages


def _followed(messages: Messages) -> np.ndarray:
    """For each message whether the next one is of the same key and topic."""
    followed = np.zeros(len(messages), dtype=bool)
    keys, topics = messages.keys, messages.topics
    followed[:-1] = pc.equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
    if not isinstance(topics, str):
        names = np.array(topics, dtype=object)
        followed[:-1] &= names[:-1] == names[1:]
    return followed
