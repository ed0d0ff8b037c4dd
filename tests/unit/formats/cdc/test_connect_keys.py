"""Keys beside Debezium's values, with their schemas and without."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.format_catalog import format_named, key_format_beside
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.cdc import debezium_avro
from pyspark_upsert_kafka.formats.cdc.connect_schema import connect_schema
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from tests.laws import law
from tests.unit.formats.cdc import avro_converter
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.listed import good_rows
from tests.unit.formats.registry_codecs import PREFIX, Codecs, rows_of

ID = {"type": "int64", "optional": False, "field": "id"}
MADE = {
    "type": "int64",
    "optional": False,
    "name": "io.debezium.time.MicroTimestamp",
    "field": "id",
}
PRICE = {
    "type": "bytes",
    "optional": False,
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "2"},
    "field": "id",
}
MICROS, MOMENT = 1_529_507_596_945_104, datetime(2018, 6, 20, 15, 13, 16, 945_104)  # noqa: DTZ001
COPIES = pytest.mark.parametrize("copies", [1, 100], ids=["rows", "columns"])


def struct(*fields: Any) -> Any:
    """The schema of a key."""
    return {"type": "struct", "fields": list(fields), "optional": False, "name": "shop.people.Key"}


def around(payload: Any, *fields: Any) -> bytes:
    """A key with its schema, as Connect's converter writes it."""
    return bare({"schema": struct(*fields), "payload": payload})


def bare(key: Any) -> bytes:
    """A key as JSON."""
    return json.dumps(key, separators=(",", ":")).encode()


def decoder(columns: str = "id BIGINT", **given: Any) -> Decoder:
    """The decoder of keys of JSON beside values of ``debezium-json``."""
    format_ = key_format_beside("debezium-json", "json")
    options = {option.name: option.default for option in format_.options} | given
    return format_.decoder(codec_spec(format_, spark_columns(columns), "key", options))


def values(decoded: Decoded) -> list[Any]:
    """The only column of keys; NULL for one that is skipped."""
    assert decoded.errors == {}
    return decoded.rows.column(0).to_pylist()


@COPIES
def test_keys_are_read_with_their_schema_and_without(copies: int) -> None:
    """A key shows whether it has a schema: the two may stand in one topic, as after a converter was set anew."""
    keys = [
        around({"id": 1}, ID),
        bare({"id": 2}),
        json.dumps({"payload": {"id": 3}, "schema": None}).encode(),
    ]

    assert values(decoder().decode(keys * copies)) == [1, 2, 3] * copies


@COPIES
@pytest.mark.parametrize(
    ("column", "field", "sent", "meant"),
    [
        ("TIMESTAMP_NTZ", MADE, MICROS, MOMENT),
        ("BIGINT", MADE, MICROS, MICROS),
        ("DECIMAL(10,2)", PRICE, "BNI=", Decimal("12.34")),
        ("STRING", {"type": "string", "name": "io.debezium.data.Uuid", "field": "id"}, "a", "a"),
    ],
)
def test_the_schema_of_a_key_says_what_it_means(
    column: str, field: Any, sent: Any, meant: Any, copies: int
) -> None:
    """By the same table of types as values."""
    found = decoder(f"id {column}").decode([around({"id": sent}, field)] * copies)

    assert values(found) == [meant] * copies


def test_an_interval_needs_the_schema_of_a_key() -> None:
    """Without it nothing shows whether a number counts milliseconds or microseconds."""
    time = {"type": "int64", "optional": False, "name": "io.debezium.time.MicroTime", "field": "id"}
    found = decoder("id INTERVAL DAY TO SECOND").decode(
        [around({"id": 5_532_000_000}, time), bare({"id": 5_532_000_000})]
    )

    assert good_rows(found).to_pylist() == [{"id": timedelta(seconds=5_532)}]
    assert "'key.converter.schemas.enable' = 'true'" in found.errors[1]


@pytest.mark.parametrize(
    "key",
    [
        {"schema": "a", "payload": 1},
        {"schema": {"a": 1}, "payload": {"b": 2}},
        {"payload": {"type": "struct"}},
        {"schema": {"type": "x"}, "payload": 1, "id": 3},
    ],
)
def test_keys_of_columns_with_these_names_are_keys(key: Any) -> None:
    """What has no Connect schema beside a payload, and nothing else, is the key itself."""
    columns = "schema STRING, payload STRING, id BIGINT"
    format_ = format_named("json", "key")
    plain = format_.decoder(codec_spec(format_, spark_columns(columns), "key"))

    found = decoder(columns).decode([bare(key)])

    assert found.errors == {}
    assert found.rows.equals(plain.decode([bare(key)]).rows)


