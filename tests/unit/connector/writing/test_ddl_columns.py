"""Rows for a table with a DDL: they are written in its order and types, and what does not fit is refused."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.writing.row_encoding import RowEncoder
from pyspark_upsert_kafka.core.errors import EncodeError, SchemaError
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_write
from tests.unit.formats.avro.writing import by_fastavro

DDL = """
CREATE TABLE t (
  id BIGINT, name STRING, score DOUBLE, at TIMESTAMP(3), tags ARRAY<STRING>,
  seen TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'nowhere:9092',
  'key.format' = 'json', 'value.format' = '{value}')
"""
LONG, TEXT = LongType(), StringType()
MOMENT = datetime(2026, 7, 1, 12, 0, 0)  # noqa: DTZ001 - what a clock shows


def encoder(
    *columns: tuple[str, DataType], ddl: str = DDL, value: str = "json", zone: str = "UTC"
) -> RowEncoder:
    """An encoder of rows with these columns."""
    options = write_options({"ddl": ddl.format(value=value)}, format_options)
    schema = StructType([StructField(*column) for column in columns])
    return RowEncoder(table_to_write(schema, options), options, zone)


def rows(**columns: Any) -> pa.RecordBatch:
    """Rows as Spark hands them over."""
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def values(encoder: RowEncoder, batch: pa.RecordBatch) -> list[str | None]:
    """The values of the messages."""
    return [each and each.decode() for each in encoder.encode(batch).messages.values.to_pylist()]


def test_the_order_and_the_names_are_those_of_the_ddl() -> None:
    """Formats that go by place get each column in its place; the case of a name is the DDL's."""
    columns = (("Tags", ArrayType(TEXT)), ("NAME", TEXT), ("ID", LONG))
    batch = rows(Tags=[["x", "y"]], NAME=["a"], ID=[1])

    assert values(encoder(*columns, value="csv"), batch) == ["1,a,,,x;y"]
    (value,) = values(encoder(*columns), batch)
    assert list(json.loads(value or "")) == ["id", "name", "score", "at", "tags"]


def test_a_column_that_the_rows_have_not_is_null() -> None:
    """As in Flink's INSERT with a list of columns."""
    (value,) = values(encoder(("id", LONG)), rows(id=[1]))

    assert json.loads(value or "") == {
        "id": 1,
        "name": None,
        "score": None,
        "at": None,
        "tags": None,
    }


def test_smaller_types_are_widened() -> None:
    """An INT is a BIGINT and a FLOAT a DOUBLE, without a cast."""
    found = encoder(("id", IntegerType()), ("score", FloatType())).encode(
        rows(id=pa.array([1], pa.int32()), score=pa.array([0.5], pa.float32()))
    )

    assert found.messages.keys.to_pylist() == [b'{"id":1}']
    assert json.loads(found.messages.values[0].as_py())["score"] == 0.5


@pytest.mark.parametrize(
    ("zone", "hour"), [("UTC", "10"), ("Europe/Berlin", "12"), ("+05:30", "15")]
)
def test_a_time_without_a_zone_is_that_of_the_session(zone: str, hour: str) -> None:
    """A TIMESTAMP becomes what a clock in the session's zone shows: as a reader with a watermark shows it."""
    at = pa.array([datetime(2026, 7, 1, 10)], pa.timestamp("us", "UTC"))  # noqa: DTZ001
    (value,) = values(
        encoder(("id", LONG), ("at", TimestampType()), zone=zone), rows(id=[1], at=at)
    )

    assert json.loads(value or "")["at"].startswith(f"2026-07-01 {hour}:")


def test_a_virtual_column_is_not_written() -> None:
    """It is for reading only, though the metadata could be set."""
    options = write_options({"ddl": DDL.format(value="json")}, format_options)
    schema = StructType([StructField("id", LONG), StructField("seen", TimestampType())])

    assert table_to_write(schema, options).metadata == ()


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ([("id", LONG), ("nam", TEXT)], "Column 'nam' is not in the DDL, whose columns are: id, name, score"),
        ([("id", TEXT)], "Column 'id' has the type STRING, and in the DDL BIGINT: cast it."),
        ([("id", LONG), ("score", LONG)], "Column 'score' has the type BIGINT, and in the DDL DOUBLE: cast it."),
        ([("id", LONG), ("tags", ArrayType(LONG))], "has the type ARRAY<BIGINT>, and in the DDL ARRAY<STRING>"),
        ([("name", TEXT)], "Column 'id' is NOT NULL in the DDL, or part of its key, and the rows do not have it."),
        ([("id", LONG), ("_change_type", LONG)], "Column '_change_type' shows the metadata 'change-type'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(columns: list[tuple[str, DataType]], sentence: str) -> None:
    """The column is named, before a row is written."""
    with pytest.raises(SchemaError) as error:
        encoder(*columns)

    assert sentence in str(error.value)


NOT_NULL = DDL.replace("name STRING", "name STRING NOT NULL")


def test_not_null() -> None:
    """A column that is NOT NULL is there, and holds no NULL but in a delete."""
    with pytest.raises(
        SchemaError, match="'name' is NOT NULL in the DDL, or part of its key, and the rows"
    ):
        encoder(("id", LONG), ddl=NOT_NULL)
    written = encoder(("id", LONG), ("name", TEXT), ("_change_type", TEXT), ddl=NOT_NULL)
    deleted = rows(id=[1], name=pa.array([None], pa.string()), _change_type=["delete"])
    upserted = rows(id=[1], name=pa.array([None], pa.string()), _change_type=["upsert"])

    assert values(written, deleted) == [None]
    with pytest.raises(
        EncodeError, match="Column 'name' cannot be written: it is NOT NULL, however, a null"
    ):
        written.encode(upserted)


def test_avro_has_no_union_for_what_is_not_null() -> None:
    """The bytes are Flink's, whose schema follows the DDL, within types too."""
    ddl = NOT_NULL.replace(
        "score DOUBLE, at TIMESTAMP(3), tags ARRAY<STRING>", "tags ARRAY<STRING NOT NULL>"
    )
    written = encoder(
        ("id", LONG), ("name", TEXT), ("tags", ArrayType(TEXT)), ddl=ddl, value="avro"
    )

    (value,) = written.encode(rows(id=[1], name=["a"], tags=[["x"]])).messages.values.to_pylist()
    tags = by_fastavro(["null", {"type": "array", "items": "string"}], ["x"])

    assert value == b"\x02" + b"\x02a" + tags[0]
    with pytest.raises(EncodeError, match="tags"):
        written.encode(rows(id=[1], name=["a"], tags=pa.array([[None]], pa.list_(pa.string()))))
