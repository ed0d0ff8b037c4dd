"""JSON messages to rows: what each type reads, what it refuses, and what happens to the rest."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal
from math import inf, isnan

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    CharType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    VariantVal,
    YearMonthIntervalType,
)

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.formats.json import settings_of
from pyspark_upsert_kafka.formats.json.column_paths import (
    compile_column_path,
    compile_vectorised_path,
)
from pyspark_upsert_kafka.formats.json.json_document import variant_text
from tests.laws import FULL
from tests.unit.formats.json.codecs import columns, decoder, exactly, required, seen, spec, values
from tests.unit.formats.json.corpus import PLAIN
from tests.unit.formats.listed import good_rows

LONG, TEXT = LongType(), StringType()
UTC = pa.scalar(0, pa.timestamp("us", "UTC")).as_py().tzinfo
"""As pyarrow gives it: pyarrow 18 takes that of pytz if it is installed, as with pandas 2.2."""
moment = dt.datetime.fromisoformat
ENOUGH = 64  # messages that make a batch take the vectorised path


def read(kind, text, **options):
    """One value, by both paths; fails when they differ."""
    message = b'{"c":%s}' % (text if isinstance(text, bytes) else text.encode())
    schema = columns(c=kind)
    one, many = [message], [message] * ENOUGH
    exact = exactly(schema, **options).decode
    assert seen(decoder(schema, **options).decode(many)) == seen(exact(many))
    decoded = exact(one)
    if decoded.errors:
        raise ValueError(decoded.errors[0])
    return decoded.rows.column(0)[0].as_py()


GOOD = [
    (BooleanType(), "true", True),
    (BooleanType(), "false", False),
    (BooleanType(), '" TRUE "', True),
    (ByteType(), "127", 127),
    (ByteType(), "-128", -128),
    (ShortType(), "-32768", -32768),
    (IntegerType(), "2147483647", 2147483647),
    (LONG, "9223372036854775807", 9223372036854775807),
    (LONG, "-9223372036854775808", -9223372036854775808),
    (LONG, "-0", 0),
    (LONG, "1.0", 1),
    (LONG, "1e2", 100),
    (LONG, "12.50E1", 125),
    (LONG, '" +12 "', 12),
    (DoubleType(), "1", 1.0),
    (DoubleType(), "0.1", 0.1),
    (DoubleType(), "1e-400", 0.0),
    (DoubleType(), '"1.5"', 1.5),
    (DoubleType(), '"Infinity"', inf),
    (DoubleType(), '"-Infinity"', -inf),
    (DoubleType(), "9007199254740993", 9007199254740992.0),
    (FloatType(), "0.1", 0.10000000149011612),
    (FloatType(), "16777217.0000001", 16777218.0),
    (FloatType(), "1.00000017881393432617187499", 1.0000001192092896),
    (FloatType(), '"-Infinity"', -inf),
    (DecimalType(10, 2), "1", Decimal("1.00")),
    (DecimalType(10, 2), '" 1.10 "', Decimal("1.10")),
    (DecimalType(10, 2), "1e3", Decimal("1000.00")),
    (DecimalType(10, 2), "1.005", Decimal("1.01")),
    (DecimalType(10, 2), "-1.005", Decimal("-1.01")),
    (DecimalType(10, 2), "1e-9999", Decimal("0.00")),
    (DecimalType(10, 2), "99999999.994", Decimal("99999999.99")),
    (DecimalType(38, 0), "9" * 38, Decimal("9" * 38)),
    (DecimalType(38, 38), "0." + "1" * 38, Decimal("0." + "1" * 38)),
    (TEXT, '"a\\u00e9\\ud83d\\ude00\\n"', "aé😀\n"),
    (TEXT, '"\\u0000"', "\0"),
    (TEXT, "1.50", "1.50"),
    (TEXT, "1E400", "1E400"),
    (TEXT, "true", "true"),
    (TEXT, '{ "a" : [1.0, "é\\"", null] }', '{"a":[1.0,"é\\"",null]}'),
    (TEXT, '{"a":1,"a":2}', '{"a":2}'),
    (BinaryType(), '"QUJD"', b"ABC"),
    (BinaryType(), '""', b""),
    (DateType(), '"2024-02-29"', dt.date(2024, 2, 29)),
    (DateType(), '"0001-01-01"', dt.date(1, 1, 1)),
    (TimestampType(), '"2024-01-31 12:30:00Z"', dt.datetime(2024, 1, 31, 12, 30, tzinfo=UTC)),
    (
        TimestampType(),
        '"2024-01-31 12:30:00.1234567Z"',
        dt.datetime(2024, 1, 31, 12, 30, 0, 123456, tzinfo=UTC),
    ),
    (TimestampType(), '"2024-01-31 12:30:00+02:30"', dt.datetime(2024, 1, 31, 10, tzinfo=UTC)),
    (TimestampNTZType(), '"2024-01-31 12:30:00.5"', moment("2024-01-31 12:30:00.500000")),
    (DayTimeIntervalType(), "1500", dt.timedelta(seconds=1.5)),
    (ArrayType(LONG), "[1,null,2.0]", [1, None, 2]),
    (ArrayType(ArrayType(LONG)), "[[],[1],null]", [[], [1], None]),
    (columns(x=LONG, y=TEXT), '{"y":"b","z":[],"x":1}', {"x": 1, "y": "b"}),
    (columns(x=LONG), "{}", {"x": None}),
    (MapType(TEXT, LONG), '{"a":1,"b":null,"":3}', [("a", 1), ("b", None), ("", 3)]),
    (MapType(TEXT, LONG), '{"a":1,"a":2}', [("a", 2)]),
]


@pytest.mark.parametrize(("kind", "text", "value"), GOOD)
def test_value_is_read(kind, text, value):
    """A JSON value becomes the column's value, exactly."""
    assert repr(read(kind, text)) == repr(value)


