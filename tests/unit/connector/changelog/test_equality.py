"""Equality of values: a table of examples, and the law beside plain Python."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.changelog.row_images import equal_values

NAN = float("nan")
POINT = pa.struct([("x", pa.float64()), ("y", pa.string())])
TAGS = pa.map_(pa.string(), pa.int64())
VARIANT = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])


@pytest.mark.parametrize(
    ("kind", "left", "right", "equal"),
    [
        (pa.int64(), 1, 1, True),
        (pa.int64(), 1, 2, False),
        (pa.int64(), 2**60, 2**60 + 1, False),
        (pa.int64(), None, None, True),
        (pa.int64(), None, 0, False),
        (pa.string(), "", None, False),
        (pa.null(), None, None, True),
        (pa.float64(), NAN, NAN, True),
        (pa.float64(), NAN, None, False),
        (pa.float64(), NAN, 1.0, False),
        (pa.float32(), -0.0, 0.0, True),
        (pa.decimal128(38, 2), Decimal("1.10"), Decimal("1.1"), True),
        (pa.decimal128(38, 2), Decimal("1.10"), Decimal("1.11"), False),
        (pa.timestamp("us", "UTC"), 1, 2, False),
        (POINT, {"x": NAN, "y": None}, {"x": NAN, "y": None}, True),
        (POINT, {"x": None, "y": None}, None, False),
        (POINT, None, None, True),
        (pa.list_(pa.int64()), [], None, False),
        (pa.list_(pa.int64()), [1, None], [1, None], True),
        (pa.list_(pa.int64()), [1, None], [None, 1], False),
        (pa.list_(pa.int64()), [1], [1, 1], False),
        (pa.list_(POINT), [{"x": -0.0, "y": "a"}], [{"x": 0.0, "y": "a"}], True),
        (TAGS, [("a", 1), ("b", 2)], [("b", 2), ("a", 1)], True),
        (TAGS, [("a", 1), ("b", 2)], [("b", 1), ("a", 2)], False),
        (TAGS, [("a", None)], [("a", None)], True),
        (TAGS, [], None, False),
        (pa.list_(TAGS), [[("a", 1), ("b", 2)]], [[("b", 2), ("a", 1)]], True),
        (VARIANT, {"value": b"1", "metadata": b""}, {"value": b"1", "metadata": b""}, True),
        (VARIANT, {"value": b"1", "metadata": b""}, {"value": b"2", "metadata": b""}, False),
    ],
)
def test_equal_values(kind: pa.DataType, left: Any, right: Any, equal: bool) -> None:
    """NULL, NaN and zeros are equal to their like, at any depth; maps in any order."""
    # Among others, and in slices, as a batch has them.
    lefts = pa.array([left, None, left, right], kind).slice(1)
    rights = pa.array([None, None, right, right], kind).slice(1)

    assert equal_values(lefts, rights).tolist() == [True, equal, True]


ELEMENT = st.none() | st.sampled_from([0.0, -0.0, NAN, 1.0])
VALUE = st.none() | st.fixed_dictionaries(
    {
        "list": st.none() | st.lists(ELEMENT, max_size=3),
        "map": st.none()
        | st.dictionaries(st.sampled_from("abc"), ELEMENT, max_size=3).map(lambda d: [*d.items()]),
    }
)
KIND = pa.struct([("list", pa.list_(pa.float64())), ("map", pa.map_(pa.string(), pa.float64()))])


@given(st.lists(st.tuples(VALUE, VALUE)))
def test_nested_values_are_equal_when_their_parts_are(pairs: list[tuple[Any, Any]]) -> None:
    """A struct with a list and a map, compared by columns as Python compares them one by one."""
    lefts, rights = ([pair[side] for pair in pairs] for side in (0, 1))

    found = equal_values(pa.array(lefts, KIND), pa.array(rights, KIND)).tolist()

    assert found == [plain(left) == plain(right) for left, right in pairs]


def plain(value: Any) -> Any:
    """A value that Python compares in the same way."""
    if isinstance(value, dict):
        return {
            "list": value["list"] and [*map(plain, value["list"])],
            "map": value["map"] and {key: plain(item) for key, item in value["map"]},
        }
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
