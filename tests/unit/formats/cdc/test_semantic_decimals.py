"""Decimals as numbers of JSON beside a schema that says bytes, as Connect's converter writes them with ``decimal.format=NUMERIC``."""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.formats.cdc import debezium_json
from pyspark_upsert_kafka.formats.codec import Decoder
from tests.unit.formats.cdc.decoding import change_decoder
from tests.unit.formats.cdc.test_connect_json import schema_decoder
from tests.unit.formats.codec_specs import codec_spec

DECIMAL = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "2"},
}
ID = {"type": "int64", "field": "id"}


def in_base64(number: str, scale: int = 2) -> str:
    """The unscaled number's bytes, as the converter writes them by default."""
    whole = int(Decimal(number).scaleb(scale))
    return b64encode(whole.to_bytes(whole.bit_length() // 8 + 1, "big", signed=True)).decode()


def message(payload: str, *fields: dict[str, Any]) -> bytes:
    """A message of a struct, with its schema."""
    schema = {"type": "struct", "fields": [ID, *fields]}
    return f'{{"schema":{json.dumps(schema)},"payload":{payload}}}'.encode()


def price(value: str, **more: Any) -> bytes:
    """A message with a decimal."""
    return message(f'{{"id":7,"price":{value}}}', DECIMAL | {"field": "price"} | more)


def prices(decoder: Decoder, *messages: bytes) -> list[Any]:
    """The decimals of good messages."""
    decoded = decoder.decode(list(messages))
    assert not decoded.errors
    return [row["price"] for row in decoded.rows.to_pylist()]


TABLE = spark_columns("id BIGINT, price DECIMAL(10, 2)")
NUMBERS = [
    "12.34",
    "-12.34",
    "0",
    "0.00",
    "-0.1",
    "1E+2",
    "1.5e1",
    "99999999.99",
    "12",
    "-128",
    "1.28",
    "2.55",
    "2.56",
]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_number_is_what_its_bytes_are(number: str, lenient: bool) -> None:
    """Alone, in a batch, mixed with bytes and with nulls, before and after the decoder has seen one."""
    decoder = schema_decoder(TABLE, **{"ignore-parse-errors": lenient})
    as_bytes, as_number, null = price(json.dumps(in_base64(number))), price(number), price("null")
    wanted = Decimal(number).quantize(Decimal("0.01"))
    assert prices(decoder, as_bytes, null) == [wanted, None]
    assert prices(decoder, as_number) == [wanted]
    mixed = [as_bytes, as_number, null] * 40
    for _ in range(2):
        assert prices(decoder, *mixed) == [wanted, wanted, None] * 40
    fresh = schema_decoder(TABLE, **{"ignore-parse-errors": lenient})
    assert prices(fresh, *mixed) == [wanted, wanted, None] * 40


def test_wherever_decimals_stand() -> None:
    """In arrays, structs and maps, with texts as keys and without."""
    item, of = {**DECIMAL}, {"items": DECIMAL}
    fields = [
        {"type": "array", "field": "list", **of},
        {"type": "struct", "field": "at", "fields": [item | {"field": "x"}]},
        {"type": "map", "field": "named", "keys": {"type": "string"}, "values": item},
    ]
    columns = spark_columns(
        "id BIGINT, list ARRAY<DECIMAL(5, 2)>, at STRUCT<x: DECIMAL(5, 2)>, named MAP<STRING, DECIMAL(5, 2)>"
    )
    one = message('{"id":1,"list":[1.5,null,-2],"at":{"x":0.25},"named":{"a":3,"b":null}}', *fields)
    decoded = schema_decoder(columns).decode([one] * 70)
    assert not decoded.errors
    assert decoded.rows.to_pylist()[69] == {
        "id": 1,
        "list": [Decimal("1.50"), None, Decimal("-2.00")],
        "at": {"x": Decimal("0.25")},
        "named": [("a", Decimal("3.00")), ("b", None)],
    }


def test_what_is_no_decimal_for_a_column_stays_a_number() -> None:
    """A struct or a map that is read as text or as its entries, a field that no column wants: whatever was read before."""
    entries = {"type": "map", "field": "list", "keys": DECIMAL, "values": DECIMAL}
    at = {"type": "struct", "field": "at", "fields": [DECIMAL | {"field": "x"}]}
    fields = [entries, at, DECIMAL | {"field": "price"}, DECIMAL | {"field": "other"}]
    columns = spark_columns("id BIGINT, list ARRAY<ARRAY<STRING>>, at STRING, price DECIMAL(5, 2)")
    one = message(
        '{"id":1,"list":[[1.5,2],["x"]],"at":{"x":1.50},"price":1.5,"other":1.234}', *fields
    )
    null = one.replace(b'"price":1.5', b'"price":null')
    decoder = schema_decoder(columns)
    for messages in ([null], [one], [null]):
        (row,) = decoder.decode(messages).rows.to_pylist()
        assert (row["list"], row["at"]) == ([["1.5", "2"], ["x"]], '{"x":1.50}')


@pytest.mark.parametrize("wanted", ["DECIMAL(5, 1)", "STRING", "BINARY"])
def test_columns_of_other_types(wanted: str) -> None:
    """They get what they get of bytes."""
    table = spark_columns(f"id BIGINT, price {wanted}")
    as_bytes, as_number = price(json.dumps(in_base64("12.35"))), price("12.35")
    found = prices(schema_decoder(table), as_bytes, as_number)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1.234", "expected BINARY as base64 text, got 1.234"),
        ("1e-999999999999999999999", "expected BINARY as base64 text"),
        ("1e999999", "expected BINARY as base64 text, got 1e999999"),
        ("1" * 300_000, "expected BINARY as base64 text, got 111"),
        ("true", "expected BINARY as base64 text, got true"),
        ('"12.5"', "expected BINARY as base64 text"),
        ("123456789012", "expected a DECIMAL(10,2)"),
    ],
)
def test_what_is_no_such_number(value: str, why: str) -> None:
    """It is an error, the same before and after the decoder has seen numbers; NULL with ignore-parse-errors."""
    decoder = schema_decoder(TABLE)
    for _ in range(2):
        decoded = decoder.decode([price("1.5"), price(value), price("2.5")])
        assert [*decoded.errors] == [1]
        assert decoded.errors[1].startswith(f"field 'price': {why}")
        assert decoded.rows.column("price").to_pylist() == [Decimal("1.50"), None, Decimal("2.50")]
    lenient = schema_decoder(TABLE, **{"ignore-parse-errors": True})
    assert prices(lenient, price("1.5"), price(value)) == [Decimal("1.50"), None]


