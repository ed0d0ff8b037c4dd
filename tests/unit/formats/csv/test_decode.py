"""CSV messages to rows: what each type reads, what it refuses, and what happens to the rest."""

from __future__ import annotations

import datetime as dt
import tracemalloc
from decimal import Decimal
from math import inf, isnan
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
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
    YearMonthIntervalType,
)

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.formats.csv import FORMAT, OPTIONS, dialect_of
from pyspark_upsert_kafka.formats.csv.column_paths import (
    compile_column_path,
    compile_vectorised_path,
)
from pyspark_upsert_kafka.formats.csv.row_path import splitter
from tests.laws import FULL
from tests.unit.formats.csv.codecs import decoder, exactly, read, read_rows, spec
from tests.unit.formats.json.codecs import batch, columns, required, seen
from tests.unit.formats.listed import Listed

LONG, TEXT, UTC = LongType(), StringType(), ZoneInfo("UTC")
PAIR = StructType([StructField("x", IntegerType()), StructField("y", StringType())])
NOON = dt.datetime(2024, 1, 31, 12, 30)  # noqa: DTZ001
HALF = dt.timedelta(milliseconds=500)


@pytest.mark.parametrize(
    ("kind", "field", "expected"),
    [
        (ByteType(), "-128", -128),
        (ShortType(), "32767", 32767),
        (IntegerType(), " 12 ", 12),
        (IntegerType(), "\t+12\x01", 12),
        (IntegerType(), '"12"', 12),
        (LONG, "-9223372036854775808", -(2**63)),
        (LONG, "007", 7),
        (FloatType(), "0.1", pytest.approx(0.1)),
        (DoubleType(), " 1e2 ", 100.0),
        (DoubleType(), "Infinity", inf),
        (DoubleType(), "-Infinity", -inf),
        (DecimalType(5, 2), "123.45", Decimal("123.45")),
        (DecimalType(5, 2), '"1E+2"', Decimal("100.00")),
        (DecimalType(5, 2), "1.005", Decimal("1.01")),
        (BooleanType(), "true", True),
        (BooleanType(), " FALSE ", False),
        (TEXT, " a ", " a "),
        (TEXT, "", ""),
        (TEXT, '""', ""),
        (TEXT, "null", "null"),
        (TEXT, '"a,""b"""', 'a,"b"'),
        (TEXT, 'a"b"', 'a"b"'),
        (TEXT, '"a"  ', "a"),
        (TEXT, '"a\r\nb"', "a\r\nb"),
        (TEXT, "#a", "#a"),
        (BinaryType(), "awML", b"\x6b\x03\x0b"),
        (BinaryType(), "", b""),
        (DateType(), "2024-01-31", dt.date(2024, 1, 31)),
        (DateType(), "2024-1-2", dt.date(2024, 1, 2)),
        (TimestampType(), '"2024-01-31 12:30:00Z"', NOON.replace(tzinfo=UTC)),
        (TimestampType(), " 2024-01-31 12:30:00.5Z ", NOON.replace(tzinfo=UTC) + HALF),
        (TimestampType(), "2024-01-31T12:30:00.500Z", NOON.replace(tzinfo=UTC) + HALF),
        (TimestampType(), "2024-01-31T14:30:00+02:00", NOON.replace(tzinfo=UTC)),
        (TimestampNTZType(), "2024-01-31 12:30:00.5", NOON + HALF),
        (TimestampNTZType(), "2024-01-31T12:30:00", NOON),
        (ArrayType(TEXT), "a;b;c", ["a", "b", "c"]),
        (ArrayType(TEXT), " a ;;", [" a ", "", ""]),
        (ArrayType(TEXT), "", []),
        (ArrayType(TEXT), "  ", []),
        (ArrayType(TEXT), '"a;b"', ["a", "b"]),
        (ArrayType(ByteType()), " 1 ;;3", [1, None, 3]),
        (PAIR, "42;Hello", {"x": 42, "y": "Hello"}),
        (PAIR, ";", {"x": None, "y": ""}),
        (PAIR, "", None),
    ],
)
def test_what_each_type_reads(kind, field, expected):
    """Each type reads what Flink reads; numbers and moments do not mind blanks around them."""
    assert read(kind, field) == expected


def test_not_a_number_is_spelled_as_java_does():
    """Only Java's own spelling of NaN is one."""
    assert isnan(read(DoubleType(), "NaN"))
    assert read(DoubleType(), "nan") == "field 'c': expected a number, got 'nan'"


