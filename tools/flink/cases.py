"""The rows that Flink writes for the tables in tests/unit/formats/flink: values of each type, extreme ones and random ones.

The rows are JSON, because Flink's JSON format and the one of this project both read it exactly.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

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

Values = Callable[[Random], Iterable[Any]]

_COUNT = 40
_SEED = 20
_INT, _TEXT = IntegerType(), StringType()


@dataclass(frozen=True)
class Case:
    """One table: the column ``k`` is its key, ``v`` may be null.

    Args:
        name: Unique, for the topic.
        format: The format of key and value.
        columns: ``k`` and ``v``.
        rows: JSON objects.
        options: Options of the format.
    """

    name: str
    format: str
    columns: StructType
    rows: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)


def _double(bits: int) -> Any:
    return _number(struct.unpack("<d", struct.pack("<Q", bits))[0])


def _float(bits: int) -> Any:
    return _number(struct.unpack("<f", struct.pack("<I", bits))[0])


def _number(value: float) -> Any:
    return (
        value
        if abs(value) < float("inf")
        else str(value).replace("inf", "Infinity").replace("nan", "NaN")
    )


def _doubles(random: Random) -> Iterator[Any]:
    yield from (0.0, -0.0, 1.0, 0.1, 100.0, 0.001, 9.999e-4, 1e-3, 1e-5, 1.5e-5, 1e7, 9999999.0)
    yield from (
        9999999.999,
        12345678.9,
        1e15,
        1e16,
        1e20,
        1e21,
        1e22,
        1e23,
        2e23,
        -1.5e-9,
        123456.0,
    )
    yield from (5e-324, 1e-323, 1.5e-323, 2e-322, 2.2250738585072014e-308, 1.7976931348623157e308)
    yield from (2.0**-44, 2.0**53, 2.0**63, 2.0**64, "NaN", "Infinity", "-Infinity")
    for _ in range(_COUNT):
        yield _double(random.getrandbits(64))
        yield round(random.uniform(-1e6, 1e6), 2)
        yield random.uniform(0, 1e12)


def _floats(random: Random) -> Iterator[Any]:
    yield from (0.0, -0.0, 1.0, _float(0x3DCCCCCD), 1e7, 1e10, 2.0**24, 2.0**31, "NaN", "-Infinity")
    yield from (_float(bits) for bits in (1, 2, 3, 0x00800000, 0x7F7FFFFF, 0x3A83126E, 0x3A83126F))
    for _ in range(_COUNT):
        yield _float(random.getrandbits(32))
        yield _float(struct.unpack("<I", struct.pack("<f", round(random.uniform(0, 999), 2)))[0])


def _decimals(precision: int, scale: int) -> Values:
    def values(random: Random) -> Iterator[str]:
        top = 10**precision
        whole = [0, 1, -1, 10, top - 1, 1 - top, top // 10, 10**scale, 120 * 10**scale, 15]
        whole += [
            random.randrange(-(10 ** random.randint(1, precision)), top) for _ in range(_COUNT)
        ]
        for unscaled in whole:
            if abs(unscaled) < top:
                sign, digits = "-" * (unscaled < 0), str(abs(unscaled)).zfill(scale + 1)
                yield f"{sign}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}".rstrip(
                    "."
                )

    return values


def _integers(bits: int) -> Values:
    def values(random: Random) -> Iterator[int]:
        limit = 1 << (bits - 1)
        yield from (0, 1, -1, limit - 1, -limit)
        yield from (random.randrange(-limit, limit) for _ in range(_COUNT // 4))

    return values


_ALPHABET = "abcXYZ019 \t\n\r\"'\\/,;|#+-.!$&=<>_~\x00\x01\x08\x0b\x0c\x1f\x7f\x80\x9f\xa0é\u07c0一\u2028\u2029\ufeff\uffff😀𐀀"


def _strings(random: Random) -> Iterator[str]:
    yield from (
        "",
        " ",
        "a",
        "a b",
        " a",
        "a ",
        "null",
        "true",
        "12",
        "-1.5",
        "#",
        "#a",
        "a#",
        '"',
        '""',
    )
    yield from (
        "a,b",
        "a;b",
        "a\nb",
        "a\r",
        "\\",
        "a\\b",
        "'",
        "\t",
        "a\tb",
        "=1",
        "+1",
        "x" * 24,
        "x" * 25,
    )
    yield from (
        "é" * 24,
        "é" * 25,
        "😀" * 12,
        "😀" * 13,
        "\u2028",
        "\x7f",
        "\ufeff",
        "日本",
        "a" * 23 + "😀",
    )
    yield from _ALPHABET
    for _ in range(_COUNT):
        yield "".join(random.choices(_ALPHABET, k=random.randint(1, 30)))


def _simple_strings(random: Random) -> Iterator[str]:
    """Texts that every dialect can write."""
    yield from ("a", "ab", "A0", "_", "x" * 24, "x" * 25, "é")
    yield from ("".join(random.choices("abcxyz019", k=9)) for _ in range(_COUNT // 4))


def _binaries(_: Random) -> Iterator[str]:
    yield from ("", "AA==", "/////w==", "YWJj", "+/+/")
    yield from ("AAECAwQFBgcICQoLDA0ODw==", "AAECAwQFBgcICQoLDA0ODxAREhM=")


def _dates(random: Random) -> Iterator[str]:
    yield from ("0001-01-01", "1582-10-04", "1582-10-15", "1969-12-31", "1970-01-01", "2024-02-29")
    yield from ("9999-12-31",)
    yield from (f"{random.randint(1, 9999):04}-{random.randint(1, 12):02}-09" for _ in range(9))


def _times(digits: int, zone: str) -> Values:
    def values(random: Random) -> Iterator[str]:
        moments = ["1970-01-01 00:00:00", "1969-12-31 23:59:59", "0001-01-01 00:00:00"]
        moments += ["9999-12-31 23:59:59", "2020-03-08 13:12:00", "2020-03-08 00:00:00"]
        fractions = ["", ".1", ".12", ".123", ".001", ".01", ".999"]
        fractions += [".1234", ".123456", ".000001", ".120001"] if digits > 3 else []
        for at, moment in enumerate(moments):
            for fraction in fractions if at > 2 else fractions[: 3 + at]:
                yield f"{moment}{fraction}{zone}"
        for _ in range(_COUNT):
            fraction = f"{random.randrange(10**digits):0{digits}}"
            yield f"{random.randint(1, 9999):04}-02-03 04:05:06.{fraction}{zone}"

    return values


def _booleans(_: Random) -> Iterator[bool]:
    yield from (True, False)


SIMPLE: dict[str, tuple[DataType, Values]] = {
    "boolean": (BooleanType(), _booleans),
    "byte": (ByteType(), _integers(8)),
    "short": (ShortType(), _integers(16)),
    "int": (IntegerType(), _integers(32)),
    "long": (LongType(), _integers(64)),
    "float": (FloatType(), _floats),
    "double": (DoubleType(), _doubles),
    "decimal-20-4": (DecimalType(20, 4), _decimals(20, 4)),
    "decimal-38-18": (DecimalType(38, 18), _decimals(38, 18)),
    "decimal-10-0": (DecimalType(10, 0), _decimals(10, 0)),
    "decimal-9-9": (DecimalType(9, 9), _decimals(9, 9)),
    "string": (StringType(), _strings),
    "binary": (BinaryType(), _binaries),
    "date": (DateType(), _dates),
    "timestamp-ntz": (TimestampNTZType(), _times(6, "")),
    "timestamp": (TimestampType(), _times(6, "Z")),
}


def _simple(
    format_: str,
    kind: str,
    name: str = "",
    options: Mapping[str, str] | None = None,
    values: Values | None = None,
) -> Case:
    """The values as keys and as values, and null as value."""
    type_, usual = SIMPLE[kind]
    some = list((values or usual)(Random(f"{_SEED} {kind}")))
    rows = [*({"k": value, "v": value} for value in some), {"k": some[0], "v": None}]
    return _case(format_, name or kind, (type_, type_), rows, options)


def _keyed(
    format_: str, name: str, kind: DataType, *values: Any, options: Mapping[str, str] | None = None
) -> Case:
    """Values of a nested type under keys that are numbers."""
    rows = [{"k": at, "v": value} for at, value in enumerate([*values, None])]
    return _case(format_, name, (_INT, kind), rows, options)


def _case(
    format_: str,
    name: str,
    kinds: tuple[DataType, DataType],
    rows: Iterable[Mapping[str, Any]],
    options: Mapping[str, str] | None,
) -> Case:
    columns = StructType().add("k", kinds[0], nullable=False).add("v", kinds[1])
    texts = tuple(json.dumps(row, ensure_ascii=False) for row in rows)
    return Case(f"{format_}-{name}", format_, columns, texts, options or {})


def _struct(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def _nested(format_: str) -> Iterator[Case]:
    """What every format has."""
    numbers, texts, decimals = map(ArrayType, (DoubleType(), StringType(), DecimalType(10, 2)))
    yield _keyed(format_, "doubles", numbers, [1e20, 0.1, None, "NaN"], [])
    yield _keyed(format_, "strings", texts, ["a", None, "b c", ""], ["a"], ["é", 'x"y'])
    yield _keyed(format_, "decimals", decimals, ["1.50", "100.00"], ["0.00", None])
    simple = _struct(a=_INT, b=_TEXT, c=DoubleType(), d=DecimalType(10, 2), e=DateType())
    first = {"a": 1, "b": "x y", "c": 1e-7, "d": "100.00", "e": "2024-02-29"}
    yield _keyed(format_, "struct", simple, first, dict.fromkeys("abcde"))


def _deeper(format_: str) -> Iterator[Case]:
    """What CSV does not have."""
    entries = {"a": None, "b": 1e20, 'x"y': 0.0}  # in the order that Flink's reader gives them
    yield _keyed(format_, "map", MapType(_TEXT, DoubleType()), entries, {})
    yield _keyed(format_, "arrays", ArrayType(ArrayType(_INT)), [[1, 2], [], None], [])
    structs = ArrayType(_struct(a=_INT, b=_struct(c=_TEXT)))
    yield _keyed(
        format_, "structs", structs, [{"a": 1, "b": {"c": "x"}}, {"a": None, "b": None}, None]
    )
    values = MapType(_TEXT, _struct(a=LongType()))
    yield _keyed(format_, "map-of-structs", values, {"x": {"a": 1}, "y": None})


def json_cases() -> Iterator[Case]:
    """What the JSON format can carry."""
    for kind in SIMPLE:
        yield _simple("json", kind)
    for kind in ("timestamp-ntz", "timestamp"):
        yield _simple("json", kind, f"{kind}-iso", {"timestamp-format.standard": "ISO-8601"})
    for kind in ("decimal-20-4", "decimal-38-18"):
        yield _simple("json", kind, f"plain-{kind}", {"encode.decimal-as-plain-number": "true"})
    yield from _nested("json")
    yield from _deeper("json")
    row = _struct(a=_INT, b=_TEXT)
    rows = {"a": None, "b": "x"}, {"a": None, "b": None}
    yield _keyed("json", "without-nulls", row, *rows, options={"encode.ignore-null-fields": "true"})


def csv_cases() -> Iterator[Case]:
    """What the CSV format can carry, in several dialects."""
    for kind in SIMPLE:
        yield _simple("csv", kind)
    scientific = {"write-bigdecimal-in-scientific-notation": "true"}
    for kind in ("decimal-20-4", "decimal-38-18", "decimal-9-9"):
        yield _simple("csv", kind, f"scientific-{kind}", scientific)
    decimals = ArrayType(DecimalType(10, 2))
    yield _keyed("csv", "scientific-decimals", decimals, ["1.5", "100"], options=scientific)
    dialects: dict[str, dict[str, str]] = {
        "semicolon": {"field-delimiter": ";", "array-element-delimiter": "|"},
        "tab": {"field-delimiter": "\\t"},
        "single-quotes": {"quote-character": "'"},
        "escapes": {"escape-character": "\\"},
        "null-literal": {"null-literal": "n/a"},
    }
    for name, options in dialects.items():
        yield _simple("csv", "string", name, options)
        yield _simple("csv", "timestamp-ntz", f"{name}-timestamps", options)
        yield _simple("csv", "double", f"{name}-doubles", options)
    unquoted = {"disable-quote-character": "true"}
    yield _simple("csv", "string", "unquoted", unquoted, _simple_strings)
    yield _simple("csv", "timestamp-ntz", "unquoted-timestamps", unquoted)
    yield from _nested("csv")


def avro_cases() -> Iterator[Case]:
    """What the Avro format can carry with the schema that it derives.

    But timestamps without the legacy mapping: Flink then writes milliseconds under a schema that
    says microseconds (FLINK-39036).
    """
    for kind in SIMPLE:
        if not kind.startswith("timestamp"):
            yield _simple("avro", kind)
    yield _simple("avro", "timestamp-ntz", "legacy-timestamp", values=_times(3, ""))
    yield from _nested("avro")
    yield from _deeper("avro")
    moments = ["2020-03-08 13:12:00.123", "1969-12-31 23:59:59.999", None]
    for legacy in ("true", "false"):
        name, options = f"timestamps-legacy-{legacy}", {"timestamp_mapping.legacy": legacy}
        yield _keyed("avro", name, ArrayType(TimestampNTZType()), moments, options=options)


CASES = {"json": json_cases, "csv": csv_cases, "avro": avro_cases}
