"""The raw format: one value per message, in the bytes that Flink and Java give it."""

from __future__ import annotations

import struct
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.core.errors import EncodeError, OptionError, SchemaError
from pyspark_upsert_kafka.formats.codec import CodecSpec
from pyspark_upsert_kafka.formats.raw import FORMAT, OPTIONS
from tests.laws import law
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.json.codecs import batch, columns, required, seen
from tests.unit.formats.json.corpus import values
from tests.unit.formats.listed import Listed, good_rows

LITTLE = {"endianness": "little-endian"}
ENOUGH = 64  # messages that make a batch take the vectorised path


def spec(kind, side="value", **given):
    """The spec of a table of one column; options are texts, as a user gives them."""
    texts = {f"{side}.raw.{name}": text for name, text in given.items()}
    read = {option.name: option.read(texts, f"{side}.raw.") for option in OPTIONS}
    return CodecSpec(columns(c=kind), side, read)


def read(kind, message, **given):
    """The value of a message, or why there is none; fails when the two paths differ."""
    decode = FORMAT.decoder(spec(kind, **given)).decode
    one, many = decode([message]), decode([message] * ENOUGH)
    assert one.rows.column(0).to_pylist() * ENOUGH == many.rows.column(0).to_pylist() or isnan(
        one.rows.column(0)[0].as_py()
    )
    assert [*one.errors.values()] * ENOUGH == [*many.errors.values()]
    return one.errors.get(0) or one.rows.column(0)[0].as_py()


def written(kind, *values, side="value", **given):
    """The messages of some values."""
    return Listed(FORMAT.encoder(spec(kind, side, **given))).encode(
        batch(columns(c=kind), *((v,) for v in values))
    )


@pytest.mark.parametrize(
    ("kind", "value", "big_endian"),
    [
        (BooleanType(), True, b"\1"),
        (BooleanType(), False, b"\0"),
        (ByteType(), -2, b"\xfe"),
        (ShortType(), -2, b"\xff\xfe"),
        (IntegerType(), 258, b"\0\0\1\2"),
        (LongType(), -(2**63), b"\x80" + b"\0" * 7),
        (FloatType(), 1.5, struct.pack(">f", 1.5)),
        (DoubleType(), -0.1, struct.pack(">d", -0.1)),
    ],
)
def test_numbers_have_the_size_and_byte_order_of_java(kind, value, big_endian):
    """Numbers are big-endian unless told otherwise, a boolean is one byte."""
    assert written(kind, value, value) == [big_endian] * 2
    assert written(kind, value, **LITTLE) == [big_endian[::-1]]
    assert read(kind, big_endian) == value
    assert read(kind, big_endian[::-1], **LITTLE) == value


def test_any_byte_but_zero_is_true():
    """A boolean is false only when its byte is zero."""
    assert read(BooleanType(), b"\x80") is True


@pytest.mark.parametrize(
    ("kind", "name", "size"),
    [
        (BooleanType(), "BOOLEAN", 1),
        (ByteType(), "TINYINT", 1),
        (ShortType(), "SMALLINT", 2),
        (IntegerType(), "INT", 4),
        (LongType(), "BIGINT", 8),
        (FloatType(), "FLOAT", 4),
        (DoubleType(), "DOUBLE", 8),
    ],
)
@pytest.mark.parametrize("change", [-1, 1])
def test_a_number_of_another_size_is_an_error(kind, name, size, change):
    """The size of a number is checked; the wording is Flink's."""
    expected = f"field 'c': Size of data received for deserializing {name} type is not {size}."
    assert read(kind, b"\1" * (size + change)) == expected


