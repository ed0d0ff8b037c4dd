"""Rows on standard output, as a table, as JSON and as CSV."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pyspark_upsert_kafka.cli.show.arguments import ALL
from pyspark_upsert_kafka.cli.show.command import limited
from pyspark_upsert_kafka.cli.show.first_rows import FirstRows
from pyspark_upsert_kafka.cli.show.output import output_named
from pyspark_upsert_kafka.cli.show.text_table import cell, text_table
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.spark_ddl import spark_columns

COLUMNS = spark_columns("id BIGINT, `a,b` STRING")
ROWS = [
    pa.RecordBatch.from_pylist([{"id": 1, "a,b": 'x,"y"'}], arrow_schema(COLUMNS)),
    pa.RecordBatch.from_pylist([{"id": 2}, {"id": 3, "a,b": ""}], arrow_schema(COLUMNS)),
]
TABLE = """\
+--+-----+
|id|a,b  |
+--+-----+
|1 |x,"y"|
|2 |NULL |
|3 |     |
+--+-----+
a note
"""
JSON = '{"id":1,"a,b":"x,\\"y\\""}\n{"id":2,"a,b":null}\n{"id":3,"a,b":""}\n'
CSV = 'id,"a,b"\n1,"x,""y"""\n2,\n3,""\n'


@pytest.mark.parametrize(("name", "text"), [("table", TABLE), ("json", JSON), ("csv", CSV)])
def test_outputs(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Batch after batch is written; NULL and the empty text differ; a program gets no note."""
    output = output_named(name, COLUMNS)
    for rows in ROWS:
        output.write(rows)
    output.end("a note")

    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("name", "text"),
    [("table", "+--+---+\n|id|a,b|\n+--+---+\n"), ("json", ""), ("csv", 'id,"a,b"\n')],
)
def test_no_rows(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A table without rows shows its columns."""
    output_named(name, COLUMNS).end()

    assert capsys.readouterr().out == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, "NULL"),
        ("größe 日本 😀", "größe 日本 😀"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\u202e", r"\u202e"),
    ],
)
def test_cells(text: str | None, shown: str) -> None:
    """No value can move the cursor, clear the screen or turn the direction of writing."""
    assert cell(text) == shown


def test_wide_characters_are_aligned() -> None:
    """A character may take two places on a terminal."""
    assert list(text_table(["n"], [["日本", "abcd"]])) == [
        "+----+",
        "|n   |",
        "+----+",
        "|日本|",
        "|abcd|",
        "+----+",
    ]


@pytest.mark.parametrize(
    ("limit", "ids", "is_cut"),
    [(ALL, [1, 2, 3], False), (5, [1, 2, 3], False), (3, [1, 2, 3], False), (2, [1, 2], True), (1, [1], True)],
)  # fmt: skip
def test_limits(limit: int, ids: list[int], is_cut: bool) -> None:
    """So many rows are shown at most, and it is known whether there are more."""
    found = list(limited(iter(ROWS), limit))

    assert [each for rows, _ in found for each in rows.column("id").to_pylist()] == ids
    assert found[-1][1] == is_cut


@pytest.mark.parametrize("limit", [1, 10, 150_000, ALL])
def test_first_rows(limit: int) -> None:
    """The first rows by their key, however many batches they come in."""
    rows = FirstRows(["k", "0"], limit)
    for batch in range(30):
        numbers = (batch + 30 * np.arange(8_000)) * 7919 % 240_000
        columns = [pa.array(numbers // 2), pa.array(numbers % 2)]
        rows.add(pa.RecordBatch.from_arrays(columns, ["k", "0"]))
    found = pa.Table.from_batches(rows.rows())
    count = 240_000 if limit == ALL else limit

    assert rows.count == 240_000
    assert np.array_equal(found["k"].to_numpy() * 2 + found["0"].to_numpy(), np.arange(count))
