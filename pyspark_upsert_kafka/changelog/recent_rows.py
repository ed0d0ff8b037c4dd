"""Rows that changed since those of a bucket were written as a whole: a small change need not write them all again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.changelog.normalization import key_frame


@dataclass(frozen=True)
class RecentRows:
    """The last rows of keys that changed.

    Args:
        rows: One row per key.
        deleted: For each row whether its key has no row any more; it is then as it was before.
    """

    rows: pa.Table
    deleted: np.ndarray

    @classmethod
    def none(cls, schema: pa.Schema) -> RecentRows:
        """Nothing has changed."""
        return cls(schema.empty_table(), np.zeros(0, bool))

    @classmethod
    def from_table(cls, table: pa.Table) -> RecentRows:
        """The rows from a table whose last column says which are deleted."""
        deleted = table.column(table.num_columns - 1).to_numpy()
        return cls(table.select(range(table.num_columns - 1)), deleted)

    def to_table(self) -> pa.Table:
        """The rows as a table whose last column says which are deleted."""
        # Its name may be that of another column: it is known by its place.
        return self.rows.append_column("deleted", pa.array(self.deleted))

    def over(self, rows: pa.Table, keys: list[str]) -> pa.Table:
        """Rows as they are now.

        Args:
            rows: One row per key, from before.
            keys: The columns of the key.
        """
        if not self.rows.num_rows:
            return rows
        unchanged = rows.filter(pa.array(~with_key_in(rows, self.rows, keys)))
        return pa.concat_tables([unchanged, self.rows.filter(pa.array(~self.deleted))])

    def where(self, mask: np.ndarray) -> RecentRows:
        """Some of them."""
        return RecentRows(self.rows.filter(pa.array(mask)), self.deleted[mask])

    def and_others(self, others: RecentRows) -> RecentRows:
        """These and those of other keys."""
        return RecentRows(
            pa.concat_tables([self.rows, others.rows]).combine_chunks(),
            np.concatenate([self.deleted, others.deleted]),
        )


def with_key_in(rows: pa.Table, others: pa.Table, keys: list[str]) -> np.ndarray:
    """For each row whether its key is one of the others'; keys are compared as in `normalized`."""
    found = np.zeros(rows.num_rows, bool)
    if rows.num_rows and others.num_rows:
        frame, among = (key_frame(each.select(keys)) for each in (rows, others))
        numbered = frame.with_row_index("row")
        kept = numbered.join(among, on=frame.columns, how="semi", nulls_equal=True)
        found[kept["row"].to_numpy()] = True
    return found


def changed(rows: pa.Table, before: pa.Table, keys: list[str]) -> RecentRows:
    """What became of some keys.

    Args:
        rows: Their rows now.
        before: Their rows in what was written as a whole: those that are gone now are deleted.
        keys: The columns of the key.
    """
    gone = before.filter(pa.array(~with_key_in(before, rows, keys)))
    deleted = np.repeat([False, True], [rows.num_rows, gone.num_rows])
    return RecentRows(pa.concat_tables([rows, gone]), deleted)
