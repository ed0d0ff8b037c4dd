"""``debezium-avro-confluent``: Debezium's envelopes in Avro whose messages name their schema in a registry."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from itertools import product
from typing import Any

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_named, format_options
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.formats.cdc.connect_schema import connect_schema
from pyspark_upsert_kafka.formats.codec import ChangeDecoder, ChangeSpec, CodecSpec
from tests.laws import law
from tests.unit.formats.cdc import avro_converter, decoding
from tests.unit.formats.cdc.decoding import checked, rows_of
from tests.unit.formats.cdc.test_laws import copies, one_by_one, said
from tests.unit.formats.json.codecs import columns
from tests.unit.registry.fake_registry import FakeRegistry
from tools.recorded_debezium import TOPIC, Recorded, record

NAME = "debezium-avro-confluent"
ROW = columns(id=LongType(), name=StringType())
VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "email", "type": ["null", "string"], "default": None},
        {"name": "name", "type": ["null", "string"], "default": None},
    ],
}
SOURCE = {"type": "record", "name": "Source", "fields": [{"name": "db", "type": "string"}]}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.people",
    "fields": [
        {"name": "before", "type": ["null", VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": SOURCE},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}
SCHEMA = fastavro.parse_schema(ENVELOPE)


def message(op: str, before: Any = None, after: Any = None) -> bytes:
    """A message; rows are (id, name)."""
    rows = [None if row is None else {"id": row[0], "name": row[1]} for row in (before, after)]
    body = io.BytesIO()
    datum = {"op": op, "before": rows[0], "after": rows[1], "source": {"db": "shop"}}
    fastavro.schemaless_writer(body, SCHEMA, datum)
    return b"\0\0\0\0\7" + body.getvalue()


MESSAGES = [
    message("r", None, (1, "Ada")),
    message("u", (1, "Ada"), (2, "Ada L.")),
    b"",
    message("d", (2, "Ada L.")),
    message("t"),
    message("x"),
    b"{}",
]


@pytest.fixture
def url(registry: Any) -> str:
    """A registry that knows the schema."""
    registry.answers["/schemas/ids/7"] = [(200, {"schema": json.dumps(ENVELOPE)})]
    address: str = registry.url
    return address


def decoder(
    url: str, *key: str, row: StructType = ROW, given: Mapping[str, str] = {}
) -> ChangeDecoder:
    """The decoder, of upserts with a key and of images without one."""
    compiled = format_named(NAME, "value").changes
    assert compiled is not None
    return compiled(ChangeSpec(row_spec({"url": url, **given}, row), bool(key), key))


def row_spec(given: Mapping[str, str], row: StructType = ROW) -> CodecSpec:
    """The row, with options of the format."""
    options = {option.name: option.read(given) for option in format_options(NAME, "value")}
    return CodecSpec(row, "value", options, ("people",))


def test_rows_before_and_after_each_change(url: str) -> None:
    """As with debezium-json; fields without a column are skipped."""
    found = decoder(url).decode(MESSAGES)
    assert rows_of(found) == [
        (0, Change.INSERT, 1, "Ada"),
        (1, Change.UPDATE_PREIMAGE, 1, "Ada"),
        (1, Change.UPDATE_POSTIMAGE, 2, "Ada L."),
        (3, Change.DELETE, 2, "Ada L."),
    ]
    assert found.passed_over == {4: "a truncate of the table ('op' is 't')"}
    assert sorted(found.errors) == [5, 6]
    assert found.errors[5] == 'unknown "op" value "x", expected one of c, r, u, d, t'


def test_upserts_and_deletes_of_a_key(url: str) -> None:
    """As with debezium-json; an update of the key is both."""
    assert rows_of(decoder(url, "id").decode(MESSAGES)) == [
        (0, Change.UPSERT, 1, "Ada"),
        (1, Change.DELETE, 1, None),
        (1, Change.UPSERT, 2, "Ada L."),
        (3, Change.DELETE, 2, None),
    ]


@pytest.mark.parametrize("key", [(), ("id",)])
def test_a_column_that_rows_have_no_field_for(
    url: str,
    key: tuple[str, ...],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is told by its name in the row, and not in the envelope; that a name has other capital letters makes no difference."""
    monkeypatch.setattr(errors, "_warned", set())
    row = columns(id=LongType(), NAME=StringType(), e_mail=StringType())

    decoder(url, *key, row=row).decode(MESSAGES)

    (said,) = caplog.messages
    assert "Schema id 7, the record 'shop.people.Value', has no field for 'e_mail'" in said
    assert "It has 'email'." in said


def test_many_messages(url: str) -> None:
    """The vectorised path gives the same."""
    one, many = (decoder(url, "id").decode(MESSAGES * times) for times in (1, 100))
    assert [row[1:] for row in rows_of(many)] == [row[1:] for row in rows_of(one)] * 100


