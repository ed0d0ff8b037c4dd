"""Debezium's keys and values in Avro over a real registry, which keeps what Kafka Connect says of each type."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from pyspark_upsert_kafka.connector.format_catalog import format_named, key_format_beside
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.formats.cdc.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.codec import ChangeSpec, CodecSpec, Format
from tests.local_registry import Registry
from tests.unit.formats.cdc.avro_converter import avro_schema, message
from tests.unit.formats.cdc.decoding import UPS, rows_of

NAME = "debezium-avro-confluent"
MADE = ConnectSchema("int64", "io.debezium.time.MicroTimestamp")
PRICE = ConnectSchema(
    "bytes", "org.apache.kafka.connect.data.Decimal", {"scale": "2"}, optional=True
)
KEY = ConnectSchema("struct", "shop.things.Key", fields={"made": MADE})
ROW = ConnectSchema(
    "struct", "shop.things.Value", optional=True, fields={"made": MADE, "price": PRICE}
)
ENVELOPE = ConnectSchema(
    "struct",
    "shop.things.Envelope",
    fields={"before": ROW, "after": ROW, "op": ConnectSchema("string")},
)
MICROS, MOMENT = 1_529_507_596_945_104, datetime(2018, 6, 20, 15, 13, 16, 945_104)  # noqa: DTZ001


def spec(format_: Format, side: Any, columns: str, url: str) -> CodecSpec:
    """A side of the table."""
    options = {option.name: option.read({"url": url}) for option in format_.options}
    return CodecSpec(spark_columns(columns), side, options, ("things",))


def sent(registry: Registry, subject: str, schema: ConnectSchema, value: Any) -> bytes:
    """A message whose schema is registered."""
    avro = avro_schema(schema)
    return message(avro, value, bytes(1) + registry.register(subject, avro).to_bytes(4, "big"))


def test_the_registered_schema_says_what_values_mean(registry: Registry, topic: str) -> None:
    """Of rows and of keys."""
    after = {"made": MICROS, "price": b"\x04\xd2"}
    value = sent(registry, f"{topic}-value", ENVELOPE, {"before": None, "after": after, "op": "c"})
    key = sent(registry, f"{topic}-key", KEY, {"made": MICROS})
    of_value, of_key = format_named(NAME, "value"), key_format_beside(NAME, "avro-confluent")
    assert of_value.changes is not None

    row = spec(of_value, "value", "made TIMESTAMP_NTZ, price DECIMAL(10,1)", registry.url)
    rows = of_value.changes(ChangeSpec(row, is_keyed=True, key=("made",))).decode([value])
    keys = of_key.decoder(spec(of_key, "key", "made TIMESTAMP_NTZ", registry.url)).decode([key])

    assert rows.errors == keys.errors == {}
    assert rows_of(rows) == [(0, UPS, MOMENT, Decimal("12.3"))]
    assert keys.rows.to_pylist() == [{"made": MOMENT}]
