"""Odd fields of CSV, and strategies that make dialects, schemas and messages of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from tests.unit.formats.json.corpus import NATIVE, NUMBERS, TEXTS

SIMPLE = [kind for kind in NATIVE if "interval" not in kind.simpleString()]

FIELDS = [
    *NUMBERS, *TEXTS, "TRUE", "tRuE", " true\t", "null", "NULL", "\\N", "+1.5", "0X1F", "-0x1", "1d", "0x1p3",
    "1_0", "\u0661", "2024-1-2", " 2024-01-31", "a,b", "a;b", ";", "1;2", "1;", ";1", " ; ", "null;null",
    '""', '"a', 'a"', '"a"', '"a"b', '"a" ', ' "a"', '"a""b"', '"a"""', '"""a"', '""""', '"a"b"', '","',
    '"a,b"', '"a;b"', '"a\nb"', '"1"', '" 1 "', "#", "#a", "'a'", "''", "'a''b'", "a'b", "a\\,b", '\\"a',
    "*", "a*", "**", "*n", "*'a", "'a*'b'", "\n", "a\n", "\n\n", "\r\n", "\ufeff", "\ufeffa", "\x7f", "\x00",
    "x" * 30, "é" * 24, "😀" * 13, "1" * 400, "0" * 30 + "1", "1" * 5000,
]  # fmt: skip

BAD_BYTES = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\xe9", b"\xfe\xff"]

DIALECTS = st.fixed_dictionaries(
    {},
    optional={
        "field_delimiter": st.sampled_from([*",;|\t 0x.e", "§"]),
        "escape_character": st.sampled_from(["*", "\\", '"', "5"]),
        "array_element_delimiter": st.sampled_from([";", ",", ":", "-", '"']),
        "null_literal": st.sampled_from(["", "null", "\\N", "1", "n,a", "#", " ", 'a"b']),
        "allow_comments": st.booleans(),
        "write_bigdecimal_in_scientific_notation": st.booleans(),
    },
)
QUOTES = st.sampled_from(
    [{}, {"quote_character": "'"}, {"quote_character": "\x01"}, {"disable_quote_character": True}]
)


def contradicts(options: dict[str, Any]) -> bool:
    """Whether the dialect is one that is refused."""
    no_quote = options.get("disable_quote_character", False)
    quote = "" if no_quote else options.get("quote_character", '"')
    escape, delimiter = options.get("escape_character"), options.get("field_delimiter", ",")
    literal = options.get("null_literal", "")
    comment = "#" if options.get("allow_comments") else ""
    special = {delimiter, escape, "#" if comment else None}
    return delimiter in (quote, escape) or bool(no_quote and special & set(literal))


@cache
def dialects() -> st.SearchStrategy[dict[str, Any]]:
    """Options that do not contradict each other."""
    chosen = st.tuples(DIALECTS, QUOTES).map(lambda pair: {**pair[0], **pair[1]})
    return chosen.filter(lambda options: not contradicts(options))


@cache
def kinds() -> st.SearchStrategy[DataType]:
    """Types that CSV carries: simple ones, and arrays and structs of these."""
    simple = st.sampled_from(SIMPLE)
    inner = st.builds(StructField, st.sampled_from("xyz"), simple, st.booleans())
    structs = st.lists(inner, min_size=1, max_size=3, unique_by=lambda f: f.name).map(StructType)
    return st.one_of(simple, simple, simple, st.builds(ArrayType, simple, st.booleans()), structs)


@cache
def schemas() -> st.SearchStrategy[StructType]:
    """Schemas of one to three columns."""
    field = st.builds(StructField, st.sampled_from("abc"), kinds(), st.booleans())
    return st.lists(field, min_size=1, max_size=3, unique_by=lambda f: f.name).map(StructType)


@cache
def fields(kind: DataType) -> st.SearchStrategy[bytes]:
    """Mostly a field that fits the type, sometimes any."""
    odd = st.one_of(st.sampled_from(FIELDS).map(str.encode), st.sampled_from(BAD_BYTES))
    return st.one_of(*[plain(kind)] * 9, odd)


@cache
def plain(kind: DataType) -> st.SearchStrategy[bytes]:
    """Fields that nearly every dialect reads as a value of the type."""
    if isinstance(kind, ArrayType):
        return st.lists(plain(kind.elementType), max_size=3).map(b";".join)
    if isinstance(kind, StructType):
        return st.tuples(*(plain(field.dataType) for field in kind.fields)).map(b";".join)
    return st.sampled_from(_PLAIN[kind.typeName()])


_WHOLE = [b"0", b"1", b"-5", b"100", b'"7"', b" 8 ", b""]
_FLOATS = [b"0", b"1.5", b"-0.25", b'"2.5"', b" 3 ", b"1e3", b""]
_MOMENT = b"2024-01-31 12:30:00"
_PLAIN: dict[str, list[bytes]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), _WHOLE),
    **dict.fromkeys(("float", "double"), _FLOATS),
    "boolean": [b"true", b"false", b'"true"', b"TRUE", b""],
    "decimal": [b"0", b"0.5", b'"0.25"', b"-0.00001", b""],
    "string": [b"a", b"", b'"a,b"', b'"a""b"', "é".encode(), b'"x y"', b'""'],
    "binary": [b"QUJD", b"", b'"QQ=="', b"QQ=="],
    "date": [b"2024-01-31", b'"1970-01-01"', b""],
    "timestamp": [b'"' + _MOMENT + b'Z"', _MOMENT + b".123456Z", b"2024-01-31T12:30:00Z", b""],
    "timestamp_ntz": [b'"' + _MOMENT + b'"', _MOMENT + b".5", b"2024-01-31T12:30:00", b""],
}

PIECES = [
    b"",
    b",",
    b";",
    b'"',
    b'""',
    b"'",
    b"\\",
    b"*",
    b"#",
    b" ",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b"0x",
    b"1",
]


@st.composite
def messages(draw: st.DrawFn, schema: StructType, delimiter: str = ",") -> bytes:
    """Messages that nearly fit a schema: odd fields, fields missing or too many, bytes changed."""
    drawn = [draw(fields(field.dataType)) for field in schema.fields]
    more = draw(st.sampled_from([None] * 15 + [0, 1, 2]))
    if more is not None:
        drawn = drawn[:-1] if more == 0 else drawn + [b"", b"x"][:more]
    message = delimiter.encode().join(drawn)
    for _ in range(draw(st.sampled_from([0] * 8 + [1, 2]))):
        at, cut = draw(st.integers(0, len(message))), draw(st.integers(0, 1))
        message = message[:at] + draw(st.sampled_from(PIECES)) + message[at + cut :]
    return message