def check(given: Mapping[str, str], row: StructType = ROW) -> None:
    """What is checked when a query is planned."""
    checked_by = format_named(NAME, "value").check_decoder
    assert checked_by is not None
    checked_by(row_spec(given, row))


def test_the_registry_is_needed() -> None:
    """Without its address the format is refused when the query is planned."""
    with pytest.raises(OptionError, match=r"'value\.debezium-avro-confluent\.url'"):
        check({})


def test_a_given_schema_is_that_of_the_envelope(url: str) -> None:
    """It is compared with the columns when the query is planned, NOT NULL ones too."""
    given = {"url": url, "schema": json.dumps(ENVELOPE)}
    check(given, spark_columns("id BIGINT NOT NULL, name STRING"))
    with pytest.raises(SchemaError, match=r"field 'before\.id' is DATE"):
        check(given, spark_columns("id DATE"))
    found = decoder(url, "id", given={"schema": json.dumps(ENVELOPE)}).decode(MESSAGES[:1])
    assert rows_of(found) == [(0, Change.UPSERT, 1, "Ada")]


@pytest.mark.parametrize("key", [(), ("id",)], ids=["images", "key"])
def test_a_recorded_topic_in_avro_is_the_one_in_json(
    registry: FakeRegistry, key: tuple[str, ...]
) -> None:
    """Dates, timestamps, decimals and all other types, before and after a column was added in the middle."""
    recording = record(Recorded(4, rows=30, transactions=80, replica_identity="full"))
    values = [each.value for each in recording.messages if each.topic == TOPIC and each.value]
    ids: dict[str, int] = {}
    messages = []
    for value in values:
        document = json.loads(value)
        schema = connect_schema(document["schema"])
        avro = avro_converter.avro_schema(schema)
        number = ids.setdefault(json.dumps(avro), len(ids) + 1)
        registry.schema(number, avro)
        sent = avro_converter.datum(schema, document["payload"])
        messages.append(avro_converter.message(avro, sent, bytes([0, 0, 0, 0, number])))

    found = decoder(registry.url, *key, row=spark_columns(recording.ddl)).decode(messages)

    assert len(ids) == 2
    in_json = decoding.decoded(
        "debezium-json", *values, columns=recording.ddl, key=key or None, schema_include="true"
    )
    assert found.errors == in_json.errors == {}
    assert said(found) == said(in_json)
    assert found.rows.num_rows > 100


def test_a_column_that_does_not_fit_is_an_error_of_each_message(registry: FakeRegistry) -> None:
    """The error names the types that fit; messages of another schema are read."""
    dated = json.loads(json.dumps(ENVELOPE))
    born = {"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"}
    dated["fields"][0]["type"][1]["fields"][2]["type"] = ["null", born]
    registry.schema(7, ENVELOPE)
    registry.schema(8, dated)
    other = avro_converter.message(dated, {"op": "c", "after": {"id": 1}, "source": {"db": ""}})
    found = decoder(registry.url, "id").decode(
        [message("c", None, (1, "Ada")), b"\0\0\0\0\x08" + other[5:]]
    )
    assert rows_of(found) == [(0, Change.UPSERT, 1, "Ada")]
    assert list(found.errors) == [1]
    assert "io.debezium.time.Date (int32): declare it DATE, TINYINT" in found.errors[1]


def test_a_type_may_be_sent_otherwise_after_a_while(registry: FakeRegistry) -> None:
    """As after ``time.precision.mode`` was set anew: each message is read by its own schema."""
    kinds = {
        7: ({"type": "long", "connect.name": "io.debezium.time.Timestamp"}, 1_529_507_596_945),
        8: ({"type": "long", "connect.name": "io.debezium.time.NanoTimestamp"}, 1_529_507_596_945_000_000),
        9: ({"type": "string", "connect.name": "io.debezium.time.IsoTimestamp"}, "2018-06-20T15:13:16.945Z"),
    }  # fmt: skip
    messages = []
    for number, (kind, sent) in kinds.items():
        schema = json.loads(json.dumps(ENVELOPE))
        schema["fields"][0]["type"][1]["fields"][2]["type"] = ["null", kind]
        registry.schema(number, schema)
        datum = {"op": "c", "after": {"id": number, "name": sent}, "source": {"db": ""}}
        messages.append(avro_converter.message(schema, datum, bytes([0, 0, 0, 0, number])))

    row = spark_columns("id BIGINT, name TIMESTAMP_NTZ")
    found = decoder(registry.url, "id", row=row).decode(messages * 40)

    assert found.errors == {}
    assert [each[2] for each in rows_of(found)] == [7, 8, 9] * 40
    assert {str(each[3]) for each in rows_of(found)} == {"2018-06-20 15:13:16.945000"}


