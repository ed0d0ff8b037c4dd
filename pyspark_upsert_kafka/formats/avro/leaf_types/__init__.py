"""What a leaf type of Avro declares: how it is read, as a column and value by value, and how it is written.

A leaf type holds no other types; it may have a logical type. Each module of this folder has a family of them; `table`
lists all by their names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType

from pyspark_upsert_kafka.formats.avro.cursors import Cursor, Cursors
from pyspark_upsert_kafka.formats.avro.model import LeafSchema, Logical, logical_of
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts

ColumnReader = Callable[[Cursors], Any]
"""Reads a field of all messages and gives its column; None when no column wants it."""

ValueReader = Callable[[Cursor], Any]
"""Reads a field of a message and gives its value, as ``pyarrow.array`` takes it; raises UnreadableError."""

Writer = Callable[[pa.Array], ByteParts]
"""Writes a column as bytes; raises EncodeError.

That of a leaf type is given a column without nulls, and raises ValueError: it does not know the column's name.
"""


class Leaf(ABC):
    """How a field of a leaf type is read: as a column (vectorised path), and value by value (row path)."""

    arrow: pa.DataType | None
    """Type of the column; None = no column wants the field, which is skipped."""

    @property
    def least_bytes(self) -> int:
        """How many bytes it takes in a message at least; 0 when in doubt."""
        return 1

    @property
    def constant_bytes(self) -> int:
        """How many bytes a value has at most that do not stand in the message."""
        return 0

    @abstractmethod
    def column_reader(self) -> ColumnReader:
        """Compiles the function that reads all messages; those that it cannot read it leaves to the row path."""

    @abstractmethod
    def value_reader(self) -> ValueReader:
        """Compiles the function that reads one message, or says what is wrong with it."""


@dataclass(frozen=True)
class ReadField:
    """A field of a leaf type, and the column that it is read into.

    Args:
        path: The field, for errors.
        written: Its type in the writer's schema, which is how its bytes stand.
        read_as: Its type in the reader's schema; the written one when there is no reader's schema.
        column: Type of the column.
        strict_zones: Refuse a local timestamp for a TIMESTAMP, and the reverse.
    """

    path: str
    written: LeafSchema
    read_as: LeafSchema
    column: pa.DataType
    strict_zones: bool = False

    @property
    def logical(self) -> Logical | None:
        """The writer's logical type, or else the reader's: the writer knew what it wrote."""
        return logical_of(self.written) or logical_of(self.read_as)


@dataclass(frozen=True)
class Timestamps:
    """How timestamps are written.

    Args:
        legacy: Write a TIMESTAMP as a local timestamp too, and a TIMESTAMP_NTZ as one that is not local.
        remedy: What the error of a value that is finer than its type's milliseconds advises; None = it is rounded down.
    """

    legacy: bool = True
    remedy: str | None = None


@dataclass(frozen=True)
class WrittenField:
    """A column, and the leaf type that it is written as.

    Args:
        column: Type of the column.
        written: What to write.
        timestamps: How timestamps are written.
    """

    column: DataType
    written: LeafSchema
    timestamps: Timestamps = Timestamps()


Read = Callable[[ReadField], "Leaf | None"]
"""How a field is read; None = its column cannot hold what is written."""

Write = Callable[[WrittenField], "Writer | None"]
"""How a column is written; None = the type cannot hold it."""


@dataclass(frozen=True)
class LeafType:
    """A leaf type.

    Args:
        columns: The column that a schema means by it, for each plain type that it may be declared of; a plain type is
            declared of itself.
        read: The ways to read it; the first that fits the column is taken.
        write: The ways to write it; the first that fits the column is taken.
    """

    columns: Mapping[str, DataType]
    read: tuple[Read, ...]
    write: tuple[Write, ...]


def from_columns(writers: Mapping[type[DataType], Writer]) -> Write:
    """A way to write columns of some types, each by its writer."""
    return lambda field: writers.get(type(field.column))
