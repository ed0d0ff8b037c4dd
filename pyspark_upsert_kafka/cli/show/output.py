"""Rows as a table, as JSON objects or as CSV, on standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

import polars as pl
import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.cli.show.spelling import Spelling
from pyspark_upsert_kafka.cli.show.text_table import text_table

_PIECE = 32 * 1024
"""Characters; half of what a pipe holds."""


class Output(Protocol):
    """Where rows go."""

    def __init__(self, schema: StructType) -> None: ...

    def write(self, rows: pa.RecordBatch) -> None:
        """Writes rows."""

    def end(self, note: str = "") -> None:
        """Writes what is left, and where people read it, a note."""


def output_named(name: str, schema: StructType) -> Output:
    """The output for a value of ``--output``."""
    kinds: dict[str, type[Output]] = {"table": TableOutput, "json": JsonOutput, "csv": CsvOutput}
    return kinds[name](schema)


class TableOutput:
    """A table with borders; it is written at the end, since only then the widths of columns are known."""

    def __init__(self, schema: StructType) -> None:
        self._names, self._spelling = schema.names, Spelling(schema)
        self._cells: list[list[pl.Series]] = []

    def write(self, rows: pa.RecordBatch) -> None:
        """Keeps the rows."""
        self._cells.append(self._spelling.cells(rows))

    def end(self, note: str = "") -> None:
        """Writes the table and the note."""
        parts: Sequence[Sequence[pl.Series]] = self._cells or [
            [pl.Series([], dtype=pl.String)] * len(self._names)
        ]
        columns = [pl.concat(column).to_list() for column in zip(*parts, strict=True)]
        sys.stdout.writelines(f"{line}\n" for line in text_table(self._names, columns))
        if note:
            sys.stdout.write(f"{note}\n")
        sys.stdout.flush()


class JsonOutput:
    """One JSON object a line."""

    def __init__(self, schema: StructType) -> None:
        self._spelling = Spelling(schema)

    def write(self, rows: pa.RecordBatch) -> None:
        """Writes the rows."""
        _write(f"{self._spelling.objects(rows).str.join(chr(10)).item()}\n")

    def end(self, note: str = "") -> None:  # noqa: ARG002 - a program reads the output
        """Nothing is left."""
        sys.stdout.flush()


class CsvOutput:
    """A header and one record for each row; NULL is empty, an empty text ``""``."""

    def __init__(self, schema: StructType) -> None:
        self._names, self._spelling = schema.names, Spelling(schema)
        self._has_header = False

    def write(self, rows: pa.RecordBatch) -> None:
        """Writes the rows."""
        self._write(self._spelling.cells(rows))

    def end(self, note: str = "") -> None:  # noqa: ARG002 - a program reads the output
        """Writes the header of a table without rows."""
        if not self._has_header:
            self._write([pl.Series([], dtype=pl.String)] * len(self._names))
        sys.stdout.flush()

    def _write(self, cells: Sequence[pl.Series]) -> None:
        columns = [column.alias(name) for column, name in zip(cells, self._names, strict=True)]
        text = pl.DataFrame(columns).write_csv(
            include_header=not self._has_header, quote_style="necessary"
        )
        self._has_header = True
        _write(text)


def _write(text: str) -> None:
    """Writes a text in pieces: Python tells of one large write to a closed pipe nothing."""
    for at in range(0, len(text), _PIECE):
        sys.stdout.write(text[at : at + _PIECE])
        sys.stdout.flush()
