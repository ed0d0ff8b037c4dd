"""Columns that messages have by now, and a stream lacks since it was planned."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector import schema_inference
from pyspark_upsert_kafka.connector.datasource import UpsertKafkaDataSource
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.reading import later_columns
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder, Rows
from pyspark_upsert_kafka.connector.schema_inference import inferred_schema, watching
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.column_changes import lacking, united
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import OptionError, SchemaChangedError, SchemaError
from pyspark_upsert_kafka.core.metadata import SCHEMA_IDS
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options
from tests.unit.registry.fake_registry import FakeRegistry, serving

ID = {"name": "id", "type": "long"}
NAME = {"name": "name", "type": ["null", "string"], "default": None}
TIER = {"name": "tier", "type": ["null", "int"], "default": None}
KEY = b'{"id": 1}'

Fields = Sequence[Mapping[str, Any]]


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    """A registry; its schemas are told by `newest` and `known`."""
    with serving() as registry:
        yield registry


def avro(*fields: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a record."""
    return {"type": "record", "name": "r", "fields": [*fields]}


def framed(number: int, schema: Any, row: Mapping[str, Any]) -> bytes:
    """A message of a schema."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), row)
    return b"\0" + number.to_bytes(4, "big") + body.getvalue()


class Stream:
    """A stream whose columns were inferred, as one task reads it."""

    def __init__(
        self, registry: FakeRegistry, format_: str = "avro-confluent", **given: object
    ) -> None:
        address = {f"value.{format_}.url": registry.url}
        options = table_options(topic="orders", value__format=format_, **{**address, **given})
        self.columns = inferred_schema(options)
        read = read_options(options, format_options, stream=True)
        self.options = watching(read, self.columns, now_ms())
        table = table_to_read(self.columns, self.options)
        self.decoder = RowDecoder(table, self.options, "UTC")

    def read(self, *values: bytes | None, keys: Sequence[bytes] = ()) -> Rows:
        """The rows of some messages of partition 3, from offset 100 on."""
        found = keys or [KEY] * len(values)
        return self.decoder.decode(
            RawBatch(
                "orders",
                3,
                BytesColumn.of(found),
                BytesColumn.of(values),
                [100 + at for at in range(len(values))],
            )
        )

    def rows(self, *values: bytes | None) -> list[dict[str, Any]]:
        """The same as Python has them, without what was done."""
        found = self.read(*values)
        assert found.bad == []
        columns = dict(zip(self.columns.names, found.columns, strict=True))
        lists = {name: each.to_pylist() for name, each in columns.items() if name[0] != "_"}
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def test_a_message_with_a_new_column_ends_the_stream(registry: FakeRegistry) -> None:
    """The error names the first such message, the subject and both sets of columns; nothing is read."""
    old, new = avro(ID, NAME), avro(ID, NAME, TIER)
    registry.version("orders-value", "latest", old)
    registry.schema(1, old)
    registry.schema(2, new)
    stream = Stream(registry, **{"scan.schema-changes": "restart"})
    row = {"id": 1, "name": "Ada", "tier": 2}
    assert stream.rows(framed(1, old, row)) == [{"id": 1, "name": "Ada"}]
    registry.version("orders-value", "latest", new)

    for _ in range(2):  # also where Spark runs the task again in the same process
        with pytest.raises(SchemaChangedError) as raised:
            stream.read(framed(1, old, row), None, framed(2, new, row), framed(2, new, row))

    error = raised.value
    assert (error.topic, error.partition, error.offset) == ("orders", 3, 102)
    assert (error.schema, error.subject) == ("Schema id 2", "orders-value")
    assert (error.lacking, error.new) == ("tier INT", "id BIGINT NOT NULL, name STRING, tier INT")
    assert "topic 'orders', partition 3, offset 102" in str(error)

    again = Stream(registry, **{"scan.schema-changes": "restart"})
    assert again.rows(framed(1, old, row), framed(2, new, row)) == [
        {"id": 1, "name": "Ada", "tier": None},
        {"id": 1, "name": "Ada", "tier": 2},
    ]


def test_without_the_option_there_is_one_warning(
    registry: FakeRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    """It names the columns; a further schema is warned of only for what is new in it."""
    old, new = avro(ID, NAME), avro(ID, NAME, TIER)
    newer = avro(ID, NAME, TIER, {**NAME, "name": "more"})
    registry.version("orders-value", "latest", old)
    for number, schema in ((1, old), (2, new), (3, newer)):
        registry.schema(number, schema)
    stream = Stream(registry)
    row = {"id": 1, "name": "Ada", "tier": 2, "more": "x"}

    for number, schema in ((1, old), (2, new), (2, new), (3, newer)):
        assert stream.rows(framed(number, schema, row)) == [{"id": 1, "name": "Ada"}]

    first, second = caplog.messages
    assert "Messages in orders were written with columns that this query lacks" in first
    assert ": tier INT (Schema id 2 says so)" in first
    assert ": more STRING (Schema id 3 says so)" in second
    assert registry.paths().count("/subjects/orders-value/versions/latest") == 1


@pytest.mark.parametrize(
    ("old", "new", "lacks"),
    [
        ([ID, NAME], [ID, NAME, TIER], "tier INT"),
        ([ID, NAME], [ID], None),
        ([ID, NAME], [ID, {**NAME, "name": "title"}], "title STRING"),
        ([ID, TIER], [ID, {**TIER, "type": ["null", "long"]}], "tier BIGINT (here INT)"),
        ([ID, {**TIER, "type": ["null", "long"]}], [ID, TIER], None),
        ([ID, TIER], [ID, {"name": "tier", "type": "int"}], None),
        ([ID, TIER], [ID, {**NAME, "name": "tier"}], None),
        ([ID, NAME], [ID, {**NAME, "name": "NAME"}], None),
        (
            [ID, {"name": "at", "type": {**avro(TIER), "name": "in"}}],
            [ID, {"name": "at", "type": {**avro(TIER, NAME), "name": "in"}}],
            "at.name STRING",
        ),
        (
            [ID, {"name": "at", "type": {"type": "array", "items": {**avro(TIER), "name": "in"}}}],
            [ID, {"name": "at", "type": {"type": "array", "items": {**avro(NAME, TIER), "name": "in"}}}],
            "at.element.name STRING",
        ),
        ([ID], [ID, {**NAME, "name": "_offset"}], "_offset STRING"),
    ],
    ids=["added", "dropped", "renamed", "widened", "narrowed", "made NOT NULL", "another type", "case", "in a struct", "in an array", "metadata"],
)  # fmt: skip
def test_which_changes_count(
    registry: FakeRegistry, old: Fields, new: Fields, lacks: str | None
) -> None:
    """What a new start has and the query lacks; what the query can hold anyway is no reason to end it."""
    registry.version("orders-value", "latest", avro(*old))
    stream = Stream(registry, **{"scan.schema-changes": "restart"})
    registry.schema(2, avro(*new))
    registry.version("orders-value", "latest", avro(*new))
    row = {"id": 1, "name": "x", "title": "x", "tier": 2, "at": {}, "NAME": "x", "_offset": "x"}
    kinds = {each["name"]: each["type"] for each in new}
    if isinstance(kinds.get("at"), dict) and kinds["at"]["type"] == "array":
        row["at"] = []
    if kinds.get("tier") == ["null", "string"]:
        row["tier"] = "x"

    try:
        stream.read(framed(2, avro(*new), row))
        found = None
    except SchemaChangedError as error:
        found = error.lacking
    assert found == lacks


@pytest.mark.parametrize("nested", [False, True])
def test_a_column_that_got_wider_and_is_gone(registry: FakeRegistry, nested: bool) -> None:
    """The query has the narrower type, so it cannot read the message; a new start does not have the column, and can."""
    small, large = TIER, {**TIER, "type": ["null", "long"]}
    versions = [[ID, small], [ID, large], [ID]]
    row: dict[str, Any] = {"id": 1, "tier": 2**40}
    if nested:
        inner = [{**avro(NAME, *fields[1:]), "name": "in"} for fields in versions]
        versions = [
            [ID, {"name": "at", "type": {"type": "array", "items": each}}] for each in inner
        ]
        row = {"id": 1, "at": [{"name": "x", "tier": 2**40}]}
    old, wide, newest = (avro(*fields) for fields in versions)
    registry.schema(2, wide)
    registry.version("orders-value", "latest", old)
    stream = Stream(registry, **{"scan.schema-changes": "restart"})
    registry.version("orders-value", "latest", newest)

    with pytest.raises(SchemaChangedError, match=r"lacks: .*tier BIGINT \(here INT\)"):
        stream.read(framed(2, wide, row))

    again = Stream(registry, **{"scan.schema-changes": "restart"})
    read = {"id": 1, "at": [{"name": "x"}]} if nested else {"id": 1}
    assert again.rows(framed(2, wide, row)) == [read]


def test_the_columns_of_a_subject_need_not_be_those_of_its_messages(
    registry: FakeRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    """Where two writers alternate, and a new start would not have the column of one of them, it would be met again and again."""
    one, other = avro(ID, NAME), avro(ID, TIER)
    registry.schema(1, one)
    registry.schema(2, other)
    registry.version("orders-value", "latest", one)
    stream = Stream(registry, **{"scan.schema-changes": "restart"})
    row = {"id": 1, "name": "Ada", "tier": 2}

    assert stream.rows(framed(1, one, row), framed(2, other, row), framed(1, one, row)) == [
        {"id": 1, "name": "Ada"},
        {"id": 1, "name": None},
        {"id": 1, "name": "Ada"},
    ]
    (said,) = caplog.messages
    assert "a query that is started again would not have them either" in said


def test_a_registry_that_tells_late_which_schema_is_the_newest(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again after a while, and no more often."""
    old, new = avro(ID), avro(ID, TIER)
    registry.schema(2, new)
    registry.version("orders-value", "latest", old)
    stream = Stream(registry, **{"scan.schema-changes": "restart"})
    message = framed(2, new, {"id": 1, "tier": 2})
    for _ in range(3):
        stream.read(message)
    latest = "/subjects/orders-value/versions/latest"
    assert registry.paths().count(latest) == 2  # of the planning, and of the first message
    registry.version("orders-value", "latest", new)
    stream.read(message)

    monkeypatch.setattr(later_columns, "_AGAIN_S", 0.0)
    with pytest.raises(SchemaChangedError):
        stream.read(message)


