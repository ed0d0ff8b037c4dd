"""Comparisons of columns with constants in a query, and the partitions, offsets, times and keys for which they can be true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark_upsert_kafka.core.positions.offsets import LAST_OFFSET

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

Constants = tuple[Any, ...]


@dataclass(frozen=True)
class Condition:
    """A comparison that is true for every row that a query wants.

    Args:
        column: The name of the column.
        test: Which comparison, by the name that Spark's filters have: ``EqualTo``, ``In``, ``IsNull``, ...
        constants: What the column is compared with.
        is_negated: Whether the comparison must be false, and not true.
    """

    column: str
    test: str
    constants: Constants = ()
    is_negated: bool = False


_HOLDS: Mapping[str, Callable[[Any, Constants], bool]] = {
    "EqualTo": lambda value, constants: value in constants,
    "EqualNullSafe": lambda value, constants: value in constants,
    "In": lambda value, constants: value in constants,
    "GreaterThan": lambda value, constants: value > constants[0],
    "GreaterThanOrEqual": lambda value, constants: value >= constants[0],
    "LessThan": lambda value, constants: value < constants[0],
    "LessThanOrEqual": lambda value, constants: value <= constants[0],
    "StringStartsWith": lambda value, constants: value.startswith(constants[0]),
    "StringEndsWith": lambda value, constants: value.endswith(constants[0]),
    "StringContains": lambda value, constants: constants[0] in value,
    "IsNull": lambda _value, _constants: False,
    "IsNotNull": lambda _value, _constants: True,
}

_FIRST_AND_LAST: Mapping[str, Callable[[Constants], tuple[int, int]]] = {
    "EqualTo": lambda at: (at[0], at[0]),
    "EqualNullSafe": lambda at: (at[0], at[0]),
    "In": lambda at: (min(at), max(at)),
    "GreaterThan": lambda at: (at[0] + 1, LAST_OFFSET),
    "GreaterThanOrEqual": lambda at: (at[0], LAST_OFFSET),
    "LessThan": lambda at: (0, at[0] - 1),
    "LessThanOrEqual": lambda at: (0, at[0]),
}

_EQUALITIES = frozenset({"EqualTo", "EqualNullSafe", "In"})

_LOWER_BOUNDS = _EQUALITIES | {"GreaterThan", "GreaterThanOrEqual"}


def can_hold(value: str | int, conditions: Iterable[Condition]) -> bool:
    """Whether all conditions on a column can be true where it has this value.

    What this package does not know, or is compared with a constant of another type, counts as true.

    >>> can_hold(3, [Condition("_partition", "In", (1, 2))])
    False
    >>> can_hold(3, [Condition("_partition", "In", (1, 2), is_negated=True)])
    True
    """
    return all(_can_hold(value, each) for each in conditions)


def _can_hold(value: str | int, condition: Condition) -> bool:
    holds = _HOLDS.get(condition.test)
    if holds is None or not _are(type(value), condition.constants):
        return True
    return holds(value, condition.constants) != condition.is_negated


def first_and_last_offset(conditions: Iterable[Condition]) -> tuple[int, int]:
    """The least and the greatest offset for which all conditions on offsets can be true.

    >>> first_and_last_offset([Condition("_offset", "GreaterThan", (4,)), Condition("_offset", "LessThan", (9,))])
    (5, 8)
    """
    first, last = 0, LAST_OFFSET
    for each in conditions:
        if each.test in _FIRST_AND_LAST and _compares(each, int):
            low, high = _FIRST_AND_LAST[each.test](each.constants)
            first, last = max(first, low), min(last, high)
    return first, last


def since_ms(conditions: Iterable[Condition]) -> int | None:
    """The time, in ms since the epoch, before which no timestamp makes all conditions true; None = there is no such time.

    A time before 1970 is none either: brokers do not look for such timestamps.

    >>> noon = datetime(1970, 1, 1, 12, tzinfo=timezone.utc)
    >>> since_ms([Condition("_timestamp", "GreaterThan", (noon,))])
    43200000
    """
    times = [
        (min(each.constants) - _EPOCH) // timedelta(milliseconds=1)
        for each in conditions
        if each.test in _LOWER_BOUNDS
        and _compares(each, datetime)
        and all(time.tzinfo is not None for time in each.constants)
    ]
    latest = max(times, default=0)
    return latest if latest > 0 else None


def only_values(conditions: Iterable[Condition]) -> Sequence[Any] | None:
    """The only values for which all conditions on a column can be true; None = there may be any number.

    >>> only_values([Condition("id", "In", (1, 2, None)), Condition("id", "GreaterThan", (1,))])
    (1, 2)
    """
    known = [_without_null(each) for each in conditions if _is_equality(each)]
    return min((each for each in known if each), key=len, default=None)


def _is_equality(condition: Condition) -> bool:
    return condition.test in _EQUALITIES and not condition.is_negated


def _without_null(condition: Condition) -> Constants:
    """A comparison with NULL is never true, but for ``EqualNullSafe``, which has one constant: what is left is empty."""
    return tuple(each for each in condition.constants if each is not None)


def _compares(condition: Condition, type_: type) -> bool:
    """Whether the column is compared with constants of a type."""
    return (
        not condition.is_negated and bool(condition.constants) and _are(type_, condition.constants)
    )


def _are(type_: type, constants: Constants) -> bool:
    """Whether constants are of a type, and none of a subtype, as a boolean is of int."""
    return all(type(each) is type_ for each in constants)
