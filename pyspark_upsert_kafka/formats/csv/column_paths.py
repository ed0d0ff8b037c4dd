"""The vectorised path and the column path: one parser reads all messages together.

The vectorised path has it read each column as its type; the column path as texts, which are then read column by
column. Of a column with a value that the parser cannot read, the vectorised path reads texts too.

Messages cannot run into each other. They are joined with a line break, and none holds one of its own,
so a text of N messages has N line breaks. Each record that the parser finds ends in one of them. If it
finds N records, every line break ends exactly one, so none stands within a quoted field, and every
message is exactly one record.

Fields are read as Jackson reads them. Without quote characters both parsers only look for delimiters.
With them, take the quote characters of a message in pairs. Each pair must begin at the start of a field
and end at the end of one, or follow the pair before it at once, as a doubled quote character does.
Then, pair by pair: the first opens a field for both parsers; the second is followed by the end of the
field, which closes it for both, or by another quote character, which makes it an ordinary one for both.
What differs between the two (blanks or other characters behind a closing quote) falls back to the row path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.core.bytes_column import column_of, lines_of, not_utf8, offsets_of
from pyspark_upsert_kafka.formats.csv import Dialect
from pyspark_upsert_kafka.formats.csv.csv_leaf_readers import FALSE, TRUE, leaf
from pyspark_upsert_kafka.formats.csv.row_path import field_reader
from pyspark_upsert_kafka.formats.decoding import Mask, Path
from pyspark_upsert_kafka.formats.parsed_columns import (
    MOST_BAD,
    Column,
    one_chunk,
    read_columns,
    with_stand_ins,
    without_marks,
)
from pyspark_upsert_kafka.formats.text_values import BYTE_ORDER_MARK

# The parser keeps 32-bit positions; a batch beyond this is cut into pieces first.
_LARGEST_TEXT = 1 << 30
# The number of quote characters that are looked at together: each takes some fifty bytes meanwhile.
_MOST_QUOTES = 1 << 22
_LINE_BREAK = ord("\n")
_MARKED_LINE = b"\n" + BYTE_ORDER_MARK

# Where more lines than so many have the wrong number of fields, and too large a share of all, the parser stops.
_SKIPPED = 16
_COLUMN = re.compile(r"^In CSV column #([0-9]+):")


class _RefusedColumnError(ValueError):
    """The parser cannot read a value of a column.

    Args:
        at: The place of the column.
    """

    def __init__(self, at: int) -> None:
        super().__init__(f"a value of column {at} is refused")
        self.at = at


@dataclass(frozen=True)
class _Lines:
    """Messages as lines, each of which the parser reads as it should be read.

    Args:
        text: The lines.
        left: The mask of messages that fall back to the row path, in whose places other ones stand.
    """

    text: bytes
    left: Mask


_Parser = Callable[[_Lines, Sequence[pa.DataType]], "tuple[list[pa.Array], Mask]"]
"""_Lines, and the types of the columns, to the columns and the mask of messages that fall back to the row path.

