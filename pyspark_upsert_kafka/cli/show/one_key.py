"""``--key``: the one key that is shown, and what is said when there is no row of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.cli.show.row_printing import value_of
from pyspark_upsert_kafka.connector.reading.message_rows import Rows
from pyspark_upsert_kafka.core.arrow import canonical_floats
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

_NO_TIMESTAMP = 0


@dataclass(frozen=True)
class OneKey:
    """A key of a table.

    Args:
        names: The table's columns.
        values: One row: the columns of the key, under their names in the table.
    """

    names: tuple[str, ...]
    values: pa.RecordBatch

    def matching(self, changes: Iterable[tuple[RawBatch, Rows]]) -> Iterator[tuple[RawBatch, Rows]]:
        """The rows that have this key."""
        for batch, rows in changes:
            yield batch, rows.where(self._mask(rows).to_numpy(zero_copy_only=False))

    def _mask(self, rows: Rows) -> pa.BooleanArray:
        mask = pa.repeat(pa.scalar(True), len(rows))
        for name, value in zip(self.values.schema.names, self.values.columns, strict=True):
            column = canonical_floats(rows.columns[self.names.index(name)])
            mask = pc.and_(mask, pc.is_in(column, value_set=canonical_floats(value)))
        return mask


def one_key(text: str, table: Table) -> OneKey:
    """The key in the argument's text.

    Raises:
        OptionError: It is not one value for each column of the key, or a value does not have its column's type.
    """
    if not table.key:
        raise OptionError("--key needs a table with a key, and messages of --append have none.")
    given = key_texts(text, table.key_names)
    columns = [value_of(field, given[field.name]) for field in table.key]
    values = pa.RecordBatch.from_arrays(columns, list(table.key_names))
    return OneKey(tuple(table.schema.names), values)


def key_texts(text: str, columns: Sequence[str]) -> Mapping[str, str]:
    """The text of each column's value; a value may hold commas, but no other ``,column=``.

    Raises:
        OptionError: They are not the columns of the key, each once.

    >>> key_texts("name=Smith, John,id=7", ["id", "name"])
    {'name': 'Smith, John', 'id': '7'}
    """
    names = {name.lower(): name for name in columns}
    longest_first = sorted(map(re.escape, columns), key=len, reverse=True)
    begin, *parts = re.split(rf"(?:^|,)\s*({'|'.join(longest_first)})=", text, flags=re.IGNORECASE)
    found = [names[part.lower()] for part in parts[::2]]
    if begin or sorted(found) != sorted(columns):
        example = ",".join(f"{name}=..." for name in columns)
        raise OptionError(
            f"--key {text!r} does not give one value for each column of the primary key: write --key {example}."
        )
    return dict(zip(found, parts[1::2], strict=True))


@dataclass(frozen=True)
class _LastChange:
    """The last change of the key in a partition.

    Args:
        timestamp: In ms since the epoch; None = the message has none.
        offset: Its offset.
        deletes: Whether it is a delete.
    """

    timestamp: int | None
    offset: int
    deletes: bool


class SoughtKey:
    """Notes what is read of a key, to say why there is no row of it.

    Args:
        key: The key.
    """

    def __init__(self, key: OneKey) -> None:
        self.key = key
        self._is_shown = False
        self._last: dict[TopicPartition, _LastChange] = {}

    @property
    def is_seen(self) -> bool:
        """Whether a change of the key was read."""
        return bool(self._last)

    def matching(self, changes: Iterable[tuple[RawBatch, Rows]]) -> Iterator[tuple[RawBatch, Rows]]:
        """The rows that have this key, whose messages must have been read with their timestamps."""
        for batch, rows in self.key.matching(changes):
            if len(rows):
                self._last[TopicPartition(batch.topic, batch.partition)] = _last_change(batch, rows)
            yield batch, rows

    def shown(self, found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Passes on the rows of the key, and notes that there was one: a newer delete may have been read after it."""
        for rows in found:
            self._is_shown = True
            yield rows

    def absence(self) -> str | None:
        """Why there is no row; None = there is one."""
        if self._is_shown:
            return None
        if not self._last:
            return "no such row"
        place, last = max(self._last.items(), key=lambda each: each[1].timestamp or 0)
        time = "" if last.timestamp is None else f" at {np.datetime64(last.timestamp, 'ms')}Z"
        topics = {each.topic for each in self._last}
        topic = f"topic {place.topic!r}, " if len(topics) > 1 else ""
        return (
            f"no such row; deleted{time} ({topic}partition {place.partition}, offset {last.offset})"
        )


def _last_change(batch: RawBatch, rows: Rows) -> _LastChange:
    at = len(batch) - 1 if rows.places is None else int(rows.places[-1])
    deletes = rows.deletes is not None and rows.deletes[-1].as_py()
    known = batch.timestamp_types[at] != _NO_TIMESTAMP
    return _LastChange(batch.timestamps[at] if known else None, batch.offsets[at], deletes)
