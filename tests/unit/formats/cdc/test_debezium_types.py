"""``debezium-json`` with schemas: columns get the values that the database had."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from pyspark_upsert_kafka.core.errors import SchemaError
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


@pytest.mark.parametrize("include", ["false", "true"])
def test_a_flag_of_mysql_in_a_boolean_column(include: str) -> None:
    """TINYINT(1) is a number, with a schema and without: the error says what to declare, or what the connector has for it."""
    fields = [{"field": "id", "type": "int32"}, {"field": "on", "type": "int16"}]
    after = {"field": "after", "type": "struct", "optional": True, "fields": fields}
    schema = {"type": "struct", "fields": [after, {"field": "op", "type": "string"}]}
    change = {"op": "c", "after": {"id": 1, "on": 1}}
    message = {"schema": schema, "payload": change} if include == "true" else change

    why = error(message, columns="id INT, on BOOLEAN", schema_include=include)

    assert (
        "field 'after.on': expected true or false, got 1. Debezium sends BOOLEAN and TINYINT(1)"
        in why
    )
    assert "declare the column SMALLINT" in why


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("INTERVAL DAY TO SECOND", 5_532_000_000),
        ("ARRAY<INTERVAL DAY TO SECOND>", [5_532_000_000]),
        ("STRUCT<of: INTERVAL DAY TO SECOND>", {"of": 5_532_000_000}),
        ("MAP<STRING, ARRAY<INTERVAL DAY TO SECOND>>", {"of": [5_532_000_000]}),
    ],
)
def test_an_interval_without_a_schema_is_refused(column: str, value: Any) -> None:
    """A number of microseconds is one of milliseconds too: nothing shows which it is, in a column or within one."""
    row = {"op": "c", "before": None, "after": {"id": 1, "at": value}}
    with pytest.raises(
        SchemaError,
        match=r"Column 'at' (is|has) an INTERVAL DAY TO SECOND, which .*or declare it BIGINT",
    ):
        error(row, columns=f"id INT, at {column}")


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
