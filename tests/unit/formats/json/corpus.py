"""Odd pieces of JSON, and strategies that make schemas, values and messages of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st
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

_NUMBERS = """
0 -0 1 -1 127 128 -128 -129 32768 2147483648 9223372036854775807 9223372036854775808
-9223372036854775808 -9223372036854775809 1.0 1e2 1E+2 1e-2 10e-1 0.1 -0.0 2.675 0.005 -0.005
99999999.994 99999999.995 123.450 11 12e37 1e38 1e400 -1e400 1.7976931348623157e308
1.7976931348623159e308 3.4028235e38 3.4028236e38 16777217.0000001 1.00000017881393432617187499
7.006492321624086e-46 5e-324 0e999999999999 1e-999999999999 1e2147483648 5e-38 5e-39 5e-40 125e-78
123456789012345678901234567890 0.000000000000000000000000000000000000000005
01 1. .5 +1 - 0x1 1e 1e+ --1 1_0 NaN -NaN nan Infinity -Infinity Inf -Inf
"""
NUMBERS = _NUMBERS.split()

TEXTS = [
    "", "1", "1.0", " 1 ", "+5", "007", "NaN", "Infinity", "-Infinity", "inf", "true", " FALSE ",
    "1.", ".5", "1e2", "5e-40", r"\u0035e-40", "0x10", "1_0", "1.005",
    "2024-01-31", "2024-02-30", "0000-01-01", "0001-01-01", "9999-12-31", "2024-1-1", "10000-01-01",
    "2024-01-31 12:30:00Z", "2024-01-31T12:30:00Z", "2024-01-31 12:30:00", "2024-01-31T12:30:00",
    "2024-01-31 12:30Z", "2024-01-31T12:30", "2024-01-31T12:30Z", "2024-01-31 12Z", "2024-01-31T12",
    "2024-01-31 12:30:00.1Z", "2024-01-31 12:30:00.123456Z", "2024-01-31 12:30:00.1234567Z",
    "2024-01-31 12:30:00.123456789", "2024-01-31 12:30:00.1234567890Z", "2024-01-31 12:30:00.Z",
    "2024-01-31 12:30:00+02:00", "2024-01-31 12:30:00-0030", "2024-01-31 12:30:00+02",
    "2024-01-31 12:30:00+24:00", "2024-01-31 12:30:00+02:60", "2024-01-31 12:30:00.1234567+02:00",
    "2024-01-31 24:00:00Z", "2024-01-31 23:59:60Z", "2023-02-29 00:00:00Z", "2024-01-31 1230Z",
    "0001-01-01 00:00:00+00:01", "9999-12-31 23:59:59.999999-00:01", "1969-12-31 23:59:59.9999999Z",
    "QUJD", "QUJ", "QQ==", "QR==", "QQ=", "QQ", "Q Q==", "====", "QUJD=", r"QUJD\n", "-_-_", "+/+/",
    "é", "😀", "\x7f", "\x01", "\0", "\t", "\r", "\n", "\\", "x\\", r"\"", r"\n", r"\/", r"\x", r"\u12",
    r"\u0000", r"\u00e9", r"\ud83d\ude00", r"\ud800", r"\udc00", r"\ud800\ud800", r"\\ud800",
    "Inf, x", "NaN}", "Information", "}{", "{", "]", "}\n{",
]  # fmt: skip

OTHERS = rb"""
null true false {} [] [1,null] {"x":1} [[1]] {"x":{"x":1}} [1,] {"x":1,} {"x":1,"x":2} {"x":null,"x":1}
nul True [1;2] {"x";1} {"x":} ["a"] {"x":"a"} [{"x":1},{"x":"1"},null] [{"x":1,"y":"q"}] [null]
{"x":1,"y":"q","z":[1,2]} /*c*/1 'a'
""".split()

BAD_BYTES = [
    rb'"%b"' % raw for raw in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe9")
]

TOKENS = [
    *(number.encode() for number in NUMBERS),
    *(f'"{text}"'.encode() for text in TEXTS),
    *OTHERS,
    *BAD_BYTES,
    b"",
    b" ",
    b"1" * 400,
    b"1" * 5000,
    b"0." + b"3" * 400,
]

KEYS = [
    b'"x"', b'"y"', b'"z"', b'"X"', rb'"\u0078"', b'""', rb'"x\u0000"', rb'"\ud800"', b'"\xff"', b'"a.b"',
]  # fmt: skip

SPACES = [b""] * 40 + [b" ", b"\t", b"\r", b"\n", b"\x0b", b"\xc2\xa0", b"\0", b"\xef\xbb\xbf"]

INTEGERS = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
DAY = 86_400_000_000

NATIVE: list[DataType] = [
    *(kind() for kind in INTEGERS),
    *(BooleanType(), FloatType(), DoubleType(), StringType(), BinaryType(), DateType()),
    *(TimestampType(), TimestampNTZType(), DayTimeIntervalType()),
    *(DecimalType(10, 2), DecimalType(38, 0), DecimalType(38, 38), DecimalType(5, 5)),
]


@cache
def kinds(*, everything: bool) -> st.SearchStrategy[DataType]:
    """Types, nested at will; with ``everything`` also those that only the row path reads."""
    leaves = st.sampled_from([*NATIVE, VariantType()] if everything else NATIVE)

    def nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        maps = st.builds(MapType, st.just(StringType()), inner, st.booleans())
        return st.builds(ArrayType, inner, st.booleans()) | structs(inner) | (
            maps if everything else st.nothing()
        )  # fmt: skip

    return st.recursive(leaves, nested, max_leaves=4)


def structs(
    inner: st.SearchStrategy[DataType], names: tuple[str, ...] = ("x", "y", "z")
) -> st.SearchStrategy[StructType]:
    """Structs with some of those names."""
    field = st.builds(StructField, st.sampled_from(names), inner, st.booleans())
    return st.lists(field, max_size=3, unique_by=lambda f: f.name).map(StructType)


@cache
def schemas(*, everything: bool = True) -> st.SearchStrategy[StructType]:
    """Schemas of up to three columns."""
    return structs(kinds(everything=everything))


@cache
def values(kind: DataType, *, nullable: bool = True) -> st.SearchStrategy[Any]:
    """Values of a type, as ``pyarrow.array`` takes them."""
    some = _values(kind)
    return st.none() | some if nullable else some


def _values(kind: DataType) -> st.SearchStrategy[Any]:
    if isinstance(kind, StructType):
        return st.fixed_dictionaries(
            {f.name: values(f.dataType, nullable=f.nullable) for f in kind.fields}
        )
    if isinstance(kind, ArrayType):
        return st.lists(values(kind.elementType, nullable=kind.containsNull), max_size=3)
    if isinstance(kind, MapType):
        inner = values(kind.valueType, nullable=kind.valueContainsNull)
        return st.dictionaries(texts(), inner, max_size=3)
    if type(kind) in INTEGERS:
        half = 1 << (INTEGERS[type(kind)] - 1)
        return st.integers(-half, half - 1)
    if isinstance(kind, DecimalType):
        return _decimals(kind)
    return SIMPLE[type(kind)]()


def _decimals(kind: DecimalType) -> st.SearchStrategy[Decimal]:
    most = 10**kind.precision - 1
    rounds = st.integers(0, kind.precision - 1).map(lambda power: 10**power)
    digits = st.integers(-most, most) | st.integers(-9, 9) | rounds
    return digits.map(lambda n: Decimal(f"{n}e-{kind.scale}"))


@cache
def texts() -> st.SearchStrategy[str]:
    """Texts that Arrow can hold: no lone surrogates."""
    return st.text(st.characters(codec="utf-8"), max_size=5) | st.text(
        'a"\\\n\0\x1f/é😀', max_size=5
    )


def _variant(value: Any) -> dict[str, bytes]:
    halves = VariantVal.parseJson(json.dumps(value, ensure_ascii=False))
    return {"value": halves.value, "metadata": halves.metadata}


def _variants() -> st.SearchStrategy[dict[str, bytes]]:
    leaves = st.booleans() | st.integers(-(10**37), 10**37) | texts() | st.floats(-1e9, 1e9)
    nested = st.recursive(
        leaves, lambda v: st.lists(v, max_size=2) | st.dictionaries(texts(), v, max_size=2)
    )
    return nested.map(_variant)


def _moments() -> st.SearchStrategy[int]:
    seconds = st.integers(FIRST // 1_000_000, LAST // 1_000_000)
    return st.integers(FIRST, LAST) | seconds.map(lambda s: s * 1_000_000)


SIMPLE: dict[type[DataType], Callable[[], st.SearchStrategy[Any]]] = {
    BooleanType: st.booleans,
    FloatType: lambda: st.floats(width=32),
    DoubleType: st.floats,
    StringType: texts,
    BinaryType: lambda: st.binary(max_size=5),
    DateType: lambda: st.integers(FIRST // DAY, LAST // DAY),
    TimestampType: _moments,
    TimestampNTZType: _moments,
    DayTimeIntervalType: lambda: st.integers(-(2**53), 2**53).map(lambda ms: ms * 1000),
    VariantType: _variants,
}


_ODD_TEXTS = [
    "",
    "a",
    "é",
    "😀",
    '"',
    "\\",
    "\n",
    "\x00",
    "\x1f",
    "\x7f",
    "/",
    "\U00010000",
    "\U0010ffff",
    "\uffff",
    "NaN",
    "null",
]
_FLOATS_OF_BOTH = [
    0.0,
    -0.0,
    1.0,
    0.1,
    1e10,
    1e-5,
    1e7,
    1e-3,
    float("nan"),
    float("inf"),
    float("-inf"),
]

_EXTREMES: dict[type[DataType], list[Any]] = {
    BooleanType: [True, False],
    FloatType: [*_FLOATS_OF_BOTH, 3.4028234663852886e38, 1.401298464324817e-45],
    DoubleType: [*_FLOATS_OF_BOTH, 1.7976931348623157e308, 5e-324, 2.0**53],
    StringType: _ODD_TEXTS,
    BinaryType: [b"", b"\0", b"a", b"ab", b"abc", b"\xff\xfe", b"\xfb\xef\xbe"],
    DateType: [FIRST // DAY, LAST // DAY, -1, 0, 1],
    TimestampType: [FIRST, LAST, -1, 0, 1, 999, 1_000, 1_000_000, -1_000_000],
    TimestampNTZType: [FIRST, LAST, -1, 0, 1, 999, 1_000, 1_000_000, -1_000_000],
    DayTimeIntervalType: [0, 1_000, -1_000, 2**53 * 1000, -(2**53) * 1000],
}


def extremes(kind: DataType) -> list[Any]:
    """The values of a type that are most likely to be written or read wrongly."""
    if isinstance(kind, StructType):
        columns = [[None, *extremes(f.dataType)] for f in kind.fields]
        most = max(map(len, columns), default=1)
        names = kind.names
        return [
            {name: c[at % len(c)] for name, c in zip(names, columns, strict=True)}
            for at in range(most)
        ]
    if isinstance(kind, ArrayType):
        inner = extremes(kind.elementType)
        return [[], [None], [None, inner[0], None], inner]
    if isinstance(kind, MapType):
        inner = extremes(kind.valueType)
        return [
            {},
            {"": None},
            {text: inner[at % len(inner)] for at, text in enumerate(_ODD_TEXTS)},
        ]
    if type(kind) in INTEGERS:
        half = 1 << (INTEGERS[type(kind)] - 1)
        return [-half, half - 1, -1, 0, 1]
    if isinstance(kind, DecimalType):
        most = 10**kind.precision - 1
        digits = [
            0,
            1,
            -1,
            most,
            -most,
            10 ** (kind.precision - 1),
            *{10**kind.scale, 100 * 10**kind.scale} - {0},
        ]
        return [Decimal(f"{n}e-{kind.scale}") for n in digits if abs(n) <= most]
    if isinstance(kind, VariantType):
        return [_variant(value) for value in (1, -0.5, "é", [], {}, [1, {"a": None}])]
    return _EXTREMES[type(kind)]


def nested(kind: DataType) -> list[DataType]:
    """A type by itself, and inside of each type that has parts."""
    struct = StructType([StructField("x", kind), StructField("y", kind)])
    return [kind, ArrayType(kind), struct, ArrayType(struct), MapType(StringType(), kind)]


@st.composite
def messages(draw: st.DrawFn, schema: StructType) -> bytes:
    """Messages that nearly fit a schema: odd values, names twice, names missing, bytes changed."""
    message = draw(_objects(schema))
    for _ in range(draw(st.sampled_from([0] * 8 + [1, 2]))):
        at = draw(st.integers(0, len(message)))
        cut = draw(st.integers(0, 1))
        put = draw(
            st.sampled_from(
                [b"", b"{", b"}", b'"', b",", b"\\", b"\n", b"\0", b"\xff", b"1", b"null"]
            )
        )
        message = message[:at] + put + message[at + cut :]
    return message


@st.composite
def _objects(draw: st.DrawFn, schema: StructType) -> bytes:
    space = st.sampled_from(SPACES)
    fields = draw(st.permutations(schema.fields)) if schema.fields else []
    members = [
        b'"%s":%s%s' % (field.name.encode(), draw(space), draw(_texts_of(field.dataType)))
        for field in fields
        if draw(st.integers(0, 9)) != 1
    ]
    if draw(st.integers(0, 4)) == 1:
        members.append(draw(st.sampled_from(KEYS)) + b":" + draw(st.sampled_from(TOKENS)))
    return b"{" + draw(space) + (b"," + draw(space)).join(members) + draw(space) + b"}"


@cache
def _texts_of(kind: DataType) -> st.SearchStrategy[bytes]:
    odd = st.sampled_from(TOKENS)
    plain = _plain_texts(kind)
    return st.one_of(*[plain] * 9, odd)


@cache
def _plain_texts(kind: DataType) -> st.SearchStrategy[bytes]:
    if isinstance(kind, StructType):
        return _objects(kind)
    if isinstance(kind, ArrayType):
        items = st.lists(_texts_of(kind.elementType), max_size=2)
        return items.map(lambda parts: b"[" + b",".join(parts) + b"]")
    if isinstance(kind, MapType):
        entries = st.lists(st.tuples(st.sampled_from(KEYS), _texts_of(kind.valueType)), max_size=2)
        return entries.map(lambda parts: b"{" + b",".join(k + b":" + v for k, v in parts) + b"}")
    return st.sampled_from(PLAIN[type(kind)])


_SMALL_NUMBERS = [b"0", b"1", b"-5", b"100", b"null"]
_SQL = [
    b'"2024-01-31 12:30:00%s"' % fraction for fraction in (b"", b".5", b".123456", b".123456789")
]
_FLOATS = [b"0", b"1.5", b"-0.25", b"1e1", b"null"]
PLAIN: dict[type[DataType], list[bytes]] = {
    **dict.fromkeys(INTEGERS, _SMALL_NUMBERS),
    FloatType: _FLOATS,
    DoubleType: _FLOATS,
    BooleanType: [b"true", b"false", b"null"],
    DecimalType: [b"0", b"0.5", b'"0.25"', b"-0.00001", b"null"],
    StringType: [b'"a"', rb'"\u00e9"', b'""', b"null"],
    BinaryType: [b'"QUJD"', b'""', b'"QQ=="', b"null"],
    DateType: [b'"2024-01-31"', b"null"],
    TimestampType: [text[:-1] + b'Z"' for text in _SQL],
    TimestampNTZType: _SQL,
    DayTimeIntervalType: _SMALL_NUMBERS,
    VariantType: [b"1", b'{"x":[1.5,"a"]}', b"null"],
}
