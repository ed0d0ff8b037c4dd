"""A message to the texts of its fields, by the rules of Jackson's ``CsvDecoder``.

A field that begins with the quote character reaches to the next quote character that is not doubled;
in any other field quote characters are ordinary. The escape character counts in both.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.decoding import UnreadableError

# What Java's String.trim() takes away.
BLANK = "".join(map(chr, range(0x21)))

_ESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}
_COMMENTS = re.compile(r"(?:#[^\r\n]*(?:\r\n?|\n|\Z))+")
# Nothing matches this: there is no such character in the dialect.
_NEVER = "(?!)"
# So many doubled or escaped characters are matched together: a regular expression keeps some fifty bytes
# for each of them, and a field may hold a hundred million.
_TOGETHER = 1_000

Split = Callable[[bytes], "list[str]"]
"""A message to the texts of its fields; raises UnreadableError."""


def splitter(dialect: Dialect, most: int) -> Split:
    """Compiles the function from a message to its fields.

    Args:
        dialect: How they are written.
        most: So many fields are looked for; a message with more has one more here, whatever comes then.
    """
    quoted, plain = _quoted(dialect), _plain(dialect)
    quote = _NEVER if dialect.quote is None else re.escape(dialect.quote)
    field = re.compile(
        rf"(?:{quote}({quoted}){quote}(?!{quote}){_blanks(dialect)}|(?!{quote})({plain})){_end(dialect)}",
        re.DOTALL,
    )
    inside, outside = _unescape_quoted(dialect), _unescape_plain(dialect)
    long_field = _long_field(dialect, inside, outside)

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


def _text(message: bytes, dialect: Dialect) -> str:
    try:
        text = message.decode()
    except UnicodeDecodeError as why:
        raise UnreadableError(f"not UTF-8: {why.reason} at byte {why.start}") from None
    if dialect.allow_comments:
        text = _COMMENTS.sub("", text, count=1) if text.startswith("#") else text
    if not text:
        raise UnreadableError("the message is empty; it holds no record")
    return text


def _long_field(
    dialect: Dialect, inside: Callable[[str], str], outside: Callable[[str], str]
) -> Callable[[str, int], tuple[str, str, int]]:
    """A field of any length, piece by piece: its text, what ends it, and where the next one begins.

    It raises UnreadableError where there is none; the wording is Jackson's.
    """
    quoted, plain, blanks, ends = (
        re.compile(pattern, re.DOTALL)
        for pattern in (_quoted(dialect), _plain(dialect), _blanks(dialect), _end(dialect))
    )

    def read(text: str, begin: int) -> tuple[str, str, int]:
        if dialect.quote is None or not text.startswith(dialect.quote, begin):
            close = after = _run(plain, text, begin)
            value = outside(text[begin:close])
        else:
            close = _run(quoted, text, begin + 1)
            if not text.startswith(dialect.quote, close):
                raise UnreadableError("Missing closing quote for value")
            value = inside(text[begin + 1 : close])
            after = _run(blanks, text, close + 1)
        end = ends.match(text, after)
        if end is None and after == close:
            raise UnreadableError("Unexpected EOF in escaped character")
        if end is None:
            raise UnreadableError(
                f"Unexpected character {text[after]!r} after a quoted field: Expected separator "
                f"({dialect.delimiter!r}) or end-of-line"
            )
        return value, end[1], end.end()

    return read


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
