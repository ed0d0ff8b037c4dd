"""NULL structs of NOT NULL fields in maps, arrays and by themselves, through Spark and a real broker."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.batches import load, save
from tests.unit.formats.protobuf.codecs import descriptor_file

_PART = "STRUCT<c: STRING NOT NULL>"
_SCHEMA = f"id BIGINT, m MAP<STRING, {_PART}>, a ARRAY<{_PART}>, s {_PART}"
_ROWS = [
    (1, {"x": {"c": "1"}, "y": None}, [None, {"c": "2"}], None),
    (2, {"x": None}, [], {"c": "3"}),
    (3, {}, None, {"c": ""}),
    (4, None, [None], None),
]
_PROTO = """
syntax = "proto3";
message P { string c = 1; }
message Key { int64 id = 1; }
message M { int64 id = 1; map<string, P> m = 2; repeated P a = 3; P s = 4; }
"""
_EMPTY = {"c": ""}
_READ = {
    # Protobuf has no NULL inside a map or an array, and does not tell an empty one from none.
    "protobuf": [
        (1, {"x": {"c": "1"}, "y": _EMPTY}, [_EMPTY, {"c": "2"}], None),
        (2, {"x": _EMPTY}, None, {"c": "3"}),
        (3, None, None, _EMPTY),
        (4, None, [_EMPTY], None),
    ]
}


def _formats(name: str) -> dict[str, str]:
    given = {"key.format": name, "value.format": name}
    if name == "protobuf":
        for side, message in (("key", "Key"), ("value", "M")):
            given[f"{side}.protobuf.descriptor-file"] = str(descriptor_file(_PROTO))
            given[f"{side}.protobuf.message-name"] = message
    return given


@pytest.mark.parametrize("name", ["json", "avro", "protobuf"])
def test_null_structs_of_not_null_fields(spark: SparkSession, broker: Broker, name: str) -> None:
    """Spark's own columns hold NULL under them; they are written, and read back."""
    given = options(broker, broker.topic(), **_formats(name))
    save(spark.createDataFrame(_ROWS, _SCHEMA).coalesce(1), given)
    # A derived Avro schema is nullable throughout: what Spark knows of a query's rows is no promise.
    table = load(spark, _SCHEMA.replace(" NOT NULL", ""), given)
    found = [_plain(row.asDict(recursive=True)) for row in table.collect()]
    assert sorted(found) == _READ.get(name, _ROWS)


def _plain(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())
