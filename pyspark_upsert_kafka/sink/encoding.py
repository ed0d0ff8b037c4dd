"""Rows of the table -> messages, columns at a time.

The cases are those of Flink's ``DynamicKafkaRecordSerializationSchema``: the key is the primary-key
columns; an upsert's value is the value's columns; a delete's value is null; metadata columns never enter
the key or the value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.core.options import WriteOptions
from pyspark_upsert_kafka.core.table.arrow import arrow_schema, canonical_floats
from pyspark_upsert_kafka.core.table.changes import Change, change_named, unknown_kind
from pyspark_upsert_kafka.core.table.columns import Table
from pyspark_upsert_kafka.core.table.metadata import CHANGE_TYPE
from pyspark_upsert_kafka.formats.exact_types import with_type
from pyspark_upsert_kafka.kafka.sending.messages import Messages
from pyspark_upsert_kafka.local_time import local_time
from pyspark_upsert_kafka.sides import written_side
from pyspark_upsert_kafka.sink.metadata import WrittenMetadata

_IS_NOT_NULL = "it is NOT NULL, however, a null value is being written into it"


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
        self._key = written_side(table, options, "key").encoder()
        self._value = written_side(table, options, "value").encoder()
        self._key_names = table.key_message.names
        self._schema = arrow_schema(table.schema)
        self._missing = [
            each
            for each in arrow_schema(table.value_message)
            if each.name not in table.schema.names
        ]
        self._change_column = table.metadata_column(CHANGE_TYPE)
        self._local_times, self._time_zone = table.local_times, time_zone
        self._metadata = WrittenMetadata(table, options.table.topics.names, time_zone)

    def encode(self, rows: pa.RecordBatch) -> Changes:
        """The messages of the rows, one each.

        Raises:
            EncodeError: A value cannot be written; nothing of these rows is.
        """
        rows = self._with_missing(self._in_local_time(self._conformed(rows)))
        kinds = self._kinds(rows)
        messages = Messages(
            topics=self._metadata.topics(rows),
            keys=self._keys(rows),
            values=self._values(rows, kinds),
            timestamps=self._metadata.timestamps(rows),
            headers=self._metadata.headers(rows),
        )
        preimages = None if kinds is None else kinds == Change.PREIMAGE
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
        key = [canonical_floats(column) for column in columns]
        return self._key.encode(pa.RecordBatch.from_arrays(key, self._key_names))

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
