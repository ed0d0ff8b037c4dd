"""Random changes of rows, and the rows of the table that they must become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa
from pyspark.sql.types import ArrayType, MapType, StructType

from pyspark_upsert_kafka.core.changes import Change as RowChange
from pyspark_upsert_kafka.formats.batches import with_type
from tools.fuzz.codecs import KIND, ROW

Image = Sequence[int]
"""A row: of each column the place of its value in that column's pool."""

Shown = tuple[RowChange, Sequence[int | None]]
"""A row of the table: what it is, and its values; None = NULL."""


@dataclass(frozen=True)
class Change:
    """A change of a row.

    Args:
        op: ``i``, ``u`` or ``d``.
        before: The row before; None = an insert.
        after: The row after; None = a delete.
    """

    op: str
    before: Image | None
    after: Image | None


@dataclass(frozen=True)
class Pools:
    """The values of which rows are made.

    Args:
        schema: The columns.
        values: The values of each column.
        texts: The same as messages have them.
        keys: The places of the columns of the primary key; None = there is none.
    """

    schema: StructType
    values: Sequence[pa.Array]
    texts: Sequence[Sequence[bytes]]
    keys: Sequence[int] | None

    def image(self, rng: Random) -> Image:
        """A random row."""
        return [rng.randrange(len(each)) for each in self.texts]

    def change(self, rng: Random) -> Change:
        """A random change; an update often leaves the key as it is."""
        op = rng.choice("iuud")
        before = None if op == "i" else self.image(rng)
        after = None if op == "d" else self.image(rng)
        if before and after and rng.random() < 0.7:
            keys = {*(self.keys or ())}
            after = [
                old if at in keys else new
                for at, (old, new) in enumerate(zip(before, after, strict=True))
            ]
        return Change(op, before, after)

    def shown(self, changes: Sequence[Change]) -> list[Shown]:
        """The rows that the changes of one message become."""
        if self.keys is None:
            return [row for change in changes for row in _images(change)]
        last: dict[tuple[bytes, ...], Shown] = {}
        for change in changes:
            for kind, row in self._upserts(change):
                key = self._key(row)
                last.pop(key, None)
                last[key] = kind, row
        return [*last.values()]

    def _upserts(self, change: Change) -> list[Shown]:
        if change.after is None:
            return [self._delete(change.before)]
        upsert: Shown = RowChange.UPSERT, change.after
        if change.before and self._key(change.before) != self._key(change.after):
            return [self._delete(change.before), upsert]
        return [upsert]

    def _delete(self, before: Image | None) -> Shown:
        keys, row = self.keys or (), before or ()
        return RowChange.DELETE, [place if at in keys else None for at, place in enumerate(row)]

    def _key(self, row: Sequence[int | None]) -> tuple[bytes, ...]:
        return tuple(self.texts[at][row[at] or 0] for at in self.keys or ())

    def expected(self, messages: Sequence[Sequence[Shown]], target: pa.Schema) -> pa.RecordBatch:
        """The rows of some messages, each as one row of these columns."""
        rows = [row for message in messages for row in message]
        columns = [
            values.take(pa.array([row[at] for _, row in rows], pa.int64()))
            for at, values in enumerate(self.values)
        ]
        kinds = pa.array([int(kind) for kind, _ in rows], pa.int8())
        row = pa.StructArray.from_arrays(columns, self.schema.names)
        ends = [0]
        for message in messages:
            ends.append(ends[-1] + len(message))
        changes = pa.StructArray.from_arrays([kinds, row], [KIND, ROW])
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), changes)
        passed_over = pa.nulls(len(messages), pa.string())
        return pa.RecordBatch.from_arrays(
            [with_type(lists, target.field(0).type), passed_over], schema=target
        )


def keys_of(rng: Random, schema: StructType) -> list[int] | None:
    """The places of the columns of a primary key, which have no parts; None = there is none."""
    has_parts = isinstance(schema[1].dataType, ArrayType | MapType | StructType)
    return rng.choice([None, None, None, [0], [0], [0] if has_parts else [0, 1]])


def _images(change: Change) -> list[Shown]:
    if change.after is None:
        return [(RowChange.DELETE, change.before or ())]
    if change.before is None:
        return [(RowChange.INSERT, change.after)]
    return [(RowChange.UPDATE_PREIMAGE, change.before), (RowChange.UPDATE_POSTIMAGE, change.after)]
