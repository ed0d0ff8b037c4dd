"""Checks of the arguments of functions, types of results, and the calls that depend on types or on units of time."""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot import exp

from pyspark_upsert_kafka.sql.signatures import (
    Arguments,
    Check,
    Function,
    Kind,
    literal_text,
    spark_expression,
)
from pyspark_upsert_kafka.sql.sql_types import (
    NUMBERS,
    TEXTS,
    WHOLE,
    kind_of,
    parts_in_spark,
    spark_cast,
    type_of,
)

_ORDERED = frozenset(
    {"FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN", "DATE", "TIMESTAMPNTZ", "TIMESTAMPTZ"}
)
_IN_EACH_MATCH = r"(?s)(?:\\.|[^\\|()]|\((?!\?)|\(\?:|\)(?![?*{]))*"
"""Regular expressions of which each group is in each match: no choice, no group that may be left out."""


_NOT_KNOWN = "the type of the first argument is not known, or not one that is taken here"

_MILLISECONDS = {
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
}

_OF_DAY = "day -> (CAST(unix_date(day) AS BIGINT) * 86400000)"

_ADDED = {
    "SECOND": "INTERVAL '1' SECOND", "MINUTE": "INTERVAL '1' MINUTE", "HOUR": "INTERVAL '1' HOUR", "DAY": "INTERVAL '1' DAY",
    "WEEK": "INTERVAL '7' DAY", "MONTH": "INTERVAL '1' MONTH", "QUARTER": "INTERVAL '3' MONTH", "YEAR": "INTERVAL '1' YEAR",
}  # fmt: skip

_ADDED_TO_DAYS = {
    "DAY": "date_add(day, number)", "WEEK": "date_add(day, number * 7)", "MONTH": "add_months(day, number)",
    "QUARTER": "add_months(day, number * 3)", "YEAR": "add_months(day, number * 12)",
}  # fmt: skip


def groups(name: str, default: str) -> Check:
    """Accepts a group only if it takes part in each match: otherwise Flink gives NULL, and Spark an empty text."""

    def check(arguments: Arguments) -> Arguments:
        index = literal_text(arguments[2]) if len(arguments) > 2 else default
        if index != "0" and not (
            index and index.isdecimal() and re.fullmatch(_IN_EACH_MATCH, arguments[1].name)
        ):
            raise ValueError(
                f"{name} takes group 0, or by its number one of a regular expression without | and without groups that may "
                "be left out: Spark gives an empty text for a group that is not in the match, and not NULL"
            )
        return arguments

    return check


def separator(name: str) -> Check:
    """Accepts a separator in quotes, or its character code; replaces it by a regular expression, which Spark splits by."""

    def check(arguments: Arguments) -> Arguments:
        node = arguments[1]
        given = literal_text(node) or ""
        code = int(given) if given.isdecimal() and not node.is_string else 0
        wanted = chr(code) if 0 < code < 256 else given if node.is_string else ""
        if not wanted or r"\E" in wanted:
            raise ValueError(
                f"{name} takes a separator in quotes that is not empty: Flink and Spark split differently without one"
            )
        return [arguments[0], exp.Literal.string(rf"\Q{wanted}\E"), *arguments[2:]]

    return check


def timestamp_ltz(arguments: Arguments) -> exp.Expr:
    """A number of seconds or milliseconds as a point in time."""
    is_seconds = len(arguments) == 2 and arguments[1].name == "0"
    name = "timestamp_seconds" if is_seconds else "timestamp_millis"
    return exp.Anonymous(this=name, expressions=[arguments[0]])


def type_in(*kinds: str) -> Kind:
    """The type of the first argument, which must be one of these."""

    def kind(arguments: Arguments) -> str:
        if kind_of(arguments[0]) not in kinds:
            raise ValueError(f"{_NOT_KNOWN}: expected {', '.join(kinds)}")
        return type_of(arguments[0])

    return kind


def type_of_rounded(arguments: Arguments) -> str | None:
    """The type of the number; None for a DECIMAL, since rounding changes its digits."""
    return None if kind_of(arguments[0]) == "DECIMAL" else type_in(*NUMBERS)(arguments)


def only_decimal(arguments: Arguments) -> None:
    """Accepts only a DECIMAL; returns None, since the result has other digits."""
    if kind_of(arguments[0]) != "DECIMAL":
        raise ValueError(f"{_NOT_KNOWN}: expected a DECIMAL")


def type_of_all(arguments: Arguments) -> str:
    """The common type of values that are compared."""
    kinds = {kind_of(each) for each in arguments} - {"NULL"}
    if kinds and kinds <= {*WHOLE}:
        return max(kinds, key=WHOLE.index)
    if kinds and kinds <= {*TEXTS}:
        return "STRING"
    types = {type_of(each) for each in arguments if kind_of(each) in _ORDERED}
    if len(types) != 1 or not kinds <= _ORDERED:
        raise ValueError(
            "the arguments have no type in common that is the same in Spark: CAST them to one"
        )
    return types.pop()


