"""Keys that are written again, as this connector would write them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.key_partitions import KeyBytes, _not_registering
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options

SCHEMA = StructType().add("id", LongType()).add("name", StringType())


def options(**more: object) -> ReadOptions:
    """Of a batch read."""
    return read_options(table_options(**more), format_options, stream=False)


def key_bytes(given: ReadOptions) -> KeyBytes:
    """Of a table of two columns."""
    return KeyBytes(table_to_read(SCHEMA, given), given)


def test_keys_as_they_would_be_written() -> None:
    """Given as columns."""
    keys = pa.RecordBatch.from_arrays([pa.array([1, -20])], ["id"])

    assert key_bytes(options()).of(keys) == [b'{"id":1}', b'{"id":-20}']


def test_keys_of_messages_beside_those_that_would_be_written() -> None:
    """In the order of offsets; those that are missing or cannot be decoded are left out."""
    keys = [b'{"id": 1}', None, b"?", b'{"id":2}']
    raw = RawBatch("t", 0, BytesColumn.of(keys), BytesColumn.of([b"{}"] * 4), [5, 6, 7, 9])

    assert list(key_bytes(options()).written_again(raw)) == [
        (5, b'{"id": 1}', b'{"id":1}'),
        (9, b'{"id":2}', b'{"id":2}'),
    ]


def test_equal_keys_are_written_in_one_way() -> None:
    """As the sink writes them: -0.0 is 0.0, so a topic in which another writer spells it is no topic of ours."""
    given = options()
    schema = StructType().add("id", DoubleType()).add("name", StringType())
    found = KeyBytes(table_to_read(schema, given), given)
    raw = RawBatch("t", 0, BytesColumn.of([b'{"id":-0.0}']), BytesColumn.of([b"{}"]), [5])

    assert list(found.written_again(raw)) == [(5, b'{"id":-0.0}', b'{"id":0.0}')]


def test_a_table_without_keys_has_none() -> None:
    """Nothing says how they are written."""
    given = options(primary_key=None, key__format=None, **{"read.mode": "append"})
    with pytest.raises(ValueError, match="keys are written that are not read"):
        key_bytes(given)


def test_no_schema_is_registered_for_it() -> None:
    """Whatever the options say of writing; all else stays."""
    given = options(
        key__format="avro-confluent", **{"key.avro-confluent.url": "http://nowhere:8081"}
    )
    before, after = (
        dict(each.table.key_format.options) for each in (given, _not_registering(given))
    )

    assert before["auto.register.schemas"] is True
    assert after == {**before, "auto.register.schemas": False}
