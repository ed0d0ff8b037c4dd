"""Each semantic type is read as Debezium documents it, by the column and value by value."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    VariantVal,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.cdc.columns_by_schema import (
    LeafConversion,
    field_mapping,
)
from pyspark_upsert_kafka.formats.cdc.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.cdc.semantic_types import (
    SEMANTIC_TYPES,
    default_type,
)
from pyspark_upsert_kafka.formats.decoded_size import Budget
from tests.unit.formats.cdc.columns import arrow_type, converted, spark_type
from tests.unit.formats.cdc.examples import BAD, EXAMPLES, INFINITIES, Example


def shown(example: Example) -> str:
    """An example in a test's id."""
    return f"{example.name.rpartition('.')[2]}-{str(example.sent)[:40]}-{example.column}"


def value_by_value(schema: ConnectSchema, values: list[Any], wanted: DataType) -> Any:
    """What a column becomes without its column path."""
    mapping = field_mapping(schema, wanted, "d")
    convert = mapping.convert
    assert isinstance(convert, LeafConversion)
    alone = replace(convert, column=None)
    return alone(pa.array(values, arrow_type(mapping.physical)), Budget(max(1, len(values))))


@pytest.mark.parametrize("example", EXAMPLES, ids=shown)
def test_a_documented_value_has_its_meaning(example):
    """The value becomes what it means, in a column of exactly the table's type, and NULL stays NULL."""
    wanted = spark_type(example.column)

    column, errors = converted(example.schema, [example.sent, None], wanted)

    assert errors == {}
    assert column.type == arrow_type(wanted)
    assert column.to_pylist() == [example.meant, None]


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.meant != e.sent], ids=shown)
def test_both_paths_read_a_documented_value_alike(example):
    """Value by value, the same comes out."""
    column, errors = value_by_value(
        example.schema, [example.sent, None], spark_type(example.column)
    )

    assert errors == {}
    assert column.to_pylist() == [example.meant, None]


@pytest.mark.parametrize("example", INFINITIES, ids=shown)
def test_moments_beyond_the_year_9999_are_kept(example):
    """Postgres' infinity, and years before Christ, become moments that Spark's types have."""
    column, errors = converted(example.schema, [example.sent], spark_type(example.column))

    number = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    assert (number.to_pylist(), errors) == ([example.meant], {})


@pytest.mark.parametrize(
    ("example", "why"), BAD, ids=lambda e: shown(e) if isinstance(e, Example) else ""
)
def test_a_bad_value_is_an_error_of_its_row(example, why):
    """The error names the field and the value; the other rows are read."""
    column, errors = converted(
        example.schema, [None, example.sent, None], spark_type(example.column)
    )

    assert [*errors] == [1]
    assert errors[1].startswith("field 'd': ")
    assert why in errors[1]
    assert ", got " in errors[1]
    assert column.null_count == 3


@pytest.mark.parametrize(
    ("example", "_"), BAD, ids=lambda e: shown(e) if isinstance(e, Example) else ""
)
def test_a_bad_value_is_null_where_errors_are_ignored(example, _):
    """With ``ignore-parse-errors``, the value is NULL and no error."""
    column, errors = converted(
        example.schema, [example.sent], spark_type(example.column), lenient=True
    )

    assert (column.to_pylist(), errors) == ([None], {})


def test_one_bad_value_costs_no_other():
    """Good values in a column with a bad one are read."""
    schema = ConnectSchema("int64", "io.debezium.time.Timestamp")

    column, errors = converted(schema, [0, 1 << 62, 1], TimestampNTZType())

    assert [value and value.microsecond for value in column.to_pylist()] == [0, None, 1000]
    assert [*errors] == [1]


@pytest.mark.parametrize("name", SEMANTIC_TYPES)
def test_each_type_has_an_example(name):
    """What Debezium documents of each type is tested."""
    assert name in {example.name for example in EXAMPLES}


