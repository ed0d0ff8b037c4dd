"""Calls of Flink's functions as calls of Spark's.

An argument of a type that is known, and that Flink does not take there, is rejected: Spark casts it silently (``TRUE`` to ``true``,
where Flink has ``TRUE``), or fails with an error about the query that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from pyspark_upsert_kafka.sql.flink_query import Query, place_in_query
from pyspark_upsert_kafka.sql.function_forms import Arguments
from pyspark_upsert_kafka.sql.sql_functions import FUNCTIONS, OVER_ROWS, REJECTED, field_of_time
from pyspark_upsert_kafka.sql.sql_types import IN_SPARK, NESTED, NUMBERS, TEXTS, kind_of, spark_cast

_EXTRACTED = {
    "YEAR": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH", "WEEK": "WEEK", "DAY": "DAY", "HOUR": "HOUR", "MINUTE": "MINUTE",
    "SECOND": "SECOND", "DOW": "DOW", "DOY": "DOY", "ISODOW": "DOW_ISO", "ISOYEAR": "YEAROFWEEK",
}  # fmt: skip
"""The fields of EXTRACT, by their names in Spark."""

_BY_TYPES = "by-type"
"""Marks a call of Flink's that is made Spark's when the types of its arguments are known."""

_OTHERS = "it is not run, since it is not known to give the same in Spark as in Flink."
"""What is said of a function that is in no table."""

_TIMES = ("DATE", "TIMESTAMPNTZ", "TIMESTAMPTZ")
_EXPECTED = "expected"
"""Marks an argument with what is expected of it."""


def with_functions_of_spark(query: Query) -> exp.Expr:
    """A copy of the query's tree that calls Spark's functions.

    Raises:
        OptionError: A function is not known to be the same, or has other arguments; the text gives line and column.
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
    _expect_types("EXTRACT", ["time"], [node.expression])
    return field_of_time(_EXTRACTED[unit]).call([node.expression])


def _literal(node: exp.Expr, _: Query) -> exp.Expr:
    """A number with a point is a DECIMAL of all its digits; Spark leaves out a zero before the point."""
    whole, point, fraction = node.name.partition(".")
    if node.is_string or not point or not fraction.isdecimal():
        return node
    return spark_cast(node.copy(), f"DECIMAL({len(whole + fraction)}, {len(fraction)})")


def _column(node: exp.Expr, _: Query) -> exp.Expr:
    """LOCALTIMESTAMP has no brackets."""
    return FUNCTIONS["LOCALTIMESTAMP"].call(()) if node.sql() == "LOCALTIMESTAMP" else node


def _call(node: exp.Expr, query: Query) -> exp.Expr:
    name = node.name.upper()
    if node.meta.get(IN_SPARK):
        return node
    if name == "ROW":
        return _row_of(node)
    if name in OVER_ROWS and isinstance(node.parent, exp.Window):
        return node
    return _made(name, node.expressions, node, query)


def _substring(node: exp.Expr, query: Query) -> exp.Expr:
    """``SUBSTRING(text FROM start FOR length)``, or with commas."""
    given = [node.args.get(name) for name in ("this", "start", "length")]
    return _made("SUBSTRING", [each for each in given if each is not None], node, query)


def _made(name: str, arguments: Arguments, node: exp.Expr, query: Query) -> exp.Expr:
    function = FUNCTIONS.get(name)
    place = place_in_query(node, query)
    if function is None:
        raise place.error(f"function {name}: {REJECTED.get(name) or _OTHERS + _did_you_mean(name)}")
    if not function.takes(len(arguments)):
        raise place.error(
            f"function {name} takes {function.counts} arguments, not {len(arguments)}."
        )
    try:
        checked = function.check(arguments)
        _expect_types(name, function.names(len(checked)), checked)
        return _by_types(name, checked) if function.by_type else function.call(checked)
    except ValueError as error:
        raise place.error(f"{error}.") from None


def _did_you_mean(name: str) -> str:
    near = get_close_matches(name, FUNCTIONS, n=1, cutoff=0.8)
    return f" Did you mean {near[0]}?" if near else ""


def _by_types(name: str, arguments: Arguments) -> exp.Expr:
    """A call of Flink's function with checked arguments, which is translated when their types are known."""
    node = exp.Anonymous(this=name, expressions=list(arguments))
    node.meta[_BY_TYPES] = True
    return node


def change_of_call(node: exp.Expr) -> Callable[[exp.Expr, Query], None] | None:
    """What translates a call when the types of its arguments are known; None = it is no such call."""
    return _translate if _BY_TYPES in node.meta else None


def _translate(node: exp.Expr, query: Query) -> None:
    check_types(node.expressions, query)  # some types are known only now
    try:
        node.replace(_expect_the_same(node, FUNCTIONS[node.name].call(node.expressions)))
    except ValueError as error:
        raise place_in_query(node, query).error(f"function {node.name}: {error}.") from None


def _map(node: exp.Expr, query: Query) -> exp.Expr:
    """``MAP[key, value, ...]`` as Spark's; it is read as an element of a column of that name."""
    column = node.this
    is_name = isinstance(column, exp.Column) and not column.table and not column.this.quoted
    if not is_name or column.name.upper() != "MAP":
        return node
    parts = node.expressions
    if not parts or len(parts) % 2:
        raise place_in_query(node, query).error("expected MAP[key, value, ...].")
    keys, values = exp.Array(expressions=parts[::2]), exp.Array(expressions=parts[1::2])
    return exp.VarMap(keys=keys, values=values)


def _row_of(node: exp.Expr) -> exp.Expr:
    """``ROW(a, b)`` as Spark's, with the names that Flink gives its fields."""
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(f"EXPR${at}", quoted=True), expression=value)
        for at, value in enumerate(node.expressions)
    ]
    return exp.Struct(expressions=fields)


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


def _expect_types(function: str, names: Sequence[str], arguments: Arguments) -> None:
    """Marks the arguments of a call, whose types are not known yet.

    ``names`` is what the table of functions calls them; the last one is meant for all that follow.
    """
    for at, argument in enumerate(arguments):
        name = names[min(at, len(names) - 1)]
        name = names[-2] if name == "more" else name  # `text, more...`: more texts
        if family := _FAMILY_OF.get(name):
            argument.meta[_EXPECTED] = _Expected(function, name.rstrip("_"), family)


def _expect_the_same(node: exp.Expr, made: exp.Expr) -> exp.Expr:
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


_REPLACED: dict[type[exp.Expr], Callable[[exp.Expr, Query], exp.Expr]] = {
    exp.Anonymous: _call, exp.Literal: _literal, exp.Bracket: _map, exp.Column: _column, exp.Extract: _field,
    exp.StrPosition: lambda node, query: _made("LOCATE", [node.args["substr"], node.this], node, query),
    exp.Substring: _substring,
    exp.Trim: lambda node, _: spark_cast(node.copy(), "STRING"),
}  # fmt: skip
