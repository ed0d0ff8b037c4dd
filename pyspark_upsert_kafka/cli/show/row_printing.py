"""Rows as text: the forms of output, by the values of ``--output`` (a table, JSON lines, CSV); the first rows of a table by its key.

Values have the spelling of the ``json`` format, with timestamps in ISO-8601 and decimals in full. Two things that this format cannot
write are written here: keys of a map that are not strings, as text, and an interval, as a number of milliseconds with three digits
after the point.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.cli.show import ALL
from pyspark_upsert_kafka.cli.terminal import write_text
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError, printable
from pyspark_upsert_kafka.formats.decoding import UnreadableError
from pyspark_upsert_kafka.formats.json import JsonSettings
from pyspark_upsert_kafka.formats.json.json_encoder import JsonEncoder
from pyspark_upsert_kafka.formats.json.row_path import row_reader

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
        return _CsvOutput(schema, escapes_formulas=escapes_formulas)
    kinds: dict[str, type[Output]] = {"table": _TableOutput, "json": _JsonOutput}
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


class _TableOutput:
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


class _JsonOutput:
    """One JSON object a line."""

    def __init__(self, schema: StructType) -> None:
        self._spelling = Spelling(schema)

    def write(self, rows: pa.RecordBatch) -> None:
        """Writes the rows."""
        text = f"{self._spelling.objects(rows).str.join(chr(10)).item()}\n"
        all_letters = _has_all_letters(sys.stdout.encoding)
        if sys.stdout.isatty() or not all_letters:
            text = _json_escaped(text, keep_printable=all_letters)
        write_text(text)

    def end(self, note: str = "") -> None:
        """Nothing is left."""


class _CsvOutput:
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
            self._names = [_without_formula(name) for name in self._names]
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


def _without_formula(text: str) -> str:
    """The text, behind an apostrophe if a spreadsheet would compute it.

    >>> _without_formula("=1+1"), _without_formula("1+1")
    ("'=1+1", '1+1')
    """
    return re.sub(_FORMULA, r"'\g<0>", text)


def _json_escaped(text: str, *, keep_printable: bool) -> str:
    r"""JSON in which characters that control a terminal, or all that are not ASCII, are escaped.

    >>> _json_escaped('"\u00e9\u202e"', keep_printable=True)
    '"é\\u202e"'
    >>> _json_escaped('"\u00e9\u202e"', keep_printable=False)
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


_ISO = JsonSettings(
    fail_on_missing_field=False,
    ignore_parse_errors=False,
    timestamp_standard="ISO-8601",
    map_null_key_mode="LITERAL",
    map_null_key_literal="null",
    plain_decimals=True,
    ignore_null_fields=False,
)
"""How JSON is written, and how the values of ``--key`` are read."""

_MILLISECONDS = DecimalType(23, 3)
_BEFORE, _AFTER = len('{"":'), len("}")


class Spelling:
    """Rows as JSON objects, and their values as texts of cells.

    Args:
        schema: The columns of the rows.
    """

    def __init__(self, schema: StructType) -> None:
        self._schema = schema
        self._encoder = JsonEncoder(_encodable_columns(schema), _ISO)

    def objects(self, rows: pa.RecordBatch) -> pl.Series:
        """A JSON object for each row."""
        columns = zip(self._schema, rows.columns, strict=True)
        converted = [_encodable(column, field.dataType) for field, column in columns]
        encoded = self._encoder.encode(pa.RecordBatch.from_arrays(converted, self._schema.names))
        return pl.Series(encoded.cast(pa.large_string()))

    def cells(self, rows: pa.RecordBatch) -> list[pl.Series]:
        """The texts of each column; null = NULL."""
        columns = zip(self._schema, rows.columns, strict=True)
        return [texts(column, field.dataType) for field, column in columns]


def texts(column: pa.Array, kind: DataType) -> pl.Series:
    """The values of a column as text: a string as it is, another simple value as in JSON but without quotes."""
    if isinstance(kind, StringType):
        return pl.Series(column, dtype=pl.String)
    # The encoder of an object with this field alone writes it, between what is cut off here.
    encoder = JsonEncoder(StructType([StructField("", _encodable_type(kind))]), _ISO)
    encoded = encoder.encode(pa.RecordBatch.from_arrays([_encodable(column, kind)], [""]))
    found = pl.Series(encoded.cast(pa.large_string())).str.slice(_BEFORE).str.head(-_AFTER)
    if not isinstance(kind, StructType | ArrayType | MapType | VariantType):
        found = found.str.strip_chars('"')
    valid = pl.Series(column.is_valid())
    return pl.select(pl.when(valid).then(found)).to_series()


def _encodable_columns(columns: StructType) -> StructType:
    fields = [StructField(f.name, _encodable_type(f.dataType), f.nullable) for f in columns]
    return StructType(fields)


def _encodable_type(kind: DataType) -> DataType:
    """The type that the JSON format has for it: an interval is a number of milliseconds."""
    if isinstance(kind, StructType):
        return _encodable_columns(kind)
    if isinstance(kind, ArrayType):
        return ArrayType(_encodable_type(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(StringType(), _encodable_type(kind.valueType), kind.valueContainsNull)
    return _MILLISECONDS if isinstance(kind, DayTimeIntervalType) else kind


def _encodable(array: pa.Array, kind: DataType) -> pa.Array:
    """The values in that type."""
    if _encodable_type(kind) == kind:
        return array
    if isinstance(kind, StructType):
        children = zip(kind, array.flatten(), strict=True)
        fields = [_encodable(child, field.dataType) for field, child in children]
        return pa.StructArray.from_arrays(fields, kind.names, mask=array.is_null())
    if isinstance(kind, ArrayType):
        values = _encodable(array.values, kind.elementType)
        return _around(array, pa.list_(values.type), values)
    if isinstance(kind, MapType):
        keys = texts(array.keys, kind.keyType).to_arrow().cast(pa.string())
        items = _encodable(array.items, kind.valueType)
        entries = pa.StructArray.from_arrays(
            [keys, items],
            fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", items.type)],
        )
        return _around(array, pa.map_(pa.string(), items.type), entries)
    micros = array.cast(pa.duration("us")).cast(pa.int64())
    milliseconds = pc.multiply(micros.cast(pa.decimal128(19, 0)), pa.scalar(Decimal("0.001")))
    return milliseconds.cast(pa.decimal128(23, 3))


def _around(lists: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """The same lists or maps with other values in them."""
    own = lists.buffers()[:2]
    return pa.Array.from_buffers(kind, len(lists), own, offset=lists.offset, children=[values])


_LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false")


def value_of(field: StructField, text: str) -> pa.Array:
    """The value of a column in an argument of the command, written as the output writes it, as an array of length 1.

    Raises:
        OptionError: It is no value of the column's type.
    """
    kind = _encodable_type(field.dataType)
    simple = isinstance(kind, NumericType | BooleanType) and _LITERAL.fullmatch(text)
    literal: Any = orjson.Fragment(text) if simple else text
    read = row_reader(StructType([StructField(field.name, kind)]), _ISO)
    try:
        (value,) = read(orjson.dumps({field.name: literal}))
        if isinstance(field.dataType, DayTimeIntervalType) and value is not None:
            value = timedelta(microseconds=int(value * 1000))
        return pa.array([value], arrow_schema(StructType([field])).field(0).type)
    except (UnreadableError, pa.ArrowInvalid) as why:
        raise OptionError(
            f"--key: {text!r} is not a value of column {field.name!r}, which is "
            f"{field.dataType.simpleString().upper()}: {str(why).rstrip('.')}."
        ) from None
