"""Warnings: about messages that have none of the table's columns, so that all columns are NULL; and about NULL in a key column."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from pyspark_upsert_kafka.core.errors import shown, shown_names
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.formats.codec import Side
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.reading.changed_rows import ChangedRows
from pyspark_upsert_kafka.source.reading.decoded_side import DecodedSide

logger = logging.getLogger("pyspark_upsert_kafka")

_LOOKED_AT = 10


class MissingColumns:
    """Logs a warning, once, when no message of a batch has any of the columns.

    Such messages belong to another table, or have the columns within an envelope, or under other names. A column that
    is there and NULL is no reason. Only if all columns of a batch are NULL, a few of its messages are looked into.

    Args:
        value: The value's format and columns.
    """

    def __init__(self, value: Side) -> None:
        self._fields, self._columns = value.format.fields, value.spec.schema.names
        self._is_said = False

    def look(self, batch: RawBatch, values: DecodedSide | ChangedRows) -> None:
        """Logs the warning, if it is not logged yet and a batch has none of the columns.

        Args:
            batch: The messages.
            values: What was read of their values.
        """
        fields_of, rows = self._fields, values.rows
        if self._is_said or fields_of is None or not self._columns:
            return
        if any(column.null_count < rows.num_rows for column in rows.columns):
            return
        places = values.places[:_LOOKED_AT].tolist()
        if not places:
            return
        messages = (batch.values[at] for at in places)
        found = dict.fromkeys(
            name for each in messages if each is not None for name in fields_of(each)
        )
        # An object without fields is how a row of NULLs may be written.
        if found and not any(column in found for column in self._columns):
            warn_once(_text(batch, places[0], list(found), self._columns))
            self._is_said = True


def _text(batch: RawBatch, at: int, fields: Sequence[str], columns: Sequence[str]) -> str:
    return (
        f"Topic {batch.topic!r}, partition {batch.partition}, offset {batch.offsets[at]} and following messages: the values "
        f"have none of the columns {shown_names(columns)}, so these columns are NULL, except those of the key. The values have the "
        f"fields {shown_names(fields)}. Check the schema: a column must have the name of its field, with the same capital letters. "
        "If the row is within an envelope, as in Debezium's messages, a CDC format reads it: 'value.format' = 'debezium-json'."
    )


class NullKeys:
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
            null = np.flatnonzero(keys.read & column.is_null().to_numpy(zero_copy_only=False))
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