A null literal makes a null in every column; without one, the empty text makes one in columns that are not text. It raises
_RefusedColumnError, or another ValueError where it is not sure to be right.
"""


def _line_parser(count: int, dialect: Dialect) -> _Parser | None:
    """Compiles a parser of so many columns; None when it knows no such delimiter."""
    characters = dialect.delimiter + (dialect.quote or "")
    if not characters.isascii() or "\0" in characters:
        return None
    names = [str(at) for at in range(count)]

    def parse(lines: _Lines, kinds: Sequence[pa.DataType]) -> tuple[list[pa.Array], Mask]:
        skipped: list[int] = []

        def skip(row: Any) -> Literal["skip", "error"]:
            """Of a line with more or fewer fields; lines are counted from 1."""
            skipped.append(row.number - 1)
            return "skip" if len(skipped) <= _SKIPPED + MOST_BAD * row.number else "error"

        parse_options = pyarrow.csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote or False,
            double_quote=dialect.quote is not None,
            newlines_in_values=False,
            ignore_empty_lines=False,
            invalid_row_handler=skip,
        )
        read_options = pyarrow.csv.ReadOptions(
            use_threads=False, block_size=len(lines.text) + 1, column_names=names
        )
        convert_options = pyarrow.csv.ConvertOptions(
            column_types=dict(zip(names, kinds, strict=True)),
            null_values=[dialect.null_literal or ""],
            strings_can_be_null=dialect.null_literal is not None,
            true_values=TRUE,
            false_values=FALSE,
            check_utf8=False,  # all messages are
        )
        source = pa.BufferReader(lines.text)
        try:
            parsed = pyarrow.csv.read_csv(source, read_options, parse_options, convert_options)
        except pa.ArrowInvalid as why:
            column = _COLUMN.search(str(why))
            if column is None:
                raise
            raise _RefusedColumnError(int(column[1])) from None
        if parsed.num_rows + len(skipped) != len(lines.left):
            raise ValueError("a message is not exactly one record")
        columns = [one_chunk(column) for column in parsed.columns]
        if not skipped:
            return columns, lines.left
        if not parsed.num_rows:
            raise ValueError("no message has a field for each column")
        left = lines.left.copy()
        left[skipped] = True
        index = np.ones(len(left), np.int64)
        index[skipped] = 0
        index = np.maximum(np.cumsum(index) - 1, 0)
        return [column.take(pa.array(index)) for column in columns], left

    return parse


def _lines_of_messages(messages: Sequence[bytes], dialect: Dialect) -> _Lines:
    """The messages as lines.

    Raises:
        ValueError: There is too much for one text, or no message that the parser reads as it should be read.
    """
    if messages[0][-1:] in (b"\n", b"\r"):
        messages = [message.removesuffix(b"\n").removesuffix(b"\r") for message in messages]
    text = lines_of(messages)
    # The parser takes one away at the beginning of the whole text only. To look for a single byte costs nothing.
    if BYTE_ORDER_MARK[:1] in text and (text.startswith(BYTE_ORDER_MARK) or _MARKED_LINE in text):
        messages = without_marks(messages)
        text = lines_of(messages)
    if len(text) > _LARGEST_TEXT:
        raise ValueError("too much for one text")
    column = column_of(messages)
    left = _odd(column, text, dialect) | not_utf8(column)
    quote, delimiter = dialect.quote, dialect.delimiter
    if quote is not None and quote.encode() in text and not _is_well_quoted(text, quote, delimiter):
        left |= _badly_quoted(column, quote, delimiter)
    if left.any():
        text = lines_of(with_stand_ins(messages, left))
    return _Lines(text, left)


def _odd(column: pa.LargeBinaryArray, text: bytes, dialect: Dialect) -> Mask:
    """The messages that may be no record, or one that the parser reads otherwise than Jackson."""
    left = pc.equal(pc.binary_length(column), 0)
    escape = dialect.escape if dialect.escape != dialect.quote else None
    if text.count(b"\n") != len(column):
        left = pc.or_(left, pc.match_substring(column, "\n"))
    for odd in ("\r", escape):
        if odd is not None and odd.encode() in text:
            left = pc.or_(left, pc.match_substring(column, odd))
    if text.startswith(BYTE_ORDER_MARK):
        left = pc.or_(left, pc.starts_with(column, BYTE_ORDER_MARK))
    if dialect.allow_comments and (text[:1] == b"#" or b"\n#" in text):
        left = pc.or_(left, pc.starts_with(column, "#"))
    return left.to_numpy(zero_copy_only=False)


def _is_well_quoted(text: bytes, quote: str, delimiter: str) -> bool:
    """Whether all quote characters of the lines stand at the start or the end of a field, or are doubled."""
    characters = np.frombuffer(b"\n" + text, np.uint8)
    quotes = np.flatnonzero(characters == ord(quote))
    if len(quotes) > _MOST_QUOTES:
        raise ValueError("too many quote characters for one text")
    if len(quotes) % 2:
        return False
    opening, closing = quotes[0::2], quotes[1::2]
    starts, ends = characters[opening - 1], characters[closing + 1]
    starts_field = (starts == ord(delimiter)) | (starts == _LINE_BREAK)
    ends_field = (ends == ord(delimiter)) | (ends == _LINE_BREAK)
    doubled = opening[1:] == closing[:-1] + 1
    between = doubled | (starts_field[1:] & ends_field[:-1])
    return bool(starts_field[0] and ends_field[-1] and between.all())


def _badly_quoted(column: pa.LargeBinaryArray, quote: str, delimiter: str) -> Mask:
    """The messages with a quote character that is neither at the start nor at the end of a field, nor doubled."""
    offsets = offsets_of(column)
    data = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    quotes = np.flatnonzero(data == ord(quote))
    begins, ends = offsets[:-1] - offsets[0], offsets[1:] - offsets[0]
    of_message = np.searchsorted(ends, quotes, side="right")
    wrong = np.bincount(of_message, minlength=len(column)) % 2 == 1
    paired = ~wrong[of_message]
    quotes, of_message = quotes[paired], of_message[paired]
    opening, closing, of_pair = quotes[0::2], quotes[1::2], of_message[0::2]
    doubled = opening[1:] == closing[:-1] + 1
    starts = (opening == begins[of_pair]) | (data[opening - 1] == ord(delimiter))
    last = closing + 1 == ends[of_pair]
    stops = last | (data[np.where(last, closing, closing + 1)] == ord(delimiter))
    starts[1:] |= doubled & (of_pair[1:] == of_pair[:-1])
    stops[:-1] |= doubled & (of_pair[1:] == of_pair[:-1])
    wrong[of_pair[~(starts & stops)]] = True
    return wrong


def _has_hexadecimals(text: bytes) -> bool:
    """Whether numbers may stand in it that Arrow alone takes for numbers."""
    return (b"x" in text and b"0x" in text) or (b"X" in text and b"0X" in text)


# The parser reads all again for each column that it cannot read; texts of all columns cost less than that.
_MOST_REFUSED = 3


def compile_column_path(columns: StructType, target: pa.Schema, dialect: Dialect) -> Path:
    """Compiles the column path. It refuses every batch of a dialect that the parser does not have."""
    readers = [_of_texts(c, field, dialect) for c, field in zip(columns, target, strict=True)]
    parse = _line_parser(len(readers), dialect)

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, Mask] | None:
        if parse is None:
            return None
        try:
            texts, left = parse(_lines_of_messages(messages, dialect), [pa.string()] * len(readers))
            return read_columns(readers, texts, left)
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None

    return read


def compile_vectorised_path(
    columns: StructType, target: pa.Schema, dialect: Dialect
) -> Path | None:
    """Compiles the vectorised path; None when the parser does not have the dialect."""
    parse = _line_parser(len(columns), dialect)
    if parse is None:
        return None
    typed = [_typed(c, field, dialect) for c, field in zip(columns, target, strict=True)]
    of_texts = [_of_texts(c, field, dialect) for c, field in zip(columns, target, strict=True)]
    whole = frozenset(at for at, (kind, _) in enumerate(typed) if pa.types.is_integer(kind))

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, Mask] | None:
        try:
            lines = _lines_of_messages(messages, dialect)
            as_texts = whole if _has_hexadecimals(lines.text) else frozenset()
            as_texts, (arrays, left) = _parsed(lines, [kind for kind, _ in typed], as_texts, parse)
            readers = [
                of_texts[at] if at in as_texts else reader for at, (_, reader) in enumerate(typed)
            ]
            return read_columns(readers, arrays, left)
        except ValueError:
            return None

    return read


def _parsed(
    lines: _Lines, kinds: Sequence[pa.DataType], as_texts: frozenset[int], parse: _Parser
) -> tuple[frozenset[int], tuple[list[pa.Array], Mask]]:
    """The columns, and which of them are texts: these, and those that the parser cannot read as their types."""
    for _ in range(_MOST_REFUSED):
        chosen = [pa.string() if at in as_texts else kind for at, kind in enumerate(kinds)]
        try:
            return as_texts, parse(lines, chosen)
        except _RefusedColumnError as refused:
            if refused.at in as_texts or pa.types.is_string(kinds[refused.at]):
                raise
            as_texts |= {refused.at}
    return frozenset(range(len(kinds))), parse(lines, [pa.string()] * len(kinds))


def _of_texts(column: StructField, target: pa.Field, dialect: Dialect) -> Column:
    """How a column is read from texts; arrays and structs one by one."""
    is_nested = pa.types.is_nested(target.type)
    convert = None if is_nested else leaf(column.dataType, dialect).from_texts
    return Column(target, convert, field_reader(column, dialect))


def _typed(column: StructField, target: pa.Field, dialect: Dialect) -> tuple[pa.DataType, Column]:
    """As what the parser reads a column, and how that is read."""
    of_texts = _of_texts(column, target, dialect)
    conversion = None if of_texts.vectorised is None else leaf(column.dataType, dialect).column
    if conversion is None or pa.types.is_string(conversion.parsed):
        return pa.string(), of_texts
    return conversion.parsed, Column(target, conversion.convert, None)
