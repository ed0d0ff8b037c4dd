"""A whole batch of messages parsed as one text, line by line, by ``pyarrow.csv``.

Messages cannot run into each other. They are joined with a line break, and none holds one of its own,
so a text of N messages has N line breaks. Each record that the parser finds ends in one of them. If it
finds N records, every line break ends exactly one, so none stands within a quoted field, and every
message is exactly one record.

Fields are read as Jackson reads them. Without quote characters both parsers only look for delimiters.
With them, take the quote characters of the text in pairs. Each pair must begin at the start of a field
and end at the end of one, or follow the pair before it at once, as a doubled quote character does.
Then, pair by pair: the first opens a field for both parsers; the second is followed by the end of the
field, which closes it for both, or by another quote character, which makes it an ordinary one for both.
What differs between the two (blanks or other characters behind a closing quote) is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from pyspark_upsert_kafka.core.bytes_column import column_of, lines_of
from pyspark_upsert_kafka.formats.byte_order_mark import BYTE_ORDER_MARK, without_marks
from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.csv.leaf_readers import FALSE, TRUE, check_no_hexadecimals
from pyspark_upsert_kafka.formats.parsed_columns import one_chunk

# The parser keeps 32-bit positions; a batch beyond this is cut into pieces first.
_LARGEST_TEXT = 1 << 30
# The number of quote characters that are looked at together: each takes some fifty bytes meanwhile.
_MOST_QUOTES = 1 << 22
_LINE_BREAK = ord("\n")
_MARKED_LINE = b"\n" + BYTE_ORDER_MARK

Parser = Callable[[Sequence[bytes]], "list[pa.Array]"]
"""Messages to their columns; raises ValueError when it is not sure to be right about all of them."""


def line_parser(kinds: Sequence[pa.DataType], dialect: Dialect) -> Parser | None:
    """Compiles a parser of columns of these types; None when it knows no such delimiter.

    A null literal makes a null in every column; without one, the empty text makes one in columns that
    are not text.
    """
    characters = dialect.delimiter + (dialect.quote or "")
    if not characters.isascii() or "\0" in characters:
        return None
    names = [str(at) for at in range(len(kinds))]
    parse_options = pyarrow.csv.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char=dialect.quote or False,
        double_quote=dialect.quote is not None,
        newlines_in_values=False,
        ignore_empty_lines=False,
    )
    convert_options = pyarrow.csv.ConvertOptions(
        column_types=dict(zip(names, kinds, strict=True)),
        null_values=[dialect.null_literal or ""],
        strings_can_be_null=dialect.null_literal is not None,
        true_values=TRUE,
        false_values=FALSE,
    )
    whole = [name for name, kind in zip(names, kinds, strict=True) if pa.types.is_integer(kind)]
    as_text = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(whole, pa.string()), include_columns=whole
    )

    def parse(messages: Sequence[bytes]) -> list[pa.Array]:
        text = _joined(messages, dialect)
        read_options = pyarrow.csv.ReadOptions(
            use_threads=False, block_size=len(text) + 1, column_names=names
        )

        def table(convert: pyarrow.csv.ConvertOptions) -> pa.Table:
            source = pa.BufferReader(text)
            return pyarrow.csv.read_csv(source, read_options, parse_options, convert)

        parsed = table(convert_options)
        if parsed.num_rows != len(messages):
            raise ValueError("a message is not exactly one record")
        if whole and _has_hexadecimals(text):
            for column in table(as_text).columns:
                check_no_hexadecimals(column)
        return [one_chunk(column) for column in parsed.columns]

    return parse


def _joined(messages: Sequence[bytes], dialect: Dialect) -> bytes:
    """The messages as lines, once it is sure that the parser reads each as it should be read."""
    if messages[0][-1:] in (b"\n", b"\r"):
        messages = [message.removesuffix(b"\n").removesuffix(b"\r") for message in messages]
    text = lines_of(messages)
    # The parser takes one away at the beginning of the whole text only. To look for a single byte costs nothing.
    if BYTE_ORDER_MARK[:1] in text and (text.startswith(BYTE_ORDER_MARK) or _MARKED_LINE in text):
        messages = without_marks(messages)
        text = lines_of(messages)
    if len(text) > _LARGEST_TEXT:
        raise ValueError("too much for one text")
    if text.count(b"\n") != len(messages) or b"\r" in text:
        raise ValueError("a message has a line break of its own")
    shortest = pc.min(pc.binary_length(column_of(messages))).as_py()
    if shortest == 0 or text.startswith(BYTE_ORDER_MARK):
        raise ValueError("a message is empty, or begins with what the parser takes away")
    if dialect.allow_comments and (text[:1] == b"#" or b"\n#" in text):
        raise ValueError("a message may be a comment")
    escape = dialect.escape
    if escape not in (None, dialect.quote) and escape.encode() in text:
        raise ValueError("a message has an escaped character")
    if dialect.quote is not None and dialect.quote.encode() in text:
        _check_quotes(text, dialect.quote, dialect.delimiter)
    return text


def _check_quotes(text: bytes, quote: str, delimiter: str) -> None:
    characters = np.frombuffer(b"\n" + text, np.uint8)
    quotes = np.flatnonzero(characters == ord(quote))
    if len(quotes) > _MOST_QUOTES:
        raise ValueError("too many quote characters for one text")
    if len(quotes) % 2:
        raise ValueError("a quoted field does not end")
    opening, closing = quotes[0::2], quotes[1::2]
    starts, ends = characters[opening - 1], characters[closing + 1]
    starts_field = (starts == ord(delimiter)) | (starts == _LINE_BREAK)
    ends_field = (ends == ord(delimiter)) | (ends == _LINE_BREAK)
    doubled = opening[1:] == closing[:-1] + 1
    between = doubled | (starts_field[1:] & ends_field[:-1])
    if not (starts_field[0] and ends_field[-1] and between.all()):
        raise ValueError("a quote character is neither at the start nor at the end of a field")


def _has_hexadecimals(text: bytes) -> bool:
    return (b"x" in text and b"0x" in text) or (b"X" in text and b"0X" in text)
