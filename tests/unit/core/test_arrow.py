"""The Arrow schema that Spark demands, whatever its version; columns as keys; how much a task holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType, TimestampType

from pyspark_upsert_kafka.core.arrow import (
    MAX_HELD_BYTES,
    arrow_schema,
    canonical_floats,
    polars_key,
)

SCHEMA = StructType().add("id", LongType(), nullable=False).add("at", TimestampType())


def test_times_are_in_utc() -> None:
    """And names, order and NOT NULL are those of the table."""
    assert arrow_schema(SCHEMA) == pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("at", pa.timestamp("us", "UTC"))]
    )


def test_utc_is_asked_for_where_spark_takes_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer versions have another default; older ones take none."""
    place = "pyspark.sql.pandas.types.to_arrow_schema"

    def newer(schema: StructType, timezone: str | None = None) -> Any:
        return schema, timezone

    monkeypatch.setattr(place, newer)
    assert arrow_schema(SCHEMA) == (SCHEMA, "UTC")
    monkeypatch.setattr(place, lambda schema: schema)
    assert arrow_schema(SCHEMA) == SCHEMA


BITS = {pa.float32(): (np.uint32, pa.int32(), 0x7FC00001), pa.float64(): (np.uint64, pa.int64(), 0x7FF8000000000001)}  # fmt: skip
"""For each type of floats the numbers of its bits, and those of another NaN."""


@pytest.mark.parametrize("key", [canonical_floats, polars_key])
@pytest.mark.parametrize("type_", BITS)
@pytest.mark.parametrize("chunked", [False, True])
def test_floats_that_are_equal_as_keys_have_equal_bits(
    key: Any, type_: pa.DataType, chunked: bool
) -> None:
    """-0.0 is 0.0, and NaN is NaN; all others are as they were, NULL too."""
    unsigned, numbers, other_nan = BITS[type_]
    nan = pa.array(np.array([other_nan], unsigned)).cast(pa.int64()).cast(numbers).view(type_)
    column = pa.concat_arrays([pa.array([0.0, -0.0, float("nan"), 1.5, -2.5, None], type_), nan])
    found = key(pa.chunked_array([column]) if chunked else column)
    if chunked:
        (found,) = found.chunks

    plain = pa.array([0.0, 0.0, float("nan"), 1.5, -2.5, None, float("nan")], type_)
    assert found.view(numbers) == plain.view(numbers)


@pytest.mark.parametrize("key", [canonical_floats, polars_key])
@pytest.mark.parametrize(
    "column",
    [pa.array([1, None]), pa.array(["a"]), pa.array([b""]), pa.array([7], pa.timestamp("us"))],
)
def test_other_columns_are_keys_as_they_are(key: Any, column: pa.Array) -> None:
    """Nothing is copied."""
    assert key(column) is column


@pytest.mark.parametrize("zone", ["UTC", "+05:30", "Europe/Berlin"])
def test_times_with_a_zone_are_numbers_for_polars(zone: str) -> None:
    """Which it can compare whatever the zone's name."""
    column = pa.array([7, None], pa.timestamp("us", zone))

    assert canonical_floats(column) is column
    assert polars_key(column) == pa.array([7, None])


def test_what_a_task_may_gather_in_one_place() -> None:
    """The documentation tells this number."""
    assert MAX_HELD_BYTES == 64 << 20