def test_a_schema_that_no_message_names(registry: FakeRegistry) -> None:
    """Registered and never used, it ends nothing."""
    registry.schema(1, avro(ID))
    registry.version("orders-value", "latest", avro(ID))
    stream = Stream(registry, **{"scan.schema-changes": "restart"})
    registry.version("orders-value", "latest", avro(ID, TIER))

    assert stream.rows(framed(1, avro(ID), {"id": 1})) == [{"id": 1}]


@pytest.mark.parametrize(
    "count", [40, pytest.param(1_000, marks=pytest.mark.long("a thousand requests"))]
)
def test_many_schemas(registry: FakeRegistry, caplog: pytest.LogCaptureFixture, count: int) -> None:
    """Each is looked at once, however many messages name it, and each column is told once."""
    registry.version("orders-value", "latest", avro(ID))
    schemas = {
        number: avro(ID, *({**TIER, "name": f"c{at}"} for at in range(number % 7)))
        for number in range(1, count + 1)
    }
    for number, schema in schemas.items():
        registry.schema(number, schema)
    stream = Stream(registry)
    row = {"id": 1, **{f"c{at}": 1 for at in range(7)}}
    messages = [framed(number, schema, row) for number, schema in schemas.items()]

    for _ in range(3):
        assert len(stream.read(*messages)) == count

    assert len(caplog.messages) == 6
    assert len(registry.paths()) == count + 1


