"""Rows to JSON messages: the spelling of each type, and what cannot be written."""

from __future__ import annotations

import datetime as dt
import json
import struct
from decimal import Decimal
from math import inf, nan

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
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    VariantVal,
    YearMonthIntervalType,
)

from pyspark_upsert_kafka.core.errors import EncodeError, OptionError, SchemaError
from pyspark_upsert_kafka.formats.json.json_document import DEEPEST_WRITTEN
from tests.unit.formats.json.codecs import batch, columns, encoder

LONG, TEXT = LongType(), StringType()


def variant(text):
    """A variant as Spark hands it over."""
    halves = VariantVal.parseJson(text)
    return {"value": halves.value, "metadata": halves.metadata}


def written(kind, *values, side="value", **options):
    """The JSON texts of a column ``c``."""
    schema = columns(c=kind)
    messages = encoder(schema, side, **options).encode(
        batch(schema, *[(value,) for value in values])
    )
    return [message.decode().removeprefix('{"c":').removesuffix("}") for message in messages]


SPELLINGS = [
    (BooleanType(), True, "true"),
    (BooleanType(), False, "false"),
    (ByteType(), -128, "-128"),
    (LONG, 2**63 - 1, "9223372036854775807"),
    (LONG, -(2**63), "-9223372036854775808"),
    (DoubleType(), 1.0, "1.0"),
    (DoubleType(), -0.0, "-0.0"),
    (DoubleType(), 0.1, "0.1"),
    (DoubleType(), nan, '"NaN"'),
    (DoubleType(), inf, '"Infinity"'),
    (DoubleType(), -inf, '"-Infinity"'),
    (FloatType(), struct.unpack("f", struct.pack("f", 0.1))[0], "0.1"),
    (FloatType(), -inf, '"-Infinity"'),
    (TEXT, "", '""'),
    (TEXT, 'a"\\/\b\f\n\r\t', '"a\\"\\\\/\\b\\f\\n\\r\\t"'),
    (TEXT, "\0\x1f\x7f", '"\\u0000\\u001F\x7f"'),
    (TEXT, "é😀\u2028", '"é\\uD83D\\uDE00\u2028"'),
    (BinaryType(), b"", '""'),
    (BinaryType(), b"\xff\xfe\xfd\xfc", '"//79/A=="'),
    (DateType(), dt.date(1, 1, 1), '"0001-01-01"'),
    (DateType(), dt.date(9999, 12, 31), '"9999-12-31"'),
    (DayTimeIntervalType(), dt.timedelta(days=-1, milliseconds=1), "-86399999"),
    (ArrayType(LONG), [], "[]"),
    (ArrayType(LONG), [1, None], "[1,null]"),
    (ArrayType(ArrayType(TEXT)), [["a"], [], None], '[["a"],[],null]'),
    (MapType(TEXT, LONG), {}, "{}"),
    (MapType(TEXT, LONG), {"b": 1, 'a"': None}, '{"b":1,"a\\"":null}'),
    (columns(y=LONG, x=TEXT), {"y": None, "x": "a"}, '{"y":null,"x":"a"}'),
    (StructType([]), {}, "{}"),
    (
        VariantType(),
        variant('{"b":[1.50,"é",null,true],"a":{}}'),
        '{"a":{},"b":[1.50,"é",null,true]}',
    ),
    (VariantType(), variant("1" * 38), "1" * 38),
]


@pytest.mark.parametrize(("kind", "value", "text"), SPELLINGS)
def test_value_is_spelled(kind, value, text):
    """Each type has one spelling; null has none but null."""
    assert written(kind, value, None) == [text, "null"]


# Java: new BigDecimal(text).stripTrailingZeros().toString(), as JsonRowDataSerDeSchemaTest has it.
DECIMALS = [
    (DecimalType(9, 6), "123.456789", "123.456789", "123.456789"),
    (DecimalType(20, 0), "454621864049246170", "4.5462186404924617E+17", "454621864049246170"),
    (DecimalType(11, 9), "0.000000027", "2.7E-8", "0.000000027"),
    (DecimalType(11, 9), "-0.000001000", "-0.000001", "-0.000001000"),
    (DecimalType(10, 2), "100.00", "1E+2", "100.00"),
    (DecimalType(10, 2), "-120.00", "-1.2E+2", "-120.00"),
    (DecimalType(10, 2), "1.50", "1.5", "1.50"),
    (DecimalType(10, 2), "0.00", "0", "0.00"),
    (DecimalType(10, 0), "7", "7", "7"),
    (DecimalType(38, 0), "9" * 38, "9" * 38, "9" * 38),
    (DecimalType(38, 38), "0." + "0" * 37 + "1", "1E-38", "0." + "0" * 37 + "1"),
]