@pytest.mark.parametrize("name", SEMANTIC_TYPES)
def test_each_type_can_be_read_into_the_column_that_it_means(name):
    """The default column of a type is one of those that can hold it."""
    meant = SEMANTIC_TYPES[name]
    (kind, *_) = sorted(meant.declared_of)
    parts = {"wkb": ConnectSchema("bytes"), "srid": ConnectSchema("int32", optional=True)}
    schema = ConnectSchema(kind, name, {"scale": "2"}, fields=parts if kind == "struct" else {})

    column = default_type(schema)

    assert meant.read(schema, column) is not None


@pytest.mark.parametrize(
    ("name", "type_", "wanted", "fits"),
    [
        (
            "io.debezium.time.MicroTimestamp",
            "int64",
            DateType(),
            "TIMESTAMP_NTZ, TIMESTAMP, TINYINT",
        ),
        ("io.debezium.time.Date", "int32", StringType(), "DATE, TINYINT"),
        ("io.debezium.time.Year", "int32", DateType(), "TINYINT, SMALLINT, INT or BIGINT"),
        ("io.debezium.time.Interval", "string", DayTimeIntervalType(), "STRING"),
        ("io.debezium.time.ZonedTimestamp", "string", TimestampNTZType(), "TIMESTAMP or STRING"),
        ("io.debezium.data.Json", "string", StructType(), "STRING or VARIANT"),
        ("io.debezium.data.EnumSet", "string", LongType(), "STRING or ARRAY<STRING>"),
        ("io.debezium.data.Bits", "bytes", IntegerType(), "BINARY, BIGINT or STRING"),
        (
            "io.debezium.data.VariableScaleDecimal",
            "struct",
            LongType(),
            "DECIMAL, STRING or STRUCT<",
        ),
        ("io.debezium.data.geometry.Point", "struct", StringType(), "STRUCT or BINARY"),
        ("org.apache.kafka.connect.data.Decimal", "bytes", LongType(), "DECIMAL, STRING or BINARY"),
    ],
)
def test_a_column_that_does_not_fit_is_refused(name, type_, wanted, fits):
    """The error names the column, its type, the semantic type, and the types that fit."""
    with pytest.raises(SchemaError) as error:
        field_mapping(ConnectSchema(type_, name, {"scale": "2"}), wanted, "after.d")

    assert str(error.value).startswith(
        f"Column 'after.d' has the type {wanted.simpleString()}, but the schema of the message says {name} ({type_}): "
        f"declare it {fits}"
    )


def test_a_decimal_without_a_scale_is_refused():
    """Connect refuses such a schema too."""
    with pytest.raises(SchemaError, match="BINARY"):
        field_mapping(
            ConnectSchema("bytes", "org.apache.kafka.connect.data.Decimal"), DecimalType(10, 2), "d"
        )


@pytest.mark.parametrize(
    "schema",
    [
        ConnectSchema("int64"),
        ConnectSchema("int64", "com.example.Mine"),
        ConnectSchema("string", "io.debezium.time.MicroTimestamp"),
    ],
)
def test_what_has_no_meaning_of_its_own_is_read_plainly(schema):
    """No name, an unknown one, and one that is declared of another type change nothing."""
    mapping = field_mapping(schema, TimestampType(), "d")

    assert (mapping.physical, mapping.convert) == (TimestampType(), None)


def test_two_billion_bits_are_no_text():
    """A schema that declares them costs no memory."""
    schema = ConnectSchema("bytes", "io.debezium.data.Bits", {"length": "1999999999"})

    column, errors = converted(schema, [b"\x05", b""], StringType())

    reason = "1999999999 bits are too many for STRING: read the column as BINARY"
    assert column.to_pylist() == [None, None]
    assert [reason in str(error) for error in errors.values()] == [True, True]


def test_json_becomes_a_variant():
    """The value that the text holds; the text that stands for an unchanged value is a string."""
    schema = ConnectSchema("string", "io.debezium.data.Json")
    texts = ['{"a": [1, 1.50]}', "[1]", "null", "__debezium_unavailable_value"]

    column, errors = converted(schema, texts, VariantType())

    variants = [VariantVal(each["value"], each["metadata"]) for each in column.to_pylist()]
    assert errors == {}
    assert [each.toJson() for each in variants] == [
        '{"a":[1,1.50]}',
        "[1]",
        "null",
        '"__debezium_unavailable_value"',
    ]