@pytest.mark.parametrize("kind", {type(kind): kind for kind, _, _ in GOOD}.values())
def test_null_and_missing_are_null(kind):
    """JSON null, and a field that is not there, are NULL for every type."""
    decoded = decoder(columns(c=kind)).decode([b'{"c":null}', b"{}"] * ENOUGH)
    assert not decoded.errors
    assert decoded.rows.column(0).null_count == 2 * ENOUGH


ISO = [
    (TimestampType(), '"2024-01-31T12:30:00.5Z"', dt.datetime(2024, 1, 31, 12, 30, 0, 500000, UTC)),
    (TimestampType(), '"2024-01-31T12:30:00-01:00"', dt.datetime(2024, 1, 31, 13, 30, tzinfo=UTC)),
    (TimestampType(), '"2024-01-31T12:30Z"', dt.datetime(2024, 1, 31, 12, 30, tzinfo=UTC)),
    (TimestampNTZType(), '"2024-01-31T12:30:00"', moment("2024-01-31 12:30:00")),
    (TimestampNTZType(), '"2024-01-31T12:30"', moment("2024-01-31 12:30:00")),
]


@pytest.mark.parametrize(("kind", "text", "value"), ISO)
def test_iso_timestamps(kind, text, value):
    """With ISO-8601 a T separates date and time, and seconds may be left out as Java does."""
    assert read(kind, text, timestamp_format_standard="ISO-8601") == value


BAD = [
    (BooleanType(), '"yes"', "expected true or false"),
    (BooleanType(), "1", "expected true or false"),
    (ByteType(), "128", "from -128 to 127"),
    (LONG, "9223372036854775808", "from -9223372036854775808"),
    (LONG, "1e999999999", "whole number"),
    (LONG, "1.5", "whole number"),
    (LONG, "1e-1", "whole number"),
    (LONG, '"1.0"', "whole number"),
    (LONG, '"1_0"', "whole number"),
    (LONG, "true", "whole number"),
    (LONG, "[1]", "whole number"),
    (DoubleType(), "1e400", "out of range"),
    (DoubleType(), '"1e400"', "out of range"),
    (DoubleType(), '"nan"', "expected a number"),
    (DoubleType(), "true", "expected a number"),
    (FloatType(), "3.5e38", "out of range"),
    (DecimalType(10, 2), "99999999.995", "expected a DECIMAL"),
    (DecimalType(10, 2), "1e8", "expected a DECIMAL"),
    (DecimalType(38, 38), "11", "expected a DECIMAL"),
    (DecimalType(10, 2), "1e99999999999999999999", "exponent"),
    (DecimalType(10, 2), '"NaN"', "expected a number"),
    (DecimalType(10, 2), "true", "expected a DECIMAL"),
    (BinaryType(), '"Q"', "base64"),
    (BinaryType(), '"QUJD="', "base64"),
    (BinaryType(), '"QUJD===="', "base64"),
    (BinaryType(), '"QUJD\\n"', "base64"),
    (BinaryType(), "1", "base64"),
    (DateType(), '"2024-02-30"', "that exists"),
    (DateType(), '"0000-01-01"', "that exists"),
    (DateType(), '"2024-1-1"', "expected a DATE"),
    (DateType(), "19000", "expected a DATE"),
    (TimestampType(), '"2024-01-31T12:30:00Z"', "'timestamp-format.standard' = 'ISO-8601'"),
    (TimestampType(), '"2024-01-31 12:30:00"', "with a zone"),
    (TimestampType(), '"2024-01-31 12:30Z"', "expected a TIMESTAMP"),
    (TimestampType(), '"2024-01-31 24:00:00Z"', "that exists"),
    (TimestampType(), '"2023-02-29 00:00:00Z"', "that exists"),
    (TimestampType(), '"0001-01-01 00:00:00+00:01"', "year from 0001 to 9999"),
    (TimestampType(), '"2024-01-31 12:30:00+24:00"', "zone offset"),
    (TimestampType(), "1706704200000", "expected a text like"),
    (TimestampNTZType(), '"2024-01-31 12:30:00Z"', "without a zone"),
    (DayTimeIntervalType(), "0.5", "whole number"),
    (DayTimeIntervalType(), "9223372036854775807", "out of range"),
    (ArrayType(LONG), "{}", "expected an array"),
    (ArrayType(LONG), '[1,"x"]', "field 'c[]': expected a whole number"),
    (columns(x=LONG), "[]", "expected an object"),
    (columns(x=columns(y=LONG)), '{"x":{"y":"z"}}', "field 'c.x.y': expected a whole number"),
    (MapType(TEXT, LONG), '{"a":"x"}', "field 'c{}': expected a whole number"),
    (MapType(TEXT, LONG), "[]", "expected an object"),
    (VariantType(), "1e400", "DOUBLE"),
]


@pytest.mark.parametrize(("kind", "text", "part"), BAD)
def test_bad_value_is_an_error(kind, text, part):
    """What a type cannot hold exactly is an error that names field, expectation and value."""
    with pytest.raises(ValueError) as raised:
        read(kind, text)
    assert part in str(raised.value)
    assert "field 'c" in str(raised.value)
    assert ", got " in str(raised.value)


@pytest.mark.parametrize(("kind", "text", "part"), BAD)
def test_ignored_errors_are_null(kind, text, part):
    """With ignore-parse-errors the innermost field that cannot be read is NULL."""
    value = read(kind, text, ignore_parse_errors=True)
    inner = {
        "field 'c[]'": [1, None],
        "field 'c{}'": [("a", None)],
        "field 'c.x.y'": {"x": {"y": None}},
    }
    assert value == next((v for name, v in inner.items() if name in part), None)


