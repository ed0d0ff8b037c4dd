"""Avro messages of Connect become rows by what ``connect.name`` says."""

from __future__ import annotations

import io
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.formats.cdc.columns_by_schema import row_mapping
from pyspark_upsert_kafka.formats.cdc.debezium_avro import connect_schema_of_avro
from tests.unit.formats.avro.codecs import datum_decoder


def named(avro: str, name: str, **more: Any) -> dict[str, Any]:
    """The Avro schema of a semantic type, as Confluent's converter writes it."""
    return {"type": avro, "connect.version": 1, "connect.name": name, **more}


DECIMAL = named(
    "bytes",
    "org.apache.kafka.connect.data.Decimal",
    scale=2,
    precision=64,
    logicalType="decimal",
    **{"connect.parameters": {"scale": "2"}},
)
VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "int"},
        {
            "name": "born",
            "type": [
                "null",
                named("int", "org.apache.kafka.connect.data.Date", logicalType="date"),
            ],
        },
        {"name": "created", "type": named("long", "io.debezium.time.MicroTimestamp")},
        {
            "name": "changed",
            "type": named(
                "long", "org.apache.kafka.connect.data.Timestamp", logicalType="timestamp-millis"
            ),
        },
        {"name": "balance", "type": DECIMAL},
        {
            "name": "credit",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "VariableScaleDecimal",
                    "namespace": "io.debezium.data",
                    "fields": [
                        {"name": "scale", "type": "int"},
                        {"name": "value", "type": "bytes"},
                    ],
                    "connect.name": "io.debezium.data.VariableScaleDecimal",
                },
            ],
        },
        {
            "name": "at",
            "type": {"type": "array", "items": named("string", "io.debezium.time.ZonedTimestamp")},
        },
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.customers",
    "fields": [
        {"name": "before", "type": ["null", VALUE]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
    ],
}
COLUMNS = spark_columns(
    "op STRING, after STRUCT<id: INT, born: DATE, created: TIMESTAMP_NTZ, changed: TIMESTAMP, balance: DECIMAL(10,2), "
    "credit: DECIMAL(20,4), at: ARRAY<TIMESTAMP>, later: STRING>"
)


@pytest.mark.parametrize("count", [1, 100])
def test_an_envelope_in_avro_becomes_its_rows(count):
    """Ints, longs, bytes and records by their meaning, on the row path and on the vectorised one."""
    row = {
        "id": 1,
        "born": -1,
        "created": 1_529_507_596_945_104,
        "changed": 1_529_507_596_945,
        "balance": b"\x04\xd2",
        "credit": {"scale": 3, "value": b"\xfb\x2e"},
        "at": ["2011-12-03T10:15:30+01:00"],
    }
    plain = strip_logical(ENVELOPE)
    out = io.BytesIO()
    fastavro.schemaless_writer(
        out, fastavro.parse_schema(plain), {"before": None, "after": row, "op": "c"}
    )

    mapping = row_mapping(connect_schema_of_avro(ENVELOPE), COLUMNS, lenient=False)
    decoder = datum_decoder(ENVELOPE, mapping.physical)
    found = mapping.apply(decoder.decode(BytesColumn.of([out.getvalue()] * count)))

    assert found.errors == {}
    assert found.rows.num_rows == count
    assert found.rows.column("after")[count - 1].as_py() == {
        "id": 1,
        "born": date(1969, 12, 31),
        "created": datetime(2018, 6, 20, 15, 13, 16, 945_104),  # noqa: DTZ001
        "changed": datetime(2018, 6, 20, 15, 13, 16, 945_000, timezone.utc),
        "balance": Decimal("12.34"),
        "credit": Decimal("-1.2340"),
        "at": [datetime(2011, 12, 3, 9, 15, 30, 0, timezone.utc)],
        "later": None,
    }


def strip_logical(schema: Any) -> Any:
    """The schema without logical types, with which fastavro writes numbers and bytes as they are."""
    if isinstance(schema, dict):
        return {name: strip_logical(part) for name, part in schema.items() if name != "logicalType"}
    return [strip_logical(part) for part in schema] if isinstance(schema, list) else schema