BAD = [
    (message("x"), 'unknown "op" value "x", expected one of c, r, u, d, t'),
    (message(""), 'unknown "op" value "", expected one of'),
    (message("c"), 'the "after" field of INSERT message is null or missing'),
    (message("u", (1, "a")), 'the "after" field of UPDATE message is null or missing'),
    (message("d", None, (1, "a")), 'The "before" field of DELETE message is null'),
    (message("c", None, (1, "a"))[:-3], "field '"),
    (message("c", None, (1, "a")) + b"\0", "1 byte"),
    (message("c")[:5], "field '"),
    (message("c")[:3], "does not begin with a zero byte"),
    (b"{}", "does not begin with a zero byte"),
    (b'{"op":"c","after":{"id":1}}', "does not begin with a zero byte"),
    (b"\0\0\0\0\x63" + message("c")[5:], "99"),
]


@pytest.mark.parametrize(("bad", "why"), BAD)
def test_an_error_is_the_same_on_both_paths(url: str, bad: bytes, why: str) -> None:
    """One sentence for each bad message; those around it are read."""
    compiled, good = decoder(url, "id"), message("c", None, (1, "Ada"))
    alone = compiled.decode([bad])
    many = compiled.decode([good, bad] * 70)
    assert why in alone.errors[0]
    assert dict(many.errors) == dict.fromkeys(range(1, 140, 2), alone.errors[0])
    assert len(many.places) == 70


ROWS = st.none() | st.tuples(st.integers(1, 3), st.none() | st.sampled_from(["a", "b"]))
GOOD = st.builds(message, st.sampled_from([*"crudux", "t", ""]), ROWS, ROWS)
CUT = st.tuples(GOOD, st.integers(0, 40)).map(lambda each: each[0][: each[1]])
DAMAGED = st.tuples(GOOD, st.integers(5, 40), st.binary(min_size=1, max_size=3)).map(
    lambda each: each[0][: each[1]] + each[2] + each[0][each[1] + 1 :]
)


ODD = [
    *(bad for bad, _ in BAD),
    *(message(op, *rows) for op in [*"crudtx", ""] for rows in product([None, (1, "a"), (2, None)], repeat=2)),
    *(message("u", (1, "a"), (1, "b"))[:at] for at in range(40)),
    *(message("u", (1, "a"), (1, "b"))[:at] + b"\xff" + message("u", (1, "a"), (1, "b"))[at + 1 :] for at in range(5, 25)),
]  # fmt: skip


@pytest.mark.parametrize("key", [(), ("id",), ("id", "name")], ids=["images", "key", "keys"])
def test_a_batch_is_its_messages(url: str, key: tuple[str, ...]) -> None:
    """Whatever is wrong with messages, both paths say and read the same of each."""
    compiled = decoder(url, *key)

    @example(ODD)
    @law(60, few=15)
    @given(st.lists(GOOD | GOOD | CUT | DAMAGED, min_size=1, max_size=30))
    def holds(messages: list[bytes]) -> None:
        many = copies(messages)
        assert said(checked(compiled.decode(many))) == one_by_one(compiled, many)

    holds()


def nested(kind: Any) -> Any:
    """An envelope whose op or rows have another type."""
    changed = json.loads(json.dumps(ENVELOPE))
    changed["fields"] = [{**each, **kind.get(each["name"], {})} for each in changed["fields"]]
    changed["fields"] = [each for each in changed["fields"] if each.get("type") is not None]
    return changed


INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [{"name": "op", "type": "string"}, {"name": "after", "type": ["null", "Value"]}],
}
NO_KEY = "key column 'id' is NULL or missing"


@pytest.mark.parametrize(
    ("changes", "datum", "why"),
    [
        ({"op": {"type": None}}, {"after": {"id": 1}}, 'the message has no "op"'),
        ({"op": {"type": ["null", "string"]}}, {"after": {"id": 1}}, 'the message has no "op"'),
        ({"after": {"type": None}}, {"op": "c"}, 'the "after" field of INSERT message is null or'),
        ({"after": {"type": "string", "default": ""}}, {"op": "c", "after": "x"}, "which cannot hold Avro's string"),
        ({"op": {"type": "int"}}, {"op": 1, "after": {"id": 1}}, "which cannot hold Avro's int"),
        ({"after": {"type": INNER, "default": {}}}, {"op": "c", "after": {"op": "c", "after": {"id": 1}}}, NO_KEY),
    ],
)  # fmt: skip
def test_envelopes_of_another_shape(
    registry: FakeRegistry, changes: Any, datum: Any, why: str
) -> None:
    """A message of such a schema is an error, or its row has no key, which is told where keys are looked at."""
    schema = nested(changes)
    registry.schema(7, schema)
    found = decoder(registry.url, "id").decode(
        [avro_converter.message(schema, {"source": {"db": ""}, **datum})] * 70
    )
    if why == NO_KEY:
        assert found.errors == {}
        assert found.rows.column("id").null_count == 70
    else:
        assert len(found.errors) == 70
        assert why in found.errors[69]
