"""The words, names and marks of SQL as Flink writes it, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from pyspark_upsert_kafka.core.errors import OptionError

if TYPE_CHECKING:
    from sqlglot.tokens import Tokenizer

Kind = Literal["word", "name", "text", "number", "mark", "other", "end"]

_KINDS: dict[str, Kind] = {
    "VAR": "word", "IDENTIFIER": "name", "STRING": "text", "NUMBER": "number",
}  # fmt: skip
_MARKS = frozenset("(),.=<>;-")
_OPENING = re.compile(r"['`\"]|/\*")


@dataclass(frozen=True)
class Place:
    """Where something stands in a text; lines and columns count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"SQL, line {self.line}, column {self.column}"

    def error(self, sentence: str) -> OptionError:
        """An error that names the place."""
        return OptionError(f"{self}: {sentence}")


@dataclass(frozen=True)
class Token:
    """A word, a quoted name, a quoted text, a number or a mark.

    Args:
        kind: What it is; ``other`` is what no statement here has, ``end`` is the end of the text.
        text: What it says, without quotes.
        place: Where it begins.
    """

    kind: Kind
    text: str
    place: Place

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
        return "a text in quotes" if self.kind in ("text", "other") else f"'{self.text}'"


def tokenize(sql: str) -> list[Token]:
    """The tokens of a text, and its end; comments are left out.

    Raises:
        OptionError: A quote or a comment does not end.
    """
    from sqlglot.errors import TokenError

    try:
        found = _tokenizer().tokenize(sql)
    except TokenError:  # its text shows what stands near, which may be a secret
        raise place_in(sql, _what_is_open(sql)).error(
            "the quote or comment that begins here does not end."
        ) from None
    tokens = [_token(each.token_type.name, each.text, place_in(sql, each.start)) for each in found]
    return [*tokens, Token("end", "", place_in(sql, len(sql)))]


def place_in(text: str, offset: int) -> Place:
    """The place of a character.

    >>> place_in("a" + chr(10) + "bc", 3)
    Place(line=2, column=2)
    """
    return Place(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _token(name: str, text: str, place: Place) -> Token:
    kind: Kind = _KINDS.get(name, "mark" if text in _MARKS else "other")
    return Token(kind, text, place)


@lru_cache(maxsize=1)
def _tokenizer() -> Tokenizer:
    from sqlglot.tokens import Tokenizer

    class FlinkTokenizer(Tokenizer):
        """Flink's quotes and comments; no word is more than a word, whatever sqlglot knows of it."""

        KEYWORDS = {}  # noqa: RUF012 - as sqlglot has it
        IDENTIFIERS = ["`", '"']  # noqa: RUF012
        COMMENTS = ["--", "//", ("/*", "*/")]  # noqa: RUF012
        NESTED_COMMENTS = False

    return FlinkTokenizer()


def _what_is_open(sql: str) -> int:
    """Where the quote or comment begins that does not end: all before it are tokens."""
    offsets = [found.start() for found in _OPENING.finditer(sql)]
    return next((offset for offset in reversed(offsets) if _is_whole(sql[:offset])), 0)


def _is_whole(sql: str) -> bool:
    from sqlglot.errors import TokenError

    try:
        _tokenizer().tokenize(sql)
    except TokenError:
        return False
    return True
