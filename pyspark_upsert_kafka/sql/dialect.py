"""Queries of Flink's SQL, as sqlglot reads them.

sqlglot has no dialect of Flink. This one reads the common part, and every function but a few as no more than a
name with arguments: what each node and each function means is said in ``expressions`` and ``functions``, and what is not
there is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import ParseError, TokenError

from pyspark_upsert_kafka.core.ddl.tokens import Place, place_in

_TYPED = ("AVG", "COALESCE", "COUNT", "MAX", "MIN", "SUM")
_WITH_SYNTAX = ("CAST", "CEIL", "EXTRACT", "FLOOR", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST")


FUNCTIONS_WITH_SYNTAX = (*_TYPED, *_WITH_SYNTAX)
"""Functions that are read as more than a name with arguments."""


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
        OptionError: It is not understood; it names line and column.
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
        OptionError: It is nested too deeply; it names line and column.
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
