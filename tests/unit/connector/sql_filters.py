"""Spark's filters on rows: which it passes on, and what each means for a row, NULL and NaN included."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

datasource = pytest.importorskip("pyspark.sql.datasource")
if not hasattr(datasource, "Filter"):
    pytest.skip("filters need PySpark 4.1", allow_module_level=True)

Truth = bool | None
"""What SQL says of a comparison; None = NULL."""

COMPARISONS: Mapping[str, Callable[[Any, Any], Truth]] = {
    "EqualTo": lambda a, b: _compared(a, b, lambda order: order == 0),
    "GreaterThan": lambda a, b: _compared(a, b, lambda order: order > 0),
    "GreaterThanOrEqual": lambda a, b: _compared(a, b, lambda order: order >= 0),
    "LessThan": lambda a, b: _compared(a, b, lambda order: order < 0),
    "LessThanOrEqual": lambda a, b: _compared(a, b, lambda order: order <= 0),
}

TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "StringStartsWith": str.startswith,
    "StringEndsWith": str.endswith,
    "StringContains": lambda text, part: part in text,
}


def is_wanted(filters: list[Any], row: Mapping[str, Any]) -> bool:
    """Whether all filters are true for a row."""
    return all(truth(each, row) is True for each in filters)


def truth(filter_: Any, row: Mapping[str, Any]) -> Truth:
    """What a filter is for a row."""
    name = type(filter_).__name__
    if name == "Not":
        inner = truth(filter_.child, row)
        return None if inner is None else not inner
    (column,) = filter_.attribute
    value = row[column]
    if name in ("IsNull", "IsNotNull"):
        return (value is None) == (name == "IsNull")
    if name == "EqualNullSafe":
        same = COMPARISONS["EqualTo"](value, filter_.value)
        return (value is None and filter_.value is None) if same is None else same
    if name == "In":
        found = [COMPARISONS["EqualTo"](value, each) for each in filter_.value]
        return True if True in found else None if None in found else False
    if name in TEXTS:
        return None if None in (value, filter_.value) else TEXTS[name](value, filter_.value)
    return COMPARISONS[name](value, filter_.value)


def _compared(a: Any, b: Any, decide: Callable[[int], bool]) -> Truth:
    """NaN equals NaN, and is greater than any other number."""
    if a is None or b is None:
        return None
    nans = [isinstance(each, float) and math.isnan(each) for each in (a, b)]
    if any(nans):
        return decide(nans[0] - nans[1])
    return decide((a > b) - (a < b))