def type_of_part(at: int) -> Kind:
    """The type of an array's elements, or an array of a map's keys (0) or values (1)."""

    def kind(arguments: Arguments) -> str:
        part = parts_in_spark(arguments[0])[at]
        return part if kind_of(arguments[0]) == "ARRAY" else f"ARRAY<{part}>"

    return kind


def type_of_map(arguments: Arguments) -> str:
    """The type of a map that is made of an array of keys and an array of values."""
    keys, values = (type_of_part(0)([each]) for each in arguments)
    return f"MAP<{keys}, {values}>"


def with_type_of_element(kind: str | Kind) -> Kind:
    """A type of a result; rejects a second argument that has neither the type of the first array nor that of its elements."""

    def checked(arguments: Arguments) -> str | None:
        array, other = (type_of(each) for each in arguments)
        if array not in (other, f"ARRAY<{other}>"):
            raise ValueError(
                f"the arguments are {array} and {other}: CAST them, so that the elements have one type"
            )
        return kind(arguments) if callable(kind) else kind

    return checked


def of_all(call: str) -> Function:
    """GREATEST or LEAST. In Flink the result is NULL if any argument is NULL; Spark ignores NULL arguments."""

    def make(arguments: Arguments) -> exp.Expr:
        if len(arguments) == 1:
            return arguments[0].copy()
        is_null = [spark_expression("value -> value IS NULL", [each]) for each in arguments]
        found = exp.Anonymous(this=call, expressions=[each.copy() for each in arguments])
        return exp.Case(ifs=[exp.If(this=exp.or_(*is_null), true=exp.null())], default=found)

    form = f"value, more... -> CASE WHEN value IS NULL OR more IS NULL THEN NULL ELSE {call}(value, more) END"
    return Function((form,), type_of_all, make=make, by_type=True)


def _unit(name: str, units: Collection[str], why: str) -> Check:
    """Accepts only these units of time as the first argument; replaces the unit by a text."""

    def check(arguments: Arguments) -> Arguments:
        unit = arguments[0].name.upper()
        if unit not in units:
            raise ValueError(
                f"{name} of {unit} is not known to be the same in Spark: {why} {', '.join(units)}"
            )
        return [exp.Literal.string(unit), *arguments[1:]]

    return check


def _difference(arguments: Arguments) -> exp.Expr:
    """The number of whole units between two times, truncated towards 0; a day has 24 hours."""
    sides = [
        spark_expression(
            _OF_DAY if kind_of(each) == "DATE" else "time -> unix_millis(time)", [each]
        )
        for each in arguments[1:]
    ]
    return spark_expression(f"a, b -> (b - a) DIV {_MILLISECONDS[arguments[0].name]}", sides)


TIMESTAMPDIFF = Function(
    ("unit, begin_, end_ -> (unix_millis(end_) - unix_millis(begin_)) DIV milliseconds",),
    "INT",
    _unit(
        "TIMESTAMPDIFF",
        _MILLISECONDS,
        "weeks and the last days of months count differently. Expected",
    ),
    _difference,
    by_type=True,
)


def _added(arguments: Arguments) -> exp.Expr:
    """Adds units to a time or a date; hours added to a date give a time without a zone."""
    unit, number, time = arguments[0].name, *arguments[1:]
    kind = kind_of(time)
    if kind == "DATE" and unit in _ADDED_TO_DAYS:
        form = f"number, day -> {_ADDED_TO_DAYS[unit]}"
        return spark_cast(spark_expression(form, [number, time]), "DATE")
    if kind not in ("DATE", "TIMESTAMPNTZ", "TIMESTAMPTZ"):
        raise ValueError(
            "the last argument of TIMESTAMPADD is not known to be a time: CAST it AS TIMESTAMP(3)"
        )
    if kind == "TIMESTAMPTZ" and unit in ("MONTH", "QUARTER", "YEAR"):
        raise ValueError(
            "TIMESTAMPADD of months takes a time without a zone: CAST it AS TIMESTAMP(3)"
        )
    target = "TIMESTAMP" if kind == "TIMESTAMPTZ" else "TIMESTAMP_NTZ"
    sides = [number, spark_cast(time.copy(), target)]
    return spark_cast(
        spark_expression(f"number, time -> time + number * {_ADDED[unit]}", sides), target
    )


TIMESTAMPADD = Function(
    ("unit, number, time -> time + number * INTERVAL '1' unit",),
    None,
    _unit("TIMESTAMPADD", _ADDED, "expected"),
    _added,
    by_type=True,
)
