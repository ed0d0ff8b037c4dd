"""The row path: one message to the texts of its fields, and these to the values of its row, or to what is wrong with it.

The texts are those of Jackson's ``CsvDecoder``. A field that begins with the quote character reaches to the next quote
character that is not doubled; in any other field quote characters are ordinary. The escape character counts in both.

The values are those of Flink's ``CsvToRowDataConverters``. The schema is compiled into a list of functions once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from pyspark_upsert_kafka.formats.csv import Dialect
from pyspark_upsert_kafka.formats.csv.csv_leaf_readers import leaf
from pyspark_upsert_kafka.formats.decoding import RowField, UnreadableError
from pyspark_upsert_kafka.formats.text_values import BLANK, BYTE_ORDER_MARK

FieldReader = Callable[["str | None"], Any]
"""The text of a field, or None when there is no field, to its value; raises UnreadableError."""

_Split = Callable[[bytes], "list[str]"]
"""A message to the texts of its fields; raises UnreadableError."""

_SHOWN = 60
_ESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}
_COMMENT = re.compile(r"#[^\r\n]*(?:\r\n?|\n|\Z)")
# Nothing matches this: there is no such character in the dialect.
_NEVER = "(?!)"
# The number of doubled or escaped characters that are matched together: a regular expression keeps some fifty bytes
# for each of them, and a field may hold a hundred million.
_TOGETHER = 1_000


def row_reader(columns: StructType, dialect: Dialect) -> Callable[[bytes], Sequence[Any]]:
    """Compiles the function from a message to its row; it raises UnreadableError."""
    count = len(columns.fields)
    split = _counted(splitter(dialect, most=count + 1), count, dialect)
    readers = [field_reader(field, dialect) for field in columns.fields]

    def row(message: bytes) -> Sequence[Any]:
        return [read(text) for read, text in zip(readers, split(message), strict=True)]

    return row


def _counted(
    split: _Split, count: int, dialect: Dialect
) -> Callable[[bytes], Sequence[str | None]]:
    """As many fields as there are columns; a last delimiter with nothing behind it is let pass."""
    lenient = dialect.ignore_parse_errors

    def fields(message: bytes) -> Sequence[str | None]:
        found = split(message)
        if len(found) == count + 1 and not found[-1].strip(BLANK):
            found.pop()
        if len(found) > count:
            raise UnreadableError(f"Too many entries: expected at most {count}")
        if len(found) < count and not lenient:
            raise UnreadableError(_mismatch(count, len(found)))
        return [*found, *[None] * (count - len(found))]

    return fields


def field_reader(field: StructField, dialect: Dialect) -> FieldReader:
    """Compiles the reader of one column."""
    return _nullable(field.dataType, dialect, field.name, nullable=field.nullable)


def _nullable(kind: DataType, dialect: Dialect, path: str, *, nullable: bool) -> FieldReader:
    field = RowField(path, nullable, dialect.ignore_parse_errors)
    return field.reader(_reader(kind, dialect, path), _shown, _null_text(kind, dialect))


def _shown(text: str) -> str:
    return repr(text[:_SHOWN])


def _null_text(kind: DataType, dialect: Dialect) -> str | None:
    """The text that stands for NULL.

    Flink writes NULL as the empty text when there is no null literal, and then cannot read it where a
    number or a date should be. Here it can.
    """
    if dialect.null_literal is not None:
        return dialect.null_literal
    if isinstance(kind, ArrayType):
        return None
    return "" if isinstance(kind, StructType) or not leaf(kind, dialect).has_empty_text else None


def _reader(kind: DataType, dialect: Dialect, path: str) -> Callable[[str], Any]:
    if isinstance(kind, ArrayType):
        return _array(kind, dialect, path)
    if isinstance(kind, StructType):
        return _struct(kind, dialect, path)
    return leaf(kind, dialect).value


def _array(kind: ArrayType, dialect: Dialect, path: str) -> Callable[[str], list[Any]]:
    element = _nullable(kind.elementType, dialect, f"{path}[]", nullable=kind.containsNull)
    delimiter = dialect.array_delimiter

    def read(text: str) -> list[Any]:
        return [element(item) for item in text.split(delimiter)] if text.strip(BLANK) else []

    return read


def _struct(kind: StructType, dialect: Dialect, path: str) -> Callable[[str], Any]:
    fields = {
        inner.name: _nullable(
            inner.dataType, dialect, f"{path}.{inner.name}", nullable=inner.nullable
        )
        for inner in kind.fields
    }
    delimiter, count = dialect.array_delimiter, len(fields)

    def read(text: str) -> dict[str, Any] | None:
        if not text.strip(BLANK):
            return None
        items: list[str | None] = [*text.split(delimiter)]
        if len(items) != count and not dialect.ignore_parse_errors:
            raise ValueError(_mismatch(count, len(items)))
        items += [None] * (count - len(items))
        return {name: field(items[at]) for at, (name, field) in enumerate(fields.items())}

    return read


def _mismatch(expected: int, actual: int) -> str:
    """The wording is Flink's."""
    return f"Row length mismatch. {expected} fields expected but was {actual}."