def test_nan_is_read_from_text():
    """NaN comes as the text that Jackson and Spark write."""
    assert isnan(read(DoubleType(), '"NaN"'))
    assert isnan(read(FloatType(), '" NaN "'))


def test_five_levels_deep():
    """Arrays, maps and structs nest as deep as the schema says."""
    kind = ArrayType(MapType(TEXT, columns(a=ArrayType(columns(b=DateType())))))
    value = read(kind, '[{"k":{"a":[{"b":"2024-01-31"},null]}}]')
    assert value == [[("k", {"a": [{"b": dt.date(2024, 1, 31)}, None]})]]


def test_dates_and_binary_inside_arrays_and_structs():
    """Types that are read as text are converted at every depth, by the vectorised path too."""
    kind = ArrayType(columns(d=DateType(), b=ArrayType(BinaryType()), t=TimestampType()))
    text = '[{"d":"2024-01-31","b":["QQ==",null],"t":"2024-01-31 00:00:00Z"},null,{"b":null}]'
    assert read(kind, text) == [
        {"d": dt.date(2024, 1, 31), "b": [b"A", None], "t": dt.datetime(2024, 1, 31, tzinfo=UTC)},
        None,
        {"d": None, "b": None, "t": None},
    ]


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ('{"b":[1, 2.50, "é", null, true], "a":{}}', '{"a":{},"b":[1,2.50,"é",null,true]}'),
        ("1e3", "1000.0"),
        ('"x"', '"x"'),
    ],
)
def test_variants_hold_any_json(text, back):
    """A VARIANT holds any JSON value; only null is NULL."""
    halves = read(VariantType(), text)
    assert variant_text(halves) == back
    assert VariantVal(halves["value"], halves["metadata"]).toPython() is not None
    assert read(VariantType(), "null") is None


def test_a_variant_that_looks_like_the_halves_of_one():
    """It is any other object, beside messages that are bad too."""
    schema = columns(id=LongType(), v=VariantType())
    message = b'{"id": 1, "v": {"value": "YQ==", "metadata": "YQ=="}}'

    decoded = decoder(schema).decode([b'{"id": "x"}', *[message] * 200, b'{"id": "x"}'])

    assert {*decoded.errors} == {0, 201}
    assert {variant_text(halves) for halves in good_rows(decoded).column("v").to_pylist()} == {
        '{"metadata":"YQ==","value":"YQ=="}'
    }


NOT_OBJECTS = [
    (b"", "the message is empty"),
    (b" ", "not JSON"),
    (b"null", "expected a JSON object, got null"),
    (b"[1,2]", "expected a JSON object, got [1,2]"),
    (b'"x"', 'expected a JSON object, got "x"'),
    (b"1", "expected a JSON object, got 1"),
    (b'"' + b"[" * 300 + b'"', "expected a JSON object, got"),
    (b'{"c":1', "not JSON"),
    (b'{"c":1}}', "not JSON: Extra data"),
    (b'{"c":1}{"c":2}', "not JSON: Extra data"),
    (b'{"c":1} null {"c":2}', "not JSON: Extra data"),
    (b'{"c":1}\x00', "not JSON"),
    (b'\xef\xbb\xbf\xef\xbb\xbf{"c":1}', "not JSON"),
    (b' \xef\xbb\xbf{"c":1}', "not JSON"),
    (b"\xef\xbb\xbf", "the message is empty"),
    (b'\xef\xbb{"c":1}', "not UTF-8"),
    ('{"c":1}'.encode("utf-16"), "not UTF-8"),
    (b'{"c":1,}', "not JSON"),
    (b'{"c":1 /* one */}', "not JSON"),
    (b"{'c':1}", "not JSON"),
    (b'{\n"c":\r\n1', r'delimiter at character 9, in {\n"c":\r\n1'),
    (b'{"c":01}', "not JSON"),
    (b'{"c":+1}', "not JSON"),
    (b'{"x":NaN}', "NaN is no JSON value"),
    (b'{"x":-Infinity}', "-Infinity is no JSON value"),
    (b'{"x":Inf}', "not JSON"),
    (b'{"x":"\xff"}', "not UTF-8: invalid start byte at byte 6"),
    (b'{"\xc0\x80":1}', "not UTF-8"),
    (b'{"x":"\xed\xa0\x80"}', "not UTF-8"),
    (rb'"\ud800"', r'expected a JSON object, got "\ud800"'),
    (b'{"x":1\x01}', "not JSON"),
    (b'{"x":1\x0b}', "not JSON"),
    (rb'{"x":"\x41"}', "not JSON"),
]


@pytest.mark.parametrize(("message", "part"), NOT_OBJECTS)
def test_what_is_no_object_cannot_be_decoded(message, part):
    """Only exactly one JSON object in UTF-8 is a row; also where no column looks."""
    good = b'{"c":1}'
    decoded = decoder(columns(c=LONG)).decode([good] * ENOUGH + [message] + [good] * ENOUGH)
    assert list(decoded.errors) == [ENOUGH]
    assert part in decoded.errors[ENOUGH]
    assert decoded.rows.column(0).to_pylist() == [1] * ENOUGH + [None] + [1] * ENOUGH


@pytest.mark.parametrize(("message", "part"), NOT_OBJECTS)
def test_what_is_no_object_is_skipped_when_ignored(message, part):
    """With ignore-parse-errors a message that is no object is skipped, not a row of NULLs."""
    decode = decoder(columns(c=LONG), ignore_parse_errors=True).decode
    decoded = decode([b'{"c":1}', message, b'{"c":"x"}'])
    assert decoded.skipped == {1}
    assert not decoded.errors
    assert decoded.rows.column(0).to_pylist() == [1, None, None]


