"""``debezium-json`` with schemas: columns get the values that the database had."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from tests.unit.formats.cdc import decoding
from tests.unit.formats.cdc.decoding import DEL, UPS
from tools.recorded_debezium import TOPIC, Recorded, record

decoded = partial(decoding.decoded, "debezium-json")
error = partial(decoding.error, "debezium-json")


@pytest.mark.parametrize("replica_identity", ["default", "full"])
def test_a_recorded_topic_is_its_table(replica_identity: Any) -> None:
    """The upserts and deletes of a key amount to the rows that the last changes said."""
    recording = record(Recorded(4, rows=30, transactions=80, replica_identity=replica_identity))
    values = [each.value for each in recording.messages if each.topic == TOPIC and each.value]

    found = decoded(*values, columns=recording.ddl, key=["id"], schema_include="true")

    assert found.errors == {}
    table: dict[int, Any] = {}
    for kind, row in zip(found.kinds, found.rows.to_pylist(), strict=True):
        assert kind in (UPS, DEL)
        if kind == UPS:
            table[row["id"]] = row
        else:
            del table[row["id"]]
    digits = {"balance": Decimal("0.01"), "credit": Decimal(1).scaleb(-18)}
    assert table == {
        key: {
            name: value.quantize(digits[name]) if isinstance(value, Decimal) else value
            for name, value in row.items()
        }
        for key, row in recording.as_sent.items()
    }


def test_an_update_with_both_images_shows_them_with_their_values() -> None:
    """Without a key, the row before has its dates and decimals too."""
    recording = record(Recorded(4, rows=5, transactions=40, replica_identity="full"))
    values = [each.value for each in recording.messages if each.topic == TOPIC and each.value]

    found = decoded(*values, columns=recording.ddl, schema_include="true")

    assert found.errors == {}
    assert found.rows.column("created").null_count == 0
    assert found.rows.column("balance").null_count == 0


@pytest.mark.parametrize(
    ("column", "value", "advice"),
    [
        ("at TIMESTAMP", 1_529_507_596_945_104, "Debezium sends a TIMESTAMP as a number"),
        ("at DATE", 16321, "Debezium sends a DATE as a number"),
        ("at DECIMAL(10,2)", "AN4=", "'decimal.handling.mode' = 'string'"),
    ],
)
def test_without_a_schema_the_error_says_what_to_set(column: str, value: Any, advice: str) -> None:
    """The option here, and the properties of the connector there."""
    why = error({"op": "c", "before": None, "after": {"at": value}}, columns=column)

    assert "field 'after.at': expected" in why
    assert advice in why
    assert "'value.debezium-json.schema-include' = 'true'" in why