def splitter(dialect: Dialect, most: int) -> _Split:
    """Compiles the function from a message to its fields.

    Args:
        dialect: How they are written.
        most: The number of fields that are looked for; a message with more has one more here, whatever comes then.
    """
    field = _field_pattern(dialect)
    inside, outside = _unescape_quoted(dialect), _unescape_plain(dialect)
    long_field = _LongField(dialect, inside, outside).read

    def split(message: bytes) -> list[str]:
        text = _text(message, dialect)
        fields: list[str] = []
        at, end = 0, dialect.delimiter
        while end == dialect.delimiter and len(fields) <= most:
            match = field.match(text, at)
            if match is None:
                value, end, at = long_field(text, at)
            else:
                enclosed, bare, end = match.groups()
                value = outside(bare) if enclosed is None else inside(enclosed)
                at = match.end()
            fields.append(value)
        if at < len(text) and end != dialect.delimiter:
            raise UnreadableError("the message has more than one line; one message is one record")
        return fields

    return split


def _field_pattern(dialect: Dialect) -> re.Pattern[str]:
    """A field that is not too long: the inside of a quoted one or a plain one, and what ends it."""
    quote = _NEVER if dialect.quote is None else re.escape(dialect.quote)
    quoted = f"{quote}({_quoted(dialect)}){quote}(?!{quote}){_blanks(dialect)}"
    plain = f"(?!{quote})({_plain(dialect)})"
    return re.compile(f"(?:{quoted}|{plain}){_end(dialect)}", re.DOTALL)


def _text(message: bytes, dialect: Dialect) -> str:
    message = message.removeprefix(BYTE_ORDER_MARK)
    try:
        text = message.decode()
    except UnicodeDecodeError as why:
        raise UnreadableError(f"not UTF-8: {why.reason} at byte {why.start}") from None
    if dialect.allow_comments:
        text = text[_end_of_comments(text) :]
    if not text:
        raise UnreadableError("the message is empty; it holds no record")
    return text


def _end_of_comments(text: str) -> int:
    """Where the lines of comments at the beginning end; one match of all of them would keep ninety bytes for each byte."""
    at = 0
    while found := _COMMENT.match(text, at):
        at = found.end()
    return at


