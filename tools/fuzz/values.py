"""Random columns, and random and unusual values of them, column by column."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
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
    VariantVal,
)

from pyspark_upsert_kafka.core.arrow import arrow_schema

TEXTS = [
    "", " ", "a", "null", "NULL", "NaN", "true", "0", "1.5", "-0", "é", "😀", "\x7f", "\x01", "\0", "\t", "\r",
    "\n", "a\nb", "a\r\nb", "\\", "\\n", '"', '""', '"a"', "'", "''", ",", ";", "a,b", "a;b", "#", "#a", "{}", "[]",
    "{", "}{", "x" * 70, "é" * 24, "😀" * 13, "\ufeff", "\ufeffa", "\u2028", "\ufffd", "\ufffe", "\U0010ffff", " a ",
    "2024-01-31", "QUJD", "a\\", "*", "a*", "\x85", "\x1f", "İ", "ǅ",
]  # fmt: skip

DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.1, 1.5, 1e7, 1e-3, 9999999.0, 1e16, 1e22, 1e23, 123456789012345680.0, 2.0**53, 2.0**63,
    5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, float("nan"), float("inf"), float("-inf"), 1e21, 1e-7,
]  # fmt: skip


def integers(rng: Random, low: int, high: int) -> list[int]:
    """Whole numbers within bounds, of all lengths."""
    powers = [sign * (1 << rng.randrange(high.bit_length() + 1)) - off for sign in (1, -1) for off in (0, 1) for _ in range(6)]  # fmt: skip
    tens = [sign * 10 ** rng.randrange(len(str(high))) for sign in (1, -1) for _ in range(4)]
    every = [
        low,
        high,
        0,
        1,
        -1,
        63,
        64,
        -64,
        -65,
        *powers,
        *tens,
        *(rng.randint(low, high) for _ in range(12)),
    ]
    return [number for number in every if low <= number <= high]


def texts(rng: Random) -> list[str]:
    """Odd texts and random ones."""

    def one() -> str:
        top = rng.choice([0x80, 0x250, 0xD800, 0x110000])
        return "".join(
            chr(c)
            for c in (rng.randrange(top) for _ in range(rng.randrange(9)))
            if not 0xD800 <= c < 0xE000
        )

    return [*rng.sample(TEXTS, 25), *(one() for _ in range(20)), *(f"k{i}" for i in range(15))]


FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond that Spark writes with four digits of the year."""

DAY = 86_400_000_000
BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}