@pytest.mark.parametrize(
    ("kind", "field", "reason"),
    [
        (ByteType(), "128", "expected a whole number from -128 to 127, got '128'"),
        (LONG, "9223372036854775808", "expected a whole number from"),
        (LONG, "1.0", "expected a whole number, got '1.0'"),
        (LONG, "0x10", "expected a whole number, got '0x10'"),
        (LONG, "1 2", "expected a whole number"),
        (LONG, "x", "expected a whole number, got 'x'"),
        (FloatType(), "1e39", "out of range of FLOAT"),
        (DoubleType(), "1e309", "out of range of DOUBLE"),
        (DoubleType(), "inf", "expected a number"),
        (DecimalType(5, 2), "1000", "expected a DECIMAL(5,2), got '1000'"),
        (BooleanType(), "1", "expected true or false, got '1'"),
        (BooleanType(), "yes", "expected true or false"),
        (BinaryType(), "QUJ", "expected BINARY as base64 text"),
        (BinaryType(), "QUJD=", "expected BINARY as base64 text"),
        (DateType(), "2024-02-30", "expected a DATE that exists"),
        (DateType(), " 2024-01-31", "expected a DATE like"),
        (TimestampType(), "2024-01-31 12:30:00", "with a zone"),
        (TimestampType(), "2024-01-31 12:30Z", "expected a TIMESTAMP like"),
        (TimestampNTZType(), "2024-01-31 12:30:00Z", "without a zone"),
        (ArrayType(ByteType()), "1;x", "expected a whole number, got 'x'"),
        (PAIR, "1", "Row length mismatch. 2 fields expected but was 1., got '1'"),
        (PAIR, "1;a;b", "Row length mismatch. 2 fields expected but was 3."),
    ],
)
def test_what_each_type_refuses(kind, field, reason):
    """What is no value of the type is an error that names the field and what was seen."""
    found = read(kind, field)
    assert found.startswith("field 'c")
    assert reason in found


@pytest.mark.parametrize("kind", [LONG, DoubleType(), BooleanType(), DateType(), DecimalType(5, 2)])
def test_empty_fields_are_null_where_the_empty_text_is_no_value(kind):
    """Flink writes NULL as the empty text; here that can be read again without a null literal."""
    assert read(kind, "") is None
    assert read(kind, '""') is None
    assert "got ''" in read(kind, "", null_literal="null")


@pytest.mark.parametrize("kind", [LONG, TEXT, BinaryType(), DateType(), ArrayType(TEXT), PAIR])
@pytest.mark.parametrize("literal", ["null", "", "\\N", "n,a"])
def test_the_null_literal_is_null_in_every_type(kind, literal):
    """The null literal, quoted or not, is NULL; blanks around it make it another text."""
    assert read(kind, f'"{literal}"', null_literal=literal) is None
    if "," not in literal:
        assert read(kind, literal, null_literal=literal) is None
    assert read(TEXT, " null", null_literal="null") == " null"
    assert read(ArrayType(TEXT), "a;null", null_literal="null") == ["a", None]


THREE = columns(a=TEXT, b=IntegerType(), c=TEXT)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("a,1,c", ("a", 1, "c")),
        ("a,1,", ("a", 1, "")),
        ("a,1,c,", ("a", 1, "c")),
        ("a,1,c, ", ("a", 1, "c")),
        ("a,1,c\n", ("a", 1, "c")),
        ("a,1,c\r\n", ("a", 1, "c")),
        ("a,1,c,\r", ("a", 1, "c")),
        (",,", ("", None, "")),
        ('"a"\t,"1" ,"c"\n', ("a", 1, "c")),
        ("a,1,c,,", "Too many entries: expected at most 3"),
        ("a,1,c,d", "Too many entries: expected at most 3"),
        ("a", "Row length mismatch. 3 fields expected but was 1."),
        ("a,1", "Row length mismatch. 3 fields expected but was 2."),
        ("\n", "Row length mismatch. 3 fields expected but was 1."),
        ("", "the message is empty; it holds no record"),
        ("a,1,c\nd,2,f", "the message has more than one line; one message is one record"),
        ("a,1,c\n\n", "the message has more than one line; one message is one record"),
        ('a,1,"c', "Missing closing quote for value"),
        ('a,1,"c""', "Missing closing quote for value"),
        ('"a"x,1,c', "Unexpected character 'x' after a quoted field: Expected separator"),
        (b"a,1,\xff", "not UTF-8: invalid start byte at byte 4"),
    ],
)
def test_one_message_is_one_record(message, expected):
    """A message has as many fields as the table has columns, and a line break at most at its end."""
    found = read_rows(THREE, message)
    assert found.startswith(expected) if isinstance(expected, str) else found == expected