def test_what_a_message_is_worth_that_cannot_be_decoded(registry: FakeRegistry) -> None:
    """It ends the stream too, whatever is done with bad messages: a new start can read it."""
    old, new = avro(ID, TIER), avro(ID, {**TIER, "type": ["null", "long"]})
    registry.version("orders-value", "latest", old)
    registry.schema(2, new)
    modes = ("fail", "ignore", "log", "column")
    more = {"log": {"error-handling.log.target": "bad"}}
    error = "_error STRUCT<stage: STRING, message: STRING, key: BINARY, value: BINARY>"
    streams = []
    for mode in modes[:3]:
        given = {
            "scan.schema-changes": "restart",
            "error-handling.mode": mode,
            **more.get(mode, {}),
        }
        streams.append(Stream(registry, **given))
    assert "_error" in error
    registry.version("orders-value", "latest", new)

    for stream in streams:
        with pytest.raises(SchemaChangedError, match="tier BIGINT"):
            stream.read(framed(2, new, {"id": 1, "tier": 2**40}))


def test_a_key_whose_type_gets_wider(registry: FakeRegistry) -> None:
    """The columns of the key come from its schema where the value has none; further fields of it are no columns."""
    registry.version("orders-key", "latest", avro({"name": "id", "type": "int"}))
    registry.version("orders-value", "latest", avro(NAME))
    registry.schema(1, avro(NAME))
    registry.schema(5, avro({"name": "id", "type": "int"}, TIER))
    registry.schema(6, avro(ID))
    given = {
        "key.format": "avro-confluent",
        "key.avro-confluent.url": registry.url,
        "value.fields-include": "EXCEPT_KEY",
        "key.fields-prefix": "k_",
        "primary-key": "k_id",
        "scan.schema-changes": "restart",
    }
    stream = Stream(registry, **given)
    assert stream.columns.simpleString() == "struct<k_id:int,name:string,_change_type:string>"
    value = framed(1, avro(NAME), {"name": "Ada"})
    more = framed(5, avro({"name": "id", "type": "int"}, TIER), {"id": 1, "tier": 2})
    stream.read(value, keys=[more])
    registry.version("orders-key", "latest", avro(ID))

    with pytest.raises(SchemaChangedError, match=r"k_id BIGINT \(here INT\)") as raised:
        stream.read(value, value, keys=[more, framed(6, avro(ID), {"id": 1})])

    assert (raised.value.offset, raised.value.subject) == (101, "orders-key")


