"""A case: a table, and messages that its format must read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

Peer = Callable[[Sequence[bytes]], "list[Any]"]
"""What another implementation makes of each message: its row as a dict, a `NoRow`, or UNKNOWN."""


class NoRow(str):
    """Why a peer cannot read a message."""

    __slots__ = ()


UNKNOWN = object()
"""A peer has no say about a message, or about a value."""


@dataclass(frozen=True)
class Table:
    """One side of a table.

    Args:
        format: The name of its format.
        schema: Its columns.
        side: ``key`` or ``value``.
        options: Options of the format as texts, by their names.
        files: Files that options name as ``{name}``, such as Protobuf's descriptors.
        schemas: The schemas of a registry by their ids, as texts.
        required: The columns that are part of the primary key.
    """

    format: str
    schema: StructType
    side: str = "value"
    options: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    schemas: Mapping[int, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    """Messages of one table.

    Args:
        table: The table.
        messages: Some good, some bad.
        expected: Rows that are known, because a row was written as a message that nobody has touched.
        places: The messages that must be these rows, in their order.
        rows: Rows to be written; None = those that are read.
        again: Whether what is read, written and read again is the same.
        peer: Another implementation.
    """

    table: Table
    messages: Sequence[bytes]
    expected: pa.RecordBatch | None = None
    places: np.ndarray = field(default_factory=lambda: np.array([], np.int64))
    again: bool = True
    peer: Peer | None = None

    def only(self, chosen: Sequence[int], copies: int = 1) -> Case:
        """The case with some of its messages, in their order, so many times."""
        known = {int(place): row for row, place in enumerate(self.places)}
        every = [*chosen] * copies
        places = [at for at, index in enumerate(every) if index in known]
        rows = [known[every[at]] for at in places]
        return replace(
            self,
            messages=[self.messages[index] for index in every],
            expected=None
            if self.expected is None
            else self.expected.take(pa.array(rows, pa.int64())),
            places=np.array(places, np.int64),
        )


def written(
    table: Table, messages: Sequence[bytes], rows: pa.RecordBatch, kept: Sequence[int], **more: Any
) -> Case:
    """A case of messages that were made of rows, of which some are still as they were.

    Args:
        table: The table.
        messages: One for each row, spoiled or not, and others behind them.
        rows: The rows.
        kept: The messages that must be their rows.
        more: Other arguments of `Case`.
    """
    places = np.array(kept, np.int64)
    return Case(table, messages, rows.take(pa.array(places)), places, **more)
