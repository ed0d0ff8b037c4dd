"""Reads a query out of a script, with sqlglot.

sqlglot has no dialect of Flink. The one here reads what the dialects have in common, and nearly every function as a name
with arguments. ``expressions`` and ``functions`` say which nodes and functions are supported; all others are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import ParseError, TokenError

from pyspark_upsert_kafka.core.ddl import Tokens
from pyspark_upsert_kafka.core.ddl.tokens import Place, Token, place_in
from pyspark_upsert_kafka.sql.changelog_calls import (
    FROM,
    TO,
    ChangelogCall,
    read_changelog_call,
)
from pyspark_upsert_kafka.sql.copied_text import CopiedText
from pyspark_upsert_kafka.sql.statements import Query

_TYPED = ("AVG", "COALESCE", "COUNT", "MAX", "MIN", "SUM")
_WITH_SYNTAX = ("CAST", "CEIL", "EXTRACT", "FLOOR", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST")


FUNCTIONS_WITH_SYNTAX = (*_TYPED, *_WITH_SYNTAX)
"""Functions that are read as more than a name with arguments."""

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


class _FlinkTokenizer(tokens.Tokenizer):
    """Flink's quotes, comments and names of types."""

    KEYWORDS = {  # noqa: RUF012 - as sqlglot has it
        **tokens.Tokenizer.KEYWORDS,
        "BYTES": tokens.Tokenizer.KEYWORDS["VARBINARY"],
        "ROW": tokens.Tokenizer.KEYWORDS["STRUCT"],
    }
    IDENTIFIERS = ["`"]  # noqa: RUF012 - as sqlglot has it
    COMMENTS = ["--", "//", ("/*", "*/")]  # noqa: RUF012
    NESTED_COMMENTS = False


class _FlinkParser(parser.Parser):
    """Functions keep their names."""

    FUNCTIONS = {name: parser.Parser.FUNCTIONS[name] for name in _TYPED}  # noqa: RUF012
    FUNCTION_PARSERS = {name: parser.Parser.FUNCTION_PARSERS[name] for name in _WITH_SYNTAX}  # noqa: RUF012


class Flink(Dialect):
    """The part of Flink's SQL that is read here."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE
    Tokenizer = _FlinkTokenizer
    Parser = _FlinkParser


def parse_query(text: str, script: str) -> exp.Expr:
    """The query in a text.

    Args:
        text: The script up to the query's end, with blanks for what stands before the query: so that offsets are
            those in the script.
        script: The script.

    Raises:
        OptionError: It is not understood; the text gives line and column.
    """
    begin = place_in(script, len(text) - len(text.lstrip()))
    try:
        with depth_refused(begin):
            found = [tree for tree in Flink.get_or_raise(Flink).parse(text) if tree is not None]
    except ParseError as error:
        raise _place(error, script).error(_sentence(error)) from None
    except TokenError:
        raise begin.error("this query cannot be read.") from None
    (tree,) = found
    return tree


@contextmanager
def depth_refused(place: Place) -> Iterator[None]:
    """Refuses a query that is nested deeper than Python calls functions.

    Args:
        place: Where the query begins.

    Raises:
        OptionError: It is nested too deeply; the text gives line and column.
    """
    try:
        yield
    except RecursionError:
        raise place.error(
            "this query is nested too deeply: it has too many brackets or queries in one another. Make views of its parts."
        ) from None


def place_of(node: exp.Expr, script: str) -> Place | None:
    """Where a part of a query begins, as far as its own parts or those around it know."""
    around: exp.Expr | None = node
    while around is not None:
        starts = [part.meta["start"] for part in around.walk() if "start" in part.meta]
        if starts:
            return place_in(script, min(starts))
        around = around.parent
    return None


def _place(error: ParseError, script: str) -> Place:
    first = error.errors[0]
    line, end, word = first["line"] or 1, first["col"] or 1, first["highlight"] or ""
    lines = script.split("\n")
    return Place(min(line, len(lines)), max(end - len(word) + 1, 1))


def _sentence(error: ParseError) -> str:
    word = error.errors[0]["highlight"]
    if not word:
        return "the query ends too early."
    return f"'{word}' is not expected here, or not understood in a query."


def refuse_hints(script: str) -> None:
    """Raises OptionError where there is a hint, which is a comment for those who read tokens."""
    for found in _QUOTED_OR_COMMENT.finditer(script):
        if found[0].startswith("/*+"):
            raise place_in(script, found.start()).error(HINT)


def read_query(left: Tokens, script: str) -> Query:
    """Reads a query up to the semicolon or the ``ON CONFLICT`` behind it.

    Args:
        left: The tokens of the script that are not read yet: the query begins there.
        script: The script.

    Raises:
        OptionError: It is not understood, or not supported; the text gives line and column.
    """
    begin = left.peek()
    if not (begin.is_word("SELECT", "WITH", "VALUES") or begin.is_mark("(")):
        left.refuse("expected SELECT, VALUES or WITH")
    copied = CopiedText(left, script)
    calls: dict[int, ChangelogCall] = {}
    while not _ends(left):
        _copy_part(copied, calls)
    return Query(parse_query(copied.text, script), begin.place, script, calls)


def _ends(left: Tokens) -> bool:
    token = left.peek()
    return (
        token.kind == "end"
        or token.is_mark(";")
        or (token.is_word("ON") and left.peek(1).is_word("CONFLICT") and left.peek(2).is_word("DO"))
    )


def _copy_part(copied: CopiedText, calls: dict[int, ChangelogCall]) -> None:
    """Copies a token, or a call of FROM_CHANGELOG or TO_CHANGELOG, of which the rest is kept by its offset."""
    token, after = copied.left.peek(), copied.left.peek(1)
    _refuse(token, after, copied.first_letter())
    if token.is_word(FROM, TO) and after.is_mark("("):
        offset = len(copied.text)
        calls[offset] = read_changelog_call(copied, lambda: _copy_part(copied, calls))
    elif token.is_word("TABLE") and after.kind in ("word", "name") and not after.is_word(FROM, TO):
        # As window functions name a table, which sqlglot knows without the word only.
        copied.skip()
    else:
        copied.copy()


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