def test_a_column_that_may_be_null_by_now(registry: FakeRegistry) -> None:
    """Where messages are rows, columns are NOT NULL; a changelog has NULL in all but the key anyway."""
    old, new = avro(ID, {"name": "name", "type": "string"}), avro(ID, NAME)
    registry.version("orders-value", "latest", old)
    registry.schema(2, new)
    given = {"scan.schema-changes": "restart"}
    append = {"read.mode": "append", "primary-key": None, "key.format": None}
    rows, changes = Stream(registry, **given, **append), Stream(registry, **given)
    registry.version("orders-value", "latest", new)

    message = framed(2, new, {"id": 1, "name": None})
    with pytest.raises(SchemaChangedError, match=r"name NULL \(here NOT NULL\)"):
        rows.read(message)
    assert changes.rows(message) == [{"id": 1, "name": None}]


def test_nested_fields_of_older_messages(registry: FakeRegistry) -> None:
    """A field that a struct has gained is NULL in messages that were written before, also where its schema says NOT NULL."""
    before, after = (
        {**avro(*fields), "name": "in"}
        for fields in ([ID], [ID, {"name": "n", "type": "int", "default": 7}])
    )
    old = avro(ID, {"name": "at", "type": before})
    new = avro(ID, {"name": "at", "type": after})
    registry.version("orders-value", "latest", new)
    registry.schema(1, old)

    assert Stream(registry).rows(framed(1, old, {"id": 1, "at": {"id": 2}})) == [
        {"id": 1, "at": {"id": 2, "n": None}}
    ]


ROW = {**avro(ID, NAME), "name": "Value"}


def envelope(row: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of Debezium's envelopes of such rows."""
    return {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "op", "type": "string"},
        ],
    }


def test_rows_of_debezium_in_avro(registry: FakeRegistry) -> None:
    """The columns are those of the rows, with the types that Debezium means; those of the envelope are none."""
    day = {"type": "int", "connect.name": "io.debezium.time.Date"}
    born = {"name": "born", "type": ["null", day], "default": None}
    old, new = envelope(ROW), envelope({**ROW, "fields": [ID, NAME, born]})
    registry.version("orders-value", "latest", old)
    registry.schema(1, old)
    registry.schema(2, new)
    given = {"key.format": None, "scan.schema-changes": "restart"}
    stream = Stream(registry, "debezium-avro-confluent", **given)
    change = {"op": "c", "after": {"id": 1, "name": "Ada", "born": 365}}
    assert stream.rows(framed(1, old, change)) == [{"id": 1, "name": "Ada"}]
    registry.version("orders-value", "latest", new)

    with pytest.raises(SchemaChangedError, match="born DATE") as raised:
        stream.read(b"", None, framed(1, old, change), framed(2, new, change))

    assert raised.value.offset == 103
    again = Stream(registry, "debezium-avro-confluent", **given)
    assert (
        again.columns.simpleString()
        == "struct<id:bigint,name:string,born:date,_change_type:string>"
    )
    (row,) = again.rows(framed(2, new, change))
    assert str(row["born"]) == "1971-01-01"


