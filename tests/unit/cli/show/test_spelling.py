"""Values as text: the spellings of docs/show.md."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyspark_upsert_kafka.cli.show.row_printing import Spelling
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns

NOON = datetime.fromisoformat("2026-01-31T12:00:00")

VALUES: list[tuple[str, Any, str, str | None]] = [
    ("BOOLEAN", True, "true", "true"),
    ("INT", -7, "-7", "-7"),
    ("BIGINT", 2**63 - 1, "9223372036854775807", "9223372036854775807"),
    ("DOUBLE", 12.5, "12.5", "12.5"),
    ("DOUBLE", 1e20, "1.0E20", "1.0E20"),
    ("DOUBLE", float("nan"), '"NaN"', "NaN"),
    ("FLOAT", float("-inf"), '"-Infinity"', "-Infinity"),
    ("DECIMAL(10, 2)", Decimal("100.00"), "100.00", "100.00"),
    ("STRING", 'a "b"\n', r'"a \"b\"\n"', 'a "b"\n'),
    ("STRING", "", '""', ""),
    ("STRING", "null", '"null"', "null"),
    ("BINARY", b"\x00\x01", '"AAE="', "AAE="),
    ("DATE", date(2026, 1, 31), '"2026-01-31"', "2026-01-31"),
    ("TIMESTAMP", datetime(2026, 1, 31, 12, tzinfo=timezone.utc), '"2026-01-31T12:00:00Z"', "2026-01-31T12:00:00Z"),
    ("TIMESTAMP_NTZ", NOON + timedelta(microseconds=1500), '"2026-01-31T12:00:00.0015"', "2026-01-31T12:00:00.0015"),
    ("INTERVAL DAY TO SECOND", timedelta(microseconds=1_500_250), "1500.250", "1500.250"),
    ("INTERVAL DAY TO SECOND", timedelta(days=-1), "-86400000.000", "-86400000.000"),
    ("ARRAY<INT>", [1, None], "[1,null]", "[1,null]"),
    ("ARRAY<INTERVAL HOUR>", [None, timedelta(hours=1)], "[null,3600000.000]", "[null,3600000.000]"),
    ("MAP<STRING, INT>", [("a", 1)], '{"a":1}', '{"a":1}'),
    ("MAP<INT, STRING>", [(1, "a"), (2, None)], '{"1":"a","2":null}', '{"1":"a","2":null}'),
    ("MAP<DATE, MAP<BOOLEAN, INT>>", [(date(2026, 1, 1), [(True, 1)])], '{"2026-01-01":{"true":1}}',
     '{"2026-01-01":{"true":1}}'),
    ("STRUCT<x: INT, y: INTERVAL DAY>", {"x": 1, "y": None}, '{"x":1,"y":null}', '{"x":1,"y":null}'),
    ("VARIANT", {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}, "7", "7"),
    ("INT", None, "null", None),
    ("MAP<INT, INT>", None, "null", None),
    ("STRUCT<y: INTERVAL DAY>", None, "null", None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "in_json", "in_cell"), VALUES)
def test_spellings(kind: str, value: Any, in_json: str, in_cell: str | None) -> None:
    """Each type has one spelling in JSON, and in cells the same without quotes."""
    columns = spark_columns(f"`a b` {kind}")
    rows = pa.RecordBatch.from_arrays(
        [pa.array([value], arrow_schema(columns).field(0).type)], schema=arrow_schema(columns)
    )
    spelling = Spelling(columns)

    assert spelling.objects(rows).to_list() == [f'{{"a b":{in_json}}}']
    assert [cells.to_list() for cells in spelling.cells(rows)] == [[in_cell]]


def test_some_rows_of_many() -> None:
    """A slice of a batch shows its own rows."""
    columns = spark_columns("m MAP<INT, STRING>, a ARRAY<INTERVAL DAY>, s STRUCT<i: INTERVAL DAY>")
    rows = [
        {"m": [(at, "x")] * at, "a": [timedelta(days=at)] * at, "s": {"i": timedelta(days=at)}}
        for at in range(4)
    ]
    rows[2] = {"m": None, "a": None, "s": None}
    whole = pa.RecordBatch.from_pylist(rows, arrow_schema(columns))
    spelling = Spelling(columns)
    all_objects = spelling.objects(whole).to_list()

    assert json.loads(all_objects[1]) == {"m": {"1": "x"}, "a": [864e5], "s": {"i": 864e5}}
    assert json.loads(all_objects[2]) == {"m": None, "a": None, "s": None}
    for begin in range(4):
        assert spelling.objects(whole.slice(begin)).to_list() == all_objects[begin:]