def test_in_a_key_and_in_an_envelope() -> None:
    """Keys have a converter of their own; the values of an envelope stand within it."""
    spec = codec_spec(debezium_json.KEYS, TABLE, "key")
    key = debezium_json.KEYS.decoder(spec)
    assert prices(key, *[price("12.34")] * 70) == [Decimal("12.34")] * 70
    row = {"type": "struct", "fields": [ID, DECIMAL | {"field": "price"}]}
    after = '{"op":"c","before":null,"after":{"id":1,"price":12.34}}'
    one = message(after, row | {"field": "before"}, row | {"field": "after"})
    for wanted in (None, ["id"]):
        changes = change_decoder(
            "debezium-json", "id BIGINT, price DECIMAL(10, 2)", key=wanted, schema_include="true"
        ).decode([one] * 70)
        assert changes.rows.column("price").to_pylist() == [Decimal("12.34")] * 70


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2), st.integers(0, 5))
def test_numbers_and_bytes_mean_the_same(number: Decimal, scale: int) -> None:
    """Of any number and scale that has its digits."""
    table: StructType = spark_columns("id BIGINT, price STRING")
    text, parameters = f"{number:f}", {"scale": str(scale)}
    found = schema_decoder(table).decode([price(text, parameters=parameters)])
    if (number.scaleb(scale) % 1) != 0:
        assert found.errors
        return
    as_bytes = price(json.dumps(in_base64(text, scale)), parameters=parameters)
    assert found.rows == schema_decoder(table).decode([as_bytes]).rows