CONTROLS = "".join(map(chr, range(0x20)))


@pytest.mark.parametrize("character", CONTROLS)
def test_control_characters_in_strings_are_read(character):
    """As Flink's parser reads them: in texts, in names, in a map, in a field that no column wants, among good messages and alone."""
    text, raw = f"a{character}b", character.encode()
    assert read(TEXT, b'"a%bb"' % raw) == text
    assert read(MapType(TEXT, TEXT), b'{"a%bb":"a%bb"}' % (raw, raw)) == [(text, text)]
    assert read(ArrayType(TEXT), b'["a%bb",null]' % raw) == [text, None]
    assert read(TEXT, b'{"k%b":1}' % raw) == f"{{{exact_name('k' + character)}:1}}"
    good, odd = b'{"c":1}', b'{"x%b":"%b","c":2}' % (raw, raw)
    decoded = decoder(columns(c=LONG)).decode([good] * ENOUGH + [odd] + [good] * ENOUGH)
    assert decoded.rows.column(0).to_pylist() == [1] * ENOUGH + [2] + [1] * ENOUGH


def exact_name(name):
    """A name as it stands in compact JSON."""
    return json.dumps(name, ensure_ascii=False)


@pytest.mark.parametrize(
    "character", CONTROLS.replace("\t", "").replace("\n", "").replace("\r", "")
)
def test_control_characters_elsewhere_are_not_json(character):
    """Between the parts of a message only blanks, tabs and line breaks may stand."""
    message = b'{"c":%b1}' % character.encode()
    assert "not JSON" in decoder(columns(c=LONG)).decode([message]).errors[0]


@pytest.mark.parametrize("kind", [LONG, TEXT, MapType(TEXT, TEXT)])
def test_control_characters_leave_a_batch_to_the_vectorised_path(kind):
    """They are escaped for its parsers, in strings alone, whatever quotes and backslashes stand around."""
    text = {LONG: b"7", TEXT: b'"a\tb"'}.get(kind, b'{"\x01":"a\tb"}')
    odd = [
        b'{"c":%b}' % text, b'{\n\t"c" :\r\n%b}' % text, b'{"x":"\\\\","c":%b}' % text, b'{"x":"\\"\t\\\\\\"\n","c":%b}' % text,
        b'{"x\t":"\x1f","c":%b}' % text, b'{"x":"%b","c":%b}' % (b"y" * 100, text),
    ]  # fmt: skip
    schema = columns(c=kind)
    read_all = compile_vectorised_path(schema, arrow_schema(schema), settings_of(spec(schema)))
    rows, left = read_all(odd * 20)
    assert not left.any()
    assert seen(decoder(schema).decode(odd * 20)) == seen(exactly(schema).decode(odd * 20))
    assert rows == exactly(schema).decode(odd * 20).rows
    for bad in (b'{"c":"\t}', b'{"x":"\t"\x01}', b'{"x":\x01"\t"}', b'"\t', b'{"x":"\t\\"}'):
        many = [*odd, bad, *odd] * 10
        read = read_all(many)
        assert read is None or read[1][len(odd) :: 2 * len(odd) + 1].all()
        assert seen(decoder(schema).decode(many)) == seen(exactly(schema).decode(many))


@pytest.mark.parametrize("marked", ["all", "first", "last", "one"])
@pytest.mark.parametrize("kind", [LONG, MapType(TEXT, LONG), VariantType()])
def test_a_byte_order_mark_is_skipped(marked, kind):
    """Before a message, on every path; it is no part of the row."""
    mark, text = b"\xef\xbb\xbf", b'{"c":{"a":1}}' if kind != LONG else b'{"c":1}'
    places = {"all": range(200), "first": [0], "last": [199], "one": [77]}[marked]
    messages = [mark * (at in places) + text for at in range(200)]
    decode = decoder(columns(c=kind)).decode
    assert seen(decode(messages)) == seen(decode([text] * 200))
    assert seen(decode([mark + text])) == seen(decode([text]))
    assert seen(exactly(columns(c=kind)).decode(messages)) == seen(decode([text] * 200))


HALVES = [rb"\ud800", rb"\udc00", rb"\ud800\ud800", rb"a\udbffb", rb"\udc00\ud800"]


