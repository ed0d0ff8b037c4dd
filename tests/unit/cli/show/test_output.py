"""Rows on standard output, as a table, as JSON and as CSV."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

from pyspark_upsert_kafka.cli.show import ALL, row_printing
from pyspark_upsert_kafka.cli.show.row_printing import FirstRows, cell, output_named, text_table
from pyspark_upsert_kafka.cli.show.show_command import limited
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns

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
    ("limit", "ids", "unread"),
    [(ALL, [[1], [2, 3]], 0), (5, [[1], [2, 3]], 0), (3, [[1], [2, 3]], 0), (2, [[1], [2]], 0), (1, [[1]], 1)],
)  # fmt: skip
def test_limits(limit: int, ids: list[list[int]], unread: int) -> None:
    """So many rows are shown at most; no batch is empty, and none is read after the last row."""
    batches = iter(ROWS)
    found = list(limited(batches, limit))

    assert [rows.column("id").to_pylist() for rows in found] == ids
    assert len(list(batches)) == unread


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


def test_first_rows_of_long_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few long rows are cut as many short ones are: memory does not grow with what was read."""
    monkeypatch.setattr(row_printing, "_CUT_AT_BYTES", 10_000)
    rows = FirstRows(["k"], 2)
    start = pa.total_allocated_bytes()
    for batch in range(50):
        columns = [pa.array([99 - batch, 49 - batch]), pa.array(["x" * 1_000] * 2)]
        rows.add(pa.RecordBatch.from_arrays(columns, ["k", "v"]))
        assert pa.total_allocated_bytes() - start < 50_000
    assert pa.Table.from_batches(rows.rows())["k"].to_pylist() == [0, 1]
    assert rows.count == 100


def test_all_rows_of_a_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are given in pieces, since an array of texts holds less than 2 GiB; each row is whole."""
    monkeypatch.setattr(row_printing, "_CUT_AT_BYTES", 10_000)
    rows = FirstRows(["k"], ALL)
    for batch in range(50):
        numbers = [batch, 199 - batch, 50 + batch, 149 - batch]
        columns = [pa.array(numbers), pa.array([str(number) * 100 for number in numbers])]
        rows.add(pa.RecordBatch.from_arrays(columns, ["k", "v"]))
    found = rows.rows()
    table = pa.Table.from_batches(found)

    assert max(piece.nbytes for piece in found) < 20_000
    assert table["k"].to_pylist() == list(range(200))
    assert table["v"].to_pylist() == [str(number) * 100 for number in range(200)]


EVIL = ["\x1b]0;title\x07", "\x9b2J", "\u202ex", "a\r\nb", None, "plain, größe"]
TEXTS = spark_columns("`=name\x1b` STRING, n BIGINT, tags ARRAY<STRING>")


def evil_csv(*, escapes_formulas: bool = False, texts: list[str | None]) -> None:
    """Writes texts as CSV, and negative numbers beside them."""
    rows = [{TEXTS.names[0]: text, "n": -1, "tags": [text]} for text in texts]
    output = output_named("csv", TEXTS, escapes_formulas=escapes_formulas)
    output.write(pa.RecordBatch.from_pylist(rows, arrow_schema(TEXTS)))
    output.end()


def test_csv_does_not_control_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There all that is not printable is escaped, also in the names of columns; a file has the data as it is."""
    evil_csv(texts=EVIL)
    in_file = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    evil_csv(texts=EVIL)
    on_terminal = capsys.readouterr().out

    assert all(text is None or text in in_file for text in EVIL)
    assert all(line.isprintable() for line in on_terminal.split("\n"))
    assert len(on_terminal.split("\n")) == len(EVIL) + 2
    assert r"\x1b]0;title\x07" in on_terminal
    assert "plain, größe" in on_terminal


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_formulas_in_csv(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A text that a spreadsheet would compute gets an apostrophe, if that is wanted; a number does not."""
    evil_csv(texts=[text])
    assert f"'{text}" not in capsys.readouterr().out

    evil_csv(texts=[text, "1=1"], escapes_formulas=True)
    written = capsys.readouterr().out
    assert written.startswith("'=name")
    assert f"'{text}" in written
    assert ",-1," in written
    assert "'1=1" not in written
