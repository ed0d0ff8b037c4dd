"""Avro messages of Kafka Connect become rows by the types that their schema in the registry names."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats import avro_confluent
from pyspark_upsert_kafka.formats.cdc.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.cdc.debezium_avro import FORMAT
from pyspark_upsert_kafka.formats.cdc.semantic_types import SEMANTIC_TYPES
from pyspark_upsert_kafka.formats.codec import Decoded
from tests.laws import law
from tests.unit.formats.cdc.avro_converter import avro_schema, message
from tests.unit.formats.cdc.columns import arrow_type, spark_type
from tests.unit.formats.cdc.examples import BAD, EXAMPLES, INFINITIES, Example
from tests.unit.formats.listed import good_rows
from tests.unit.formats.registry_codecs import PREFIX, Codecs

CODECS, PLAIN = Codecs(FORMAT), Codecs(avro_confluent.FORMAT)
ROW_PATH, VECTORISED = 1, 100
PATHS = pytest.mark.parametrize("copies", [ROW_PATH, VECTORISED], ids=["rows", "columns"])

_PARTS = {
    "VariableScaleDecimal": {"scale": "int32", "value": "bytes"},
    "Point": {"wkb": "bytes"},
    "Geometry": {"wkb": "bytes"},
    "Geography": {"wkb": "bytes"},
}


def shown(example: Any) -> str:
    """An example in a test's id."""
    if not isinstance(example, Example):
        return ""
    return f"{example.name.rpartition('.')[2]}-{str(example.sent)[:40]}-{example.column}"


def schema_of(example: Example) -> ConnectSchema:
    """The schema of a field of such a value, which may be null, and so may be the parts of a struct."""
    parts = _PARTS.get(example.name.rpartition(".")[2], {}) if example.type == "struct" else {}
    fields = {name: ConnectSchema(kind, optional=True) for name, kind in parts.items()}
    return replace(example.schema, optional=True, fields=fields)


def record(**fields: ConnectSchema) -> Any:
    """The Avro schema of a row."""
    return avro_schema(ConnectSchema("struct", "shop.public.things.Value", fields=fields))


def read(
    columns: str,
    schema: Any,
    *rows: Any,
    copies: int = 1,
    given: Any = None,
    codecs: Codecs = CODECS,
) -> Decoded:
    """What messages of a schema are decoded to."""
    messages = [message(schema, row, PREFIX) for row in rows] * copies
    reader = None if given is None else json.dumps(given)
    return codecs.read(spark_columns(columns), messages, json.dumps(schema), reader)


@PATHS
@pytest.mark.parametrize("example", EXAMPLES, ids=shown)
def test_a_documented_value_has_its_meaning(example: Example, copies: int) -> None:
    """The value becomes what it means, in exactly the column's type, on both paths; null stays NULL."""
    wanted = spark_type(example.column)

    found = read(
        f"d {example.column}",
        record(d=schema_of(example)),
        {"d": example.sent},
        {"d": None},
        copies=copies,
    )

    assert found.errors == {}
    column = found.rows.column("d")
    assert column.type == arrow_type(wanted)
    assert column.to_pylist() == [example.meant, None] * copies


@PATHS
@pytest.mark.parametrize("example", INFINITIES, ids=shown)
def test_moments_beyond_the_year_9999_are_kept(example: Example, copies: int) -> None:
    """Postgres' infinity, and years before Christ, become moments that Spark's types have."""
    found = read(
        f"d {example.column}", record(d=schema_of(example)), {"d": example.sent}, copies=copies
    )

    kind = "int32" if example.column == "date" else "int64"
    assert found.errors == {}
    assert found.rows.column("d").cast(kind).to_pylist() == [example.meant] * copies


@PATHS
@pytest.mark.parametrize(("example", "why"), BAD, ids=shown)
def test_a_bad_value_is_an_error_of_its_message(example: Example, why: str, copies: int) -> None:
    """The error names the field and the value; the messages around it are read."""
    rows = [{"d": None}, {"d": example.sent}, {"d": None}]

    found = read(f"d {example.column}", record(d=schema_of(example)), *rows, copies=copies)

    assert [*found.errors] == [3 * copy + 1 for copy in range(copies)]
    assert good_rows(found).num_rows == 2 * copies
    for error in found.errors.values():
        assert error.startswith("field 'd': ")
        assert why in error


def test_a_column_that_does_not_fit_is_refused() -> None:
    """The error names the types that fit, as in JSON."""
    schema = record(d=ConnectSchema("int64", "io.debezium.time.MicroTimestamp"))
    with pytest.raises(SchemaError, match=r"MicroTimestamp \(int64\): declare it TIMESTAMP_NTZ"):
        CODECS.decoder(spark_columns("d DATE"), json.dumps(schema))


