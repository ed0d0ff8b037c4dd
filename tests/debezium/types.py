"""What Postgres has becomes what Spark has, by the schemas that Debezium sends; not part of ``make test`` but run by ``make test-debezium``."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.formats.cdc.connect_json import SchemaDecoder, exactly
from pyspark_upsert_kafka.formats.cdc.connect_schema import parse_connect_schema
from pyspark_upsert_kafka.formats.cdc.semantic_types import default_type
from pyspark_upsert_kafka.formats.json import FORMAT
from tests.unit.formats.codec_specs import codec_spec
from tools.debezium.engine import engine
from tools.debezium.postgres import postgres
from tools.recorded_debezium import TOPIC

MOMENT = datetime(2018, 6, 20, 15, 13, 16, 945_104)  # noqa: DTZ001 - a TIMESTAMP has no zone
UTC = timezone.utc

COLUMNS = [
    # name, type in Postgres, value there, type in Spark, value there
    ("id", "INT PRIMARY KEY", "1", "INT", 1),
    ("d", "DATE", "2018-06-20", "DATE", date(2018, 6, 20)),
    ("old", "DATE", "1582-10-15", "DATE", date(1582, 10, 15)),
    ("ts", "TIMESTAMP", "2018-06-20 15:13:16.945104", "TIMESTAMP_NTZ", MOMENT),
    ("ts3", "TIMESTAMP(3)", "2018-06-20 15:13:16.945", "TIMESTAMP_NTZ", MOMENT.replace(microsecond=945_000)),
    ("before", "TIMESTAMP", "1969-12-31 23:59:59.999", "TIMESTAMP_NTZ", datetime(1969, 12, 31, 23, 59, 59, 999_000)),  # noqa: DTZ001
    ("tz", "TIMESTAMPTZ", "2018-06-20 15:13:16.945104+02", "TIMESTAMP", datetime(2018, 6, 20, 13, 13, 16, 945_104, UTC)),
    ("whole", "TIMESTAMPTZ", "2018-06-20 15:13:16+00", "TIMESTAMP", datetime(2018, 6, 20, 15, 13, 16, 0, UTC)),
    ("iv", "INTERVAL", "1 day 02:03:04.005006", "INTERVAL DAY TO SECOND", timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=5006)),
    ("n", "NUMERIC(10,2)", "-12.34", "DECIMAL(10,2)", Decimal("-12.34")),
    ("v", "NUMERIC", "0.00000123", "DECIMAL(38,18)", Decimal("0.00000123").quantize(Decimal(1).scaleb(-18))),
    ("big", "NUMERIC", "12345678901234567890123456789012345678901234567890.5", "STRING", "12345678901234567890123456789012345678901234567890.5"),
    ("m", "MONEY", "12.34", "DECIMAL(19,2)", Decimal("12.34")),
    ("b", "BIT(12)", "000000000101", "STRING", "000000000101"),
    ("bn", "BIT(12)", "000000000101", "BIGINT", 5),
    ("vb", "BIT VARYING(4)", "101", "BINARY", b"\x05"),
    ("j", "JSONB", '{"a": 1}', "STRING", '{"a": 1}'),
    ("x", "XML", "<a>1</a>", "STRING", "<a>1</a>"),
    ("u", "UUID", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "STRING", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("p", "POINT", "(1,2.5)", "STRUCT<x: DOUBLE, y: DOUBLE>", {"x": 1.0, "y": 2.5}),
    ("by", "BYTEA", "\\x0102", "BINARY", b"\1\2"),
    ("arr", "DATE[]", "{2018-06-20,NULL}", "ARRAY<DATE>", [date(2018, 6, 20), None]),
    ("ints", "INT[]", "{1,2}", "ARRAY<INT>", [1, 2]),
    ("r", "REAL", "1.5", "FLOAT", 1.5),
    ("none", "TIMESTAMP", None, "TIMESTAMP_NTZ", None),
]  # fmt: skip
TIMES = [
    ("t", "TIME", "13:37:00.123456", "STRING"),
    ("t3", "TIME(3)", "13:37:00.123", "STRING"),
    ("tz_t", "TIMETZ", "13:37:00.5+02", "STRING"),
]
IN_MILLIS = {"connect"}


@pytest.mark.parametrize(
    "mode",
    [
        "adaptive",
        "adaptive_time_microseconds",
        "connect",
        "isostring",
        "microseconds",
        "nanoseconds",
    ],
)
def test_values_of_postgres_become_those_of_spark(tmp_path: Path, mode: str) -> None:
    """In each ``time.precision.mode``, snapshot and stream alike; ``connect`` sends milliseconds only."""
    listed = [*COLUMNS, *((*each, "") for each in TIMES)]
    columns = ", ".join(f"{name} {kind}" for name, kind, *_ in listed)
    values = ", ".join("NULL" if value is None else f"'{value}'" for _, _, value, *_ in listed)
    insert = f"INSERT INTO customers VALUES ({values});"
    with postgres() as server:
        server.run(f"CREATE TABLE customers ({columns});", insert)
        with engine(server, tmp_path, time_precision_mode=mode) as messages:
            rows = (each for each in messages if each.topic == TOPIC)
            found = [next(rows)]
            server.run(insert.replace("('1',", "('2',"))
            found.append(next(rows))

    decoded = decoder().decode(BytesColumn.of([each.value for each in found]))

    assert decoded.errors == {}
    snapshot, streamed = decoded.rows.column("after").to_pylist()
    expected = {name: value for name, _, _, _, value in COLUMNS}
    if mode in IN_MILLIS:
        expected["ts"] = MOMENT.replace(microsecond=945_000)
    texts = {name: snapshot.pop(name) for name, *_ in TIMES}
    assert snapshot == expected
    assert streamed == {**expected, **texts, "id": 2}
    assert texts == times_in(mode)
    assert default_type(parse_connect_schema(exactly(found[0].value or b"")[0])).simpleString()


def times_in(mode: str) -> dict[str, str]:
    """Times of the day as texts: of Debezium's own texts as they are."""
    end = "Z" if mode == "isostring" else ""
    micros = "13:37:00.123" if mode == "connect" else "13:37:00.123456"
    return {"t": f"{micros}{end}", "t3": f"13:37:00.123{end}", "tz_t": "11:37:00.5Z"}


