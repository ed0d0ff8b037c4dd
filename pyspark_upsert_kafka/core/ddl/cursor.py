"""Tokens that are read one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from pyspark_upsert_kafka.core.ddl.tokens import Token, tokenize


class Tokens:
    """The tokens of a text, read one after another.

    A script is read by the same object, statement after statement, so that places are those in the script.

    >>> tokens = Tokens("CREATE TABLE t")
    >>> tokens.accept("CREATE", "TABLE"), tokens.accept("VIEW"), tokens.name("a table's name").text
    (True, False, 't')
    """

    def __init__(self, sql: str) -> None:
        self._tokens = tokenize(sql)
        self._at = 0

    def peek(self, ahead: int = 0) -> Token:
        """A token that is yet to be read."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def next(self) -> Token:
        """The next token, which is then read."""
        token = self.peek()
        self._at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Reads these words if they stand next."""
        if not all(self.peek(at).is_word(word) for at, word in enumerate(words)):
            return False
        self._at += len(words)
        return True

    def accept_mark(self, mark: str) -> bool:
        """Reads this mark if it stands next."""
        if not self.peek().is_mark(mark):
            return False
        self._at += 1
        return True

    def expect(self, *words: str) -> None:
        """Reads these words.

        Raises:
            OptionError: Something else stands there.
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
        return int(self.next().text)

    def separated(self) -> Iterator[None]:
        """Once for each part of a list in round brackets; the caller reads the part."""
        self.expect_mark("(")
        yield
        while self.accept_mark(","):
            yield
        self.expect_mark(")", "',' or ')'")

    def refuse(self, expected: str) -> NoReturn:
        """Raises OptionError with what was expected, and what the next token is instead."""
        token = self.peek()
        raise token.place.error(f"{expected}, but found {token.shown()}.")
