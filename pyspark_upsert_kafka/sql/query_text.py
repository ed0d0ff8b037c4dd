"""The text of a query in a script, as sqlglot can read it."""

from __future__ import annotations

import re

from pyspark_upsert_kafka.core.ddl import Tokens
from pyspark_upsert_kafka.core.ddl.tokens import Place, Token, place_in
from pyspark_upsert_kafka.sql.dialect import parse_query
from pyspark_upsert_kafka.sql.statements import Query

HINT = (
    "hints such as /*+ OPTIONS(...) */ are not supported: write the options into the table's WITH, where they hold for "
    "each statement."
)
QUOTES = "double quotes are not Flink's: write `name` in backticks for a name, and 'text' in single quotes for a text."
SYSTEM_TIME = "FOR SYSTEM_TIME AS OF is not supported: Spark keeps no versions of a table. Join in Python (docs/joining.md), or the table as of now in batch mode."
MATCH = "MATCH_RECOGNIZE is not supported: Spark has no counterpart."
WINDOWS = {
    "CUMULATE": "CUMULATE is not supported: Spark has no windows that grow. Use TUMBLE or HOP.",
    "SESSION": "SESSION is not supported: Spark has no session windows in update mode. Use TUMBLE or HOP.",
}
"""Windows of Flink that Spark has not, or not in streams."""

UNKNOWN = (
    "expected CREATE TABLE, CREATE VIEW, INSERT INTO, SELECT, SET, RESET, DROP, BEGIN STATEMENT SET or EXECUTE "
    "STATEMENT SET; nothing else is run here."
)

_LEAVE_OUT = "it is not needed here: leave it out."
_BY_PYTHON = "it is not run here: what it would tell can be asked in Python, with printSchema() and explain()."
_CHANGES = "a table changes by INSERT INTO only: a delete is a row with 'delete' in a column METADATA FROM 'change-type' (docs/sql.md)."

NOT_READ = {
    "USE": "there are no catalogs and databases here: name tables alone, and leave it out.",
    "ADD": "it is not needed here, since nothing is loaded into Flink: leave it out.",
    "REMOVE": _LEAVE_OUT,
    "LOAD": _LEAVE_OUT,
    "UNLOAD": _LEAVE_OUT,
    "ANALYZE": _LEAVE_OUT,
    "SHOW": _BY_PYTHON,
    "DESCRIBE": _BY_PYTHON,
    "DESC": _BY_PYTHON,
    "EXPLAIN": _BY_PYTHON,
    "ALTER": "a table of a script has one CREATE TABLE: change that, or DROP the table and create it anew.",
    "DELETE": _CHANGES,
    "UPDATE": _CHANGES,
    "TRUNCATE": "a topic cannot be emptied by SQL: delete its records with Kafka's own tools.",
    "MERGE": _CHANGES,
    "COMPILE": "Flink's plans are not known here: run the statement itself.",
    "STOP": "stop the query that run_sql returned, or the command with Ctrl-C.",
    "CALL": "procedures of catalogs are not known here.",
}
"""Statements of Flink that are not run, by their first word, and what to do instead."""


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
