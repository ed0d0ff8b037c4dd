"""Avro types without nested types: types of readers and matching types of writers, with values of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from random import Random
from typing import Any

import numpy as np
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from tools.fuzz.odd_values import integers, texts
from tools.fuzz.values import FIRST, LAST

Pair = tuple[Any, Any]
"""A value as fastavro takes it, and what the column then holds."""

Draw = Callable[[Random], Pair]


@dataclass(frozen=True)
class Writer:
    """A type as it was written.

    Args:
        schema: The type.
        value: Draws a value.
    """

    schema: Any
    value: Draw


@dataclass(frozen=True)
class Kind:
    """A type as it is read.

    Args:
        schema: The type in the reader's schema.
        column: The type of the column.
        writer: Draws one of the types that are resolved to it.
        default: A default in a reader's schema, and what the column then holds.
    """

    schema: Any
    column: DataType
    writer: Callable[[Random], Writer]
    default: Pair | None = None


_EXACT = Context(prec=80)


def _single(value: Any) -> float:
    return float(np.array(value).astype(np.float32))


def _as_float(value: Any) -> float:
    return float(value)


def _numbers(bits: int, convert: Callable[[Any], Any] = int) -> Callable[[Random], list[Pair]]:
    half = 1 << (bits - 1)
    return lambda rng: [(n, convert(np.int64(n))) for n in integers(rng, -half, half - 1)]


def _floats(rng: Random) -> list[Pair]:
    some = [
        0.0,
        -0.0,
        0.1,
        1e30,
        float("inf"),
        float("nan"),
        *(rng.uniform(-1e9, 1e9) for _ in range(9)),
    ]
    return [(n, n) for n in map(_single, some)]


def _doubles(rng: Random) -> list[Pair]:
    return [
        (n, n)
        for n in (
            0.0,
            -0.0,
            0.1,
            5e-324,
            1e308,
            float("-inf"),
            rng.random(),
            rng.uniform(-1e99, 1e99),
        )
    ]


def _texts(rng: Random) -> list[Pair]:
    return [(text, text) for text in texts(rng)]


def _decimals(precision: int, scale: int) -> Callable[[Random], list[Pair]]:
    def pool(rng: Random) -> list[Pair]:
        most = 10**precision - 1
        numbers = (Decimal(n).scaleb(-scale, _EXACT) for n in integers(rng, -most, most))
        return [(number, number) for number in numbers]

    return pool


def _moments(unit: int) -> Callable[[Random], list[Pair]]:
    """As plain numbers, which fastavro writes as they are."""
    return lambda rng: [
        (n, n * unit) for n in [0, -1, 1, *(rng.randint(FIRST, LAST) // unit for _ in range(15))]
    ]


def _bytes(size: int | None) -> Callable[[Random], list[Pair]]:
    return lambda rng: [
        (b, b)
        for b in (rng.randbytes(rng.randrange(20) if size is None else size) for _ in range(20))
    ]


def _logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


_INT, _LONG = _numbers(32), _numbers(64)
_UTF_8 = lambda rng: [(text.encode(), text) for text in texts(rng)]  # noqa: E731
_TEXT_BYTES = lambda rng: [(text, text.encode()) for text in texts(rng)]  # noqa: E731
_DATES = lambda rng: [(n, n) for n in [0, -1, *(rng.randint(-719162, 2932896) for _ in range(9))]]  # noqa: E731

Pool = Callable[[Random], list[Pair]]

_FAMILIES: list[tuple[Any, DataType, list[tuple[Any, Pool]], Pair | None]] = [
    ("boolean", BooleanType(), [("boolean", lambda _: [(True, True), (False, False)])], (True, True)),
    ("int", IntegerType(), [("int", _INT)], (-5, -5)),
    ("int", ByteType(), [("int", _numbers(8))], (7, 7)),
    ("int", ShortType(), [("int", _numbers(16))], None),
    ("int", LongType(), [("int", _INT)], (64, 64)),
    ("long", LongType(), [("int", _INT), ("long", _LONG), (["int", "long"], _LONG), (["null", "int", "long"], _LONG)], (2**62, 2**62)),
    ("float", FloatType(), [("int", _numbers(32, _single)), ("long", _numbers(64, _single)), ("float", _floats)], (0.5, 0.5)),
    ("double", DoubleType(), [("int", _numbers(32, _as_float)), ("long", _numbers(64, _as_float)), ("float", _floats), ("double", _doubles)], (0.1, 0.1)),
    ("string", StringType(), [("string", _texts), ("string", _texts), ("bytes", _UTF_8)], ("é", "é")),
    ("bytes", BinaryType(), [("bytes", _bytes(None)), ("string", _TEXT_BYTES)], ("\u00ff", b"\xff")),
    (_logical("bytes", "decimal", precision=10, scale=2), DecimalType(10, 2), [(_logical("bytes", "decimal", precision=10, scale=2), _decimals(10, 2))], None),
    (_logical("bytes", "decimal", precision=38, scale=10), DecimalType(38, 10), [(_logical("bytes", "decimal", precision=38, scale=10), _decimals(38, 10))], None),
    (_logical("int", "date"), DateType(), [(_logical("int", "date"), _DATES), ("int", _DATES)], (1, 1)),
    (_logical("long", "timestamp-micros"), TimestampType(), [(_logical("long", "timestamp-micros"), _moments(1)), (_logical("long", "timestamp-millis"), _moments(1000))], None),
    (_logical("long", "local-timestamp-micros"), TimestampNTZType(), [(_logical("long", "local-timestamp-micros"), _moments(1)), (_logical("long", "local-timestamp-millis"), _moments(1000))], (5, 5)),
    (_logical("string", "uuid"), StringType(), [("string", _texts)], None),
]  # fmt: skip


def leaf(rng: Random, *, given: bool) -> Kind:
    """A type without parts; without a reader's schema an enum has no default."""
    which = rng.randrange(len(_FAMILIES) + 3)
    if which == len(_FAMILIES):
        return _enum(rng, given=given)
    if which > len(_FAMILIES):
        return _fixed(rng)
    schema, column, writers, default = _FAMILIES[which]

    def writer(rng: Random) -> Writer:
        written, pool = rng.choice(writers)
        pairs = pool(rng)
        return Writer(written, lambda rng: rng.choice(pairs))

    return Kind(schema, column, writer, default)


def _enum(rng: Random, *, given: bool) -> Kind:
    """The writer may have symbols that the reader takes for its default."""
    name, symbols = (
        f"E{rng.getrandbits(48)}",
        rng.sample(["RED", "GREEN", "BLUE", "A" * 20, "B" * 60], 3),
    )
    schema = {"type": "enum", "name": name, "symbols": symbols, "default": symbols[0]}

    def writer(rng: Random) -> Writer:
        more = rng.sample([*symbols, "NEW", "C" * 70], rng.randint(1, 5))
        pairs = [
            (symbol, symbol if symbol in symbols or not given else symbols[0]) for symbol in more
        ]
        return Writer(
            {"type": "enum", "name": name, "symbols": more}, lambda rng: rng.choice(pairs)
        )

    return Kind(schema, StringType(), writer, (symbols[1], symbols[1]))


def _fixed(rng: Random) -> Kind:
    size = rng.choice([1, 3, 8, 16, 20])
    schema = {"type": "fixed", "name": f"F{rng.getrandbits(48)}", "size": size}
    pairs = _bytes(size)(rng)
    return Kind(schema, BinaryType(), lambda _: Writer(schema, lambda rng: rng.choice(pairs)))