class _LongField:
    """Reads a field of any length: many matches of a pattern, one after the other, make one run.

    What it reads is the field's text, what ends it, and where the next one begins. The wording of its
    errors is Jackson's.
    """

    def __init__(
        self, dialect: Dialect, inside: Callable[[str], str], outside: Callable[[str], str]
    ) -> None:
        self._delimiter, self._quote = dialect.delimiter, dialect.quote
        self._inside, self._outside = inside, outside
        self._quoted, self._plain, self._blanks, self._end = (
            re.compile(pattern, re.DOTALL)
            for pattern in (
                _quoted(dialect),
                _plain(dialect),
                _blanks(dialect),
                _end(dialect),
            )
        )

    def read(self, text: str, begin: int) -> tuple[str, str, int]:
        """The field that begins there. Raises UnreadableError."""
        if self._quote is None or not text.startswith(self._quote, begin):
            return self._read_plain(text, begin)
        return self._read_quoted(text, begin, self._quote)

    def _read_plain(self, text: str, begin: int) -> tuple[str, str, int]:
        close = _run(self._plain, text, begin)
        end = self._end.match(text, close)
        if end is None:
            raise UnreadableError("Unexpected EOF in escaped character")
        return self._outside(text[begin:close]), end[1], end.end()

    def _read_quoted(self, text: str, begin: int, quote: str) -> tuple[str, str, int]:
        close = _run(self._quoted, text, begin + 1)
        if not text.startswith(quote, close):
            raise UnreadableError("Missing closing quote for value")
        after = _run(self._blanks, text, close + 1)
        end = self._end.match(text, after)
        if end is None:
            raise UnreadableError(
                f"Unexpected character {text[after]!r} after a quoted field: Expected separator "
                f"({self._delimiter!r}) or end-of-line"
            )
        return self._inside(text[begin + 1 : close]), end[1], end.end()


def _run(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where the pattern, again and again, comes to an end."""
    while (match := pattern.match(text, at)) is not None and match.end() > at:
        at = match.end()
    return at


def _end(dialect: Dialect) -> str:
    """What stands behind a field; it is the group."""
    return rf"({re.escape(dialect.delimiter)}|\r\n?|\n|\Z)"


def _blanks(dialect: Dialect) -> str:
    """What may stand between a closing quote and the end of the field."""
    some = "".join(rf"\x{ord(c):02x}" for c in BLANK if c not in f"\r\n{dialect.delimiter}")
    return f"[{some}]*"


def _quoted(dialect: Dialect) -> str:
    """The inside of a quoted field, with doubled quotes and escapes."""
    if dialect.quote is None:
        return _NEVER
    quote, escape = re.escape(dialect.quote), _escape(dialect)
    other = f"[^{quote}{escape}]*"
    double = f"{quote}{quote}|{escape}." if escape and escape != quote else quote * 2
    return f"{other}(?:(?:{double}){other}){{0,{_TOGETHER}}}"


def _plain(dialect: Dialect) -> str:
    """A field without quotes, with escapes."""
    escape = _escape(dialect)
    other = rf"[^{re.escape(dialect.delimiter)}\r\n{escape}]*"
    return f"{other}(?:{escape}.{other}){{0,{_TOGETHER}}}" if escape else other


def _escape(dialect: Dialect) -> str:
    return "" if dialect.escape is None else re.escape(dialect.escape)


def _unescape_quoted(dialect: Dialect) -> Callable[[str], str]:
    if dialect.quote is None or dialect.escape in (None, dialect.quote):
        quote = dialect.quote or ""
        return lambda text: text.replace(quote * 2, quote)
    quote, escape = re.escape(dialect.quote), _escape(dialect)
    return _replacing(re.compile(f"{quote}({quote})|{escape}(.)", re.DOTALL))


def _unescape_plain(dialect: Dialect) -> Callable[[str], str]:
    if dialect.escape is None:
        return lambda text: text
    return _replacing(re.compile(f"{_NEVER}()|{_escape(dialect)}(.)", re.DOTALL))


def _replacing(pattern: re.Pattern[str]) -> Callable[[str], str]:
    def character(match: re.Match[str]) -> str:
        quote, escaped = match.groups()
        return _ESCAPED.get(escaped, escaped) if quote is None else str(quote)

    return lambda text: pattern.sub(character, text)