@pytest.mark.parametrize("half", HALVES)
def test_half_a_surrogate_pair_where_no_column_wants_it(half):
    """It spoils no row: as a value, a name, or anywhere within another value."""
    for odd in (b'"x":"%b"', b'"%b":1', b'"x":[{"y":"%b"}]', b'"x":{"%b":{"y":[]}}'):
        good, message = b'{"c":"a","d":1.5}', b"{%b}" % (b'"c":"b",' + odd % half + b',"d":2.5')
        table = columns(c=TEXT, d=DecimalType(5, 1))
        for many in ([message], [good] * ENOUGH + [message] + [good] * ENOUGH, [message] * ENOUGH):
            decoded = decoder(table).decode(many)
            assert not decoded.errors
            assert decoded.rows.to_pylist()[len(many) // 2] == {"c": "b", "d": Decimal("2.5")}


@pytest.mark.parametrize("half", HALVES)
def test_half_a_surrogate_pair_that_a_column_wants(half):
    """No column can hold it: the message is bad, or the value NULL with ignore-parse-errors."""
    for kind, value in (
        (TEXT, b'"%b"'), (TEXT, b'["%b"]'), (TEXT, b'{"%b":1}'), (ArrayType(TEXT), b'["%b"]'), (VariantType(), b'"%b"'),
        (VariantType(), b'{"%b":1}'), (MapType(TEXT, TEXT), b'{"%b":"a"}'), (MapType(TEXT, TEXT), b'{"a":"%b"}'),
    ):  # fmt: skip
        with pytest.raises(
            ValueError, match=r"^field 'c.*': a string holds half of a surrogate pair, got .*\\u"
        ):
            read(kind, value % half)
    for kind in (LONG, DoubleType(), DecimalType(5, 2), BooleanType(), BinaryType(), DateType(), TimestampType()):  # fmt: skip
        with pytest.raises(ValueError, match=r"^field 'c': (expected|out of range).*got .*\\u"):
            read(kind, b'"%b"' % half)
    assert read(TEXT, b'"%b"' % half, ignore_parse_errors=True) is None


def test_a_name_with_half_a_surrogate_pair_is_no_other_name():
    """Not even that of a column which is spelled as its escape."""
    table = columns(**{r"\ud800": LONG})
    found = decoder(table).decode(
        [rb'{"\ud800":1}', rb'{"\\ud800":2}', rb'{"\\ud800":2,"\ud800":1}']
    )
    assert found.rows.column(0).to_pylist() == [None, 2, 2]


def test_escaped_surrogates_are_told_from_text_about_them():
    """A backslash that is itself escaped starts no surrogate."""
    assert read(TEXT, rb'"\\ud800 \\\\udc00 \ud83d\ude00"') == "\\ud800 \\\\udc00 😀"


RUN_TOGETHER = [
    [b'{"c":1,"b":', b'{"c":2}}', b'{"c":1}{"c":2}'],
    [b'{"c":1,"b":[{}', b"{}]}", b'{"c":1}{"c":2}'],
    [b'{"c":"}', b'{"}', b'{"c":1}{"c":2}'],
    [b'{"x":"}', b'{"}', b'{"c":1}{"c":2}'],
    [b'{"c":1}\n{"c":2}', b""],
    [b'{"c":1}\n{"c":2}', b" "],
    [b'{"c":1} null {"c":2}', b""],
    [b'{"c":1', b'}{"c":2', b"}"],
    [b'{"c":1}{"c":2}', b'{"c":"}', b'"}'],
    [b'{"c":{"x":1}', b'{"y":2}}'],
    [b'{"c":1}\x00', b'{"c":2}'],
    [b"{}", b"\xef\xbb\xbf\xef\xbb\xbf{}"],
    [b'{"c":1},', b'{"c":2}'],
]


@pytest.mark.parametrize("messages", RUN_TOGETHER)
def test_messages_do_not_run_into_each_other(messages):
    """A batch reads as its messages do one by one, whatever stands at their ends."""
    schema = columns(c=LONG)
    filler = [b'{"c":7}'] * ENOUGH
    together = filler + messages + filler
    assert seen(decoder(schema).decode(together)) == seen(exactly(schema).decode(together))
    assert exactly(schema).decode(messages).errors


def test_plain_messages_take_the_vectorised_path():
    """Every type but variants is read by columns, at every depth."""
    for kind, texts in PLAIN.items():
        many = [b'{"c":%b,"a":[{"x":%b}]}' % (text, text) for text in texts]
        leaf = DecimalType(38, 10) if kind is DecimalType else kind()
        schema = columns(c=leaf, a=ArrayType(columns(x=leaf)))
        vectorised = compile_vectorised_path(
            schema, arrow_schema(schema), settings_of(spec(schema))
        )
        assert (vectorised is None) == (kind is VariantType)
        if vectorised:
            rows, left = vectorised(many)
            assert not left.any()
            assert rows.to_pylist() == exactly(schema).decode(many).rows.to_pylist()


MAPS = [
    (
        MapType(TEXT, LONG),
        [b'{"a":1,"":-9223372036854775808}', b"{}", b"null", b'{"a":null}', b'{"a":1,"a":2}'],
    ),
    (MapType(TEXT, TEXT), [b'{"a":"\\u00e9","b":""}', b'{"a":null}']),
    (MapType(TEXT, DoubleType()), [b'{"a":1.5,"b":-0.0}', b'{"a":3}']),
    (MapType(TEXT, MapType(TEXT, BooleanType())), [b'{"a":{"b":true},"c":null,"d":{}}']),
    (ArrayType(MapType(TEXT, DateType())), [b'[{"a":"2024-02-29"},null,{}]', b"[]"]),
    (
        columns(m=MapType(TEXT, ArrayType(ShortType())), n=TEXT),
        [b'{"m":{"a":[1,null]},"n":"x"}', b"{}"],
    ),
]


@pytest.mark.parametrize(("kind", "texts"), MAPS)
def test_maps_are_read_by_columns(kind, texts):
    """Of duplicate names the last wins, and null, empty and missing ones are distinguished."""
    many = [b'{"other":[1],"c":%b,"d":%b}' % (text, text) for text in texts] + [b"{}"]
    schema = columns(c=kind, d=kind)
    vectorised = compile_vectorised_path(schema, arrow_schema(schema), settings_of(spec(schema)))
    rows, left = vectorised(many)
    assert not left.any()
    assert rows.to_pylist() == exactly(schema).decode(many).rows.to_pylist()


ODD = [
    (LONG, [b'"5"', b"null", b"7", b"0", b'" -9223372036854775808"']),
    (TEXT, [b"5", b"true", b'{"x":[1,"y"]}', b'"plain"', b"null"]),
    (DoubleType(), [b'"NaN"', b'"1.5"', b"3", b"-0.0", b"1e22", b"0.1"]),
    (BooleanType(), [b'"TRUE"', b"false"]),
    (ArrayType(ShortType()), [b'["1",2]', b"[]"]),
    (columns(x=LONG), [b'{"x":"1"}', b"{}", b"null"]),
]


@pytest.mark.parametrize(("kind", "texts"), ODD)
def test_odd_values_take_only_their_column_off_the_vectorised_path(kind, texts):
    """Numbers in quotes and their like all along: no message needs the row path, nor any other column."""
    many = [b'{"a":1,"b":"x","c":%b,"d":1.50}' % text for text in texts] * ENOUGH
    schema = columns(a=LONG, b=TEXT, c=kind, d=DecimalType(5, 2))
    rows, left = compile_column_path(schema, arrow_schema(schema), settings_of(spec(schema)))(many)
    assert not left.any()
    assert values(rows) == values(exactly(schema).decode(many).rows)


@pytest.mark.parametrize("text", [b"1.0", b"-0", b"[1.5]", b"18446744073709551616"])
def test_odd_values_whose_digits_are_lost_take_the_row_path(text):
    """A text shows a number as it stood in the message."""
    many = [b'{"a":1,"c":%b}' % text] * ENOUGH
    schema = columns(a=LONG, c=TEXT)
    read = compile_column_path(schema, arrow_schema(schema), settings_of(spec(schema)))(many)
    assert read is None or read[1].all()
    assert decoder(schema).decode(many).rows.column("c").to_pylist() == [text.decode()] * ENOUGH


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (LONG, b"1.0"), (LONG, b'"1"'), (LONG, b"9223372036854775808"), (LONG, b"true"),
        (ShortType(), b"32768"), (DoubleType(), b"-0"), (DoubleType(), b"9007199254740993"),
        (DoubleType(), b'"NaN"'), (DoubleType(), b"true"), (TEXT, b"1.10"), (TEXT, b"{}"),
        (BooleanType(), b'"true"'), (DateType(), b"19000"), (ArrayType(LONG), b"{}"), (columns(x=LONG), b"[]"),
        (LONG, b"NaN"), (TEXT, b'"\\ud800"'), (TEXT, b'"\xff"'),
    ],
)  # fmt: skip
def test_what_orjson_may_get_wrong_in_a_map_is_read_one_by_one(kind, text):
    """Digits that it loses, the sign of -0, and everything that is not plainly of the column's type."""
    schema = columns(c=MapType(TEXT, kind))
    vectorised = compile_vectorised_path(schema, arrow_schema(schema), settings_of(spec(schema)))
    many = [b'{"c":{"a":%b}}' % text]
    read = vectorised(many)
    assert (
        read is None
        or read[1].all()
        or values(read[0]) == values(exactly(schema).decode(many).rows)
    )


