"""Rejects an argument of a function if it has a known type that Flink does not take there.

Spark casts such an argument silently (``TRUE`` to ``true``, where Flink has ``TRUE``), or fails with an error about the query that
it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from pyspark_upsert_kafka.sql.flink_query import Query, place_in_query
from pyspark_upsert_kafka.sql.signatures import Arguments
from pyspark_upsert_kafka.sql.sql_types import NESTED, NUMBERS, TEXTS, kind_of

_TIMES = ("DATE", "TIMESTAMPNTZ", "TIMESTAMPTZ")
_EXPECTED = "expected"
"""Marks an argument with what is expected of it."""


@dataclass(frozen=True)
class _Expected:
    function: str
    argument: str
    family: str

    def complaint(self, kind: str) -> str:
        target = {"text": " AS STRING", "time": " AS TIMESTAMP(3)"}.get(self.family, "")
        return (
            f"function {self.function}: '{self.argument}' must be a {self.family}, but is {kind}: "
            f"CAST it{target}."
        )


_FAMILIES = {
    "text": ("text", "part", "characters", "others", "replacement", "separator"),
    "number": (
        "number", "by", "base", "exponent", "x", "y", "code", "length", "times", "index", "seconds", "milliseconds",
    ),
    "time": ("time", "begin_", "end_"),
}  # fmt: skip
"""The names of arguments in the table of functions, by what they are."""

_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names}
_REFUSED = {
    "text": {*NUMBERS, *_TIMES, *NESTED, "BOOLEAN"},
    "number": {*TEXTS, *_TIMES, *NESTED, "BOOLEAN"},
    "time": {*NUMBERS, *TEXTS, *NESTED, "BOOLEAN"},
}


def expect_types(function: str, names: Sequence[str], arguments: Arguments) -> None:
    """Marks the arguments of a call, whose types are not known yet.

    Args:
        function: The function.
        names: What the table of functions calls its arguments; the last one is meant for all that follow.
        arguments: The arguments.
    """
    for at, argument in enumerate(arguments):
        name = names[min(at, len(names) - 1)]
        name = names[-2] if name == "more" else name  # `text, more...`: more texts
        if family := _FAMILY_OF.get(name):
            argument.meta[_EXPECTED] = _Expected(function, name.rstrip("_"), family)


def expect_the_same(node: exp.Expr, made: exp.Expr) -> exp.Expr:
    """Marks what replaces an argument as the argument is marked, and returns it."""
    if _EXPECTED in node.meta:
        made.meta[_EXPECTED] = node.meta[_EXPECTED]
    return made


def check_types(nodes: Iterable[exp.Expr], query: Query) -> None:
    """Checks nodes that are marked, and whose types are known.

    Raises:
        OptionError: A type is another one than expected; the text gives line and column.
    """
    for node in nodes:
        expected = node.meta.get(_EXPECTED)
        if expected and node.type is not None and kind_of(node) in _REFUSED[expected.family]:
            kind = node.type.sql("spark").replace("VARCHAR", "STRING")
            raise place_in_query(node, query).error(expected.complaint(kind))
