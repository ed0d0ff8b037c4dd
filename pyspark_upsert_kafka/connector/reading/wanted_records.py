"""``scan.record-names``: which messages of a topic of several record types are read.

The schema that a value was written with says its record type, and what a message begins with names the schema. So each
beginning is looked at once, and not each message. A message whose type is not known may be a wanted one: it is kept, and cannot be
decoded.

A tombstone has no schema. It deletes its key, whatever types that had, as it does for Kafka's compaction; but one whose key has
none of the key's columns is of another type. Where messages are rows and delete nothing, it is of no type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.connector.format_catalog import read_key_side, read_value_side
from pyspark_upsert_kafka.connector.reading.decoded_messages import (
    DecodedSide,
    Mask,
    decode_side,
    in_parts,
    with_schema_ids,
)
from pyspark_upsert_kafka.connector.spark_task import KEPT_CODECS
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.codec import RecordTypes, Side
from pyspark_upsert_kafka.formats.record_names import RecordNames
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch


class WantedRecords:
    """Takes out of batches the messages of the wanted record types, and the tombstones.

    Args:
        table: The table.
        options: How it is read.
    """

    def __init__(self, table: Table, options: ReadOptions) -> None:
        self._key, self._value = read_key_side(table, options), read_value_side(table, options)
        self._names, self._is_append = RecordNames(options.record_names), options.mode == "append"
        self._type_of_value = _record_types(self._value)
        self._type_of_key = None if self._key is None else _record_types(self._key)
        self._key_decoder = self._key.decoder() if self._key and table.is_keyed else None
        self._key_columns = {name.lower() for name in table.key_message.names}
        self.seen: dict[str, bool] = {}
        """The full names of the types that were seen, in their order, and whether they are wanted."""

    def of(self, batch: RawBatch) -> RawBatch:
        """The messages that are read.

        Raises:
            OptionError: A simple name means two types.
            BrokerError: The schema registry does not answer, or refuses.
        """
        read, _ = with_schema_ids(batch, self._key, self._value)
        kept = kept_by_beginning(read.values.column, self._keeps_value)
        if read.values.nulls:
            is_delete = read.values.column.is_null().to_numpy(zero_copy_only=False)
            kept[is_delete] = not self._is_append and self._kept_deletes(read.where(is_delete))
        return batch if kept.all() else batch.where(kept)

    def _kept_deletes(self, deletes: RawBatch) -> Mask | bool:
        """For each tombstone whether its key may be one of the table's."""
        decoder = self._key_decoder
        if decoder is None:
            return True
        parts = in_parts(deletes, lambda part: decode_side(part.keys, decoder, "key"))
        kept = ~np.concatenate([_without_columns(keys) for _, keys in parts])
        if self._type_of_key is not None:
            kept &= kept_by_beginning(deletes.keys.column, self._keeps_key)
        return kept

    def _keeps_value(self, beginning: bytes, is_whole: bool) -> bool | int:
        type_ = self._type_of_value and self._type_of_value(beginning, is_whole)
        if type_ is None or isinstance(type_, int):
            return True if type_ is None else type_
        is_wanted = self._names.has(type_.name)
        self.seen[type_.name] = is_wanted
        return is_wanted

    def _keeps_key(self, beginning: bytes, is_whole: bool) -> bool | int:
        type_ = self._type_of_key and self._type_of_key(beginning, is_whole)
        if type_ is None or isinstance(type_, int):
            return True if type_ is None else type_
        fields = type_.fields
        return fields is None or not self._key_columns.isdisjoint(map(str.lower, fields))


def _record_types(side: Side) -> RecordTypes | None:
    return side.format.record_types and side.format.record_types(side.spec)


@lru_cache(maxsize=KEPT_CODECS)
def wanted_records(table: Table, options: ReadOptions) -> WantedRecords | None:
    """What takes the wanted messages out of batches; None = all are wanted. Kept for the next task of the worker."""
    return WantedRecords(table, options) if options.record_names else None


_FIRST = 5
"""So many bytes name a schema, most often."""


def kept_by_beginning(
    messages: pa.LargeBinaryArray,
    keeps: Callable[[bytes, bool], bool | int],
    length: int = _FIRST,
) -> Mask:
    """For each message whether it is kept.

    Args:
        messages: The messages; null ones are kept.
        keeps: Whether messages that begin so are kept; a number = it takes so many of their first bytes to tell.
        length: How many bytes are looked at first.
    """
    found = pc.binary_slice(messages, 0, length).dictionary_encode()
    beginnings = found.dictionary.to_pylist()
    answers = [keeps(beginning, len(beginning) < length) for beginning in beginnings]
    # The last place is that of null messages, whose index is -1.
    of_each = np.array([answer is True for answer in answers] + [True])
    indexes = found.indices.fill_null(-1).to_numpy()
    kept: Mask = of_each[indexes]
    lengths = [None if isinstance(answer, bool) else answer for answer in answers] + [None]
    for longer in sorted({*filter(None, lengths)}):
        asks = np.array([each == longer for each in lengths])
        places = np.flatnonzero(asks[indexes])
        kept[places] = kept_by_beginning(messages.take(pa.array(places)), keeps, longer)
    return kept


def _without_columns(keys: DecodedSide) -> Mask:
    """For each key whether it was read, and has none of the table's columns."""
    is_null = [column.is_null().to_numpy(zero_copy_only=False) for column in keys.rows.columns]
    found: Mask = reduce(np.logical_and, is_null, keys.read)
    return found