def test_line_breaks_inside_messages():
    """A message may be printed over several lines, and end with a line break."""
    message = b'\n{\n  "c":\r\n 1\n}\n'
    assert decoder(columns(c=LONG)).decode([message] * ENOUGH).rows.num_rows == ENOUGH
    assert decoder(columns(c=LONG)).decode([message.strip()] * ENOUGH).rows.num_rows == ENOUGH


def survives(program):
    """Whether a program reaches its end; it runs in a process of its own, should that crash."""
    command = [sys.executable, "-c", program + 'print("lived")']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout == "lived\n" or done.stderr


def test_deep_nesting_harms_neither_process_nor_neighbours():
    """A message nested 100,000 deep is an error of its own."""
    program = """
from tests.unit.formats.json.codecs import columns, decoder
from pyspark.sql.types import LongType
deep = [b'{"x":' + b"[" * n + b"]" * n + b',"c":1}' for n in (100_000, 251, 249)]
open_ = [b'{"x":' + b'{"y":[' * 100_000, b"[" * 100_000, b'{"x":"' + b"[" * 1000 + b'","c":2}']
decoded = decoder(columns(c=LongType())).decode([b'{"c":7}'] * 300 + deep + open_)
assert decoded.rows.column(0).to_pylist() == [7] * 300 + [None, None, 1, None, None, 2], decoded
assert all("nested deeper than 250" in decoded.errors[i] for i in (300, 301, 303, 304))
"""
    assert survives(program) is True


def test_text_that_begins_with_null_harms_nobody():
    """pyarrow.json crashes on a text that begins with null, so it never sees one."""
    program = """
from tests.unit.formats.json.codecs import columns, decoder
from pyspark.sql.types import LongType
decoded = decoder(columns(c=LongType())).decode([b"null"] + [b'{"c":7}'] * 300 + [b"null"] * 300)
assert len(decoded.errors) == 301 and decoded.rows.column(0).null_count == 301
"""
    assert survives(program) is True


def test_last_of_duplicate_names_wins():
    """Of duplicate names the last wins: at the top, inside, escaped, and when it is null."""
    schema = columns(c=columns(x=LONG))
    messages = [
        b'{"c":{"x":1},"c":{"x":2}}',
        b'{"c":{"x":1,"x":3}}',
        rb'{"c":{"x":1},"\u0063":{"\u0078":4}}',
        b'{"c":{"x":1},"c":null}',
        b'{"c":"bad","c":{"x":5}}',
    ]
    decoded = decoder(schema).decode(messages + [b'{"c":{"x":0}}'] * ENOUGH)
    assert not decoded.errors
    values = decoded.rows.column(0).to_pylist()[:5]
    assert values == [{"x": 2}, {"x": 3}, {"x": 4}, None, {"x": 5}]