def test_a_line_break_alone_is_an_empty_field():
    """For a table of one column a line break is a record, no bytes are none."""
    assert read_rows(columns(c=TEXT), "\n") == ("",)
    assert "holds no record" in read_rows(columns(c=TEXT), "")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("a,x,c", ("a", None, "c")),
        ("a,99999999999,c", ("a", None, "c")),
        ("a", ("a", None, None)),
        ("a,1,c,d", "skipped"),
        ('a,1,"c', "skipped"),
        (b"\xff,1,c", "skipped"),
        ("", "skipped"),
        ("a,1,c\nd,2,f", "skipped"),
    ],
)
def test_ignoring_parse_errors(message, expected):
    """With ignore-parse-errors bad and missing fields are NULL, other bad messages skipped."""
    assert read_rows(THREE, message, ignore_parse_errors=True) == expected


def test_ignoring_parse_errors_inside_a_field():
    """A bad element or one that a struct lacks is NULL, one too many is left out."""
    ignored = {"ignore_parse_errors": True}
    assert read(ArrayType(LONG), "1;x", **ignored) == [1, None]
    assert read(PAIR, "x", **ignored) == {"x": None, "y": None}
    assert read(PAIR, "1;a;b", **ignored) == {"x": 1, "y": "a"}


def test_columns_that_are_not_null():
    """A NOT NULL column without a value is an error, and skipped when errors are ignored."""
    schema = required(a=LONG, b=LONG)
    assert read_rows(schema, "1,") == "field 'b' is NOT NULL, but is null or missing"
    assert read_rows(schema, "1,x", ignore_parse_errors=True) == "skipped"
    assert read_rows(schema, "1,2") == (1, 2)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("#x\na,1,c", ("a", 1, "c")),
        ("#x\r\n#y\ra,1,c", ("a", 1, "c")),
        ("a,1,#c", ("a", 1, "#c")),
        ('"#a",1,c', ("#a", 1, "c")),
        ("#a,1,c", "the message is empty; it holds no record"),
        ("#a\n", "the message is empty; it holds no record"),
    ],
)
def test_comments(message, expected):
    """With allow-comments, lines before the record that begin with # do not count."""
    assert read_rows(THREE, message, allow_comments=True) == expected
    assert read_rows(THREE, "#a,1,c", allow_comments=True, ignore_parse_errors=True) == "skipped"


@pytest.mark.alone("asserts how much memory is taken")
def test_many_lines_of_comments():
    """They are skipped one by one: a match of all of them would take ninety times their bytes."""
    split = splitter(dialect_of(spec(THREE, allow_comments=True)), 3)
    message = b"#\n" * 500_000 + b"a,1,c"
    tracemalloc.start()
    fields = split(message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fields == ["a", "1", "c"]
    assert peak < 10 * len(message)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("123*'4**", "123'4*"),
        ("'123''4**'", "123'4*"),
        ("'a;b*'c'", "a;b'c"),
        ("*n*r*t*0*x", "\n\r\t\0x"),
        ("*;", ";"),
        ("*'a'", "'a'"),
        ("'a*\nb'", "a\nb"),
    ],
)
def test_the_escape_character(field, expected):
    """The escape character takes the meaning from the next one, within quotes and without."""
    chosen = {"escape_character": "*", "quote_character": "'", "field_delimiter": ";"}
    assert read(TEXT, field, **chosen) == expected


def test_an_escape_character_at_the_end():
    """An escape character with nothing behind it is an error."""
    found = read_rows(columns(a=TEXT, b=TEXT), "a,b*", escape_character="*")
    assert found == "Unexpected EOF in escaped character"


@pytest.mark.parametrize("delimiter", ["\t", "|", " ", ";", "x", "§", "\x01"])
def test_other_delimiters(delimiter):
    """Any single character may stand between fields."""
    message = delimiter.join(["a", "1", '"c d"'])
    assert read_rows(THREE, message, field_delimiter=delimiter) == ("a", 1, "c d")


def test_without_quote_characters():
    """With disable-quote-character a quote character is one like others."""
    assert read(TEXT, '"abc', disable_quote_character=True) == '"abc'


