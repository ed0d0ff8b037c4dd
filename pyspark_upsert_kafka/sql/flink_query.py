"""A query of Flink's SQL: how it is read out of a script, and which of its parts mean the same in Spark.

sqlglot has no dialect of Flink. The one here reads what the dialects have in common, and nearly every function as a name
with arguments. Every part of a query that is not known to mean the same in Spark is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import ParseError, TokenError

from pyspark_upsert_kafka.core.ddl.tokens import Place, Token, Tokens, place_in
from pyspark_upsert_kafka.core.pages import page
from pyspark_upsert_kafka.sql.changelog_calls import (
    FROM,
    TO,
    ChangelogCall,
    CopiedText,
    read_changelog_call,
)

_TYPED = ("AVG", "COALESCE", "COUNT", "MAX", "MIN", "SUM")
_WITH_SYNTAX = ("CAST", "CEIL", "EXTRACT", "FLOOR", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST")


FUNCTIONS_WITH_SYNTAX = (*_TYPED, *_WITH_SYNTAX)
"""Functions that are read as more than a name with arguments."""

_HINT = (
    "hints such as /*+ OPTIONS(...) */ are not supported: write the options into the table's WITH, where they hold for "
    "each statement."
)
_QUOTES = "double quotes are not Flink's: write `name` in backticks for a name, and 'text' in single quotes for a text."
_SYSTEM_TIME = f"FOR SYSTEM_TIME AS OF is not supported: Spark keeps no versions of a table. Join in Python ({page('joining.md')}), or the table as of now in batch mode."
_MATCH = "MATCH_RECOGNIZE is not supported: Spark has no counterpart."
_WINDOWS = {
    "CUMULATE": "CUMULATE is not supported: Spark has no windows that grow. Use TUMBLE or HOP.",
    "SESSION": "SESSION is not supported: Spark has no session windows in update mode. Use TUMBLE or HOP.",
}
"""Windows of Flink that Spark has not, or not in streams."""

_QUOTED_OR_COMMENT = re.compile(
    r"'(?:[^']|'')*'|`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|--[^\n]*|//[^\n]*|/\*.*?\*/", re.DOTALL
)


Path = tuple[str, ...]
"""The name of a table or view: its catalog and database first where they are given."""

_OURS = ("default_catalog", "default_database")


def without_default(path: Path) -> Path:
    """The name without Flink's default catalog and database, which a script need not write.

    >>> without_default(("default_catalog", "default_database", "t")), without_default(("d", "t"))
    (('t',), ('d', 't'))
    """
    for name in _OURS:
        if len(path) > 1 and path[0] == name:
            path = path[1:]
    return path


@dataclass(frozen=True)
class Query:
    """A ``SELECT``, ``VALUES`` or ``WITH``.

    Args:
        tree: The query as sqlglot reads it; its nodes have their place as an offset in the script.
        place: Where it begins.
        place_of: From an offset in the script to its place.
        calls: Its calls of FROM_CHANGELOG and TO_CHANGELOG, by their offset in the script.
    """

    tree: exp.Expr
    place: Place
    place_of: Callable[[int], Place] = field(repr=False, compare=False)
    calls: Mapping[int, ChangelogCall] = field(default_factory=dict, repr=False, hash=False)


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


def _parsed(text: str, begin: Token) -> exp.Expr:
    """The query in a text; its nodes have their offsets in the script.

    Args:
        text: The query.
        begin: Its first token.

    Raises:
        OptionError: It is not understood; the text gives line and column.
    """
    try:
        with depth_refused(begin.place):
            found = [tree for tree in Flink.get_or_raise(Flink).parse(text) if tree is not None]
    except ParseError as error:
        raise _place_of(error, text, begin.place).error(_unread(error)) from None
    except TokenError:
        raise begin.place.error("this query cannot be read.") from None
    (tree,) = found
    for node in tree.walk():
        if "start" in node.meta:
            node.meta["start"] += begin.offset
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


def _begin_of(node: exp.Expr) -> int | None:
    """Where a part of a query begins, as far as its own parts or those around it know."""
    around: exp.Expr | None = node
    while around is not None:
        # A type may be one that the query has got here: its text begins elsewhere.
        parts = around.walk(prune=lambda part: isinstance(part, exp.DataType))
        starts: list[int] = [part.meta["start"] for part in parts if "start" in part.meta]
        if starts:
            return min(starts)
        around = around.parent
    return None


def _place_of(error: ParseError, text: str, begin: Place) -> Place:
    """Where a query that begins there is not understood."""
    first = error.errors[0]
    line, end, word = first["line"] or 1, first["col"] or 1, first["highlight"] or ""
    line, column = min(line, text.count("\n") + 1), max(end - len(word) + 1, 1)
    return Place(begin.line + line - 1, column + (begin.column - 1 if line == 1 else 0))


def _unread(error: ParseError) -> str:
    word = error.errors[0]["highlight"]
    if not word:
        return "the query ends too early."
    return f"'{word}' is not expected here, or not understood in a query."


def refuse_hints(script: str) -> None:
    """Raises OptionError where there is a hint, which is a comment for those who read tokens."""
    for found in _QUOTED_OR_COMMENT.finditer(script):
        if found[0].startswith("/*+"):
            raise place_in(script, found.start()).error(_HINT)


def read_query(left: Tokens) -> Query:
    """Reads a query up to the semicolon or the ``ON CONFLICT`` behind it.

    Args:
        left: The tokens of the script that are not read yet: the query begins there.

    Raises:
        OptionError: It is not understood, or not supported; the text gives line and column.
    """
    begin = left.peek()
    if not (begin.is_word("SELECT", "WITH", "VALUES") or begin.is_mark("(")):
        left.refuse("expected SELECT, VALUES or WITH")
    copied = CopiedText(left)
    calls: dict[int, ChangelogCall] = {}
    while not _ends(left):
        _copy_part(copied, calls)
    return Query(_parsed(copied.text, begin), begin.place, left.place_of, calls)


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
        offset = copied.offset
        calls[offset] = read_changelog_call(copied, lambda: _copy_part(copied, calls))
    elif token.is_word("TABLE") and after.kind in ("word", "name") and not after.is_word(FROM, TO):
        # As window functions name a table, which sqlglot knows without the word only.
        copied.skip()
    else:
        copied.copy()


def _refuse(token: Token, after: Token, first_letter: str) -> None:
    """Refuses what sqlglot would read as something else, or only in some of its versions."""
    if token.kind == "name" and first_letter == '"':
        raise token.place.error(_QUOTES)
    if token.is_word(*_WINDOWS) and after.is_mark("("):
        raise token.place.error(_WINDOWS[token.text.upper()])
    if token.is_word("MATCH_RECOGNIZE") and after.is_mark("("):
        raise token.place.error(_MATCH)
    if token.is_word("FOR") and after.is_word("SYSTEM_TIME"):
        raise token.place.error(_SYSTEM_TIME)


def place_in_query(node: exp.Expr, query: Query) -> Place:
    """The place of a part of a query; the place of the query if the part has none."""
    begin = _begin_of(node)
    return query.place if begin is None else query.place_of(begin)


def shown(node: exp.Expr) -> str:
    """The text of a part of a query; a long text is shortened."""
    text = node.sql(Flink, comments=False)
    return text if len(text) <= 60 else f"{text[:60]}..."


def called(table: exp.Table) -> exp.Anonymous | None:
    """The call of a table function; None = it is none that is known here."""
    call = table.this
    if call.name.upper() == "TABLE":  # Flink 2 takes the function without it too
        call = call.expressions[0] if len(call.expressions) == 1 else None
    return call if isinstance(call, exp.Anonymous) else None


def table_named(column: exp.Column) -> exp.Table:
    """The table whose name, as an argument, is read as a column's."""
    parts = [column.args.get(part) for part in ("db", "table", "this")]
    names = [part for part in parts if part][::-1]
    return exp.Table(**dict(zip(("this", "db", "catalog"), names, strict=False)))