def test_names_match_exactly():
    """A field is found by its exact name: other case, dots and blanks make another name."""
    schema = StructType([StructField(name, LONG) for name in ("a.b", "", "Ä", "x")])
    decoded = decoder(schema).decode([b'{"a.b":1,"":2,"\xc3\x84":3,"X":4," x":5}'] * ENOUGH)
    assert decoded.rows.to_pylist()[0] == {"a.b": 1, "": 2, "Ä": 3, "x": None}


def test_decimals_outside_of_what_the_vectorised_parser_scales():
    """Decimals that pyarrow.json would scale by garbage are read exactly."""
    texts = [f"{d}e-{e}" for d in (1, 5, 125) for e in (38, 39, 40, 77, 100)]
    texts += ["0." + "0" * zeros + "5" for zeros in (37, 38, 39, 76, 80)]
    texts += ['"5e-40"', r'"\u0035e-40"', r'"5\u0065-40"', "12e37", "1e10", "11"]
    for text in texts:
        for kind in (DecimalType(38, 0), DecimalType(38, 38), DecimalType(38, 10)):
            message = b'{"c":%s}' % text.encode()
            schema = columns(c=ArrayType(kind), d=kind).add("c2", kind)
            many = [message.replace(b'"c"', b'"d"')] * ENOUGH
            assert seen(decoder(schema).decode(many)) == seen(exactly(schema).decode(many))


@pytest.mark.parametrize(
    ("schema", "message", "path"),
    [
        (required(c=LONG), b"{}", "c"),
        (required(c=LONG), b'{"c":null}', "c"),
        (columns(c=required(x=LONG)), b'{"c":{}}', "c.x"),
        (columns(c=ArrayType(LONG, containsNull=False)), b'{"c":[1,null]}', "c[]"),
        (columns(c=MapType(TEXT, LONG, valueContainsNull=False)), b'{"c":{"a":null}}', "c{}"),
    ],
)
def test_not_null_is_demanded_at_every_level(schema, message, path):
    """A NOT NULL field that is null or missing makes its message an error that names it."""
    decoded = decoder(schema).decode([message] * ENOUGH)
    assert len(decoded.errors) == ENOUGH
    assert decoded.errors[0] == f"field '{path}' is NOT NULL, but is null or missing"
    ignoring = decoder(schema, ignore_parse_errors=True).decode([message] * ENOUGH)
    assert ignoring.skipped == set(range(ENOUGH))


def test_null_parent_has_no_missing_fields():
    """A NULL struct lacks nothing, though its fields are NOT NULL."""
    schema = columns(c=ArrayType(required(x=LONG)), d=required(y=required(z=LONG)))
    messages = [b'{"c":null}', b'{"c":[null,{"x":1}],"d":null}', b'{"d":{"y":{"z":1}}}']
    decoded = decoder(schema).decode(messages * ENOUGH)
    assert not decoded.errors
    assert decoded.rows.schema == arrow_schema(schema)


def test_unreadable_value_of_a_not_null_field_skips_the_message():
    """With ignore-parse-errors a field that may not be NULL takes its message with it."""
    decode = decoder(required(c=LONG), ignore_parse_errors=True).decode
    decoded = decode([b'{"c":1}', b'{"c":"x"}', b'{"c":2}'])
    assert decoded.skipped == {1}
    assert decoded.rows.column(0).to_pylist() == [1, None, 2]


def test_missing_fields_fail_when_told():
    """With fail-on-missing-field a field that is not there is an error, at every level; null is not."""
    schema = columns(c=LONG, s=ArrayType(columns(x=LONG)))
    good = [b'{"c":1,"s":[{"x":1}]}', b'{"c":null,"s":[{"x":null},null]}', b'{"c":2,"s":null}']
    bad = [b'{"s":null}', b'{"c":1,"s":[{"x":1},{}]}']
    decoded = decoder(schema, fail_on_missing_field=True).decode(good * ENOUGH + bad)
    at = len(good) * ENOUGH
    assert dict(decoded.errors) == {
        at: "field 'c' is missing",
        at + 1: "field 's[].x' is missing",
    }
    assert not decoder(schema).decode(good + bad).errors


def test_both_ways_to_treat_missing_fields_contradict():
    """fail-on-missing-field and ignore-parse-errors exclude each other, in Flink's words."""
    with pytest.raises(OptionError) as raised:
        decoder(columns(c=LONG), fail_on_missing_field=True, ignore_parse_errors=True)
    assert str(raised.value) == (
        "fail-on-missing-field and ignore-parse-errors shouldn't both be true."
    )


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        (columns(c=NullType()), "column 'c': void"),
        (columns(c=CalendarIntervalType()), "column 'c': interval"),
        (columns(c=CharType(3)), "column 'c': char(3)"),
        (columns(c=ArrayType(columns(y=YearMonthIntervalType()))), "column 'c[].y'"),
        (columns(c=MapType(LONG, TEXT)), "non-string as key type of map"),
        (columns(c=MapType(TEXT, NullType())), "column 'c{}'"),
        (StructType([StructField("c", LONG), StructField("c", TEXT)]), "'c' occurs 2 times"),
        (columns(s=StructType([StructField("c", LONG)] * 2)), "'s.c' occurs 2 times"),
    ],
)
def test_types_that_json_cannot_carry(schema, part):
    """A column that JSON cannot carry is refused when compiled, naming column and type."""
    with pytest.raises(SchemaError) as raised:
        decoder(schema)
    assert part in str(raised.value)


def test_errors_stay_short():
    """An error shows the beginning of what was seen, never megabytes."""
    huge = b'"' + b"x" * 1_000_000 + b'"'
    messages = [b'{"c":%s}' % huge, b"[%s]" % huge, b'{"c":%s' % huge, b'{"c":[%s]}' % huge]
    decoded = decoder(columns(c=LONG)).decode(messages)
    assert len(decoded.errors) == 4
    assert all(len(error) < 300 for error in decoded.errors.values())


