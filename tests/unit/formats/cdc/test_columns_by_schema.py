"""Rows of a plain decoder become rows of the table, nested fields and errors included."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.cdc.columns_by_schema import RowMapping, row_mapping
from pyspark_upsert_kafka.formats.cdc.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.codec import Decoded
from tests.unit.formats.listed import good_rows

DATE = ConnectSchema("string", "io.debezium.time.IsoDate", optional=True)
DECIMAL = ConnectSchema("bytes", "org.apache.kafka.connect.data.Decimal", {"scale": "2"})


def struct(**fields: ConnectSchema) -> ConnectSchema:
    """The schema of a struct."""
    return ConnectSchema("struct", fields=fields)


def applied(mapping: RowMapping, rows: list[dict], errors: dict[int, str] | None = None) -> Decoded:
    """What becomes of the rows of a plain decoder, beside messages that it could not read."""
    errors, left = errors or {}, iter(rows)
    every = [{} if at in errors else next(left) for at in range(len(rows) + len(errors))]
    batch = pa.RecordBatch.from_pylist(every, schema=arrow_schema(mapping.physical))
    return mapping.apply(Decoded(batch, errors))


def test_columns_without_a_meaning_are_left_to_the_plain_decoder():
    """A column that the schema does not have, and one of a plain type, are read as they are."""
    columns = StructType([StructField("id", LongType()), StructField("later", StringType())])

    mapping = row_mapping(struct(id=ConnectSchema("int64")), columns, lenient=False)

    assert mapping.physical == columns
    assert dict(mapping.conversions) == {}


def test_without_a_schema_all_columns_are_left_to_the_plain_decoder():
    """A message may carry the schema ``null``."""
    columns = StructType([StructField("d", DateType())])

    assert row_mapping(None, columns, lenient=False).physical == columns


NESTED = struct(
    id=ConnectSchema("int32"),
    after=struct(
        d=DATE,
        many=ConnectSchema("array", items=DATE),
        named=ConnectSchema("map", keys=ConnectSchema("string"), items=DECIMAL),
        lines=ConnectSchema("array", items=struct(price=DECIMAL)),
    ),
)
COLUMNS = StructType(
    [
        StructField("id", IntegerType(), nullable=False),
        StructField(
            "after",
            StructType(
                [
                    StructField("d", DateType(), nullable=False),
                    StructField("many", ArrayType(DateType(), containsNull=False)),
                    StructField(
                        "named", MapType(StringType(), DecimalType(10, 2), valueContainsNull=False)
                    ),
                    StructField(
                        "lines", ArrayType(StructType([StructField("price", DecimalType(10, 2))]))
                    ),
                ]
            ),
        ),
    ]
)


def test_nested_fields_are_converted_in_exactly_the_tables_type():
    """Fields of structs, items of arrays and values of maps, also below arrays; NULL and empty ones stay."""
    mapping = row_mapping(NESTED, COLUMNS, lenient=False)
    full = {
        "d": "2005-05-12Z",
        "many": ["1970-01-01Z", "1970-01-02Z"],
        "named": [("a", b"\x01")],
        "lines": [{"price": b"\x04\xd2"}, None, {"price": None}],
    }
    bare = {"d": "2005-05-12Z", "many": [], "named": None, "lines": None}

    found = applied(
        mapping, [{"id": 1, "after": full}, {"id": 2, "after": None}, {"id": 3, "after": bare}]
    )

    assert found.errors == {}
    assert found.rows.schema == arrow_schema(COLUMNS)
    assert found.rows.column("after").to_pylist() == [
        {
            "d": date(2005, 5, 12),
            "many": [date(1970, 1, 1), date(1970, 1, 2)],
            "named": [("a", Decimal("0.01"))],
            "lines": [{"price": Decimal("12.34")}, None, {"price": None}],
        },
        None,
        {"d": date(2005, 5, 12), "many": [], "named": None, "lines": None},
    ]


def test_a_bad_value_drops_its_row_and_is_the_error_of_its_message():
    """The error's index is that of the message: those that the plain decoder could not read are counted."""
    mapping = row_mapping(NESTED, COLUMNS, lenient=False)
    good = {"d": "1970-01-01Z", "many": None, "named": None, "lines": None}
    rows = [
        {"id": 1, "after": good},
        {"id": 2, "after": {**good, "many": ["1970-01-01Z", "never"]}},
        {"id": 3, "after": {**good, "lines": [{"price": b"\x7f" * 16}]}},
        {"id": 4, "after": {**good, "d": "never"}},
    ]

    found = applied(mapping, rows, {0: "not JSON", 3: "not JSON"})

    assert good_rows(found).column("id").to_pylist() == [1]
    assert {at: why.partition(":")[0] for at, why in found.errors.items()} == {
        0: "not JSON",
        2: "field 'after.many[]'",
        3: "not JSON",
        4: "field 'after.lines[].price'",
        5: "field 'after.d'",
    }


def test_values_under_a_null_are_no_errors():
    """A parser may leave anything in a struct or an array that is NULL."""
    mapping = row_mapping(NESTED, COLUMNS, lenient=False)
    kind = arrow_schema(mapping.physical).field("after").type
    garbage = pa.array([{"d": "never", "many": ["never"], "named": None, "lines": None}], kind)
    nulls = pa.StructArray.from_arrays(
        [garbage.field(at) for at in range(kind.num_fields)],
        fields=list(kind),
        mask=pa.array([True]),
    )
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1], pa.int32()), nulls], schema=arrow_schema(mapping.physical)
    )

    found = mapping.apply(Decoded(batch))

    assert (found.errors, found.rows.column("after").to_pylist()) == ({}, [None])


def test_where_errors_are_ignored_a_bad_value_is_null_or_its_message_is_skipped():
    """NULL where the column may be NULL; a NOT NULL one makes the message one that is skipped."""
    columns = StructType(
        [StructField("d", DateType()), StructField("must", DateType(), nullable=False)]
    )
    mapping = row_mapping(struct(d=DATE, must=DATE), columns, lenient=True)

    found = applied(
        mapping,
        [{"d": "never", "must": "1970-01-01Z"}, {"d": "1970-01-01Z", "must": "never"}],
    )

    assert good_rows(found).to_pylist() == [{"d": None, "must": date(1970, 1, 1)}]
    assert (found.errors, found.skipped) == ({}, {1})


def test_parts_of_a_batch_are_converted_as_themselves():
    """A slice of rows gives the slice of the table's rows."""
    mapping = row_mapping(NESTED, COLUMNS, lenient=False)
    rows = [
        {
            "id": at,
            "after": {
                "d": f"1970-01-0{at}Z",
                "many": [f"1970-01-0{at}Z"] * at,
                "named": [("k", bytes([at]))],
                "lines": [{"price": bytes([at])}],
            },
        }
        for at in range(1, 9)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(mapping.physical))

    whole = mapping.apply(Decoded(batch)).rows
    part = mapping.apply(Decoded(batch[3:6])).rows

    assert part.to_pylist() == whole.to_pylist()[3:6]


def test_no_rows_are_no_rows():
    """A batch without rows has the table's columns."""
    found = applied(row_mapping(NESTED, COLUMNS, lenient=False), [])

    assert (found.rows.num_rows, found.rows.schema) == (0, arrow_schema(COLUMNS))
