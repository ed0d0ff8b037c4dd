"""The text of a query in a script, as sqlglot can read it."""

from __future__ import annotations

import re

from pyspark_upsert_kafka.core.ddl import Tokens
from pyspark_upsert_kafka.core.ddl.tokens import Place, Token, place_in
from pyspark_upsert_kafka.sql.dialect import parse_query
from pyspark_upsert_kafka.sql.refusals import HINT, MATCH, QUOTES, SYSTEM_TIME, WINDOWS
from pyspark_upsert_kafka.sql.statements import Query

_QUOTED_OR_COMMENT = re.compile(
    r"'(?:[^']|'')*'|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|--[^\n]*|//[^\n]*|/\*.*?\*/", re.DOTALL
)


def refuse_hints(script: str) -> None:
    """Raises OptionError where there is a hint, which is a comment for those who read tokens."""
    for found in _QUOTED_OR_COMMENT.finditer(script):
        if found[0].startswith("/*+"):
            raise place_in(script, found.start()).error(HINT)


def read_query(tokens: Tokens, script: str) -> Query:
    """Reads a query up to the semicolon behind it.

    Args:
        tokens: Those of the script, at the query's beginning.
        script: The script.

    Raises:
        OptionError: It is not understood, or not supported; it names line and column.
    """
    begin = tokens.peek()
    if not (begin.is_word("SELECT", "WITH", "VALUES") or begin.is_mark("(")):
        tokens.refuse("expected SELECT, VALUES or WITH")
    text = re.sub(r"[^\n]", " ", script[: offset_of(begin.place, script)])
    while tokens.peek().kind != "end" and not tokens.peek().is_mark(";"):
        token, after = tokens.next(), tokens.peek()
        offset, end = offset_of(token.place, script), offset_of(after.place, script)
        _refuse(token, after, script[offset])
        if token.is_word("TABLE") and after.kind in ("word", "name"):
            # As window functions name a table, which sqlglot knows without the word only.
            text += " " * len("TABLE")
            offset += len("TABLE")
        text += script[offset:end]
    return Query(parse_query(text, script), begin.place, script)


def _refuse(token: Token, after: Token, first_letter: str) -> None:
    """Refuses what sqlglot would read as something else, or only in some of its versions."""
    if token.kind == "name" and first_letter == '"':
        raise token.place.error(QUOTES)
    if token.is_word(*WINDOWS) and after.is_mark("("):
        raise token.place.error(WINDOWS[token.text.upper()])
    if token.is_word("MATCH_RECOGNIZE") and after.is_mark("("):
        raise token.place.error(MATCH)
    if token.is_word("FOR") and after.is_word("SYSTEM_TIME"):
        raise token.place.error(SYSTEM_TIME)


def offset_of(place: Place, script: str) -> int:
    """Which character stands at a place.

    >>> offset_of(place_in("a" + chr(10) + "bc", 3), "a" + chr(10) + "bc")
    3
    """
    lines = script.split("\n")
    return sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1