@pytest.mark.parametrize(("kind", "value", "short", "plain"), DECIMALS)
def test_decimals_are_java_numbers(kind, value, short, plain):
    """By default the shortest form, which may have an exponent; as plain numbers every digit."""
    assert written(kind, Decimal(value), None) == [short, "null"]
    assert written(kind, Decimal(value), encode_decimal_as_plain_number=True) == [plain]


TIMES = [
    ("2024-01-31 12:30:00", "2024-01-31 12:30:00"),
    ("2024-01-31 12:30:40", "2024-01-31 12:30:40"),
    ("2024-01-31 12:30:00.120000", "2024-01-31 12:30:00.12"),
    ("1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999"),
    ("0001-01-01 00:00:00", "0001-01-01 00:00:00"),
    ("9999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"),
]


@pytest.mark.parametrize(("moment", "text"), TIMES)
def test_timestamps_are_spelled_as_the_standard_says(moment, text):
    """Fractions end without zeros; TIMESTAMP is in UTC with a Z, TIMESTAMP_NTZ has no zone."""
    moment = dt.datetime.fromisoformat(moment)
    utc, iso = moment.replace(tzinfo=dt.timezone.utc), text.replace(" ", "T")
    assert written(TimestampNTZType(), moment, None) == [f'"{text}"', "null"]
    assert written(TimestampType(), utc) == [f'"{text}Z"']
    options = {"timestamp_format_standard": "ISO-8601"}
    assert written(TimestampNTZType(), moment, **options) == [f'"{iso}"']
    assert written(TimestampType(), utc, **options) == [f'"{iso}Z"']


def test_session_zone_does_not_matter():
    """A timestamp is written in UTC, whatever the zone of the session that hands it over."""
    schema = columns(c=TimestampType(), a=ArrayType(TimestampType()))
    zone = pa.timestamp("us", "America/New_York")
    rows = pa.RecordBatch.from_arrays(
        [pa.array([0], zone), pa.array([[1_000_000]], pa.list_(zone))], ["c", "a"]
    )
    assert encoder(schema).encode(rows) == [
        b'{"c":"1970-01-01 00:00:00Z","a":["1970-01-01 00:00:01Z"]}'
    ]


def test_columns_in_order_without_spaces():
    """A message holds the columns in the order of the schema, compact."""
    schema = columns(b=LONG, a=TEXT, c=DoubleType()).add('q"', BooleanType())
    assert encoder(schema).encode(batch(schema, (1, "é", None, True), (None, None, 1.5, None))) == [
        '{"b":1,"a":"é","c":null,"q\\"":true}'.encode(),
        b'{"b":null,"a":null,"c":1.5,"q\\"":null}',
    ]


def test_null_fields_are_left_out_when_told():
    """With ignore-null-fields the fields of rows and structs are left out, as Flink has it.

    Elements of arrays and values of maps stay.
    """
    inner = columns(x=LONG, y=TEXT)
    schema = columns(a=LONG, s=inner, l=ArrayType(inner), m=MapType(TEXT, LONG))
    rows = batch(
        schema,
        (None, {"x": None, "y": "b"}, [None, {"x": 1, "y": None}], {"k": None}),
        (1, {"x": None, "y": None}, None, None),
        (None, None, None, None),
    )
    assert encoder(schema, encode_ignore_null_fields=True).encode(rows) == [
        b'{"s":{"y":"b"},"l":[null,{"x":1}],"m":{"k":null}}',
        b'{"a":1,"s":{}}',
        b"{}",
    ]


def test_five_levels_deep():
    """Arrays, maps and structs nest as deep as the schema says."""
    kind = ArrayType(MapType(TEXT, columns(a=ArrayType(columns(b=DateType())))))
    value = [{"k": {"a": [{"b": dt.date(2024, 1, 31)}, None]}}, {}]
    assert written(kind, value) == ['[{"k":{"a":[{"b":"2024-01-31"},null]}},{}]']


@pytest.mark.parametrize(("mode", "text"), [("DROP", '{"a":1}'), ("LITERAL", '{"none":0,"a":1}')])
def test_null_map_keys(mode, text):
    """A NULL key is dropped or written as the literal. Arrow's maps have none; lists of entries may."""
    schema = columns(c=MapType(TEXT, LONG))
    entries = [[{"key": None, "value": 0}, {"key": "a", "value": 1}], None, []]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.int64())]))
    rows = pa.RecordBatch.from_arrays([pa.array(entries, kind)], ["c"])
    options = {"map_null_key_mode": mode, "map_null_key_literal": "none"}
    assert encoder(schema, **options).encode(rows) == [
        f'{{"c":{text}}}'.encode(), b'{"c":null}', b'{"c":{}}',
    ]  # fmt: skip
    with pytest.raises(EncodeError, match=r"map-null-key\.mode") as raised:
        encoder(schema).encode(rows)
    assert raised.value.column == "c"


