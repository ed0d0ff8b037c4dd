"""Avro's types, as a schema declares them (Avro specification 1.12): which there are, the columns that leaf types mean, and how errors name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.decoding import UnreadableError

PRIMITIVES: Final = frozenset(
    ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
)

NO_DEFAULT: Final = ...
"""The default of a field that has none; ``None`` is the default ``null``."""


@dataclass(frozen=True)
class Logical:
    """A logical type that may be declared of the type it stands on; precision and scale are those of a decimal."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True)
class Primitive:
    """One of PRIMITIVES, its ``type``."""

    type: str
    logical: Logical | None = None


@dataclass(frozen=True)
class Fixed:
    """Exactly ``size`` bytes. Names and aliases, here and below, are full ones: ``space.name``."""

    name: str
    size: int
    logical: Logical | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Enum:
    """One of some symbols; a reader reads those that it does not know as its ``default``."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Array:
    """Any number of items."""

    items: AvroType


@dataclass(frozen=True)
class Map:
    """Any number of values, each under a string."""

    values: AvroType


@dataclass(frozen=True)
class Field:
    """A field of a record; ``default`` is JSON, or NO_DEFAULT."""

    name: str
    type: AvroType
    default: Any = field(default=NO_DEFAULT, hash=False)
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """Some fields, in the order in which they are written."""

    name: str
    fields: tuple[Field, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Union:
    """One of some branches, of which no two are unions or of the same type."""

    branches: tuple[AvroType, ...]

    @cached_property
    def not_null(self) -> tuple[AvroType, ...]:
        """The branches but for null."""
        return tuple(branch for branch in self.branches if branch != NULL)

    @cached_property
    def _by_likeness(self) -> Mapping[object, list[AvroType]]:
        """Found out once: each branch of a writer's union may be looked for, and there may be thousands."""
        found: dict[object, list[AvroType]] = {}
        for branch in self.branches:
            found.setdefault(_likeness(branch), []).append(branch)
        return found

    def like(self, other: AvroType) -> Sequence[AvroType]:
        """The branches that are the same as another type by what they are, or by their unqualified names."""
        return self._by_likeness.get(_likeness(other), ())


@dataclass(frozen=True)
class Reference:
    """A record that stands within itself, by its full name in ``Schema.records``."""

    name: str


LeafSchema: TypeAlias = "Primitive | Fixed | Enum"
"""What holds no other types."""

AvroType: TypeAlias = "Primitive | Fixed | Enum | Array | Map | Record | Union | Reference"


@dataclass(frozen=True)
class Schema:
    """A whole schema.

    Args:
        type: What a datum is.
        records: The records in it by their full names.
    """

    type: AvroType
    records: Mapping[str, Record] = field(default_factory=dict, hash=False)


NULL: Final = Primitive("null")

_TEXT_OR_BYTES = {"string": StringType(), "fixed": BinaryType()}
_DECIMAL = {"bytes": DecimalType(), "fixed": DecimalType()}
_INT, _LONG = {"int": IntegerType()}, {"long": LongType()}
_ZONED, _LOCAL = {"long": TimestampType()}, {"long": TimestampNTZType()}

PLAIN_COLUMNS: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
    "fixed": BinaryType(),
    "enum": StringType(),
}
"""The column that a schema means by each leaf type without a logical type."""

# For Spark's own reader nanoseconds and times are numbers, and a uuid is what it stands on.
LOGICAL_COLUMNS: Mapping[str, Mapping[str, DataType]] = {
    "date": {"int": DateType()},
    "time-millis": _INT,
    "time-micros": _LONG,
    "timestamp-millis": _ZONED,
    "timestamp-micros": _ZONED,
    "timestamp-nanos": _LONG,
    "local-timestamp-millis": _LOCAL,
    "local-timestamp-micros": _LOCAL,
    "local-timestamp-nanos": _LONG,
    "uuid": _TEXT_OR_BYTES,
    "decimal": _DECIMAL,
}
"""What each logical type may be declared of, ``duration`` of nothing, and the column that a schema means by it then."""


def _likeness(avro: AvroType) -> object:
    if isinstance(avro, Primitive):
        return Primitive, avro.type
    return unqualified(avro.name) if isinstance(avro, Record | Enum | Fixed) else type(avro)


def unqualified(name: str) -> str:
    """A full name without its namespace."""
    return name.rpartition(".")[2]


def plain_name(leaf: LeafSchema) -> str:
    """``int``, ``fixed``, ``enum``, ...: the type of a leaf, whatever its logical type."""
    return leaf.type if isinstance(leaf, Primitive) else type(leaf).__name__.lower()


def logical_of(leaf: LeafSchema) -> Logical | None:
    """The logical type of a leaf; None = it has none."""
    return None if isinstance(leaf, Enum) else leaf.logical


def field_label(path: str) -> str:
    """A field; the empty path is the whole datum."""
    return f"field {path!r}" if path else "the datum"


def sql_type(column: pa.DataType) -> str:
    """A column's type in the words of SQL."""
    return str(from_arrow_type(column).simpleString()).upper()


def type_label(avro: AvroType) -> str:
    """A type in the words of its schema: ``long``, ``long (timestamp-micros)``, ``record``."""
    if not isinstance(avro, Primitive | Fixed):
        return type(avro).__name__.lower()
    plain = avro.type if isinstance(avro, Primitive) else f"fixed({avro.size})"
    if avro.logical is None:
        return plain
    if avro.logical.name != "decimal":
        return f"{plain} ({avro.logical.name})"
    return f"{plain} (decimal({avro.logical.precision},{avro.logical.scale}))"


def mismatch(path: str, column: pa.DataType, avro: AvroType) -> SchemaError:
    """The error of a field whose column cannot hold what is written."""
    return SchemaError(
        f"{field_label(path)} is {sql_type(column)}, which cannot hold Avro's {type_label(avro)}"
    )


def unreadable(path: str, what: str) -> UnreadableError:
    """The error of a message."""
    return UnreadableError(f"{field_label(path)}: {what}")