PLAIN_TYPES = [
    ("long", "TIMESTAMP", 1_529_507_596_945),
    ("long", "TIMESTAMP_NTZ", 1_529_507_596_945),
    ({"type": "long", "logicalType": "timestamp-millis"}, "TIMESTAMP", 1_529_507_596_945),
    ({"type": "long", "logicalType": "timestamp-micros"}, "TIMESTAMP_NTZ", 1_529_507_596_945_104),
    ({"type": "int", "logicalType": "date"}, "DATE", 16321),
    ("int", "DATE", 16321),
    ({"type": "int", "logicalType": "time-millis"}, "INT", 49_020_123),
    ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, "DECIMAL(10,2)", b"\x04\xd2"),
    ({"type": "long", "connect.name": "com.example.Mine"}, "TIMESTAMP", 1_529_507_596_945),
    ({"type": "string", "connect.name": "io.debezium.time.MicroTimestamp"}, "STRING", "a"),
    ({"type": "long", "connect.name": ["io.debezium.time.MicroTimestamp"]}, "TIMESTAMP", 1_529),
    ({"type": "long", "connect.name": {}, "connect.type": {}, "connect.parameters": 3}, "BIGINT", 1),
    (["int", "long", "null"], "BIGINT", 3),
]  # fmt: skip


@PATHS
@pytest.mark.parametrize(("kind", "column", "value"), PLAIN_TYPES, ids=str)
def test_without_a_semantic_name_values_are_read_as_in_flink(
    kind: Any, column: str, value: Any, copies: int
) -> None:
    """As ``avro-confluent`` reads them: a plain long is a number of milliseconds."""
    schema = {"type": "record", "name": "Value", "fields": [{"name": "d", "type": kind}]}

    found = read(f"d {column}", schema, {"d": value}, copies=copies)

    expected = read(f"d {column}", schema, {"d": value}, copies=copies, codecs=PLAIN)
    assert found.errors == expected.errors == {}
    assert found.rows.equals(expected.rows)


@pytest.mark.parametrize("kind", ["int", {"type": "int", "connect.type": "int16"}])
def test_an_int_without_a_semantic_name_is_no_timestamp(kind: Any) -> None:
    """As in ``avro-confluent``; so is a decimal of another scale, which Flink reads wrong."""
    schema = {"type": "record", "name": "Value", "fields": [{"name": "d", "type": kind}]}
    with pytest.raises(SchemaError, match="TIMESTAMP, which cannot hold Avro's int"):
        CODECS.decoder(spark_columns("d TIMESTAMP"), json.dumps(schema))


MICROS = ConnectSchema("int64", "io.debezium.time.MicroTimestamp")
MOMENT = datetime(2018, 6, 20, 15, 13, 16, 945_104)  # noqa: DTZ001 - a TIMESTAMP_NTZ


def test_a_column_finds_its_field_as_in_avro() -> None:
    """Its name may differ in case; if another column has exactly that name, the field is that one's."""
    row = {"Made": 1_529_507_596_945_104}

    found = read("MADE TIMESTAMP_NTZ", record(Made=MICROS), row)
    other = read("MADE TIMESTAMP_NTZ, Made BIGINT", record(Made=MICROS), row)

    assert found.rows.to_pylist() == [{"MADE": MOMENT}]
    assert other.rows.to_pylist() == [{"MADE": None, "Made": 1_529_507_596_945_104}]


def test_a_given_schema_may_know_a_field_by_an_alias() -> None:
    """As after a column was renamed: what the writer's field means, the column has."""
    given = {
        "type": "record",
        "name": "Value",
        "fields": [
            {"name": "made_at", "type": "long", "aliases": ["made"]},
            {"name": "days", "type": ["null", {"type": "array", "items": "int"}], "default": None},
            {"name": "zone", "type": "string", "default": "none"},
        ],
    }
    days = ConnectSchema("array", items=ConnectSchema("int32", "io.debezium.time.Date"))
    row = {"made": 1_529_507_596_945_104, "days": [-1]}

    found = read(
        "made_at TIMESTAMP_NTZ, days ARRAY<DATE>, zone STRING",
        record(made=MICROS, days=days), row, given=given,
    )  # fmt: skip

    assert found.rows.to_pylist() == [
        {"made_at": MOMENT, "days": [date(1969, 12, 31)], "zone": "none"}
    ]


def test_a_given_schema_may_name_the_types_itself() -> None:
    """The schema as the converter registered it: columns may have any type that fits its names."""
    schema = record(at=ConnectSchema("int64", "io.debezium.time.MicroTime", optional=True))

    found = read("at STRING", schema, {"at": 1_000_000}, given=schema)

    assert found.rows.to_pylist() == [{"at": "00:00:01"}]


def test_a_given_schema_that_does_not_fit_is_refused_before_a_message_is_read() -> None:
    """The query is not planned."""
    with pytest.raises(SchemaError, match="declare it STRING, INTERVAL"):
        read(
            "at DATE",
            record(),
            {},
            given=record(at=ConnectSchema("int64", "io.debezium.time.MicroTime")),
        )