def struct(**fields: ConnectSchema) -> ConnectSchema:
    """The schema of a struct."""
    return ConnectSchema("struct", "server.table.Value", fields=fields)


DATE = ConnectSchema("int32", "io.debezium.time.Date", optional=True)
PLAIN = ConnectSchema("string")


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        (
            struct(d=DATE, s=PLAIN),
            StructType([StructField("d", DateType()), StructField("s", StringType(), False)]),
        ),
        (ConnectSchema("array", items=DATE), ArrayType(DateType())),
        (
            ConnectSchema("array", "io.debezium.data.DoubleVector", items=ConnectSchema("double")),
            spark_type("array<double>"),
        ),
        (ConnectSchema("map", keys=PLAIN, items=DATE), MapType(StringType(), DateType())),
        (
            ConnectSchema(
                "map", keys=ConnectSchema("int16"), items=ConnectSchema("double", optional=True)
            ),
            ArrayType(ArrayType(spark_type("double"))),
        ),
        (ConnectSchema("unknown"), StringType()),
        (ConnectSchema("float32"), spark_type("float")),
        (
            ConnectSchema("bytes", "org.apache.kafka.connect.data.Decimal", {"scale": "2"}),
            DecimalType(38, 2),
        ),
        (
            ConnectSchema(
                "bytes",
                "org.apache.kafka.connect.data.Decimal",
                {"scale": "2", "connect.decimal.precision": "10"},
            ),
            DecimalType(10, 2),
        ),
        (
            ConnectSchema("bytes", "org.apache.kafka.connect.data.Decimal", {"scale": "50"}),
            StringType(),
        ),
    ],
)
def test_the_column_that_a_schema_means(schema, column):
    """The type of a column whose user gives none, nested and plain."""
    found = default_type(schema)

    assert found.simpleString() == column.simpleString()


def numbers(least: int, most: int) -> st.SearchStrategy[list[int | None]]:
    """Columns of numbers, some of them NULL, around the bounds too."""
    some = st.integers(least, most) | st.sampled_from([least, most, 0, -1, 1])
    return st.lists(st.none() | some, max_size=8)


TIMES = [
    ("io.debezium.time.Date", DateType(), 32),
    *(
        (f"io.debezium.time.{name}", wanted, 64)
        for name in ("Timestamp", "MicroTimestamp", "NanoTimestamp")
        for wanted in (TimestampType(), TimestampNTZType())
    ),
    *(
        (f"io.debezium.time.{name}", wanted, 64)
        for name in ("Time", "MicroTime", "NanoTime")
        for wanted in (StringType(), DayTimeIntervalType())
    ),
    ("io.debezium.time.MicroDuration", DayTimeIntervalType(), 64),
    ("io.debezium.time.NanoDuration", DayTimeIntervalType(), 64),
]