@pytest.mark.parametrize(
    ("charset", "data"),
    [
        ("UTF-8", "aé😀".encode()),
        ("utf8", "aé😀".encode()),
        ("UTF-16", b"\xfe\xff" + "aé😀".encode("utf-16-be")),
        ("UTF-16LE", "aé😀".encode("utf-16-le")),
        ("UTF-32", "aé😀".encode("utf-32-be")),
        ("GB18030", "aé😀".encode("gb18030")),
    ],
)
def test_strings_are_text_in_the_charset(charset, data):
    """A STRING is its text in the charset, with a byte order mark where Java writes one."""
    assert written(StringType(), "aé😀", charset=charset) == [data]
    assert read(StringType(), data, charset=charset) == "aé😀"


def test_utf_16_without_a_mark_is_big_endian():
    """Without a byte order mark, UTF-16 and UTF-32 are big-endian, as Java has it."""
    assert read(StringType(), b"\0a", charset="UTF-16") == "a"
    assert read(StringType(), b"\xff\xfea\0", charset="UTF-16") == "a"
    assert read(StringType(), b"\0\0\0a", charset="UTF-32") == "a"


def test_bytes_that_are_no_text_are_an_error():
    """Bytes that are no text in the charset are an error and not replaced."""
    assert read(StringType(), b"a\xff").startswith(
        "field 'c': 'utf-8' codec can't decode byte 0xff"
    )
    assert "can't decode" in read(StringType(), b"a", charset="UTF-16")


@pytest.mark.parametrize("copies", [1, 100])
def test_half_of_a_surrogate_pair_is_no_text(copies):
    """Python's UTF-7 reads one; no column can hold it, so that message is bad, and no other one."""
    decode = FORMAT.decoder(spec(StringType(), charset="UTF-7")).decode
    decoded = decode([b"a", b"+2AA-"] * copies)
    assert [*decoded.errors] == [*range(1, 2 * copies, 2)]
    assert good_rows(decoded).column(0).to_pylist() == ["a"] * copies


def test_characters_that_the_charset_lacks_are_an_error():
    """A character that the charset lacks is an error and not a question mark."""
    with pytest.raises(EncodeError, match=r"Column 'c' cannot be written: .*can't encode"):
        written(StringType(), "é", charset="US-ASCII")


@pytest.mark.parametrize(
    ("charset", "text"),
    [("Shift_JIS", "\u00a5"), ("ISO-2022-JP", "a\x1b"), ("UTF-32", "\ufeffa"), ("UTF-7", "\ud800")],
)
def test_a_text_that_would_be_read_as_another_one_is_an_error(charset, text):
    """Two keys would become one: a yen sign is a backslash in Shift_JIS, and UTF-32 takes a mark away."""
    from pyspark_upsert_kafka.formats.raw import charset as named

    with pytest.raises(ValueError, match=r"has no bytes|surrogates"):
        named(charset).bytes_of(text)
    if text.isascii():
        with pytest.raises(EncodeError, match="Column 'c' cannot be written"):
            written(StringType(), text, charset=charset)


def test_empty_text_and_empty_binary_are_values():
    """No bytes are the empty text and the empty binary."""
    assert read(StringType(), b"") == ""
    assert read(BinaryType(), b"") == b""
    assert written(StringType(), "") == written(BinaryType(), b"") == [b""]


def test_null_is_an_error_and_not_a_tombstone():
    """A NULL in a row that is no delete is an error that names the column."""
    with pytest.raises(EncodeError, match="Column 'c' cannot be written: NULL"):
        written(LongType(), 1, None)


@pytest.mark.parametrize("compile_", [FORMAT.decoder, FORMAT.encoder])
def test_more_than_one_column_is_refused(compile_):
    """Exactly one column; the wording is Flink's, with what to do about it."""
    two = columns(id=LongType(), name=StringType())
    with pytest.raises(SchemaError) as error:
        compile_(codec_spec(FORMAT, two, "value", {}))
    assert str(error.value) == (
        "The 'raw' format only supports single physical column. However the defined schema "
        "contains multiple physical columns: [`id` BIGINT, `name` STRING]. Set "
        "'value.fields-include' to 'EXCEPT_KEY' to leave the key out of the value."
    )
    with pytest.raises(SchemaError, match="only supports single physical column"):
        compile_(codec_spec(FORMAT, StructType(), "value", {}))


