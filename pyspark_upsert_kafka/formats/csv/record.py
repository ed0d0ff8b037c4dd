"""A message to the texts of its fields, by the rules of Jackson's ``CsvDecoder``.

A field that begins with the quote character reaches to the next quote character that is not doubled;
in any other field quote characters are ordinary. The escape character counts in both.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark_upsert_kafka.formats.batches import UnreadableError
from pyspark_upsert_kafka.formats.csv.dialect import Dialect

# What Java's String.trim() takes away.
BLANK = "".join(map(chr, range(0x21)))

_ESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}
_COMMENTS = re.compile(r"(?:#[^\r\n]*(?:\r\n?|\n|\Z))+")
# Nothing matches this: there is no such character in the dialect.
_NEVER = "(?!)"

Split = Callable[[bytes], "list[str]"]
"""A message to the texts of its fields; raises UnreadableError."""


def splitter(dialect: Dialect) -> Split:
    """Compiles the function from a message to its fields."""
    quoted, plain = _quoted(dialect), _plain(dialect)
    delimiter = re.escape(dialect.delimiter)
    blank = rf"(?:(?!{delimiter})[\x00-\x09\x0b\x0c\x0e-\x20])*"
    field = re.compile(rf"(?:{quoted}{blank}|{plain})({delimiter}|\r\n?|\n|\Z)", re.DOTALL)
    only_quoted = re.compile(quoted, re.DOTALL)
    inside, outside = _unescape_quoted(dialect), _unescape_plain(dialect)

    def split(message: bytes) -> list[str]:
        text = _text(message, dialect)
        fields, at, end = [], 0, dialect.delimiter
        while end == dialect.delimiter:
            match = field.match(text, at)
            if match is None:
                raise UnreadableError(_trouble(text[at:], only_quoted, dialect))
            enclosed, bare, end = match.groups()
            fields.append(outside(bare) if enclosed is None else inside(enclosed))
            at = match.end()
        if at < len(text):
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


def _quoted(dialect: Dialect) -> str:
    """A quoted field; its text, with doubled quotes and escapes, is the group."""
    if dialect.quote is None:
        return f"{_NEVER}()"
    quote, escape = re.escape(dialect.quote), _escape(dialect)
    other = f"[^{quote}{escape}]*"
    double = f"{quote}{quote}|{escape}." if escape and escape != quote else quote * 2
    return f"{quote}({other}(?:(?:{double}){other})*){quote}(?!{quote})"


def _plain(dialect: Dialect) -> str:
    """A field without quotes; its text, with escapes, is the group."""
    escape = _escape(dialect)
    other = rf"[^{re.escape(dialect.delimiter)}\r\n{escape}]*"
    more = f"(?:{escape}.{other})*" if escape else ""
    first = "" if dialect.quote is None else f"(?!{re.escape(dialect.quote)})"
    return f"{first}({other}{more})"


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


def _trouble(rest: str, quoted: re.Pattern[str], dialect: Dialect) -> str:
    """Why no field begins here; the wording is Jackson's."""
    field = quoted.match(rest)
    if field is not None:
        found = rest[field.end() :].lstrip(BLANK)[:1]
        return (
            f"Unexpected character {found!r} after a quoted field: Expected separator "
            f"({dialect.delimiter!r}) or end-of-line"
        )
    if dialect.quote is not None and rest.startswith(dialect.quote):
        return "Missing closing quote for value"
    return "Unexpected EOF in escaped character"