PLAIN = [
    ("id,7,2024-01-31 12:30:00Z,1.5", {}),
    ('"id","7","2024-01-31 12:30:00Z","1.5"', {}),
    ('"i""d","7",,', {}),
    ('"","7","2024-01-31T12:30:00Z","1.50"\r\n', {}),
    ("id\t7\t2024-01-31 12:30:00Z\t1", {"field_delimiter": "\t"}),
    ('0xid,7,,"1.5"', {"null_literal": ""}),
    ("'id','7',2024-01-31 12:30:00Z,1.5", {"escape_character": "*", "quote_character": "'"}),
]


@pytest.mark.parametrize(("message", "options"), PLAIN)
def test_plain_messages_take_the_vectorised_path(message, options):
    """What Flink writes, quoted or not, and what ends in a line break is read as a batch."""
    schema = columns(a=TEXT, b=LONG, c=TimestampType(), d=DecimalType(5, 2))
    vectorised = compile_vectorised_path(
        schema, arrow_schema(schema), dialect_of(spec(schema, **options))
    )
    rows, left = vectorised([message.encode()] * 3)
    assert rows.num_rows == 3
    assert not left.any()


ODD = [
    (DecimalType(5, 2), ["1.005", "1e2", "7", ""]),
    (LONG, [" 7", "8 ", ""]),
    (DoubleType(), ["NaN", "-Infinity", "1.5"]),
]


@pytest.mark.parametrize("literal", [None, "", "NULL"])
@pytest.mark.parametrize(("kind", "texts"), ODD)
def test_odd_values_take_only_their_column_off_the_vectorised_path(kind, texts, literal):
    """Decimals that must be rounded and their like all along: no message needs the row path."""
    schema = columns(a=TEXT, b=LONG, c=kind)
    many = [f'"a b",7,{text or literal or ""}'.encode() for text in texts] * 3
    dialect = dialect_of(spec(schema, null_literal=literal))
    rows, left = compile_column_path(schema, arrow_schema(schema), dialect)(many)
    exact = exactly(schema, null_literal=literal).decode
    assert not left.any()
    assert repr(rows.to_pylist()) == repr(exact(many).rows.to_pylist())


BAD = [
    b"x,2026-01-01 00:00:00,1.5,a", b"1,2026-13-01 00:00:00,1.5,a", b"1,2026-02-30 00:00:00,1.5,a", b"1,,1.5", b"1,,1.5,a,b", b"",
    b'1,,1.5,"a', b'1,,1.5,"a" ', b"1,,1.5,a\nb", b"1,,1.5,a\rb", b"1,,1.5,\xff", b"0x10,,1.5,a", b"1,,NaN,a", b" 1 ,,1e400,a",
    b'1,,1.5,"a""b"', b"\xef\xbb\xbf1,,1.5,a", b"99999999999999999999,,1.5,a",
]  # fmt: skip


@pytest.mark.parametrize("one_in", [700, 70, 7, 1])
@pytest.mark.parametrize("bad", [*([each] for each in BAD), BAD], ids=repr)
def test_scattered_bad_messages_are_read_as_by_the_row_path(bad, one_in):
    """However many they are, and wherever a path notices them."""
    count = 2_000 if FULL or one_in == 700 else 700
    schema = columns(id=LONG, at=TimestampNTZType(), d=DoubleType(), s=TEXT)
    messages = [
        b'%d,2026-01-01 00:00:00.%03d,%d.5,"a"' % (at, at % 1000, at) for at in range(count)
    ]
    for at in range(one_in // 2, len(messages), one_in):
        messages[at] = bad[at % len(bad)]
    decode, expected = decoder(schema).decode, seen(exactly(schema).decode(messages))
    for _ in range(2):  # the second time it is known that the last batch was bad
        assert seen(decode(messages)) == expected


def test_rows_come_in_exactly_the_schema_of_the_table():
    """Nested nullability too: Spark compares each batch with it."""
    inner = StructType([StructField("x", LONG, nullable=False)])
    schema = columns(a=ArrayType(LONG, containsNull=False), b=inner)
    decoded = decoder(schema).decode([b"1;2,5"] * 100)
    assert decoded.rows.schema.equals(arrow_schema(schema))
    assert isinstance(decoded.rows, pa.RecordBatch)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (MapType(TEXT, LONG), "Unsupported type 'map<string,bigint>' for field 'c'"),
        (VariantType(), "Unsupported type 'variant' for field 'c'"),
        (DayTimeIntervalType(), "Unsupported type 'interval day to second' for field 'c'"),
        (YearMonthIntervalType(), "Unsupported type 'interval year to month' for field 'c'"),
        (ArrayType(ArrayType(LONG)), "Only simple types are supported in the second level nesting"),
        (ArrayType(MapType(TEXT, TEXT)), "of fields 'c' but was: map<string,string>"),
        (StructType([StructField("x", PAIR)]), "of fields 'c' but was: struct<x:int,y:string>"),
        (StructType(), "Field 'c' is a struct without fields"),
        (StructType().add("x", LONG).add("x", TEXT), "Field 'c.x' occurs 2 times"),
    ],
)
@pytest.mark.parametrize("compile_", [FORMAT.decoder, FORMAT.encoder])
def test_types_that_are_refused(kind, reason, compile_):
    """What CSV cannot carry is refused when planned; the wording is Flink's."""
    with pytest.raises(SchemaError) as error:
        compile_(spec(columns(c=kind)))
    assert reason in str(error.value)