@pytest.mark.parametrize(
    "kind", [DecimalType(10, 2), DateType(), TimestampType(), ArrayType(LongType()), StructType()]
)
def test_other_types_are_refused(kind):
    """A column is text, binary, a number or a boolean; the wording is Flink's."""
    with pytest.raises(SchemaError, match=r"The 'raw' format doesn't supports '.*' as column type"):
        FORMAT.decoder(spec(kind))


def test_options_are_checked():
    """The wording for a charset or a byte order that does not exist is Flink's."""
    with pytest.raises(OptionError, match=r"Unsupported 'value.raw.charset' name: 'UTF-99'"):
        spec(StringType(), charset="UTF-99")
    with pytest.raises(OptionError, match=r"Unsupported 'value.raw.charset' name: 'zlib'"):
        spec(StringType(), charset="zlib")
    with pytest.raises(OptionError, match=r"Unsupported 'value.raw.charset' name: 'idna'"):
        spec(StringType(), charset="idna")  # Python's own: no charset, and not even reversible
    with pytest.raises(OptionError, match=r"Unsupported endianness name: 'middle-endian'. Valid"):
        spec(StringType(), endianness="middle-endian")


def test_the_format_is_known_by_its_name():
    """``key.format`` and ``value.format`` = ``raw`` find it."""
    assert format_named("raw", "key") is FORMAT


def test_not_null_columns_keep_their_schema():
    """Rows come in exactly the schema of the table, NOT NULL too."""
    schema = required(c=LongType())
    rows = FORMAT.decoder(codec_spec(FORMAT, schema, "value", {})).decode([b"\0" * 8] * ENOUGH).rows
    assert not rows.schema.field(0).nullable


KINDS = st.sampled_from(
    [
        *(BooleanType(), ByteType(), ShortType(), IntegerType(), LongType(), FloatType()),
        *(DoubleType(), StringType(), BinaryType()),
    ]
)
GIVEN = st.fixed_dictionaries(
    {},
    optional={
        "endianness": st.just("little-endian"),
        "charset": st.sampled_from(["UTF-16", "gbk"]),
    },
)


@law(150)
@given(data=st.data(), kind=KINDS, given_=GIVEN, copies=st.sampled_from([1, 64]))
def test_what_is_written_reads_back(data, kind, given_, copies):
    """decode(encode(rows)) is rows, bit by bit."""
    some = values(kind, nullable=False)
    if given_.get("charset") == "gbk" and isinstance(kind, StringType):
        some = st.text("aß字", max_size=4).map(lambda text: text.replace("ß", ""))
    drawn = data.draw(st.lists(some, max_size=4)) * copies
    messages = written(kind, *drawn, **given_)
    decoded = FORMAT.decoder(spec(kind, **given_)).decode(messages)
    assert not decoded.errors
    assert decoded.rows.num_rows == len(drawn)
    assert written(kind, *decoded.rows.column(0).to_pylist(), **given_) == messages


@law(150)
@given(bad=st.lists(st.binary(max_size=9), max_size=3), kind=KINDS, at=st.integers(0, 90))
def test_any_bytes_leave_their_neighbours_as_they_are(bad, kind, at):
    """A message reads the same alone and among others."""
    (good,) = written(kind, True if isinstance(kind, BooleanType) else _good(kind))
    decode = FORMAT.decoder(spec(kind)).decode
    many = [good] * at + bad + [good] * (90 - at)
    alone = [decode([message]) for message in many]
    together = decode(many)
    rows = [value for one in alone for value in one.rows.column(0).to_pylist()]
    errors = {index: one.errors[0] for index, one in enumerate(alone) if one.errors}
    assert seen(together)[0] == repr([rows])
    assert together.errors == errors


def _good(kind):
    return {"string": "é", "binary": b"\xff"}.get(kind.typeName(), 1)
