"""The primary keys of the rows that messages of a CDC format changed.

The row's own columns win; where one is NULL or missing, the key of the message says it, if that is read.
"""

from __future__ import annotations

import logging

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.row_hash import equal_keys
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.bad_messages import BadMessage
from pyspark_upsert_kafka.source.reading.changed_rows import ChangedRows
from pyspark_upsert_kafka.source.reading.decoded_side import DecodedSide
from pyspark_upsert_kafka.source.reading.selection import Indexes

logger = logging.getLogger("pyspark_upsert_kafka")


class ChangedKeys:
    """Finds rows without a key, and warns of those whose key is not that of their message.

    Args:
        table: The table.
    """

    def __init__(self, table: Table) -> None:
        self._names = dict(zip(table.key_names, table.key_message.names, strict=True))
        self._in_value = {field.name for field in table.value}
        self._told: set[tuple[str, str]] = set()

    def without_key(
        self, batch: RawBatch, values: ChangedRows, keys: DecodedSide | None
    ) -> list[BadMessage]:
        """The messages in which a column of the primary key is NULL.

        Args:
            batch: The messages.
            values: The rows that they changed.
            keys: Their keys; None = they are not read.
        """
        found: list[BadMessage] = []
        for name, in_key in self._names.items():
            of_row = values.rows.column(name) if name in self._in_value else None
            of_key = (
                None if keys is None else keys.rows.column(in_key).take(pa.array(values.places))
            )
            if of_row is not None and of_key is not None:
                self._warn_of_other(batch, name, values.places, of_row, of_key)
            known = [column.is_valid() for column in (of_row, of_key) if column is not None]
            lacking = pc.invert(pc.or_(known[0], known[-1]))
            places = values.places[lacking.to_numpy(zero_copy_only=False)]
            found += [BadMessage(int(at), "null-key", _lacks(name)) for at in dict.fromkeys(places)]
            if values.nulls is not None and keys is not None:
                deleted = np.flatnonzero(values.nulls)
                null = keys.rows.column(in_key).is_null().to_numpy(zero_copy_only=False)[deleted]
                found += [BadMessage(int(at), "null-key", _lacks(name)) for at in deleted[null]]
        return found

    def _warn_of_other(
        self, batch: RawBatch, name: str, places: Indexes, of_row: pa.Array, of_key: pa.Array
    ) -> None:
        """Looks at the last row of each message: an update of the key gives a delete of the old key before it."""
        if (batch.topic, name) in self._told or not len(places):
            return
        is_last = pa.array(np.append(places[1:] != places[:-1], True))
        both = pc.and_(of_row.is_valid(), of_key.is_valid())
        differs = pc.and_(pc.and_(both, is_last), pc.invert(equal_keys(of_row, of_key)))
        at = pc.index(differs, True).as_py()
        if at >= 0:
            self._told.add((batch.topic, name))
            logger.warning(
                "Topic %r, partition %d, offset %d: column %r of the primary key differs between the row and the message key. "
                "The key of the row is taken, here and in other messages of this topic.",
                batch.topic, batch.partition, batch.offsets[int(places[at])], name,
            )  # fmt: skip


def _lacks(name: str) -> str:
    return (
        f"key column '{name}' is NULL or missing, so the message does not say which row it changes"
    )