def test_a_table_without_columns_is_refused():
    """A row without fields would be an empty message, which is no record."""
    with pytest.raises(SchemaError, match="needs at least one column"):
        FORMAT.decoder(spec(StructType()))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("field-delimiter", "\\t", "\t"),
        ("field-delimiter", "\t", "\t"),
        ("field-delimiter", "\\u0001", "\x01"),
        ("field-delimiter", "\\1", "\x01"),
        ("field-delimiter", "\\\\", "\\"),
        ("field-delimiter", "|", "|"),
        ("quote-character", "'", "'"),
        ("escape-character", "\\", "\\"),
        ("null-literal", "", ""),
        ("ignore-parse-errors", "TRUE", True),
    ],
)
def test_options_as_a_user_gives_them(name, text, value):
    """The field delimiter may be spelled with Java's escapes; no other option is."""
    (option,) = (option for option in OPTIONS if option.name == name)
    assert option.read({f"value.csv.{name}": text}, "value.csv.") == value


@pytest.mark.parametrize("name", ["field-delimiter", "quote-character", "array-element-delimiter"])
@pytest.mark.parametrize("text", ["", "ab", "\\tt", "😀", "\\ud83d"])
def test_characters_are_single(name, text):
    """A delimiter is one character as Java counts them; the wording is Flink's."""
    (option,) = (option for option in OPTIONS if option.name == name)
    with pytest.raises(OptionError) as error:
        option.read({f"value.csv.{name}": text}, "value.csv.")
    assert str(error.value) == (
        f"Option 'value.csv.{name}' must be a string with single character, but was: {text!r}."
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"quote_character": '"', "disable_quote_character": True},
            "Format cannot define a quote character and disabled quote character at the same time.",
        ),
        ({"field_delimiter": '"'}, "is the quote or the escape character too"),
        ({"field_delimiter": "*", "escape_character": "*"}, "the escape character too"),
        ({"field_delimiter": "\n"}, "Option 'field-delimiter' cannot be '\\n'"),
        (
            {"quote_character": "#", "allow_comments": True},
            "Option 'quote-character' cannot be '#'",
        ),
        ({"escape_character": "n"}, "Option 'escape-character' cannot be 'n'"),
        ({"escape_character": "0"}, "Option 'escape-character' cannot be '0'"),
        (
            {"null_literal": "a,b", "disable_quote_character": True},
            "Option 'null-literal' is 'a,b'",
        ),
    ],
)
def test_options_that_contradict_each_other(options, reason):
    """What could not be read back is refused when planned."""
    with pytest.raises(OptionError) as error:
        FORMAT.decoder(spec(columns(c=TEXT), **options))
    assert reason in str(error.value)


@pytest.mark.parametrize("options", [{"field_delimiter": "\0"}, {"quote_character": "\0"}], ids=str)
def test_the_character_zero(options):
    """It is a character as any other, though the vectorised path does not know it."""
    schema = columns(a=TEXT, b=LONG)
    row = ("x,\0\n", 1)
    (message,) = Listed(FORMAT.encoder(spec(schema, **options))).encode(batch(schema, row))
    assert read_rows(schema, message, **options) == row


def test_the_format_is_known_by_its_name():
    """``key.format`` and ``value.format`` = ``csv`` find it."""
    assert format_named("csv", "value") is FORMAT
