"""The text of a query for a parser that does not know all of it: what is left out becomes blanks, so that places stay the same."""

from __future__ import annotations

import re

from pyspark_upsert_kafka.core.ddl import Tokens
from pyspark_upsert_kafka.core.ddl.tokens import Place, Token


class CopiedText:
    """A text as long as the script up to the token that comes next.

    Args:
        left: The tokens of the script that are not read yet; all before them becomes blanks.
        script: The script.

    >>> tokens = Tokens("INSERT INTO t SELECT TABLE a")
    >>> tokens.accept("INSERT", "INTO", "T")
    True
    >>> copied = CopiedText(tokens, "INSERT INTO t SELECT TABLE a")
    >>> copied.copy().text, copied.skip().text, copied.copy().text, copied.text
    ('SELECT', 'TABLE', 'a', '              SELECT       a')
    """

    def __init__(self, left: Tokens, script: str) -> None:
        self.left = left
        self.text = ""
        self._script = script
        self.catch_up()

    def copy(self) -> Token:
        """Reads a token, which is copied."""
        token = self.left.next()
        self.text += self._script[len(self.text) : self._offset()]
        return token

    def skip(self) -> Token:
        """Reads a token, which is left out."""
        token = self.left.next()
        self.catch_up()
        return token

    def first_letter(self) -> str:
        """With what the next token begins: a name is given without its quotes."""
        return self._script[len(self.text) : len(self.text) + 1]

    def catch_up(self) -> None:
        """Leaves out what was read of the tokens by others."""
        self.text += re.sub(r"[^\n]", " ", self._script[len(self.text) : self._offset()])

    def _offset(self) -> int:
        return offset_of(self.left.peek().place, self._script)


def offset_of(place: Place, script: str) -> int:
    """Which character stands at a place.

    >>> offset_of(Place(line=2, column=2), "a" + chr(10) + "bc")
    3
    """
    lines = script.split("\n")
    return sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1
