"""SQL as words, quoted names and texts, numbers and marks, each with its place; they are read one after another.

Flink's statements and Spark's columns differ in their words, quotes and comments, and in how an error names a place: that is a `Dialect`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NoReturn, cast

from pyspark_upsert_kafka.core.errors import OptionError, UpsertKafkaError

_DEEPEST = 100
"""How deep types may stand within each other."""

_MOST_DIGITS, _SHOWN = 18, 100

TokenKind = Literal["word", "name", "text", "number", "mark", "end"]

_NUMBER = r"[0-9]+(?:\.[0-9]*)?(?:[eE](?:[+-]?[0-9]+)?)?"
_MARKS = re.escape("()[]{}&^:,.-=><%!|+;/\\*~?@#'`\"")


@dataclass(frozen=True)
class Place:
    """Where something stands in a text; lines and columns count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"SQL, line {self.line}, column {self.column}"

    def error(self, sentence: str) -> UpsertKafkaError:
        """An error that names the place."""
        return OptionError(f"{self}: {sentence}")


def place_in(text: str, offset: int) -> Place:
    """The place of a character.

    >>> place_in("a" + chr(10) + "bc", 3)
    Place(line=2, column=2)
    """
    return Place(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def places_in(text: str) -> Callable[[int], Place]:
    """The same for many characters of one text: its lines are looked for once."""
    begins = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(offset: int) -> Place:
        line = bisect_right(begins, offset)
        return Place(line, offset - begins[line - 1] + 1)

    return place


@dataclass(frozen=True)
class Dialect:
    """How a text is written.

    Args:
        words: A pattern of a word, which may be a name without quotes.
        comments: A pattern of a comment.
        name_quotes: The marks that may stand around a name.
        text_quotes: The marks that may stand around a text.
        places_in: From a text to the places of its characters.
    """

    words: str
    comments: str
    name_quotes: str
    text_quotes: str
    places_in: Callable[[str], Callable[[int], Place]]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A pattern of a token or comment, each kind in a group of its name; ``open`` is a quote or comment that does not end."""
        return re.compile(
            rf"(?P<comment>{self.comments})|(?P<word>{self.words})|(?P<number>{_NUMBER})"
            rf"|(?P<name>{_quoted(self.name_quotes)})|(?P<text>{_quoted(self.text_quotes)})"
            r"|(?P<open>/\*|['\"`])|(?P<mark>\S)"
        )


def _quoted(quotes: str) -> str:
    """A pattern of what stands in one of the quotes; the quote itself is doubled within."""
    return "|".join(f"{q}[^{q}]*(?:{q}{q}[^{q}]*)*{q}(?!{q})" for q in quotes)


FLINK = Dialect(
    words=rf"[^\s{_MARKS}0-9][^\s{_MARKS}]*",
    comments=r"(?:--|//)[^\r\n]*|/\*[\s\S]*?\*/",
    name_quotes='`"',
    text_quotes="'",
    places_in=places_in,
)
"""Flink's SQL."""


@dataclass(frozen=True)
class Token:
    """A word, a quoted name, a quoted text, a number or a mark.

    Args:
        kind: What it is; ``end`` is the end of the text.
        text: What it says, without quotes.
        place: Where it begins.
        offset: The same, as an offset in the text.
    """

    kind: TokenKind
    text: str
    place: Place
    offset: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words, without quotes; the case of letters makes no difference."""
        return self.kind == "word" and self.text.upper() in words

    def is_mark(self, mark: str) -> bool:
        """Whether it is this mark."""
        return self.kind == "mark" and self.text == mark

    def shown(self) -> str:
        """How an error names it; what stands in quotes may be secret."""
        if self.kind == "end":
            return "the end"
        if self.kind == "text":
            return "a text in quotes"
        return f"'{self.text}'" if len(self.text) <= _SHOWN else f"'{self.text[:_SHOWN]}…'"


def check_depth(depth: int, begin: Token) -> None:
    """Refuses types that stand within each other too deep.

    Args:
        depth: How many levels they have.
        begin: Where the outermost begins.

    Raises:
        OptionError: They have too many.
    """
    if depth > _DEEPEST:
        raise begin.place.error(
            f"{begin.shown()}: types stand within each other more than {_DEEPEST} levels deep."
        )


def tokenize(sql: str, dialect: Dialect = FLINK) -> list[Token]:
    """The tokens of a text, and its end; comments are left out.

    Raises:
        OptionError: A quote or a comment does not end (or the error that the dialect's places have).

    >>> [(token.kind, token.text) for token in tokenize("`a``b` INT -- why")]
    [('name', 'a`b'), ('word', 'INT'), ('end', '')]
    """
    tokens, place_of = [], dialect.places_in(sql)
    for found in dialect.pattern.finditer(sql):
        kind, text = str(found.lastgroup), found[0]
        if kind == "comment":
            continue
        place = place_of(found.start())
        if kind == "open":
            raise place.error("the quote or comment that begins here does not end.")
        if kind in ("name", "text"):
            text = text[1:-1].replace(text[0] * 2, text[0])
        tokens.append(Token(cast("TokenKind", kind), text, place, found.start()))
    return [*tokens, Token("end", "", place_of(len(sql)), len(sql))]


class Tokens:
    """The tokens of a text, read one after another.

    A script is read by the same object, statement after statement, so that places are those in the script.

    Args:
        sql: The text.
        dialect: How it is written.

    Attributes:
        sql: The text.
        place_of: The place of each of its characters.

    >>> tokens = Tokens("CREATE TABLE t")
    >>> tokens.accept("CREATE", "TABLE"), tokens.accept("VIEW"), tokens.name("a table's name").text
    (True, False, 't')
    """

    def __init__(self, sql: str, dialect: Dialect = FLINK) -> None:
        self.sql, self.place_of = sql, dialect.places_in(sql)
        self._tokens = tokenize(sql, dialect)
        self._at = self._level = 0

    def peek(self, ahead: int = 0) -> Token:
        """The next token, or one after it, without reading it."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Reads the next token."""
        token = self.peek()
        self._at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Reads these words if they come next, and says whether they did."""
        if not all(self.peek(at).is_word(word) for at, word in enumerate(words)):
            return False
        self._at += len(words)
        return True

    def accept_mark(self, mark: str) -> bool:
        """Reads this mark if it comes next, and says whether it did."""
        if not self.peek().is_mark(mark):
            return False
        self._at += 1
        return True

    def expect(self, *words: str) -> None:
        """Reads these words.

        Raises:
            OptionError: Something else comes next.
        """
        for word in words:
            if not self.accept(word):
                self.refuse(f"expected {' '.join(words)}")

    def expect_mark(self, mark: str, what: str | None = None) -> None:
        """Reads this mark, or raises OptionError that names it, or ``what`` was expected."""
        if not self.accept_mark(mark):
            self.refuse(f"expected {what or repr(mark)}")

    def name(self, what: str) -> Token:
        """Reads a name, quoted or not; raises OptionError that ``what`` was expected."""
        if self.peek().kind not in ("word", "name"):
            self.refuse(f"expected {what}")
        return self.next()

    def text(self, what: str) -> Token:
        """Reads a text in single quotes; raises OptionError that ``what`` was expected."""
        if self.peek().kind != "text":
            self.refuse(f"expected {what} in single quotes")
        return self.next()

    def number(self, what: str) -> int:
        """Reads a whole number; raises OptionError that ``what`` was expected."""
        token = self.peek()
        if token.kind != "number" or not token.text.isdecimal():
            self.refuse(f"expected {what}, a whole number")
        if len(token.text) > _MOST_DIGITS:
            self.refuse(f"expected {what}, a number of {_MOST_DIGITS} digits at most")
        return int(self.next().text)

    def separated(self) -> Iterator[None]:
        """Reads a list in round brackets: yields once for each part, which the caller reads."""
        self.expect_mark("(")
        yield
        while self.accept_mark(","):
            yield
        self.expect_mark(")", "',' or ')'")

    @contextmanager
    def one_level(self, begin: Token) -> Iterator[bool]:
        """Reads what may stand within others of its kind; gives whether it stands in none.

        Args:
            begin: Where it begins.

        Raises:
            OptionError: They are too many.
        """
        check_depth(self._level + 1, begin)
        self._level += 1
        yield self._level == 1
        self._level -= 1

    def refuse(self, expected: str) -> NoReturn:
        """Raises OptionError with what was expected, and what the next token is instead."""
        token = self.peek()
        raise token.place.error(f"{expected}, but found {token.shown()}.")