def decoder() -> SchemaDecoder:
    """Reads the row after a change."""
    row = spark_columns(
        ", ".join(
            f"{name} {kind}" for name, _, _, kind, *_ in [*COLUMNS, *((*e, "") for e in TIMES)]
        )
    )
    envelope = StructType([StructField("after", row)])
    spec: Any = codec_spec(FORMAT, envelope)
    return SchemaDecoder(
        envelope, lambda physical: FORMAT.decoder(replace(spec, schema=physical)), lenient=False
    )


def test_infinity_is_kept(tmp_path: Path) -> None:
    """The moments that Debezium sends for Postgres' infinity are ones that Spark's columns hold."""
    with postgres() as server:
        server.run(
            "CREATE TABLE customers (id INT PRIMARY KEY, ts TIMESTAMP, tz TIMESTAMPTZ);",
            "INSERT INTO customers VALUES (1, 'infinity', 'infinity'), (2, '-infinity', '-infinity');",
        )
        with engine(server, tmp_path) as messages:
            rows = (each.value for each in messages if each.topic == TOPIC)
            found = [next(rows), next(rows)]
    envelope = StructType(
        [StructField("after", spark_columns("id INT, ts TIMESTAMP_NTZ, tz TIMESTAMP"))]
    )
    spec: Any = codec_spec(FORMAT, envelope)

    decoded = SchemaDecoder(
        envelope, lambda physical: FORMAT.decoder(replace(spec, schema=physical)), lenient=False
    ).decode(BytesColumn.of(found))

    assert decoded.errors == {}
    for column in decoded.rows.column("after").flatten()[1:]:
        numbers = column.cast(pa.int64()).to_pylist()
        assert numbers == [9_223_372_036_825_200_000, -9_223_372_036_832_400_000]