class Values:
    """Makes columns.

    Args:
        rng: Decides.
        whole_millis: Whether times have no finer digits than milliseconds.
        finite: Whether numbers are finite.
        nulls: How many values are NULL where they may be.
        negative_zero: Whether numbers may be -0.0, which a key has not.
    """

    def __init__(
        self,
        rng: Random,
        *,
        whole_millis: bool = False,
        finite: bool = False,
        nulls: float = 0.1,
        negative_zero: bool = True,
    ) -> None:
        self._rng, self._numpy = rng, np.random.default_rng(rng.getrandbits(64))
        self._unit = 1000 if whole_millis else 1
        self._finite, self._nulls, self._negative_zero = finite, nulls, negative_zero

    def batch(
        self, schema: StructType, count: int, required: frozenset[str] = frozenset()
    ) -> pa.RecordBatch:
        """Rows of a table; the columns that are required have no NULL."""
        target = arrow_schema(schema)
        valid = np.ones(count, np.bool_)
        arrays = [
            self._column(
                field.dataType,
                arrow.type,
                self._some(valid, nullable=field.nullable and field.name not in required),
            )
            for field, arrow in zip(schema.fields, target, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=target)

    def _some(self, valid: np.ndarray, *, nullable: bool) -> np.ndarray:
        """What is not NULL among what may be a value."""
        if not nullable:
            return valid
        return valid & (self._numpy.random(len(valid)) >= self._nulls)

    def _column(self, kind: DataType, arrow: pa.DataType, valid: np.ndarray) -> pa.Array:
        """A column that is NULL where it is not valid, and so is all in it, as in Spark's own."""
        mask = pa.array(~valid)
        if isinstance(kind, StructType):
            children = [
                self._column(
                    f.dataType, arrow.field(at).type, self._some(valid, nullable=f.nullable)
                )
                for at, f in enumerate(kind.fields)
            ]
            bits = pa.array(valid).buffers()[1]
            return pa.Array.from_buffers(arrow, len(valid), [bits], children=children)
        if isinstance(kind, ArrayType | MapType):
            return self._lists(kind, arrow, valid, mask)
        pool = self.pool(kind)
        indices = self._numpy.integers(len(pool), size=len(valid))
        return pa.array(pool, arrow).take(pa.array(indices, mask=~valid))

    def _lists(
        self, kind: ArrayType | MapType, arrow: pa.DataType, valid: np.ndarray, mask: pa.Array
    ) -> pa.Array:
        lengths = np.where(valid, self._numpy.integers(0, 4, size=len(valid)), 0)
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        every = np.ones(int(ends[-1]), np.bool_)
        offsets = pa.array(ends)
        if isinstance(kind, ArrayType):
            items = self._column(
                kind.elementType, arrow.value_type, self._some(every, nullable=kind.containsNull)
            )
            return pa.ListArray.from_arrays(offsets, items, type=arrow, mask=mask)
        # Each place of a map has keys of its own, so none occurs twice.
        place = np.arange(len(every)) - np.repeat(ends[:-1], lengths)
        keys = list(dict.fromkeys(self.pool(StringType())))
        keys = keys[: len(keys) // 3 * 3]
        chosen = self._numpy.integers(len(keys) // 3, size=len(every)) * 3 + place
        items = self._column(
            kind.valueType, arrow.item_type, self._some(every, nullable=kind.valueContainsNull)
        )
        names = pa.array(keys, pa.string()).take(pa.array(chosen))
        return pa.MapArray.from_arrays(offsets, names, items, type=arrow, mask=mask)

    def pool(self, kind: DataType) -> list[Any]:
        """Some values of a type without parts, as ``pyarrow.array`` takes them."""
        rng = self._rng
        if type(kind) in BITS:
            return integers(rng, -(1 << (BITS[type(kind)] - 1)), (1 << (BITS[type(kind)] - 1)) - 1)
        if isinstance(kind, DecimalType):
            most = 10**kind.precision - 1
            return [Decimal(f"{n}e-{kind.scale}") for n in integers(rng, -most, most)]
        if isinstance(kind, TimestampType | TimestampNTZType):
            return [n // self._unit * self._unit for n in self._moments()]
        if isinstance(kind, FloatType | DoubleType):
            return self._floats(single=isinstance(kind, FloatType))
        return _POOLS[type(kind)](rng)

    def _moments(self) -> list[int]:
        some = [self._rng.randint(FIRST, LAST) for _ in range(15)]
        return [
            FIRST + 86_400_000_000,
            0,
            -1000,
            1000,
            *(n // 1_000_000 * 1_000_000 for n in some),
            *some,
        ]

    def _floats(self, *, single: bool) -> list[float]:
        code, bits = ("f", 32) if single else ("d", 64)
        random = [_float(code, self._rng.getrandbits(bits), bits) for _ in range(30)]
        with np.errstate(over="ignore"):
            known = [float(np.float32(n)) if single else n for n in DOUBLES]
        every = [
            *known,
            *random,
            *(float(np.float32(self._rng.uniform(-1e6, 1e6))) for _ in range(9)),
        ]
        if not self._negative_zero:
            every = [0.0 if n == 0 else n for n in every]
        return [n for n in every if not self._finite or np.isfinite(n)]


def _float(code: str, number: int, bits: int) -> float:
    return float(struct.unpack(code, number.to_bytes(bits // 8, "little"))[0])


def _variants(rng: Random) -> list[dict[str, bytes]]:
    some: list[Any] = [
        1,
        1.5,
        "a",
        True,
        None,
        [],
        {},
        {"x": [1, "é", None]},
        [[{"y": 10**20}]],
        "\0",
        -7,
        rng.random(),
    ]
    found = []
    for value in some:
        halves = VariantVal.parseJson(json.dumps(value, ensure_ascii=False))
        found.append({"value": halves.value, "metadata": halves.metadata})
    return found


_POOLS: dict[type[DataType], Callable[[Random], list[Any]]] = {
    BooleanType: lambda _: [True, False],
    StringType: texts,
    BinaryType: lambda rng: [
        b"",
        b"\0",
        b"\xff",
        b"ABC",
        *(rng.randbytes(rng.randrange(9)) for _ in range(20)),
        bytes(70),
    ],
    DateType: lambda rng: [
        FIRST // DAY,
        LAST // DAY,
        0,
        -1,
        *(rng.randint(FIRST // DAY, LAST // DAY) for _ in range(20)),
    ],
    DayTimeIntervalType: lambda rng: [n * 1000 for n in integers(rng, -(2**53), 2**53)],
    VariantType: _variants,
}


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
