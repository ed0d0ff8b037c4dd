"""Reads a call of ``FROM_CHANGELOG`` or ``TO_CHANGELOG``, whose arguments are no expressions.

The query's parser sees the name and the input only; all other arguments are read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark_upsert_kafka.core.ddl.tokens import Place, Token, Tokens

FROM, TO = "FROM_CHANGELOG", "TO_CHANGELOG"
KINDS = ("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE")
"""What a row of a changelog does, as Flink names it."""

_ARGUMENTS = {
    FROM: ("input", "op", "op_mapping", "error_handling", "uid"),
    TO: ("input", "op", "op_mapping", "produces_full_deletes", "uid"),
}
_FIELDS = {
    "op": "op", "op_mapping": "codes", "error_handling": "skips", "produces_full_deletes": "full_deletes",
}  # fmt: skip
"""The field of a call that each argument gives."""

_NO_KEY = (
    "an op_mapping with UPDATE_AFTER and without UPDATE_BEFORE needs a key, which tells what an update replaces: write input => TABLE "
    "name PARTITION BY column, or map UPDATE_BEFORE too."
)
_NO_ORDER = "ORDER BY is not supported here: changes are taken in the order of the topic's partitions. Leave it out."


class CopiedText:
    """A part of a script, in which each character keeps its distance from the first one.

    Args:
        left: The tokens of the script that are not read yet: the part begins with them.

    Attributes:
        left: The same.
        offset: Where the token that comes next begins in the script.

    >>> tokens = Tokens("INSERT INTO t SELECT TABLE a")
    >>> tokens.accept("INSERT", "INTO", "T")
    True
    >>> copied = CopiedText(tokens)
    >>> copied.copy().text, copied.skip().text, copied.copy().text, copied.text
    ('SELECT', 'TABLE', 'a', 'SELECT       a')
    """

    def __init__(self, left: Tokens) -> None:
        self.left = left
        self.offset = left.peek().offset
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """What was read of it; what was left out is blanks."""
        return "".join(self._parts)

    def copy(self) -> Token:
        """Reads a token, which is copied."""
        token = self.left.next()
        self._parts.append(self._read())
        return token

    def skip(self) -> Token:
        """Reads a token, which is left out."""
        token = self.left.next()
        self.catch_up()
        return token

    def first_letter(self) -> str:
        """With what the next token begins: a name is given without its quotes."""
        return self.left.sql[self.offset : self.offset + 1]

    def catch_up(self) -> None:
        """Leaves out what was read of the tokens by others."""
        self._parts.append(re.sub(r"[^\n]", " ", self._read()))

    def _read(self) -> str:
        """The script from where this was, up to the token that comes next."""
        begin, self.offset = self.offset, self.left.peek().offset
        return self.left.sql[begin : self.offset]


@dataclass(frozen=True)
class ChangelogCall:
    """A call of one of the two functions.

    Args:
        name: Which one.
        place: Where it begins.
        keys: The columns of ``PARTITION BY``.
        op: The column of operation codes.
        codes: The code of each kind of change, or its codes; kinds that are left out are not mapped.
        skips: Whether rows with another code, or none, are left out, and do not fail the query (FROM_CHANGELOG).
        full_deletes: Whether deletes have all columns, and not those of the key only (TO_CHANGELOG).
    """

    name: str
    place: Place
    keys: tuple[str, ...] = ()
    op: str = "op"
    codes: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {kind: (kind,) for kind in KINDS}
    )
    skips: bool = False
    full_deletes: bool = True


def read_changelog_call(copied: CopiedText, copy_part: Callable[[], None]) -> ChangelogCall:
    """Reads a call; its name and its input are copied.

    Args:
        copied: The text of the query; the call's name comes next.
        copy_part: Copies a part of a query: a token, or a call within the input.

    Raises:
        OptionError: An argument is not known, or wrong; the text gives line and column.
    """
    return _Call(copied, copy_part).read()


class _Call:
    """Reads the arguments of a call, which may stand in any order if they are named."""

    def __init__(self, copied: CopiedText, copy_part: Callable[[], None]) -> None:
        self._copied, self._copy_part = copied, copy_part
        self._tokens = copied.left
        self._begin = self._tokens.peek()
        self._name = self._begin.text.upper()
        self._values: dict[str, Any] = {}
        self._keys: tuple[str, ...] = ()

    def read(self) -> ChangelogCall:
        self._copied.copy()
        self._copied.copy()  # the bracket
        self._argument()
        while self._tokens.accept_mark(","):
            self._argument()
        if not self._tokens.peek().is_mark(")"):
            self._tokens.refuse("expected ',' or ')'")
        self._copied.catch_up()
        self._copied.copy()
        if "input" not in self._values:
            raise self._begin.place.error(f"{self._name} needs input => TABLE name.")
        given = {
            name: self._values[argument]
            for argument, name in _FIELDS.items()
            if argument in self._values
        }
        if self._name == FROM and not self._keys:
            self._check_needs_no_key(given.get("codes"))
        return ChangelogCall(self._name, self._begin.place, self._keys, **given)

    def _check_needs_no_key(self, codes: Mapping[str, tuple[str, ...]] | None) -> None:
        if codes is not None and "UPDATE_AFTER" in codes and "UPDATE_BEFORE" not in codes:
            raise self._begin.place.error(_NO_KEY)

    def _argument(self) -> None:
        known, begin = _ARGUMENTS[self._name], self._tokens.peek()
        if self._tokens.peek(1).is_mark("=") and self._tokens.peek(2).is_mark(">"):
            name = self._tokens.next().text.lower()
            self._tokens.next()
            self._tokens.next()
        else:
            name = known[min(len(self._values), len(known) - 1)]
        if name not in known:
            expected = ", ".join(known)
            raise begin.place.error(f"{self._name} has no argument '{name}': expected {expected}.")
        if name in self._values:
            raise begin.place.error(f"argument '{name}' of {self._name} is there more than once.")
        self._values[name] = self._value(name)
        self._copied.catch_up()

    def _value(self, name: str) -> Any:
        if name == "input":
            return self._input()
        if name == "op":
            return self._descriptor()
        if name == "op_mapping":
            return self._mapping()
        if name == "produces_full_deletes":
            return self._boolean()
        return self._skips() if name == "error_handling" else self._tokens.text("the uid").text

    def _input(self) -> bool:
        self._tokens.accept("TABLE")
        self._copied.catch_up()
        if self._tokens.peek().is_mark("("):
            self._query()
        else:
            self._table()
        if self._tokens.accept("PARTITION", "BY"):
            self._keys = self._columns()
        if self._tokens.peek().is_word("ORDER"):
            raise self._tokens.peek().place.error(_NO_ORDER)
        return True

    def _table(self) -> None:
        """Copies the name of a table."""
        if self._tokens.peek().kind not in ("word", "name"):
            self._tokens.refuse("expected TABLE and its name, or a query in brackets")
        self._copied.copy()
        while self._tokens.peek().is_mark("."):
            self._copied.copy()
            self._copied.copy()

    def _query(self) -> None:
        """Copies a query with the brackets around it."""
        depth = 0
        while True:
            token = self._tokens.peek()
            if token.kind == "end":
                self._tokens.refuse("expected ')'")
            depth += token.is_mark("(") - token.is_mark(")")
            self._copy_part()
            if not depth:
                return

    def _columns(self) -> tuple[str, ...]:
        if not self._tokens.peek().is_mark("("):
            return (self._tokens.name("a column's name").text,)
        return tuple(self._tokens.name("a column's name").text for _ in self._tokens.separated())

    def _descriptor(self) -> str:
        self._tokens.expect("DESCRIPTOR")
        self._tokens.expect_mark("(")
        name = self._tokens.name("a column's name").text
        self._tokens.expect_mark(")", "one column and ')'")
        return name

    def _skips(self) -> bool:
        token = self._tokens.text("FAIL or SKIP")
        if token.text not in ("FAIL", "SKIP"):
            raise token.place.error(
                f"'error_handling' is '{token.text}': expected 'FAIL' or 'SKIP'."
            )
        return token.text == "SKIP"

    def _boolean(self) -> bool:
        if not self._tokens.peek().is_word("TRUE", "FALSE"):
            self._tokens.refuse("expected TRUE or FALSE")
        return self._tokens.next().is_word("TRUE")

    def _mapping(self) -> dict[str, tuple[str, ...]]:
        """The codes by kind: FROM_CHANGELOG maps codes to kinds, and TO_CHANGELOG kinds to codes."""
        codes: dict[str, tuple[str, ...]] = {}
        seen: set[str] = set()
        for key, value in self._pairs():
            kinds, its = (value, key) if self._name == FROM else (key, value)
            several = _split(its) if self._name == FROM else (its.text,)
            if self._name == FROM and not seen.isdisjoint(several):
                raise its.place.error(f"a code of '{its.text}' is mapped more than once.")
            seen.update(several)
            for kind in _split(kinds) if self._name == TO else (kinds.text.strip(),):
                self._check_kind(kind, kinds, codes)
                codes[kind] = several
        return codes

    def _check_kind(self, kind: str, token: Token, codes: Mapping[str, Any]) -> None:
        if kind not in KINDS:
            raise token.place.error(
                f"'{kind}' is no kind of change: expected {', '.join(KINDS)}, in capital letters."
            )
        if kind in codes:
            raise token.place.error(
                f"{kind} is mapped more than once: several codes of one kind stand in one text, as in MAP['c, r', 'INSERT']."
            )

    def _pairs(self) -> list[tuple[Token, Token]]:
        self._tokens.expect("MAP")
        self._tokens.expect_mark("[")
        pairs = [self._pair()]
        while self._tokens.accept_mark(","):
            pairs.append(self._pair())
        self._tokens.expect_mark("]", "',' or ']'")
        return pairs

    def _pair(self) -> tuple[Token, Token]:
        key = self._tokens.text("a constant")
        self._tokens.expect_mark(",")
        return key, self._tokens.text("a constant")


def _split(token: Token) -> tuple[str, ...]:
    return tuple(part.strip() for part in token.text.split(","))
