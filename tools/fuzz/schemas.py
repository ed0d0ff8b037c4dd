"""Random columns."""

from __future__ import annotations

from random import Random

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

SIMPLE: tuple[DataType, ...] = (
    BooleanType(), ByteType(), ShortType(), IntegerType(), LongType(), FloatType(), DoubleType(),
    StringType(), StringType(), BinaryType(), DateType(), TimestampType(), TimestampNTZType(),
    DecimalType(10, 2), DecimalType(18, 0), DecimalType(38, 0), DecimalType(38, 38), DecimalType(5, 5),
)  # fmt: skip
"""What every format carries that has columns."""

INTERVAL, VARIANT = DayTimeIntervalType(), VariantType()

_NAMES = [
    "a",
    "b",
    "c",
    "id",
    "x y",
    "é",
    "😀",
    "Name",
    "name_2",
    "dotted.name",
    'q"uote',
    "back\\slash",
]
_IDENTIFIERS = ["a", "b", "c", "id", "Name", "name_2", "_x", "A", "value", "key"]


def columns(
    rng: Random,
    leaves: tuple[DataType, ...],
    *,
    depth: int,
    maps: bool = True,
    plain_names: bool = False,
    most: int = 5,
    nullable: bool = False,
) -> StructType:
    """Some columns.

    Args:
        rng: Decides.
        leaves: The types without parts.
        depth: How deep arrays, maps and structs may nest.
        maps: Whether there are maps, which have STRING keys.
        plain_names: Whether names are identifiers.
        most: So many columns at most.
        nullable: Whether all may be NULL.
    """
    names = _IDENTIFIERS if plain_names else _NAMES

    def one(depth: int) -> DataType:
        shape = rng.random()
        if depth <= 0 or shape < 0.65:
            return rng.choice(leaves)
        if shape < 0.78:
            return ArrayType(one(depth - 1), may_be_null())
        if shape < 0.88 and maps:
            return MapType(StringType(), one(depth - 1), may_be_null())
        return struct(depth - 1, rng.randint(1, 3))

    def struct(depth: int, count: int) -> StructType:
        chosen = rng.sample(names, count)
        return StructType([StructField(name, one(depth), may_be_null()) for name in chosen])

    def may_be_null() -> bool:
        return nullable or rng.random() < 0.8

    return struct(depth, rng.randint(1, most))


def has_floats(schema: StructType) -> bool:
    """Whether a FLOAT or DOUBLE is in there."""
    return any(
        name in schema.simpleString()
        for name in (":float", ":double", "<float", "<double", ",float", ",double")
    )