_TWO = frozenset({"this", "expression"})
_ONE = frozenset({"this"})
_NONE: frozenset[str] = frozenset()
_LIST = frozenset({"expressions"})
_SET_OPERATION = _TWO | {"distinct", "with_", "order", "limit", "offset"}

_KNOWN: dict[type[exp.Expr], frozenset[str]] = {
    # queries
    exp.Select: _LIST | {
        "from_", "joins", "where", "group", "having", "distinct", "order", "limit", "offset", "with_",
    },
    exp.From: _ONE, exp.Where: _ONE, exp.Having: _ONE, exp.Distinct: _LIST,
    exp.Group: _LIST | {"grouping_sets", "cube", "rollup"},
    exp.GroupingSets: _LIST, exp.Cube: _LIST, exp.Rollup: _LIST,
    exp.Order: _LIST, exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}), exp.Offset: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind"}),
    exp.Table: frozenset({"this", "db", "catalog", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Subquery: frozenset({"this", "alias", "with_", "order", "limit", "offset"}),
    exp.Values: frozenset({"expressions", "alias"}), exp.Tuple: _LIST,
    exp.Unnest: frozenset({"expressions", "alias", "offset"}),
    exp.With: _LIST, exp.CTE: frozenset({"this", "alias"}),
    exp.Union: _SET_OPERATION, exp.Intersect: _SET_OPERATION, exp.Except: _SET_OPERATION,
    # names and literals
    exp.Alias: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}), exp.Dot: _TWO,
    exp.Identifier: frozenset({"this", "quoted"}), exp.Star: _NONE, exp.Var: _ONE,
    exp.Literal: frozenset({"this", "is_string"}), exp.Boolean: _ONE, exp.Null: _NONE,
    exp.Interval: frozenset({"this", "unit"}),
    # conditions
    exp.And: _TWO, exp.Or: _TWO, exp.Not: _ONE, exp.Paren: _ONE,
    exp.EQ: _TWO, exp.NEQ: _TWO, exp.GT: _TWO, exp.GTE: _TWO, exp.LT: _TWO, exp.LTE: _TWO,
    exp.NullSafeEQ: _TWO, exp.NullSafeNEQ: _TWO, exp.Is: _TWO, exp.Like: _TWO | {"negate"},
    exp.Between: frozenset({"this", "low", "high"}),
    exp.In: frozenset({"this", "expressions", "query"}), exp.Exists: _ONE,
    exp.Case: frozenset({"this", "ifs", "default"}), exp.If: frozenset({"this", "true", "false"}),
    # values
    exp.Add: _TWO, exp.Sub: _TWO, exp.Mul: _TWO, exp.Div: _TWO, exp.Mod: _TWO, exp.Neg: _ONE,
    exp.DPipe: _TWO | {"safe"}, exp.Bracket: frozenset({"this", "expressions"}), exp.Array: _LIST,
    exp.Cast: frozenset({"this", "to"}), exp.TryCast: frozenset({"this", "to", "requires_string", "safe"}),
    exp.DataType: frozenset({"this", "expressions", "nested", "kind"}), exp.DataTypeParam: _ONE,
    exp.ColumnDef: frozenset({"this", "kind"}),
    # functions
    exp.Coalesce: frozenset({"this", "expressions"}), exp.Extract: _TWO,
    exp.Trim: frozenset({"this", "position", "expression"}),
    exp.StrPosition: frozenset({"this", "substr"}), exp.Substring: frozenset({"this", "start", "length"}),
    exp.Floor: frozenset({"this", "to"}), exp.Ceil: frozenset({"this", "to"}),
    exp.CurrentDate: _NONE, exp.CurrentTimestamp: _NONE,
    exp.Count: frozenset({"this", "big_int"}), exp.Sum: _ONE, exp.Avg: _ONE, exp.Min: _ONE, exp.Max: _ONE,
    exp.Filter: _TWO, exp.Anonymous: frozenset({"this", "expressions"}), exp.Kwarg: _TWO,
    exp.Window: frozenset({"this", "partition_by", "order", "over", "spec"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
}  # fmt: skip
"""Each kind of node, and those of its parts that are understood."""

_SENTENCES: dict[type[exp.Expr], str] = {
    exp.Lateral: "LATERAL is not supported: Spark has no table functions of Flink. Use Python for this step.",
    exp.Escape: "ESCAPE is not supported: use POSITION, or LIKE without it.",
}


def check_parts(query: Query) -> None:
    """Rejects the parts of a query that are not known to mean the same in Spark.

    Args:
        query: The query as it was read.

    Raises:
        OptionError: There is such a part; the text gives line and column.
    """
    for node in query.tree.walk(bfs=False):
        unknown = _unknown_part(node)
        if unknown is not None:
            raise place_in_query(unknown, query).error(_rejection(unknown))
        if isinstance(node, exp.Like) and _has_backslash(node.expression):
            raise place_in_query(node, query).error(
                "a backslash in LIKE escapes in Spark, and does not in Flink: use POSITION or '='."
            )


def _unknown_part(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.With) and node.args.get("recursive"):
        return node
    parts = _KNOWN.get(type(node))
    if parts is None:
        return node
    for name, value in node.args.items():
        if name not in parts and value not in (None, False, []):
            first = value[0] if isinstance(value, list) else value
            return first if isinstance(first, exp.Expr) else node
    return None


def _rejection(node: exp.Expr) -> str:
    for kind, sentence in _SENTENCES.items():
        if isinstance(node, kind) or node.find(kind):
            return sentence
    return f"'{shown(node)}' is not known to mean the same in Spark as in Flink, so it is not run."


def _has_backslash(pattern: exp.Expr) -> bool:
    return not isinstance(pattern, exp.Literal) or "\\" in pattern.name