def connect(*fields: Mapping[str, Any]) -> dict[str, Any]:
    """Connect's schema of such envelopes."""
    row = {"type": "struct", "fields": [*fields], "optional": True}
    parts = [
        {**row, "field": "before"},
        {**row, "field": "after"},
        {"type": "string", "field": "op"},
    ]
    return {"type": "struct", "fields": parts, "name": "Envelope"}


def beside(schema: Any, spaces: bool = False, **row: Any) -> bytes:
    """A message with its schema; with spaces it is written as no converter does."""
    separators = None if spaces else (",", ":")
    payload = {"before": None, "after": row, "op": "c"}
    return json.dumps({"schema": schema, "payload": payload}, separators=separators).encode()


ID_OF_CONNECT = {"type": "int64", "optional": False, "field": "id"}
TIER_OF_CONNECT = {"type": "int16", "optional": True, "field": "tier"}


@pytest.mark.parametrize("spaces", [False, True], ids=["as the converter writes it", "otherwise"])
def test_schemas_beside_rows(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch, spaces: bool
) -> None:
    """Where no registry says which schema is the newest, the newest messages do, all together."""
    old, new = connect(ID_OF_CONNECT), connect(ID_OF_CONNECT, TIER_OF_CONNECT)
    newest = [beside(old, id=1)]
    monkeypatch.setattr(schema_inference, "_newest_messages", lambda *_: newest)
    given = {
        "key.format": None,
        "value.debezium-json.url": None,
        "value.debezium-json.schema-include": "true",
        "scan.schema-changes": "restart",
    }
    stream = Stream(registry, "debezium-json", **given)
    assert stream.columns.simpleString() == "struct<id:bigint,_change_type:string>"
    later = beside(new, spaces, id=2, tier=3)
    assert stream.rows(beside(old, id=1), later) == [{"id": 1}, {"id": 2}]

    newest[:] = [beside(old, id=1), later, beside(old, id=1)]
    monkeypatch.setattr(later_columns, "_AGAIN_S", 0.0)
    with pytest.raises(SchemaChangedError, match="tier SMALLINT") as raised:
        stream.read(beside(old, id=1), None, later)

    assert (raised.value.offset, raised.value.subject) == (102, None)
    again = Stream(registry, "debezium-json", **given)
    assert again.rows(beside(old, id=1), later) == [{"id": 1, "tier": None}, {"id": 2, "tier": 3}]


def test_json_and_protobuf(registry: FakeRegistry) -> None:
    """The schema of a JSON message says what it has, though it is read without; that of Protobuf behind its message indexes."""
    properties = {"id": {"type": "integer"}, "tier": {"type": "integer"}}
    documents = [
        json.dumps({"type": "object", "properties": dict(list(properties.items())[:n])})
        for n in (1, 2)
    ]
    texts = [
        f'syntax = "proto3"; message M {{ optional int64 id = 1; {more} }}'
        for more in ("", "optional int32 tier = 2;")
    ]
    bodies = {"json-registry": b'{"id":1,"tier":2}', "proto-registry": b"\0\x08\x01\x10\x02"}
    kinds = {"json-registry": ("JSON", documents), "proto-registry": ("PROTOBUF", texts)}
    for name, (kind, (old, new)) in kinds.items():
        registry.version("orders-value", "latest", old, schemaType=kind)
        number = 10 if kind == "JSON" else 20
        registry.schema(number, new, schemaType=kind)
        stream = Stream(registry, name, **{"scan.schema-changes": "restart"})
        registry.version("orders-value", "latest", new, schemaType=kind)

        with pytest.raises(SchemaChangedError, match=r"tier (BIGINT|INT)"):
            stream.read(b"\0\0\0\0" + bytes([number]) + bodies[name])


def test_a_schema_that_a_header_names(registry: FakeRegistry) -> None:
    """It is looked at like any other."""
    registry.version("orders-value", "latest", avro(ID))
    registry.schema(1, avro(ID))
    registry.schema(2, avro(ID, TIER))
    stream = Stream(registry, **{"scan.schema-changes": "restart"})
    registry.version("orders-value", "latest", avro(ID, TIER))
    bare = framed(2, avro(ID, TIER), {"id": 1, "tier": 2})
    batch = RawBatch(
        "orders",
        3,
        BytesColumn.of([KEY, KEY]),
        BytesColumn.of([framed(1, avro(ID), {"id": 1}), bare[5:]]),
        [7, 9],
        headers=[[], [("__value_schema_id", bare[:5])]],
    )
    batch.keep_of_headers(SCHEMA_IDS.values())

    with pytest.raises(SchemaChangedError) as raised:
        stream.decoder.decode(batch)

    assert raised.value.offset == 9


