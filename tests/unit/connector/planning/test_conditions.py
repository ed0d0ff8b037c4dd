"""What comparisons with constants say of partitions, offsets, times and keys: never more than is certain."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from pyspark_upsert_kafka.connector.planning.batch_reader import (
    Condition,
    can_hold,
    first_and_last_offset,
    only_values,
    since_ms,
)
from pyspark_upsert_kafka.core.positions.offsets import LAST_OFFSET

T0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
MS = 1_767_225_600_000


def of(test: str, *constants: object, negated: bool = False) -> Condition:
    """A condition on some column."""
    return Condition("c", test, constants, negated)


@pytest.mark.parametrize(
    ("value", "condition", "expected"),
    [
        (3, of("EqualTo", 3), True),
        (3, of("EqualTo", 4), False),
        (3, of("EqualNullSafe", 4), False),
        (3, of("In", 1, 3), True),
        (3, of("In", 1, 2), False),
        (3, of("In"), False),
        (3, of("GreaterThan", 3), False),
        (3, of("GreaterThanOrEqual", 3), True),
        (3, of("LessThan", 3), False),
        (3, of("LessThanOrEqual", 3), True),
        (3, of("IsNull"), False),
        (3, of("IsNotNull"), True),
        (3, of("EqualTo", 3, negated=True), False),
        (3, of("In", 1, 2, negated=True), True),
        (3, of("IsNull", negated=True), True),
        ("ab", of("StringStartsWith", "a"), True),
        ("ab", of("StringEndsWith", "a"), False),
        ("ab", of("StringContains", "c"), False),
        ("ab", of("StringContains", "c", negated=True), True),
        ("ab", of("LessThan", "b"), True),
        # A constant of another type, NULL or NaN, and a comparison that is not known say nothing.
        (3, of("EqualTo", None), True),
        (3, of("In", 1, None), True),
        (3, of("In", 1, None, negated=True), True),
        (3, of("GreaterThan", float("nan")), True),
        (1, of("EqualTo", False), True),
        ("3", of("EqualTo", 4), True),
        (3, of("Later", 4), True),
    ],
)
def test_whether_a_value_can_make_a_condition_true(
    value: int | str, condition: Condition, expected: bool
) -> None:
    """Partitions and topics are never NULL, so both truth values of a comparison are known."""
    assert can_hold(value, [condition]) is expected


def test_all_conditions_must_hold() -> None:
    """A query wants rows for which each of its filters is true; without one it wants all."""
    assert can_hold(3, [])
    assert not can_hold(3, [of("GreaterThan", 1), of("LessThan", 3)])


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], (0, LAST_OFFSET)),
        ([of("EqualTo", 7)], (7, 7)),
        ([of("EqualNullSafe", 7)], (7, 7)),
        ([of("In", 9, 7)], (7, 9)),
        ([of("GreaterThan", 7)], (8, LAST_OFFSET)),
        ([of("GreaterThanOrEqual", 7), of("LessThan", 9)], (7, 8)),
        ([of("LessThanOrEqual", 9), of("GreaterThan", 20)], (21, 9)),
        ([of("LessThan", 0)], (0, -1)),
        ([of("EqualTo", 7, negated=True), of("IsNotNull"), of("IsNull")], (0, LAST_OFFSET)),
        ([of("In"), of("In", 7, None), of("EqualTo", None)], (0, LAST_OFFSET)),
        ([of("GreaterThan", 1.5), of("GreaterThan", True)], (0, LAST_OFFSET)),
    ],
)
def test_offsets(conditions: list[Condition], expected: tuple[int, int]) -> None:
    """The least and the greatest one that all conditions allow."""
    assert first_and_last_offset(conditions) == expected


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], None),
        ([of("GreaterThan", T0)], MS),
        ([of("GreaterThanOrEqual", T0 + timedelta(microseconds=999))], MS),
        ([of("EqualTo", T0)], MS),
        ([of("In", T0 + timedelta(seconds=1), T0)], MS),
        ([of("GreaterThan", T0), of("GreaterThan", T0 + timedelta(seconds=1))], MS + 1000),
        ([of("GreaterThan", T0.astimezone(timezone(timedelta(hours=-5))))], MS),
        ([of("LessThan", T0), of("LessThanOrEqual", T0)], None),
        ([of("GreaterThan", T0, negated=True)], None),
        ([of("GreaterThan", T0.replace(tzinfo=None))], None),
        ([of("EqualTo", None), of("In", T0, None), of("In")], None),
        ([of("GreaterThan", datetime(1960, 1, 1, tzinfo=timezone.utc))], None),
        ([of("GreaterThan", datetime(1970, 1, 1, tzinfo=timezone.utc))], None),
    ],
)
def test_times(conditions: list[Condition], expected: int | None) -> None:
    """Only lower bounds: times need not rise with offsets, so nothing says where the last one before a time is."""
    assert since_ms(conditions) == expected


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], None),
        ([of("EqualTo", 1)], (1,)),
        ([of("EqualNullSafe", 1)], (1,)),
        ([of("In", 1, 2, None)], (1, 2)),
        ([of("In", 1, 2, 3), of("EqualTo", 2)], (2,)),
        ([of("EqualTo", None)], None),
        ([of("EqualNullSafe", None)], None),
        ([of("In", 1, 2, negated=True)], None),
        ([of("GreaterThan", 1), of("IsNotNull"), of("StringStartsWith", "a")], None),
    ],
)
def test_values(conditions: list[Condition], expected: tuple[object, ...] | None) -> None:
    """Equality names values; NULL is none of them."""
    assert only_values(conditions) == expected
