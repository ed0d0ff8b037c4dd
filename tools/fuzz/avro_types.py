"""Random Avro types of readers and matching types of writers, with values of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from random import Random
from typing import Any

import numpy as np
from pyspark.sql.types import (
    ArrayType,
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
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tools.fuzz.values import FIRST, LAST, integers, texts

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


def anything(rng: Random, depth: int, *, given: bool = True) -> tuple[Kind, bool]:
    """A type, and whether its column may be NULL."""
    shape = rng.random()
    if depth <= 0 or shape < 0.6:
        kind = leaf(rng, given=given)
    elif shape < 0.75:
        kind = _array(*anything(rng, depth - 1, given=given))
    elif shape < 0.87:
        kind = _map(*anything(rng, depth - 1, given=given))
    else:
        kind = record(rng, depth - 1, given=given)
    if isinstance(kind.schema, list) or rng.random() < 0.5:
        return kind, rng.random() < 0.5
    return _nullable(rng, kind), True


def _nullable(rng: Random, kind: Kind) -> Kind:
    first = rng.random() < 0.7

    def writer(rng: Random) -> Writer:
        inner = kind.writer(rng)
        if rng.random() < 0.3 or isinstance(inner.schema, list):
            return inner
        branches = ["null", inner.schema] if rng.random() < 0.6 else [inner.schema, "null"]
        return Writer(
            branches, lambda rng: (None, None) if rng.random() < 0.15 else inner.value(rng)
        )

    schema = ["null", kind.schema] if first else [kind.schema, "null"]
    return Kind(schema, kind.column, writer, (None, None) if first else kind.default)


def _array(kind: Kind, nullable: bool) -> Kind:
    def writer(rng: Random) -> Writer:
        inner = kind.writer(rng)

        def value(rng: Random) -> Pair:
            pairs = [inner.value(rng) for _ in range(rng.randrange(4))]
            return [written for written, _ in pairs], [read for _, read in pairs]

        return Writer({"type": "array", "items": inner.schema}, value)

    return Kind(
        {"type": "array", "items": kind.schema}, ArrayType(kind.column, nullable), writer, ([], [])
    )


def _map(kind: Kind, nullable: bool) -> Kind:
    def writer(rng: Random) -> Writer:
        inner = kind.writer(rng)

        def value(rng: Random) -> Pair:
            pairs = {
                name: inner.value(rng)
                for name in rng.sample(["", "a", "é", "k" * 80, "b"], rng.randrange(4))
            }
            return {n: written for n, (written, _) in pairs.items()}, [
                (n, read) for n, (_, read) in pairs.items()
            ]

        return Writer({"type": "map", "values": inner.schema}, value)

    return Kind(
        {"type": "map", "values": kind.schema}, MapType(StringType(), kind.column, nullable), writer
    )


def record(rng: Random, depth: int, *, given: bool = True) -> Kind:
    """A record, whose writer may have other fields, in another order and under another name.

    Args:
        rng: Decides.
        depth: How deep types may nest.
        given: Whether there is a reader's schema, with defaults and aliases; else what is not written is NULL.
    """
    name = f"R{rng.getrandbits(48)}"
    fields = {
        field: anything(rng, depth, given=given)
        for field in rng.sample("abcdefgh", rng.randint(1, 4))
    }
    wanted = rng.sample([*fields], rng.randint(1, len(fields)))
    column = StructType(
        [StructField(field, fields[field][0].column, fields[field][1]) for field in wanted]
    )
    aliased = {field for field in fields if given and rng.random() < 0.2}
    declared = [_field(field, kind, field in aliased) for field, (kind, _) in fields.items()]

    def absent(name: str) -> Pair | None:
        """What a field is that was not written; None = it must be."""
        kind, nullable = fields[name]
        if given:
            return kind.default
        return (None, None) if nullable else None

    def writer(rng: Random) -> Writer:
        left_out = {f: found for f in fields if (found := absent(f)) and rng.random() < 0.2}
        names = {
            f: f"old_{f}" if f in aliased and rng.random() < 0.5 else f
            for f in fields
            if f not in left_out
        }
        inner = {f: fields[f][0].writer(rng) for f in names}
        extra = {
            f"x{at}": anything(rng, 1)[0].writer(rng) for at in range(rng.choice([0, 0, 1, 2]))
        }
        parts = [*((names[f], one) for f, one in inner.items()), *extra.items()]
        rng.shuffle(parts)

        def value(rng: Random) -> Pair:
            drawn = {f: one.value(rng) for f, one in inner.items()}
            written = {names[f]: each for f, (each, _) in drawn.items()}
            written |= {f: one.value(rng)[0] for f, one in extra.items()}
            return written, {f: (drawn.get(f) or left_out[f])[1] for f in wanted}

        schema = {
            "type": "record",
            "name": name,
            "fields": [{"name": n, "type": one.schema} for n, one in parts],
        }
        return Writer(schema, value)

    return Kind({"type": "record", "name": name, "fields": declared}, column, writer)


def _field(name: str, kind: Kind, aliased: bool) -> dict[str, Any]:
    field = {"name": name, "type": kind.schema}
    if aliased:
        field["aliases"] = [f"old_{name}"]
    if kind.default is not None:
        field["default"] = kind.default[0]
    return field