@PATHS
def test_types_within_types(copies: int) -> None:
    """Structs, arrays and maps, a type that is named twice, and one that only has Avro's own name."""
    variable = {
        "type": "record",
        "name": "VariableScaleDecimal",
        "namespace": "io.debezium.data",
        "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
    }
    schema = {
        "type": "record",
        "name": "Value",
        "namespace": "shop.things",
        "fields": [
            {"name": "one", "type": ["null", variable]},
            {"name": "two", "type": ["null", "io.debezium.data.VariableScaleDecimal"]},
            {"name": "all", "type": {"type": "map", "values": avro_schema(MICROS)}},
            {"name": "part", "type": record(days=ConnectSchema("array", items=ConnectSchema("int32", "io.debezium.time.Date")))},
        ],
    }  # fmt: skip
    number = {"scale": 2, "value": b"\x04\xd2"}
    row = {
        "one": number,
        "two": number,
        "all": {"a": 1_529_507_596_945_104},
        "part": {"days": [-1]},
    }

    found = read(
        "one DECIMAL(10,2), two STRING, all MAP<STRING, TIMESTAMP>, part STRUCT<days: ARRAY<DATE>>",
        schema, row, copies=copies,
    )  # fmt: skip

    assert found.errors == {}
    assert (
        found.rows.to_pylist()
        == [
            {
                "one": Decimal("12.34"),
                "two": "12.34",
                "all": [("a", MOMENT.replace(tzinfo=timezone.utc))],
                "part": {"days": [date(1969, 12, 31)]},
            }
        ]
        * copies
    )


@PATHS
def test_json_becomes_a_variant(copies: int) -> None:
    """Avro has no type for it, but the schema says that a text is JSON."""
    schema = record(d=ConnectSchema("string", "io.debezium.data.Json", optional=True))

    found = read("d VARIANT", schema, {"d": "[1]"}, {"d": None}, copies=copies)

    assert found.errors == {}
    assert [each is None for each in found.rows.column("d").to_pylist()] == [False, True] * copies


def test_a_variant_of_what_is_no_json_is_refused() -> None:
    """The error is that of Avro."""
    with pytest.raises(SchemaError, match=r"VARIANT \(column 'd'\)"):
        CODECS.decoder(spark_columns("d VARIANT"), json.dumps(record(d=ConnectSchema("string"))))


def test_a_schema_that_is_no_record_is_that_of_the_only_column() -> None:
    """As a key may be of which a transformation took the only field."""
    found = read("made TIMESTAMP_NTZ", avro_schema(MICROS), 1_529_507_596_945_104)

    assert found.rows.to_pylist() == [{"made": MOMENT}]


def test_records_within_themselves_are_no_end() -> None:
    """They have no semantic type, and other fields are read."""
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [
            {"name": "made", "type": avro_schema(MICROS)},
            {"name": "more", "type": ["null", "Tree"]},
        ],
    }

    found = read("made TIMESTAMP_NTZ", tree, {"made": 1_529_507_596_945_104, "more": None})

    assert found.rows.to_pylist() == [{"made": MOMENT}]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "int64", "struct", "2", "-1", "x"]),
    lambda parts: st.lists(parts, max_size=2) | st.dictionaries(st.sampled_from(["scale", "length"]), parts),
    max_leaves=4,
)  # fmt: skip
VALUES = {"int": -7, "long": 1_529_507_596_945, "string": "2005-05-12Z", "bytes": b"\x04\xd2"}
KINDS = st.fixed_dictionaries(
    {"type": st.sampled_from([*VALUES])},
    optional={
        "connect.name": st.sampled_from([*SEMANTIC_TYPES]) | st.sampled_from([*SEMANTIC_TYPES]) | JUNK,
        "connect.type": JUNK,
        "connect.parameters": st.dictionaries(st.sampled_from(["scale", "length"]), JUNK) | JUNK,
    },
)  # fmt: skip
TYPES = st.sampled_from(
    ["BIGINT", "STRING", "DATE", "TIMESTAMP", "DECIMAL(10,2)", "BINARY", "INTERVAL DAY TO SECOND"]
)


@law(300)
@drawn(KINDS, TYPES)
def test_whatever_a_schema_says_is_read_or_refused(kind: Any, column: str) -> None:
    """Both paths give the same row, or the same error."""
    schema = {"type": "record", "name": "Value", "fields": [{"name": "d", "type": kind}]}
    row = {"d": VALUES[kind["type"]]}
    try:
        one = read(f"d {column}", schema, row)
    except SchemaError:
        return

    many = read(f"d {column}", schema, row, copies=VECTORISED)

    assert [*many.errors.values()] == [*one.errors.values()] * VECTORISED
    assert many.rows.to_pylist() == one.rows.to_pylist() * VECTORISED
