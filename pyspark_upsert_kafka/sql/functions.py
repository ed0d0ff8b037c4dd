"""Functions of Flink's SQL, as calls of Spark's that give the same.

A function that is not here is refused: many have the same name in both and differ, such as GREATEST, which is NULL in
Flink where any argument is, or REGEXP_EXTRACT, which counts its groups from 0. ``tests/flink`` evaluates each of these
in Flink and in Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

IN_SPARK = "in-spark"
"""Marks a node that is Spark's already."""

Arguments = Sequence[exp.Expr]


@dataclass(frozen=True)
class Function:
    """What a function of Flink is in Spark.

    Args:
        least: How many arguments it takes at least.
        most: How many at most.
        make: Makes the call for Spark of the arguments.
    """

    least: int
    most: int
    make: Callable[[Arguments], exp.Expr]


def _typed(name: str, kind: str, least: int, most: int | None = None) -> Function:
    """A function that has this name in Spark and gives this type."""

    def make(arguments: Arguments) -> exp.Expr:
        return spark_cast(exp.Anonymous(this=name, expressions=list(arguments)), kind)

    return Function(least, least if most is None else most, make)


def spark_cast(node: exp.Expr, kind: str) -> exp.Expr:
    """A value in its type, which those around it then know; where Spark gives the same, it does nothing."""
    made = exp.Cast(this=node, to=exp.DataType.build(kind, dialect="spark"))
    made.meta[IN_SPARK] = True
    return made


def located(arguments: Arguments) -> exp.Expr:
    """Where the first text stands in the second, counted from 1."""
    return spark_cast(exp.Anonymous(this="instr", expressions=[arguments[1], arguments[0]]), "INT")


def _timestamp_ltz(arguments: Arguments) -> exp.Expr:
    """A number of seconds or milliseconds as a point in time."""
    number, digits = arguments
    names = {"0": "timestamp_seconds", "3": "timestamp_millis"}
    if not isinstance(digits, exp.Literal) or digits.name not in names:
        raise ValueError("TO_TIMESTAMP_LTZ takes 0 for seconds or 3 for milliseconds")
    return spark_cast(exp.Anonymous(this=names[digits.name], expressions=[number]), "TIMESTAMP")


def _date_format(arguments: Arguments) -> exp.Expr:
    time, pattern = arguments
    if not isinstance(pattern, exp.Literal) or not re.fullmatch(
        r"(yyyy|MM|dd|HH|mm|ss|SSS|[^A-Za-z'\[\]{}#\"])*", pattern.name
    ):
        raise ValueError(
            "DATE_FORMAT takes a pattern of yyyy, MM, dd, HH, mm, ss and SSS, which mean the same in Spark"
        )
    return spark_cast(exp.Anonymous(this="date_format", expressions=[time, pattern]), "STRING")


def _substring(arguments: Arguments) -> exp.Expr:
    start, length = arguments[1], arguments[2:]
    if not _is_whole(start) or start.name == "0" or not all(map(_is_whole, length)):
        raise ValueError(
            "SUBSTRING takes a start of 1 or more and a length of 0 or more, written as numbers: Spark counts others differently"
        )
    return _text("substring", arguments)


def _is_whole(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_int


def _replace(arguments: Arguments) -> exp.Expr:
    search = arguments[1]
    if not isinstance(search, exp.Literal) or not search.name:
        raise ValueError(
            "REPLACE takes a text in quotes to search for: an empty one gives something else in Spark"
        )
    return _text("replace", arguments)


def _regexp_replace(arguments: Arguments) -> exp.Expr:
    replacement = arguments[2]
    if not isinstance(replacement, exp.Literal) or set("$\\") & set(replacement.name):
        raise ValueError(
            "REGEXP_REPLACE takes a replacement in quotes without $ and \\: they stand for themselves in Flink, and not in Spark"
        )
    return _text("regexp_replace", arguments)


def _text(name: str, arguments: Arguments) -> exp.Expr:
    return spark_cast(exp.Anonymous(this=name, expressions=list(arguments)), "STRING")


def _part(unit: str) -> Function:
    return Function(1, 1, lambda given: extract(unit, given[0]))


def extract(unit: str, time: exp.Expr) -> exp.Expr:
    """A field of a date or time, as a whole number."""
    return spark_cast(exp.Extract(this=exp.var(unit), expression=time), "BIGINT")


MANY = 255

FUNCTIONS: dict[str, Function] = {
    "ABS": Function(1, 1, lambda given: exp.Abs(this=given[0])),
    "CARDINALITY": _typed("cardinality", "INT", 1),
    "CHARACTER_LENGTH": _typed("char_length", "INT", 1),
    "CHAR_LENGTH": _typed("char_length", "INT", 1),
    "CONCAT": _typed("concat", "STRING", 1, MANY),
    "CONCAT_WS": _typed("concat_ws", "STRING", 2, MANY),
    "DATE_FORMAT": Function(2, 2, _date_format),
    "DAYOFMONTH": _part("DAY"),
    "EXP": _typed("exp", "DOUBLE", 1),
    "HOUR": _part("HOUR"),
    "IF": Function(3, 3, lambda given: exp.If(this=given[0], true=given[1], false=given[2])),
    "IFNULL": Function(2, 2, lambda given: exp.Coalesce(this=given[0], expressions=[given[1]])),
    "INSTR": Function(2, 2, lambda given: located([given[1], given[0]])),
    "LEFT": _typed("left", "STRING", 2),
    "LOCALTIMESTAMP": _typed("localtimestamp", "TIMESTAMP_NTZ", 0),
    "LOCATE": Function(2, 2, located),
    "LOWER": _typed("lower", "STRING", 1),
    "MD5": _typed("md5", "STRING", 1),
    "MINUTE": _part("MINUTE"),
    "MOD": Function(2, 2, lambda given: exp.Mod(this=exp.paren(given[0]), expression=exp.paren(given[1]))),
    "MONTH": _part("MONTH"),
    "NOW": _typed("now", "TIMESTAMP", 0),
    "NULLIF": Function(2, 2, lambda given: exp.Nullif(this=given[0], expression=given[1])),
    "POWER": _typed("power", "DOUBLE", 2),
    "QUARTER": _part("QUARTER"),
    "REGEXP_REPLACE": Function(3, 3, _regexp_replace),
    "REPEAT": _typed("repeat", "STRING", 2),
    "REPLACE": Function(3, 3, _replace),
    "REVERSE": _typed("reverse", "STRING", 1),
    "RIGHT": _typed("right", "STRING", 2),
    "SECOND": _part("SECOND"),
    "SHA1": _typed("sha1", "STRING", 1),
    "SQRT": _typed("sqrt", "DOUBLE", 1),
    "SUBSTR": Function(2, 3, _substring),
    "SUBSTRING": Function(2, 3, _substring),
    "TO_TIMESTAMP_LTZ": Function(2, 2, _timestamp_ltz),
    "UPPER": _typed("upper", "STRING", 1),
    "YEAR": _part("YEAR"),
}  # fmt: skip
"""The functions that are read as a name with arguments."""

OVER_ROWS = frozenset({"DENSE_RANK", "LAG", "LEAD", "RANK", "ROW_NUMBER"})
"""Those that have an OVER, and are the same in both."""
