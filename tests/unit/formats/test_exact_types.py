"""Arrays in exactly the type that Spark demands, and the rows that lack a value."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_upsert_kafka.formats.batches import rows_lacking, with_type

INT = pa.int64()


def needed(name: str, kind: pa.DataType) -> pa.Field:
    """A NOT NULL field."""
    return pa.field(name, kind, nullable=False)


STRUCT = pa.struct([needed("x", INT), pa.field("y", pa.string())])
LIST = pa.list_(needed("element", INT))
MAP = pa.map_(pa.string(), needed("value", INT))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.array([1, None]), INT),
        (pa.array([[1], None, []]), LIST),
        (pa.array([{"x": 1, "y": None}, None]), STRUCT),
        (pa.array([[{"x": 1, "y": "a"}, None]]), pa.list_(pa.field("element", STRUCT))),
        (pa.array([{"l": [[1]]}]), pa.struct([needed("l", pa.list_(needed("element", LIST)))])),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), INT)), MAP),
    ],
)
def test_array_gets_exactly_the_wanted_type(given, wanted):
    """Nested names and nullability are as wanted, and the values stay."""
    array = with_type(given, wanted)
    assert str(array.type) == str(wanted)
    assert array.type.equals(wanted)
    assert array.to_pylist() == given.to_pylist()


@pytest.mark.parametrize(
    ("values", "field", "lacking"),
    [
        ([1, None], pa.field("c", INT), {}),
        ([1, None, 2, None], needed("c", INT), {1: "c", 3: "c"}),
        ([None, {"x": 1}, {"x": None}], pa.field("c", STRUCT), {2: "c.x"}),
        ([None, {"x": 1}], needed("c", STRUCT), {0: "c"}),
        ([None, [], [1], [1, None]], pa.field("c", LIST), {3: "c.element"}),
        ([[("a", None)], None, [("a", 1)]], pa.field("c", MAP), {0: "c.entries.value"}),
        (
            [[{"x": 1}], [None], None, [{"x": 1}, {"x": None}]],
            pa.field("c", pa.list_(pa.field("element", STRUCT))),
            {3: "c.element.x"},
        ),
    ],
)
def test_rows_that_lack_a_value_are_named(values, field, lacking):
    """Each row with a null where NOT NULL is demanded is found, with the path; at slices too."""
    array = pa.array(values, field.type)
    assert rows_lacking(array, field) == lacking
    shifted = pa.array([values[0], *values], field.type).slice(1)
    assert rows_lacking(shifted, field) == lacking


def test_null_parent_lacks_nothing():
    """Under a NULL struct there is no field, whatever the array holds in its place."""
    child = pa.array([None, 1])
    array = pa.StructArray.from_arrays([child], ["x"], mask=pa.array([True, False]))
    assert rows_lacking(array, pa.field("c", pa.struct([needed("x", INT)]))) == {}