def as_listed(column: pa.Array) -> list[Any]:
    """The values of a column; moments and durations as numbers, for Python's own end at the year 9999."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return list(column.to_pylist())


@given(st.data())
@pytest.mark.parametrize(("name", "wanted", "bits"), TIMES)
def test_columns_of_numbers_are_read_as_their_values_are(name, wanted, bits, data):
    """The column path gives what reading value by value gives, errors included."""
    values = data.draw(numbers(-(1 << bits - 1), (1 << bits - 1) - 1))
    schema = ConnectSchema(f"int{bits}", name)

    column, errors = converted(schema, values, wanted)
    expected, expected_errors = value_by_value(schema, values, wanted)

    assert as_listed(column) == as_listed(expected)
    assert errors == expected_errors


unscaled = st.binary(max_size=20) | st.integers(-(10**38), 10**38).map(
    lambda number: number.to_bytes(17, "big", signed=True).lstrip(b"\0") if number > 0 else b"\xff"
)


@given(
    st.lists(st.none() | unscaled, max_size=6),
    st.integers(-3, 40),
    st.sampled_from(["decimal(38,0)", "decimal(38,38)", "decimal(10,2)", "decimal(1,0)", "string"]),
)
def test_columns_of_decimals_are_read_as_their_values_are(values, scale, column):
    """Numbers of any length and scale, rounded where they must be."""
    schema = ConnectSchema("bytes", "org.apache.kafka.connect.data.Decimal", {"scale": str(scale)})
    wanted = spark_type(column)

    found, errors = converted(schema, values, wanted)
    expected, expected_errors = value_by_value(schema, values, wanted)

    assert (found.to_pylist(), errors) == (expected.to_pylist(), expected_errors)


@given(
    st.lists(
        st.none() | st.fixed_dictionaries({"scale": st.integers(-1, 5), "value": unscaled}),
        max_size=8,
    ),
    st.sampled_from(["decimal(38,18)", "decimal(10,2)", "string"]),
)
def test_columns_of_variable_decimals_are_read_as_their_values_are(values, column):
    """Each number by its own scale, in its own place."""
    schema = ConnectSchema("struct", "io.debezium.data.VariableScaleDecimal")
    wanted = spark_type(column)

    found, errors = converted(schema, values, wanted)
    expected, expected_errors = value_by_value(schema, values, wanted)

    assert (found.to_pylist(), errors) == (expected.to_pylist(), expected_errors)


@given(
    st.lists(st.none() | st.binary(max_size=18), min_size=1, max_size=8),
    st.integers(0, 3),
    st.data(),
)
def test_parts_of_columns_are_read_as_themselves(values, scale, data):
    """A slice of a column, which begins within buffers, gives the slice of its values."""
    start = data.draw(st.integers(0, len(values) - 1))
    schema = ConnectSchema("bytes", "org.apache.kafka.connect.data.Decimal", {"scale": str(scale)})
    convert = field_mapping(schema, DecimalType(38, 3), "d").convert
    assert convert is not None

    part, _ = convert(pa.array(values, pa.binary())[start:], Budget(1))
    alone, _ = convert(pa.array(values[start:], pa.binary()), Budget(1))

    assert part.to_pylist() == alone.to_pylist()


TEXTS = st.sampled_from(
    [
        "2011-12-03T10:15:30.030431+01:00",
        "2011-12-03T10:15:30.123456789Z",
        "2011-12-03T10:15:30Z",
        "2011-12-03T10:15Z",
        "2011-12-03 10:15:30Z",
        "2011-12-03T10:15:30",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59.999999-01:00",
        "+10000-01-01T00:00:00Z",
        "-0001-02-29T00:00:00Z",
        "+999999999-12-31T00:00:00Z",
        "infinity",
        "2005-05-12Z",
        "2005-05-12",
        "2005-02-30Z",
        "-2005-02-28Z",
        "0000-01-01Z",
        "1",
        "",
        "a,b",
        "Z",
    ]
)


@given(st.lists(st.none() | TEXTS, max_size=5))
@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("time.ZonedTimestamp", "timestamp"),
        ("time.IsoTimestamp", "timestamp_ntz"),
        ("time.IsoDate", "date"),
        ("data.EnumSet", "array<string>"),
        ("data.IsoTimestamp", "timestamp"),
    ],
)
def test_columns_of_texts_are_read_as_their_values_are(name, column, values):
    """Good, odd and bad texts, whichever stand together."""
    is_bytes = name.startswith("data.Iso")
    schema = ConnectSchema("bytes" if is_bytes else "string", f"io.debezium.{name}")
    sent = [each.encode() if is_bytes and each is not None else each for each in values]
    wanted = spark_type(column)

    found, errors = converted(schema, sent, wanted)
    expected, expected_errors = value_by_value(schema, sent, wanted)

    assert as_listed(found) == as_listed(expected)
    assert errors == expected_errors


@pytest.mark.parametrize("count", [1_000, 1_001, 4_003])
@pytest.mark.parametrize("first", ["00", "7f", "80", "ff"])
def test_decimals_of_thousands_of_digits(first, count):
    """They are put together of parts, without losing a digit."""
    data = bytes.fromhex(first) + bytes(at % 251 for at in range(1, count))
    schema = ConnectSchema("struct", "io.debezium.data.VariableScaleDecimal")

    column, errors = converted(schema, [{"scale": 0, "value": data}], StringType())

    assert errors == {}
    assert Decimal(column[0].as_py()) == Decimal(int.from_bytes(data, "big", signed=True))
