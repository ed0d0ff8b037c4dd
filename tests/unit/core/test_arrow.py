"""The Arrow schema that Spark demands, whatever its version."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType, TimestampType

from pyspark_upsert_kafka.core.arrow import arrow_schema

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
