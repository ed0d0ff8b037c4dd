"""Rows as text: the forms of output, by the values of ``--output`` (a table, JSON lines, CSV); the first rows of a table by its key."""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, StringType, StructType

from pyspark_upsert_kafka.cli.show import ALL
from pyspark_upsert_kafka.cli.show.value_spelling import Spelling
from pyspark_upsert_kafka.cli.terminal import write_text
from pyspark_upsert_kafka.core.errors import printable

_LINES = 1_000
"""Lines of a table that are written together."""

_FORMULA = r"^[=+\-@\t\r]"
"""How a text begins that a spreadsheet takes for a formula."""

_NOT_ASCII_TEXT = r"[^ -~]"

_BEYOND_ASCII = re.compile("[\x7f-\U0010ffff]")


NULL = "NULL"


class Output(Protocol):
    """A form in which rows are written to standard output."""

    def __init__(self, schema: StructType) -> None: ...

    def write(self, rows: pa.RecordBatch) -> None:
        """Writes rows."""

    def end(self, note: str = "") -> None:
        """Writes what is left; a table for people ends with the note."""


def output_named(name: str, schema: StructType, *, escapes_formulas: bool = False) -> Output:
    """The form of rows that a value of ``--output`` names.

    Args:
        name: The value.
        schema: The columns.
        escapes_formulas: Whether texts in CSV that a spreadsheet would compute begin with an apostrophe.
    """
    if name == "csv":
        return CsvOutput(schema, escapes_formulas=escapes_formulas)
    kinds: dict[str, type[Output]] = {"table": TableOutput, "json": JsonOutput}
    return kinds[name](schema)


def write_numbers(output: str, numbers: Mapping[str, int]) -> None:
    """Writes some numbers under their names, in the form that a value of ``--output`` names."""
    if output == "json":
        write_text(f"{json.dumps(dict(numbers))}\n")
    elif output == "csv":
        write_text(f"{','.join(numbers)}\n{','.join(map(str, numbers.values()))}\n")
    else:
        for name, number in numbers.items():
            write_text(f"{name.replace('_', ' '):<12}  {number:>13,}\n")


class TableOutput:
    """A table with borders; it is written at the end, when the widths of its columns are known."""

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
        lines = chain(text_table(self._names, columns), [note] if note else [])
        encoding = sys.stdout.encoding
        while some := list(islice(lines, _LINES)):
            text = "".join(f"{line}\n" for line in some)
            write_text(text.encode(encoding, "backslashreplace").decode(encoding))


class JsonOutput:
    """One JSON object a line."""

    def __init__(self, schema: StructType) -> None:
        self._spelling = Spelling(schema)

    def write(self, rows: pa.RecordBatch) -> None:
        """Writes the rows."""
        text = f"{self._spelling.objects(rows).str.join(chr(10)).item()}\n"
        all_letters = _has_all_letters(sys.stdout.encoding)
        if sys.stdout.isatty() or not all_letters:
            text = json_escaped(text, keep_printable=all_letters)
        write_text(text)

    def end(self, note: str = "") -> None:
        """Nothing is left."""


class CsvOutput:
    """A header and one record for each row; NULL is empty, an empty text ``""``.

    On a terminal, characters that control it are escaped.

    Args:
        schema: The columns.
        escapes_formulas: Whether texts that a spreadsheet would compute begin with an apostrophe.
    """

    def __init__(self, schema: StructType, *, escapes_formulas: bool = False) -> None:
        self._names, self._spelling = schema.names, Spelling(schema)
        self._has_header = False
        self._texts = [
            escapes_formulas and isinstance(field.dataType, StringType | BinaryType)
            for field in schema
        ]
        if escapes_formulas:
            self._names = [without_formula(name) for name in self._names]
        self._is_terminal = sys.stdout.isatty()
        if self._is_terminal:
            self._names = [printable(name) for name in self._names]

    def write(self, rows: pa.RecordBatch) -> None:
        """Writes the rows."""
        cells = zip(self._spelling.cells(rows), self._texts, strict=True)
        self._write([self._safe(column, is_text=is_text) for column, is_text in cells])

    def _safe(self, column: pl.Series, *, is_text: bool) -> pl.Series:
        if is_text:
            column = column.str.replace(_FORMULA, "'$0")
        if self._is_terminal and column.str.contains(_NOT_ASCII_TEXT).any():
            column = pl.Series([text and printable(text) for text in column], dtype=pl.String)
        return column

    def end(self, note: str = "") -> None:  # noqa: ARG002 - a program reads the output
        """Writes the header of a table without rows."""
        if not self._has_header:
            self._write([pl.Series([], dtype=pl.String)] * len(self._names))

    def _write(self, cells: Sequence[pl.Series]) -> None:
        columns = [column.alias(name) for column, name in zip(cells, self._names, strict=True)]
        text = pl.DataFrame(columns).write_csv(
            include_header=not self._has_header, quote_style="necessary"
        )
        self._has_header = True
        write_text(text)