def test_no_messages_and_no_columns():
    """No messages give no rows; without columns a message still is a row."""
    schema = columns(c=LONG, t=TimestampType())
    empty = decoder(schema).decode([])
    assert empty.rows.schema == arrow_schema(schema)
    assert empty.rows.num_rows == 0
    nothing = decoder(StructType([])).decode([b"{}", b'{"x":1}', b"[]"] * ENOUGH)
    assert nothing.rows.num_rows == 3 * ENOUGH
    assert len(nothing.errors) == ENOUGH
    assert len(nothing.errors) == ENOUGH


def test_rows_have_exactly_the_schema_that_spark_demands():
    """Types, names and nullability are those of the table, nested ones too, by both ways."""
    schema = required(
        a=ArrayType(required(x=LONG, y=DateType()), containsNull=False),
        d=DecimalType(10, 2),
        f=FloatType(),
        i=DayTimeIntervalType(),
        m=MapType(TEXT, ArrayType(TEXT, containsNull=False), valueContainsNull=False),
        v=VariantType(),
    )
    message = b'{"a":[{"x":1,"y":"2024-01-31"}],"d":1,"f":1,"i":1,"m":{"k":["v"]},"v":[1]}'
    for count in (1, ENOUGH):
        decoded = decoder(schema).decode([message] * count)
        assert not decoded.errors
        decoded.rows.validate(full=True)
        assert decoded.rows.schema.equals(arrow_schema(schema))


@pytest.mark.parametrize("at", [0, 5_000, 19_999])
def test_a_bad_message_leaves_its_neighbours_alone(at):
    """One bad message among many costs nobody else, wherever it stands."""
    messages = [b'{"c":%d}' % i for i in range(20_000)]
    messages[at] = b'{"c":"x"}'
    decoded = decoder(columns(c=LONG)).decode(messages)
    assert list(decoded.errors) == [at]
    values = decoded.rows.column(0).to_pylist()
    assert values == [None if i == at else i for i in range(20_000)]


BAD = [
    b'{"id":1', b'{"id":1 "at":"2026-01-01 00:00:00"}', b'{"id":"x"}', b'{"at":"2026-13-01 00:00:00"}', b'{"at":7}', b'{"d":true}',
    b'{"m":{"k":"x"}}', b"", b"[]", b'{"id":1}{"id":2}', b'{"s":"\xff"}', b'{"id":1.5}', b'{"d":1e400}', b'{"s":"a\tb"}', b'{"s":"a\\\tb"}',
    b'{"id":99999999999999999999}', b'{"at":"2026-02-30 00:00:00"}', b"{}",
]  # fmt: skip


@pytest.mark.parametrize("one_in", [700, 70, 7, 1])
@pytest.mark.parametrize("bad", [*([each] for each in BAD), BAD], ids=repr)
def test_scattered_bad_messages_are_read_as_by_the_row_path(bad, one_in):
    """However many they are, and wherever a path notices them."""
    count = 2_000 if FULL or one_in == 700 else 700
    schema = columns(id=LONG, at=TimestampNTZType(), d=DoubleType(), s=TEXT, m=MapType(TEXT, LONG))
    good = b'{"id":%d,"at":"2026-01-01 00:00:00.%03d","d":%d.5,"s":"a","m":{"k":1}}'
    messages = [good % (at, at % 1000, at) for at in range(count)]
    for at in range(one_in // 2, len(messages), one_in):
        messages[at] = bad[at % len(bad)]
    decode, expected = decoder(schema).decode, seen(exactly(schema).decode(messages))
    for _ in range(2):  # the second time it is known that the last batch was bad
        assert seen(decode(messages)) == expected


def test_columns_of_both_ways_stand_in_order():
    """Maps and variants are read beside the columns that are parsed together, in their places."""
    schema = columns(m=MapType(TEXT, LONG), a=LONG, v=VariantType(), b=TEXT)
    messages = [b'{"b":"%d","a":%d,"m":{"k":%d}}' % (i, i, i) for i in range(100)]
    rows = decoder(schema).decode(messages).rows
    assert rows.column("m").to_pylist() == [[("k", i)] for i in range(100)]
    assert rows.column("a").to_pylist() == list(range(100))
    assert rows.column("b").to_pylist() == [str(i) for i in range(100)]
    assert rows.column("v").null_count == 100
    assert isinstance(rows, pa.RecordBatch)


@pytest.mark.parametrize(
    "size",
    [
        2_000,
        pytest.param(
            200_000,
            marks=[pytest.mark.timeout(20), pytest.mark.alone("asserts that it ends within 20 s")],
        ),
    ],
)
def test_hostile_messages_cost_no_more_than_their_length(size):
    """No message makes a regular expression or a number parser go back over itself."""
    hostile = [
        b"[" * 300 + b'"' + rb"\"" * size + b"\\",
        b'{"n":"' + b"1" * size + b'x"}',
        b'{"n":' + b"1" * size + b"}",
        b'{"n":0.' + b"1" * size + b"}",
        b'{"n":' + b'"' * size,
        b'{"n":"' + rb"\u0061" * size + b'"}',
        b'{"t":"' + b"2024-01-31 " * (size // 10) + b'"}',
    ]
    schema = columns(n=DoubleType(), d=DecimalType(38, 10), t=TimestampType(), i=LONG)
    messages = hostile + [m.replace(b'"n"', b'"d"') for m in hostile]
    messages += [m.replace(b'"n"', b'"i"') for m in hostile]
    assert len(decoder(schema).decode(messages + [b"{}"] * ENOUGH).errors) == 19