def test_bytes_of_a_row_do_not_depend_on_its_neighbours():
    """A row has the same bytes alone, in a batch, and in a slice of one."""
    schema = columns(
        a=TEXT, b=DoubleType(), c=ArrayType(TEXT), d=DecimalType(9, 2), m=MapType(TEXT, TEXT)
    )
    rows = batch(
        schema,
        ("plain", 1.0, ["x"], Decimal("1.10"), {"k": "v"}),
        ('esc"\n', nan, ["\0", None], Decimal("100.00"), {'"': "\\"}),
        (None, None, None, None, None),
        ("", 1e300, [], Decimal("0.00"), {}),
    )
    encode = encoder(schema).encode
    alone = [encode(rows.slice(i, 1))[0] for i in range(4)]
    assert encode(rows) == alone
    assert encode(rows.slice(1, 2)) == alone[1:3]
    assert all(isinstance(json.loads(message), dict) for message in alone)


def test_no_rows_and_no_columns():
    """No rows give no messages; a row without columns is an empty object."""
    schema = columns(a=LONG, s=columns(x=ArrayType(TEXT)), m=MapType(TEXT, TEXT))
    assert encoder(schema).encode(batch(schema)) == []
    empty = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert encoder(StructType([])).encode(empty) == [b"{}", b"{}"]


def test_large_and_other_arrow_layouts():
    """Columns are read by what they hold: large strings and non-nullable fields are as good."""
    schema = columns(a=TEXT, l=ArrayType(TEXT))
    kind = pa.list_(pa.field("item", pa.large_string(), nullable=False))
    rows = pa.RecordBatch.from_arrays(
        [pa.array(["x"], pa.large_string()), pa.array([["y"]], kind)], ["a", "l"]
    )
    assert encoder(schema).encode(rows) == [b'{"a":"x","l":["y"]}']


@pytest.mark.parametrize(
    ("kind", "array", "part"),
    [
        (DayTimeIntervalType(), pa.array([1500], pa.duration("us")), "milliseconds"),
        (DateType(), pa.array([2932897], pa.date32()), "year from 0001 to 9999"),
        (TimestampType(), pa.array([-(2**60)], pa.timestamp("us", "UTC")), "year from 0001"),
        (TimestampNTZType(), pa.array([2**60], pa.timestamp("us")), "year from 0001"),
        (
            VariantType(),
            pa.array([{"value": b"\xff", "metadata": b""}]),
            "VARIANT",
        ),
    ],
)
def test_what_cannot_be_written_names_its_column(kind, array, part):
    """A value that JSON cannot carry back is an error that names the column, at every depth."""
    schema = columns(c=kind, s=columns(x=ArrayType(kind)))
    null = pa.nulls(1, pa.struct([("x", pa.list_(array.type))]))
    with pytest.raises(EncodeError, match=part) as raised:
        encoder(schema).encode(pa.RecordBatch.from_arrays([array, null], ["c", "s"]))
    assert raised.value.column == "c"
    nested = pa.array([{"x": [array[0]]}], null.type)
    with pytest.raises(EncodeError, match=part) as raised:
        encoder(schema).encode(
            pa.RecordBatch.from_arrays([pa.nulls(1, array.type), nested], ["c", "s"])
        )
    assert raised.value.column == "s.x[]"


@pytest.mark.parametrize("nest", [("[", "]"), ('{"a":', "}")])
def test_a_variant_may_nest_too_deep_to_be_written(nest):
    """The bound is the same on every Python; beyond it, at any depth, it is an error that names the column."""
    schema = columns(a=LONG, c=VariantType())
    opening, closing = nest
    text = opening * DEEPEST_WRITTEN + "0" + closing * DEEPEST_WRITTEN
    message = f'{{"a":1,"c":{text}}}'.encode()
    assert encoder(schema).encode(batch(schema, (1, variant(text)))) == [message]
    for deeper in (DEEPEST_WRITTEN + 1, 249):
        rows = batch(schema, (1, variant(opening * deeper + "0" + closing * deeper)))
        with pytest.raises(EncodeError, match=r"nested too deep .* more than 200 levels") as raised:
            encoder(schema).encode(rows)
        assert raised.value.column == "c"


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        (
            columns(c=MapType(LONG, TEXT)),
            "JSON format doesn't support non-string as key type of map",
        ),
        (columns(c=YearMonthIntervalType()), "cannot exchange it with Python"),
        (columns(c=LONG).add("c", TEXT), "'c' occurs 2 times"),
    ],
)
def test_types_that_json_cannot_carry(schema, part):
    """A column that JSON cannot carry is refused when compiled."""
    with pytest.raises(SchemaError, match=part):
        encoder(schema)


def test_options_are_checked_when_writing_too():
    """Contradicting options are an error on both sides."""
    with pytest.raises(OptionError, match="shouldn't both be true"):
        encoder(columns(c=LONG), ignore_parse_errors=True, fail_on_missing_field=True)