def without_formula(text: str) -> str:
    """The text, behind an apostrophe if a spreadsheet would compute it.

    >>> without_formula("=1+1"), without_formula("1+1")
    ("'=1+1", '1+1')
    """
    return re.sub(_FORMULA, r"'\g<0>", text)


def json_escaped(text: str, *, keep_printable: bool) -> str:
    r"""JSON in which characters that control a terminal, or all that are not ASCII, are escaped.

    >>> json_escaped('"\u00e9\u202e"', keep_printable=True)
    '"é\\u202e"'
    >>> json_escaped('"\u00e9\u202e"', keep_printable=False)
    '"\\u00e9\\u202e"'
    """

    def spelt(found: re.Match[str]) -> str:
        if keep_printable and found[0].isprintable():
            return found[0]
        return re.sub("....", r"\\u\g<0>", found[0].encode("utf-16-be").hex())

    return _BEYOND_ASCII.sub(spelt, text)


def _has_all_letters(encoding: str) -> bool:
    return codecs.lookup(encoding).name.startswith("utf")


def text_table(names: Sequence[str], columns: Sequence[Sequence[str | None]]) -> Iterator[str]:
    """The lines of a table.

    >>> print(*text_table(["id", "name"], [["1", "20"], ["Ada", None]]), sep=chr(10))
    +--+----+
    |id|name|
    +--+----+
    |1 |Ada |
    |20|NULL|
    +--+----+
    """
    titled = [[cell(name), *map(cell, column)] for name, column in zip(names, columns, strict=True)]
    padded = [_padded(column) for column in titled]
    line = f"+{'+'.join('-' * _width(column[0]) for column in padded)}+"
    header, *rows = (f"|{'|'.join(row)}|" for row in zip(*padded, strict=True))
    yield line
    yield header
    yield line
    yield from rows
    if rows:
        yield line


def cell(text: str | None) -> str:
    r"""What is shown of a value; characters that control a terminal are escaped.

    >>> cell("a" + chr(27) + "[2J"), cell(None)
    ('a\\x1b[2J', 'NULL')
    """
    return NULL if text is None else printable(text)


def _padded(texts: Sequence[str]) -> list[str]:
    widths = [_width(text) for text in texts]
    widest = max(widths)
    return [text + " " * (widest - width) for text, width in zip(texts, widths, strict=True)]


def _width(text: str) -> int:
    """How many columns of a terminal it takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


_CUT_AT = 100_000
"""The number of rows at which those beyond the limit are dropped."""

_CUT_AT_BYTES = 64 * 1024 * 1024
"""The memory at which they are dropped, too: a column of text holds less than 2 GiB."""


class FirstRows:
    """Gathers rows and keeps those that come first by their key.

    Args:
        key: The columns of the key.
        limit: How many rows at most, or ALL.
    """

    def __init__(self, key: Sequence[str], limit: int) -> None:
        self._order = [(str(at), "ascending") for at in range(len(key))]
        self._key = list(key)
        self.limit = limit
        self._batches: list[pa.RecordBatch] = []
        self._kept = 0
        self._bytes = self._kept_bytes = 0
        self.count = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds rows."""
        self._batches.append(rows)
        self._kept += rows.num_rows
        self._bytes += rows.nbytes
        self.count += rows.num_rows
        if self.limit != ALL and (
            self._kept > _CUT_AT + self.limit or self._bytes > _CUT_AT_BYTES + self._kept_bytes
        ):
            self._cut()

    def rows(self) -> list[pa.RecordBatch]:
        """The first rows, in the order of their keys."""
        if self._batches:
            self._cut()
        return self._batches

    def _cut(self) -> None:
        table = pa.Table.from_batches(self._batches)
        # Named by their place: a key column may have any name.
        keys = table.select(self._key).rename_columns([name for name, _ in self._order])
        order = pc.sort_indices(keys, sort_keys=self._order)
        first = order if self.limit == ALL else order[: self.limit]
        self._batches = list(_taken(self._batches, first.cast("int64").to_numpy()))
        self._kept = len(first)
        self._bytes = self._kept_bytes = sum(rows.nbytes for rows in self._batches)


def _taken(batches: Sequence[pa.RecordBatch], places: np.ndarray) -> Iterator[pa.RecordBatch]:
    """The rows at these places of all batches, in this order.

    Arrow's own ``take`` puts all batches into one first, and a column of text holds less than 2 GiB.
    """
    begins = np.cumsum([0, *(batch.num_rows for batch in batches)])
    size = sum(batch.nbytes for batch in batches)
    at_once = max(1, _CUT_AT_BYTES * int(begins[-1]) // max(1, size))
    for at in range(0, len(places), at_once):
        wanted = places[at : at + at_once]
        ordered = np.sort(wanted)
        ends = np.searchsorted(ordered, begins)
        parts = [
            batch.take(pa.array(ordered[first:end] - begin))
            for batch, begin, first, end in zip(batches, begins, ends, ends[1:], strict=False)
            if first < end
        ]
        together = pa.Table.from_batches(parts).combine_chunks()
        yield from together.take(pa.array(np.searchsorted(ordered, wanted))).to_batches()