@COPIES
@pytest.mark.parametrize(
    ("key", "column", "why"),
    [
        (around(None, ID), "BIGINT", "field 'payload' is null or missing"),
        (b'{"schema":{"type":"struct","fields":[]}}', "BIGINT", "field 'payload' is null or missing"),
        (around(7, ID), "BIGINT", "expected a JSON object, got 7"),
        (around({"id": "x"}, ID), "BIGINT", "field 'id': expected a whole number"),
        (around({"id": 1}, MADE), "DATE", "declare it TIMESTAMP_NTZ, TIMESTAMP"),
        (bare({"id": MICROS}), "TIMESTAMP", "'key.converter.schemas.enable' = 'true'"),
        (bare({"id": "BNI="}), "DECIMAL(10,2)", "'key.converter.schemas.enable' = 'true'"),
        (around({"id": 1}, ID)[:-1], "BIGINT", "not JSON"),
        (b'"payload"', "BIGINT", "expected a JSON object"),
        (b'{"payload":', "BIGINT", "not JSON"),
        (b'{"schema":' * 100_000 + b'"payload"', "BIGINT", "nested deeper than 250 levels"),
        (b"\xff", "BIGINT", "not UTF-8"),
    ],
)  # fmt: skip
def test_a_bad_key_is_an_error_of_its_message(
    key: bytes, column: str, why: str, copies: int
) -> None:
    """One sentence, the same on both paths; the keys around it are read."""
    good = around({"id": None}, {**ID, "optional": True})

    found = decoder(f"id {column}").decode([good, key] * copies)

    assert [*found.errors] == list(range(1, 2 * copies, 2))
    assert all(why in error for error in found.errors.values())
    assert good_rows(found).num_rows == copies


def test_bad_keys_are_passed_over_where_that_is_wanted() -> None:
    """With ``ignore-parse-errors``, as in ``json``."""
    found = decoder(**{"ignore-parse-errors": True}).decode(
        [around(None, ID), around({"id": 1}, ID)]
    )

    assert (found.errors, found.skipped) == ({}, frozenset({0}))
    assert values(found) == [None, 1]


KEYS = st.one_of(
    st.integers(0, 9).map(lambda id_: around({"id": id_}, ID)),
    st.integers(0, 9).map(lambda id_: around({"id": id_, "zone": "x"}, ID, {"type": "string", "field": "zone"})),
    st.integers(0, 9).map(lambda id_: bare({"id": id_})),
    st.sampled_from([None, "x", {"id": "x"}, 3, {}]).map(lambda payload: around(payload, ID)),
    st.sampled_from([b"", b"{}", b"[", b'{"schema":null,"payload":null}', b'{"schema":{"type":"struct"},"payload":{"id":1},"x":2}']),
    st.tuples(st.just(around({"id": 1}, ID)), st.integers(0, 90)).map(lambda each: each[0][: each[1]]),
)  # fmt: skip


ODD_KEYS = [
    *(around(payload, ID) for payload in (None, "x", {}, [], 3, {"id": None}, {"id": "x"}, {"id": 1.5}, {"id": 2**63}, {"id": 1, "z": 2})),
    *(bare(payload) for payload in ({}, {"id": 1}, {"id": None}, {"id": "1"})),
    *(around({"id": 1}, ID)[:at] for at in range(90)),
    around({"id": 1, "zone": "x"}, ID, {"type": "string", "field": "zone"}), around({"id": 1}, ID) + b" ", around({"id": 1}, ID) * 2,
    b"", b" ", b"{}", b"[", b"null", b"\xff", b'{"schema":null,"payload":null}', b'{"schema":null}', b'{"payload":{"id":1}}',
    b'{"schema":{"type":"struct"},"payload":{"id":1},"x":2}',
]  # fmt: skip


@example(ODD_KEYS)
@law(60, few=20)
@given(st.lists(KEYS, min_size=1, max_size=20))
def test_a_batch_is_its_keys(keys: list[bytes]) -> None:
    """How keys are put together in batches makes no difference."""
    compiled, many = decoder(), keys * (1 + 70 // len(keys))

    found = compiled.decode(many)

    alone = {key: compiled.decode([key]) for key in {*keys}}
    assert found.errors == {
        at: why for at, key in enumerate(many) for why in alone[key].errors.values()
    }
    assert found.rows.to_pylist() == [row for key in many for row in alone[key].rows.to_pylist()]


@pytest.mark.parametrize("value_format", ["json", "maxwell-json", "avro-confluent"])
def test_beside_other_values_keys_mean_what_they_say(value_format: str) -> None:
    """Only Debezium's values are known to come from Kafka Connect."""
    for name in ("json", "avro-confluent", "csv"):
        beside, plain = key_format_beside(value_format, name), format_named(name, "key")
        assert beside.name == plain.name
    assert key_format_beside(value_format, "json") is format_named("json", "key")


@COPIES
def test_keys_of_avro_mean_what_their_schema_says(copies: int) -> None:
    """In the registry, by ``connect.name``."""
    schema = avro_converter.avro_schema(connect_schema(struct(MADE)))
    messages = [avro_converter.message(schema, {"id": MICROS}, PREFIX)] * copies
    columns, text = spark_columns("id TIMESTAMP_NTZ"), json.dumps(schema)

    for format_ in (debezium_avro.KEYS, debezium_avro.REGISTRY_KEYS):
        found = Codecs(format_).read(columns, messages, text, side="key")
        assert rows_of(found) == [(MOMENT,)] * copies
        with pytest.raises(SchemaError, match="declare it TIMESTAMP_NTZ"):
            Codecs(format_).decoder(spark_columns("id DATE"), text, side="key")
