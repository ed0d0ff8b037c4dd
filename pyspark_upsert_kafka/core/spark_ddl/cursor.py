"""The words, names and marks of Spark's DDL, read one after another."""

from __future__ import annotations

import re
from typing import NoReturn

from pyspark_upsert_kafka.core.errors import SchemaError

_TOKEN = re.compile(
    r"\s*(?:(?P<word>\w+)|`(?P<name>(?:[^`]|``)+)`|(?P<text>'[^']*'|\"[^\"]*\")|(?P<mark>[^\s`'\"]))"
)


class Cursor:
    """Reads a text from its beginning to its end.

    >>> cursor = Cursor("id BIGINT")
    >>> cursor.name(), cursor.accept("STRING"), cursor.accept("BIGINT")
    ('id', False, True)
    """

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise _error(at, "the quote that begins here does not end")
            kind = str(match.lastgroup)
            self._tokens.append((kind, match[kind], match.start(kind)))
            at = match.end()
        self._tokens.append(("end", "the end", end))
        self._next = 0

    @property
    def word(self) -> str:
        """The next token in capitals if it is a word or a mark; else nothing."""
        kind, text, _ = self._tokens[self._next]
        return text.upper() if kind in ("word", "mark") else ""

    @property
    def is_at_end(self) -> bool:
        """Whether everything is read."""
        return self._tokens[self._next][0] == "end"

    def skip(self) -> None:
        """Reads a token."""
        self._next += 1

    def accept(self, expected: str) -> bool:
        """Reads this word or mark if it stands next."""
        found = self.word == expected
        self._next += found
        return found

    def expect(self, expected: str) -> None:
        """Reads this word or mark; raises SchemaError if something else stands there."""
        if not self.accept(expected):
            self.refuse(f"'{expected}'")

    def name(self) -> str:
        """Reads a name, in backticks or not."""
        kind, text, _ = self._tokens[self._next]
        if kind not in ("word", "name"):
            self.refuse("a column's name")
        self._next += 1
        return text.replace("``", "`") if kind == "name" else text

    def text(self) -> None:
        """Reads a text in quotes."""
        if self._tokens[self._next][0] != "text":
            self.refuse("a text in quotes")
        self._next += 1

    def number(self) -> int:
        """Reads a whole number."""
        text = self.word
        if not text.isdecimal():
            self.refuse("a whole number")
        self._next += 1
        return int(text)

    def refuse(self, expected: str) -> NoReturn:
        """Raises SchemaError with what was expected, and what the next token is instead."""
        kind, text, at = self._tokens[self._next]
        raise _error(at, f"expected {expected}, but found {text if kind == 'end' else repr(text)}")


def _error(at: int, what: str) -> SchemaError:
    return SchemaError(
        f"The columns cannot be read at character {at + 1}: {what}. Columns are written as in Spark, "
        "for example: id BIGINT, name STRING."
    )
