"""Tables of Protobuf messages through a real broker."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import (
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.batches import load, refused, save
from tests.spark.conftest import rows

AT = dt.datetime(2024, 2, 29, 23, 59, 59, 123456)  # noqa: DTZ001 - Spark's rows have no zone
SCHEMA = "id BIGINT, name STRING, tags ARRAY<STRING>, at TIMESTAMP"


@pytest.fixture
def formats(tmp_path: Path) -> dict[str, str]:
    """Options for a key with a number and a value of four fields."""
    kinds = FieldDescriptorProto
    timestamps = FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamps)
    shop = FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", dependency=[timestamps.name]
    )
    shop.message_type.add(name="Key").field.add(
        name="id", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL
    )
    order = shop.message_type.add(name="Order")
    order.oneof_decl.add(name="_name")
    optional = {"label": kinds.LABEL_OPTIONAL}
    order.field.add(name="id", number=1, type=kinds.TYPE_INT64, **optional)
    order.field.add(
        name="name",
        number=2,
        type=kinds.TYPE_STRING,
        oneof_index=0,
        proto3_optional=True,
        **optional,
    )
    order.field.add(name="tags", number=3, type=kinds.TYPE_STRING, label=kinds.LABEL_REPEATED)
    order.field.add(
        name="at",
        number=4,
        type=kinds.TYPE_MESSAGE,
        type_name=".google.protobuf.Timestamp",
        **optional,
    )
    file = tmp_path / "shop.desc"
    file.write_bytes(FileDescriptorSet(file=[timestamps, shop]).SerializeToString())
    return {
        "key.format": "protobuf",
        "key.protobuf.descriptor-file": str(file),
        "key.protobuf.message-name": "shop.Key",
        "value.format": "protobuf",
        "value.protobuf.descriptor-file": str(file),
        "value.protobuf.message-name": "Order",
    }


def test_a_table_through_a_broker(
    spark: SparkSession, broker: Broker, formats: dict[str, str]
) -> None:
    """Written and read with protobuf on both sides; a delete is a tombstone, and no empty message."""
    topic = broker.topic(2, cleanup_policy="compact")
    given = options(broker, topic, **formats)
    first = [(1, "old", ["a", ""], AT), (2, "", [], None), (3, "gone", [], AT), (-4, None, [], AT)]
    save(spark.createDataFrame(first, SCHEMA).coalesce(1), given)
    changed = [(1, "é", ["b"], None, "upsert"), (3, None, None, None, "delete")]
    save(spark.createDataFrame(changed, f"{SCHEMA}, _change_type STRING").coalesce(1), given)

    assert (b"\x08\x01", b"\x08\x01\x12\x02\xc3\xa9\x1a\x01b") in broker.pairs(topic)
    assert (b"\x08\x03", None) in broker.pairs(topic)
    # Protobuf does not tell an empty list from none at all.
    table = [(1, "é", ["b"], None), (2, "", None, None), (-4, None, None, AT)]
    assert rows(load(spark, SCHEMA, given)) == sorted(table, key=repr)


def test_empty_values_and_bad_ones(
    spark: SparkSession, broker: Broker, formats: dict[str, str]
) -> None:
    """An empty value is a row without any field; what cannot be decoded is named with its offset."""
    topic = broker.topic()
    broker.produce(topic, (b"\x08\x01", b""), (b"\x08\x02", b"\x08\x02\x12\x09short"))
    given = options(broker, topic, **formats)

    text = refused(load(spark, SCHEMA, given).collect)

    assert f"topic '{topic}', partition 0, offset 1" in text
    ignored = {**given, "value.protobuf.ignore-parse-errors": "true"}
    assert rows(load(spark, SCHEMA, ignored)) == [(0, None, None, None)]
