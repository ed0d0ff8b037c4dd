"""What envelopes say was done to rows, whichever format they have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa

Mask = Any
"""A numpy array of booleans."""


class Op(IntEnum):
    """What was done to a row."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2


@dataclass(frozen=True)
class RowImages:
    """Rows as they were at one moment, one for each change.

    Args:
        columns: The columns by name; those of the key at least.
        present: For each change whether it has such a row; where it has none, all columns are NULL.
    """

    columns: Mapping[str, pa.Array]
    present: Mask

    @classmethod
    def of(cls, structs: pa.StructArray) -> RowImages:
        """Those in a column of structs, where NULL is no row."""
        names = [structs.type.field(at).name for at in range(structs.type.num_fields)]
        present = structs.is_valid().to_numpy(zero_copy_only=False)
        return cls(dict(zip(names, structs.flatten(), strict=True)), present)

    def where(self, mask: Mask) -> RowImages:
        """Those for which the mask is true."""
        chosen = pa.array(mask)
        columns = {name: column.filter(chosen) for name, column in self.columns.items()}
        return RowImages(columns, self.present[mask])


@dataclass(frozen=True)
class RowChanges:
    """Changes of rows.

    Args:
        places: The index of each change's envelope; it rises, and occurs as often as its envelope has changes.
        ops: The `Op` of each change.
        before: The rows before; an insert has none.
        after: The rows after; a delete has none.
    """

    places: Any
    ops: Any
    before: RowImages
    after: RowImages

    def __len__(self) -> int:
        return len(self.ops)

    def without(self, envelopes: Collection[int]) -> RowChanges:
        """The changes that are in none of some envelopes."""
        if not envelopes:
            return self
        mask = ~np.isin(self.places, [*envelopes])
        return RowChanges(
            self.places[mask], self.ops[mask], self.before.where(mask), self.after.where(mask)
        )


@dataclass(frozen=True)
class Reading:
    """What some envelopes say.

    Args:
        changes: The changes of rows; those of other envelopes than a change of a row have no meaning.
        errors: Index of each envelope that makes no sense, and why.
        passed_over: Index of each envelope that changes no row, and what it is.
    """

    changes: RowChanges
    errors: dict[int, str] = field(default_factory=dict)
    passed_over: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Words:
    """How a format names what errors are about.

    Args:
        before: The field of the row before an update.
        deleted: The field of a deleted row.
        after: The field of the row after.
        product: What writes the format, if it may leave out the row before; None = it does not.
    """

    before: str
    deleted: str
    after: str
    product: str | None = None

    def no_row(self, op: Op) -> str:
        """The error about an insert or update without the row after it."""
        return f'the "{self.after}" field of {op.name} message is null or missing'

    def no_row_before(self, op: Op) -> str:
        """The error about an update or delete without the row before it; the hint is Flink's."""
        field_ = self.before if op is Op.UPDATE else self.deleted
        if self.product is None:
            return f'the "{field_}" field of {op.name} message is null or missing'
        return (
            f'The "{field_}" field of {op.name} message is null, if you are using {self.product} Postgres Connector, please '
            "check the Postgres table has been set REPLICA IDENTITY to FULL level"
        )
