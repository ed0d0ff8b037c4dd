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

from pyspark_upsert_kafka.sql.expressions import place_in_query
from pyspark_upsert_kafka.sql.statements import Query

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


def _swapped(arguments: Arguments) -> exp.Expr:
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


_MANY = 255

FUNCTIONS: dict[str, Function] = {
    "ABS": Function(1, 1, lambda given: exp.Abs(this=given[0])),
    "CARDINALITY": _typed("cardinality", "INT", 1),
    "CHARACTER_LENGTH": _typed("char_length", "INT", 1),
    "CHAR_LENGTH": _typed("char_length", "INT", 1),
    "CONCAT": _typed("concat", "STRING", 1, _MANY),
    "CONCAT_WS": _typed("concat_ws", "STRING", 2, _MANY),
    "DATE_FORMAT": Function(2, 2, _date_format),
    "DAYOFMONTH": _part("DAY"),
    "EXP": _typed("exp", "DOUBLE", 1),
    "HOUR": _part("HOUR"),
    "IF": Function(3, 3, lambda given: exp.If(this=given[0], true=given[1], false=given[2])),
    "IFNULL": Function(2, 2, lambda given: exp.Coalesce(this=given[0], expressions=[given[1]])),
    "INSTR": Function(2, 2, lambda given: _swapped([given[1], given[0]])),
    "LEFT": _typed("left", "STRING", 2),
    "LOCALTIMESTAMP": _typed("localtimestamp", "TIMESTAMP_NTZ", 0),
    "LOCATE": Function(2, 2, _swapped),
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

_EXTRACTED = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})

_INSTEAD = {
    "PROCTIME": "Spark has no column of processing time: use CURRENT_TIMESTAMP.",
    "CURRENT_WATERMARK": "Spark shows no watermark to a query.",
    "FIRST_VALUE": "which row is the first differs from run to run: use MIN of what orders them.",
    "LAST_VALUE": "which row is the last differs from run to run: use MAX of what orders them.",
    "LISTAGG": "the order of its parts differs from run to run.",
    "UNIX_TIMESTAMP": "use EXTRACT, or TO_TIMESTAMP_LTZ the other way round.",
}


def with_functions_of_spark(query: Query) -> exp.Expr:
    """A copy of the query's tree that calls Spark's functions.

    Raises:
        OptionError: A function is not known to be the same, or has other arguments; it names line and column.
    """
    tree = query.tree.copy()
    for node in [*tree.walk(bfs=False)][::-1]:
        replaced = _replaced(node, query)
        if replaced is not node:
            replaced.meta.update(node.meta)
            tree = replaced if node is tree else tree
            node.replace(replaced)
    return tree


def _replaced(node: exp.Expr, query: Query) -> exp.Expr:
    for kind, replaced in _REPLACED.items():
        if isinstance(node, kind):
            return replaced(node, query)
    return node


def _field(node: exp.Expr, query: Query) -> exp.Expr:
    unit = node.name.upper()
    if unit not in _EXTRACTED:
        raise place_in_query(node, query).error(
            f"EXTRACT of {unit} is not known to be the same in Spark: expected {', '.join(sorted(_EXTRACTED))}."
        )
    return extract(unit, node.expression)


def _literal(node: exp.Expr, _: Query) -> exp.Expr:
    """A number with a point is a DECIMAL of all its digits; Spark leaves out a zero before the point."""
    whole, point, fraction = node.name.partition(".")
    if node.is_string or not point or not fraction.isdecimal():
        return node
    return spark_cast(node.copy(), f"DECIMAL({len(whole + fraction)}, {len(fraction)})")


def _column(node: exp.Expr, _: Query) -> exp.Expr:
    """LOCALTIMESTAMP has no brackets."""
    return FUNCTIONS["LOCALTIMESTAMP"].make(()) if node.sql() == "LOCALTIMESTAMP" else node


def _call(node: exp.Expr, query: Query) -> exp.Expr:
    name = node.name.upper()
    if node.meta.get(IN_SPARK):
        return node
    if name in OVER_ROWS and isinstance(node.parent, exp.Window):
        return node
    function = FUNCTIONS.get(name)
    place = place_in_query(node, query)
    if function is None:
        instead = _INSTEAD.get(
            name, "it is not run, since it is not known to give the same in Spark as in Flink."
        )
        raise place.error(f"function {name}: {instead}")
    if not function.least <= len(node.expressions) <= function.most:
        wanted = str(function.least)
        if function.most != function.least:
            wanted += " or more" if function.most == _MANY else f" to {function.most}"
        raise place.error(f"function {name} takes {wanted} arguments, not {len(node.expressions)}.")
    try:
        return function.make(node.expressions)
    except ValueError as error:
        raise place.error(f"{error}.") from None


def _element(node: exp.Expr, query: Query) -> exp.Expr:
    """An element of an array, counted from 1, or of a map; NULL where there is none."""
    is_constructor = isinstance(node.this, exp.Column) and node.this.name.upper() in (
        "MAP",
        "ARRAY",
    )
    if is_constructor or len(node.expressions) != 1:
        raise place_in_query(node, query).error(
            "ARRAY[...] and MAP[...] are not supported in a query here."
        )
    return exp.Anonymous(this="try_element_at", expressions=[node.this, node.expressions[0]])


_REPLACED: dict[type[exp.Expr], Callable[[exp.Expr, Query], exp.Expr]] = {
    exp.Anonymous: _call, exp.Literal: _literal, exp.Bracket: _element, exp.Column: _column, exp.Extract: _field,
    exp.StrPosition: lambda node, _: _swapped([node.args["substr"], node.this]),
    exp.Trim: lambda node, _: spark_cast(node.copy(), "STRING"),
}  # fmt: skip
