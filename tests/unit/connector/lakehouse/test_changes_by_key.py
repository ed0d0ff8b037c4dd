"""What stands in a column for a value that was not sent."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.connector.lakehouse.changes_by_key import placeholders
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        ("STRING", ["no"]),
        ("BINARY", [b"no"]),
        ("ARRAY<STRING>", [["no"], ["7fa3b767-c460-354a-abe4-d49030b349c7"]]),
        ("ARRAY<BINARY>", [[b"no"]]),
        ("ARRAY<INT>", [[110, 111]]),
        ("ARRAY<BIGINT>", [[110, 111]]),
        ("MAP<STRING, STRING>", ["no"]),
        ("MAP<INT, STRING>", []),
        ("INT", []),
        ("ARRAY<DOUBLE>", []),
        ("STRUCT<a: STRING>", []),
    ],
)
def test_placeholders_of_types(type_: str, found: list[object]) -> None:
    """Those of Debezium's connector for Postgres (``UnchangedToastedPlaceholder``); other types have none."""
    assert placeholders(spark_columns(f"a {type_}")["a"].dataType, "no") == found
