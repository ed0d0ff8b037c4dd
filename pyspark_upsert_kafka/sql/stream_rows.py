"""What the rows of a query are in a stream: only added, or changes of rows; and the columns that say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CHANGE = "_change_type"
"""The column that says what a row does: an upsert or a delete, or one of the kinds of Spark's changelogs."""

ORDER = "_offset"
"""The column by which changes of a key are put in order."""

Changes = Literal["upserts", "images"]
"""``upserts``: upserts and deletes. ``images``: inserts, deletes, and the rows before and after each update."""


@dataclass(frozen=True)
class Rows:
    """The rows of a query in a stream.

    Args:
        names: Its columns.
        key: The parts of the rows' key, each as the columns that hold it; None = there is none that is known.
        constants: The columns that are the same in each row.
        changes: What the column `CHANGE` says, which is behind the others; None = there is no such column.
        in_order: Whether the column `ORDER` is there too, as the last one.
    """

    names: tuple[str, ...]
    key: tuple[frozenset[int], ...] | None = None
    constants: frozenset[int] = frozenset()
    changes: Changes | None = None
    in_order: bool = False

    @property
    def only_adds(self) -> bool:
        """Whether no row changes another."""
        return self.key is None and self.changes is None

    @property
    def has_changes(self) -> bool:
        """Whether a column says what each row does."""
        return self.changes is not None

    @property
    def hidden(self) -> tuple[str, ...]:
        """The columns behind those of the query."""
        return (CHANGE,) * self.has_changes + (ORDER,) * self.in_order