def test_a_schema_that_a_user_gives(
    registry: FakeRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    """All messages are read by it: what others have is not asked, and a new start would have its columns."""
    given = {"value.avro-confluent.schema": json.dumps(avro(ID))}
    registry.schema(2, avro(ID, TIER))
    stream = Stream(registry, **given)

    assert stream.rows(framed(2, avro(ID, TIER), {"id": 1, "tier": 2})) == [{"id": 1}]
    assert caplog.messages == []
    with pytest.raises(OptionError, match=r"but 'value\.avro-confluent\.schema' gives them"):
        Stream(registry, **given, **{"scan.schema-changes": "restart"})


CHANGE = spark_columns("id BIGINT, _change_type STRING")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "is for formats with a schema registry, or with schemas in their messages, and not for 'json'"),
        ({"value.format": "debezium-json", "key.format": None}, r"and not from \.schema\(\.\.\.\)"),
        ({"value.format": "avro-confluent", "value.avro-confluent.url": "http://x"}, r"and not from \.schema\(\.\.\.\)"),
    ],
)  # fmt: skip
def test_columns_that_a_new_start_has_again(given: dict[str, str], said: str) -> None:
    """Given by ``.schema(...)``, they are the same each time."""
    options = table_options(**{"scan.schema-changes": "restart", **given})

    with pytest.raises(OptionError, match=said):
        UpsertKafkaDataSource(options).streamReader(CHANGE)


def test_a_statement_and_a_batch() -> None:
    """A statement says the columns too; a batch has those of the newest schema when it begins."""
    restart = {"scan.schema-changes": "restart"}
    statement = (
        "CREATE TABLE t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 't', "
        "'properties.bootstrap.servers' = 'nowhere:9092', 'key.format' = 'json', 'value.format' = 'json')"
    )

    with pytest.raises(OptionError, match="a query that is started again has those of 'ddl' again"):
        UpsertKafkaDataSource({"ddl": statement, **restart}).schema()
    with pytest.raises(OptionError, match="'restart' is for streams"):
        UpsertKafkaDataSource(table_options(**restart)).reader(CHANGE)


def test_a_frame_that_was_loaded_long_ago(
    registry: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A supervisor that starts it again and again would end in no columns that it lacks: it is told to call load()."""
    registry.version("orders-value", "latest", avro(ID))
    given = table_options(
        topic="orders",
        value__format="avro-confluent",
        **{"value.avro-confluent.url": registry.url, "scan.schema-changes": "restart"},
    )
    source = UpsertKafkaDataSource(given)
    columns = source.schema()
    assert isinstance(columns, StructType)
    source.streamReader(columns)
    registry.version("orders-value", "latest", avro(ID, TIER))
    source.streamReader(columns)  # the schema may change while the query starts

    monkeypatch.setattr(schema_inference, "_FRESH_MS", -1)
    with pytest.raises(SchemaError, match=r"has others by now: tier INT\. Call load\(\)") as raised:
        source.streamReader(columns)
    assert not isinstance(raised.value, SchemaChangedError)


TYPES = st.sampled_from(["TINYINT", "SMALLINT", "INT", "BIGINT"])
TABLES = st.dictionaries(st.sampled_from("abcd"), TYPES, min_size=1)


def table(types: Mapping[str, str]) -> StructType:
    """Columns of these types."""
    return spark_columns(", ".join(f"{name} {kind}" for name, kind in types.items()))


@given(TABLES, TABLES, TABLES)
@example({"a": "INT"}, {"a": "BIGINT", "b": "INT"}, {"a": "INT", "b": "INT"})
def test_what_is_lacking_is_an_order(
    one: dict[str, str], other: dict[str, str], third: dict[str, str]
) -> None:
    """Nothing lacks itself; what lacks nothing of columns that lack nothing of others, lacks nothing of these."""
    a, b, c = table(one), table(other), table(third)

    assert lacking(a, a) == {}
    if not lacking(a, b) and not lacking(b, c):
        assert not lacking(a, c)
    both = united(a, b)
    assert isinstance(both, StructType)
    assert lacking(a, both) == {}
    assert lacking(b, both) == {}
