"""Schemas that headers name, as Confluent's own serializers write them over their own registry, and as they read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import header_schema_id_serializer, prefix_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.type import date_pb2, latlng_pb2
from pyspark.sql.types import (
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder
from pyspark_upsert_kafka.connector.writing.row_encoding import RowEncoder
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.metadata import METADATA, SCHEMA_IDS, Detail
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_read, table_to_write
from pyspark_upsert_kafka.formats.protobuf.descriptors import message_class, pool_of
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.guid_registry import (
    AVRO_KEY,
    AVRO_VALUE,
    GuidRegistry,
    Message,
    avro_message,
    guid_registry,
    theirs,
)
from tests.table_options import table_options
from tests.unit.formats.protobuf.codecs import descriptor_set
from tests.unit.registry.fake_registry import FakeRegistry
from tests.unit.registry.test_debezium_avro import ENVELOPE

KEY, VALUE = "__key_schema_id", "__value_schema_id"
ID, NAME = StructField("id", LongType()), StructField("name", StringType())
KIND = StructField("_change_type", StringType())
JSON_VALUE = (
    '{"type":"object","title":"v","properties":{"id":{"type":"integer"},"name":{"type":"string"}}}'
)


@pytest.fixture
def registry() -> Iterator[GuidRegistry]:
    """A registry that knows GUIDs."""
    with guid_registry() as registry:
        yield registry


def options_of(url: str, format_: str = "avro-confluent", **given: Any) -> dict[str, str]:
    """A table whose key and value both have this format."""
    return table_options(
        topic="orders", key__format=format_, value__format=format_,
        **{f"{side}.{format_}.url": url for side in ("key", "value")}, **given,
    )  # fmt: skip


def decoded(messages: list[Message], columns: StructType, given: dict[str, str]) -> Any:
    """What a changelog read makes of messages."""
    options = read_options(given, format_options, stream=True)
    decoder = RowDecoder(table_to_read(columns, options), options, "UTC")
    batch = RawBatch(
        "orders", 0,
        BytesColumn.of(key for key, _, _ in messages),
        BytesColumn.of(value for _, value, _ in messages),
        list(range(len(messages))),
        headers=[headers for _, _, headers in messages],
    )  # fmt: skip
    batch.keep_of_headers(SCHEMA_IDS.values())
    return decoder.decode(batch)


def rows(found: Any) -> list[tuple[Any, ...]]:
    """All rows; no message is bad."""
    assert found.bad == []
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def written(
    columns: StructType, given_rows: list[tuple[Any, ...]], given: dict[str, str]
) -> list[Message]:
    """The messages of some rows."""
    options = write_options(given, format_options)
    encoder = RowEncoder(table_to_write(columns, options), options, "UTC")
    found = pa.RecordBatch.from_pylist(
        [dict(zip(columns.names, row, strict=True)) for row in given_rows], encoder._schema
    )
    messages = encoder.encode(found).messages
    assert encoder.sets_metadata or messages.headers is None
    return [(key, value, list(headers or ())) for _, key, value, _, headers in messages.rows()]


COLUMNS = StructType([ID, NAME, KIND])


@pytest.mark.parametrize("format_", ["avro-confluent", "avro-registry"])
def test_both_forms_lie_side_by_side(registry, format_):
    """A message with the header has a bare payload, one without names its schema there; key and value each for themselves."""
    bare = avro_message(registry, {"id": 1, "name": "a"}, 1)
    framed = avro_message(registry, {"id": 2, "name": "b"}, 2, in_header=False)
    tombstone = avro_message(registry, None, 3)
    mixed = (framed[0], bare[1], [each for each in bare[2] if each[0] == VALUE])
    other = (bare[0], framed[1], [each for each in bare[2] if each[0] == KEY])
    messages = [bare, framed, tombstone, mixed, other]

    found = decoded(messages, COLUMNS, options_of(registry.url, format_))

    assert [name for name, _ in bare[2]] == [KEY, VALUE]
    assert rows(found) == [
        (1, "a", "upsert"), (2, "b", "upsert"), (3, None, "delete"), (1, "a", "upsert"), (2, "b", "upsert"),
    ]  # fmt: skip


def test_an_id_of_four_bytes_may_be_in_the_header(registry):
    """Confluent's deserializers know that too; of several headers the last counts, and one without a value is none."""
    key, value, headers = avro_message(registry, {"id": 1, "name": "a"}, 1)
    guids = dict(headers)
    numbers = {
        KEY: b"\0" + (1).to_bytes(4, "big"),
        VALUE: b"\0" + (2).to_bytes(4, "big"),
    }
    framed = avro_message(registry, {"id": 2, "name": "b"}, 2, in_header=False)
    messages = [
        (key, value, list(numbers.items())),
        (key, value, [(KEY, b"x"), (VALUE, b"y"), *guids.items()]),
        (framed[0], framed[1], [*guids.items(), (KEY, None), (VALUE, None)]),
    ]

    found = decoded(messages, COLUMNS, options_of(registry.url))

    assert rows(found) == [(1, "a", "upsert"), (1, "a", "upsert"), (2, "b", "upsert")]


@pytest.mark.parametrize(
    "header",
    [
        b"", b"\0", b"\0\0\0\0", b"\0\0\0\0\2\0", b"\0\xff\0\0\1", b"\1" + bytes(15), b"\1" + bytes(17),
        b"\2" + bytes(16), b"\2" + bytes(4), b"2", b"x" * 1_000_000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("side", ["key", "value"])
def test_a_header_that_names_no_schema_is_the_fault_of_its_message(registry, side, header):
    """The error says which header, and what is in it; whatever the payload may look like, it is not tried."""
    good = avro_message(registry, {"id": 1, "name": "a"}, 1)
    framed = avro_message(registry, {"id": 2, "name": "b"}, 2, in_header=False)
    wrong = (framed[0], framed[1], [(SCHEMA_IDS[side].value, header)])

    found = decoded([good, wrong, framed], COLUMNS, options_of(registry.url, error__handling__mode=None, **{"error-handling.mode": "ignore"}))  # fmt: skip

    (bad,) = found.bad
    assert (bad.index, bad.stage) == (1, side)
    assert bad.reason.startswith(f"the header '__{side}_schema_id' names no schema: ")
    assert len(bad.reason) < 2_100
    assert [column.to_pylist() for column in found.columns] == [
        [1, 2], ["a", "b"], ["upsert", "upsert"]
    ]  # fmt: skip


def test_envelopes_of_debezium(registry):
    """CDC formats read the values of their messages in the same way; a bare envelope may begin with a zero byte."""
    given = table_options(
        topic="orders", key__format=None, value__format="debezium-avro-confluent",
        **{"value.debezium-avro-confluent.url": registry.url},
    )  # fmt: skip
    messages: list[Message] = []
    for naming in (header_schema_id_serializer, prefix_schema_id_serializer):
        conf = {"schema.id.serializer": naming}
        serializer = AvroSerializer(registry.client, json.dumps(ENVELOPE), conf=conf)
        for op, before, after in (("c", None, (1, "a")), ("d", (1, "a"), None)):
            images = [row and {"id": row[0], "name": row[1]} for row in (before, after)]
            datum = {"before": images[0], "after": images[1], "source": {"db": "shop"}, "op": op}
            headers: list[tuple[str, bytes | None]] = []
            value = theirs(serializer, "value", datum, headers)
            messages.append((None, value, headers))

    found = decoded([*messages, (None, messages[0][1], [(VALUE, b"?")])], COLUMNS, given)

    assert messages[0][1].startswith(b"\0\2")
    assert [bad.index for bad in found.bad] == [4]
    assert (
        list(zip(*(column.to_pylist() for column in found.columns), strict=True))
        == [
            (1, "a", "upsert"),
            (1, None, "delete"),
        ]
        * 2
    )


def test_messages_without_any_of_the_columns_are_told_of(registry, caplog):
    """What stands in the header is no part of the message that is looked into."""
    conf = {"schema.id.serializer": header_schema_id_serializer}
    serializer = JSONSerializer(JSON_VALUE, registry.client, conf=conf)
    headers: list[tuple[str, bytes | None]] = []
    value = theirs(serializer, "value", {"other": 1}, headers)
    given = table_options(
        topic="orders", value__format="json-registry", **{"value.json-registry.url": registry.url}
    )

    assert rows(decoded([(b'{"id":1}', value, headers)], COLUMNS, given)) == [(1, None, "upsert")]
    assert "the values have none of the columns 'id', 'name'" in caplog.text
    assert "The values have the fields 'other'" in caplog.text


def test_a_tombstone_needs_no_schema(registry):
    """It is a delete, whatever its value's header says."""
    key, _, headers = avro_message(registry, None, 3)

    found = decoded([(key, None, [*headers, (VALUE, b"junk")])], COLUMNS, options_of(registry.url))

    assert rows(found) == [(3, None, "delete")]


def test_schemas_that_are_not_there(registry):
    """They are asked for twice, however many messages name them, and blamed on these."""
    key, value, headers = avro_message(registry, {"id": 1, "name": "a"}, 1)
    guid = UUID("89791762-2336-4186-9674-299b90a802e2")
    unknown = (key, value, [headers[0], (VALUE, b"\1" + guid.bytes)])
    numbered = (key, value, [headers[0], (VALUE, b"\0" + (77).to_bytes(4, "big"))])

    found = decoded([unknown, numbered, unknown], COLUMNS, options_of(registry.url))

    assert [bad.index for bad in found.bad] == [0, 1, 2]
    assert found.bad[0].reason.startswith(
        f"The schema with the GUID {guid} is not in the schema registry"
    )
    assert found.bad[1].reason.startswith("Schema id 77 is not in the schema registry")
    assert registry.asked.count(("GET", f"/schemas/guids/{guid}")) == 2


def test_a_snapshot_shares_keys_whichever_way_they_name_their_schema(registry):
    """Equal keys are in one share: it is told by their columns."""
    from pyspark_upsert_kafka.connector.reading.task_reading import KeyShares
    from pyspark_upsert_kafka.core.positions.offsets import Share

    messages = [
        avro_message(registry, {"id": key, "name": "a"}, key, in_header)
        for key in range(20)
        for in_header in (True, False)
    ]
    options = read_options(options_of(registry.url), format_options, stream=False)
    table = table_to_read(StructType([ID, NAME]), options)
    batch = RawBatch(
        "orders", 0, BytesColumn.of(m[0] for m in messages), BytesColumn.of(m[1] for m in messages),
        list(range(40)), headers=[m[2] for m in messages],
    )  # fmt: skip
    batch.keep_of_headers(SCHEMA_IDS.values())

    shares = [KeyShares(table, options).of(batch, Share(at, 2, 1, 40)) for at in range(2)]

    found = [sorted(offset // 2 for offset in share.offsets) for share in shares]
    assert sorted(found[0] + found[1]) == sorted([*range(20), *range(20)])
    assert all(each[::2] == each[1::2] for each in found)
    assert all(len(share.schema_ids[Detail.KEY_SCHEMA_ID]) == len(share) for share in shares)


IN_HEADERS = {"schema-id-location": "header", "auto.register.schemas": "true"}


def in_headers(format_: str, **more: str) -> dict[str, str]:
    """Options that name schemas of both sides in headers."""
    return {
        f"{side}.{format_}.{name}": text
        for side in ("key", "value")
        for name, text in {**IN_HEADERS, **more}.items()
    }


def test_avro_is_written_as_confluents_serializers_write_it(registry):
    """The same bytes and the same headers, in their order; a tombstone has the header of its key alone."""
    given = options_of(registry.url, **in_headers("avro-confluent"))
    given |= {"key.avro-confluent.schema": AVRO_KEY, "value.avro-confluent.schema": AVRO_VALUE}
    expected = [
        avro_message(registry, {"id": 1, "name": "abcd"}, 1),
        avro_message(registry, {"id": 2, "name": None}, 2),
        avro_message(registry, None, 3),
    ]

    found = written(COLUMNS, [(1, "abcd", "+I"), (2, None, "+U"), (3, None, "-D")], given)

    assert found == expected
    assert rows(decoded(found, COLUMNS, options_of(registry.url)))[0] == (1, "abcd", "upsert")
    context = SerializationContext("orders", MessageField.VALUE, dict(found[0][2]))
    # It refuses messages of up to five bytes, bare ones too.
    assert AvroDeserializer(registry.client)(found[0][1], context) == {"id": 1, "name": "abcd"}


def test_json_is_written_as_confluents_serializers_write_it(registry):
    """With the writer of JSON that Python's own lacks spaces, as ours does."""
    compact = lambda datum: json.dumps(datum, separators=(",", ":"))  # noqa: E731
    schemas = {side: JSON_VALUE.replace('"v"', f'"{side}"') for side in ("key", "value")}
    given = options_of(registry.url, "json-registry", **in_headers("json-registry"))
    given |= {f"{side}.json-registry.schema": schema for side, schema in schemas.items()}
    headers: list[tuple[str, bytes | None]] = []
    conf = {"schema.id.serializer": header_schema_id_serializer, "auto.register.schemas": True}
    payloads = [
        theirs(JSONSerializer(schemas[side], registry.client, conf=conf, json_encode=compact), side, datum, headers)
        for side, datum in (("key", {"id": 1}), ("value", {"id": 1, "name": "a"}))
    ]  # fmt: skip

    found = written(StructType([ID, NAME]), [(1, "a")], given)

    assert found == [(*payloads, headers)]
    assert rows(decoded(found, COLUMNS, options_of(registry.url, "json-registry"))) == [
        (1, "a", "upsert")
    ]


@pytest.mark.parametrize(
    ("message", "columns", "row"),
    [
        (date_pb2.Date(year=2026, month=11, day=26), {"year": IntegerType(), "month": IntegerType(), "day": IntegerType()}, (2026, 11, 26)),
        (latlng_pb2.LatLng(latitude=1.5, longitude=2.5), {"latitude": DoubleType(), "longitude": DoubleType()}, (1.5, 2.5)),
    ],
)  # fmt: skip
def test_protobuf_of_confluents_serializers_is_read(registry, message, columns, row):
    """Message indexes stand in the header, behind the GUID."""
    headers: list[tuple[str, bytes | None]] = []
    serializer = ProtobufSerializer(
        type(message),
        registry.client,
        conf={
            "schema.id.serializer": header_schema_id_serializer,
            "use.deprecated.format": False,
        },
    )
    value = theirs(serializer, "value", message, headers)
    schema = StructType([StructField(name, type_) for name, type_ in columns.items()])
    given = table_options(
        topic="orders", primary_key=None, key__format=None, value__format="proto-registry",
        **{"value.proto-registry.url": registry.url, "read.mode": "append"},
    )  # fmt: skip

    assert rows(decoded([(None, value, headers)], schema, given)) == [row]
    assert headers[0][1][:1] + headers[0][1][17:] == b"\1\0"


PROTO = """syntax = "proto3";
message A { int64 id = 1; }
message B { message C { int64 id = 1; message D { int64 id = 1; optional string name = 2; } } }
"""


def message_type(name):
    """A message of that text in the Protobuf runtime."""
    pool = pool_of(descriptor_set(PROTO).file)
    return message_class(pool.FindMessageTypeByName(name))


@pytest.mark.parametrize(
    ("name", "indexes"),
    [("A", b"\0"), ("B.C.D", b"\6\2\0\0"), ("C", b"\4\2\0")],
)
def test_protobuf_is_written_with_its_indexes_in_the_header(registry, name, indexes):
    """The message itself is bare, and both are what Confluent's own serializer writes."""
    given = options_of(registry.url, "proto-registry", **in_headers("proto-registry", schema=PROTO))
    given |= {f"{side}.proto-registry.message-name": name for side in ("key", "value")}
    given |= {"value.fields-include": "ALL"}
    columns = StructType([ID])

    ((key, value, headers),) = written(columns, [(1,)], given)
    assert key == value == b"\x08\1"
    assert [(header, found[17:]) for header, found in headers] == [(KEY, indexes), (VALUE, indexes)]
    assert UUID(bytes=headers[1][1][1:17]) == UUID(registry.guid("orders-value"))
    found = decoded([(key, value, headers)], StructType([ID, KIND]), options_of(registry.url, "proto-registry"))  # fmt: skip
    assert rows(found) == [(1, "upsert")]

    of_theirs: list[tuple[str, bytes | None]] = []
    conf = {"schema.id.serializer": header_schema_id_serializer, "use.deprecated.format": False}
    type_ = message_type(name if name != "C" else "B.C")
    serializer = ProtobufSerializer(type_, registry.client, conf=conf)
    bare = theirs(serializer, "value", type_(id=1), of_theirs)

    assert (bare, of_theirs[0][1][17:]) == (value, indexes)


@pytest.mark.parametrize("rest", [b"", b"\0\0", b"\4\2", b"\1", b"\xff" * 11, b"\4\2\0\0"])
def test_protobuf_needs_whole_indexes_and_nothing_behind_them(registry, rest):
    """Else the header is wrong."""
    given = options_of(registry.url, "proto-registry", **in_headers("proto-registry", schema=PROTO))
    ((key, value, headers),) = written(StructType([ID]), [(1,)], given)
    wrong = [headers[0], (VALUE, headers[1][1][:17] + rest)]

    found = decoded([(key, value, wrong)], StructType([ID, KIND]), options_of(registry.url, "proto-registry"))  # fmt: skip

    assert [bad.reason.partition(": ")[0] for bad in found.bad] == [
        "the header '__value_schema_id' names no schema"
    ]


def test_a_side_alone_may_be_in_a_header(registry):
    """Each side for itself, beside a format without a registry."""
    given = table_options(
        topic="orders", value__format="avro-confluent",
        **{"value.avro-confluent.url": registry.url, "value.avro-confluent.schema-id-location": "header"},
    )  # fmt: skip

    found = written(COLUMNS, [(1, "a", "+I"), (2, None, "-D")], given)

    assert [(key, [name for name, _ in headers]) for key, _, headers in found] == [
        (b'{"id":1}', [VALUE]),
        (b'{"id":2}', []),
    ]


_HEADERS = StructField("_headers", METADATA["header-list"].types[0])
_MAP = StructField("h", MapType(StringType(), BinaryType()))


@pytest.mark.parametrize("location", ["header", "payload"])
@pytest.mark.parametrize("column", [_HEADERS, _MAP])
def test_ours_take_the_place_of_a_rows_own(registry, location, column):
    """Those that were read would name another schema than that of the message; other headers stay, before ours."""
    own: Any = [("x", b"1"), (VALUE, b"2"), (KEY, b"3"), ("x", b"4")]
    shown = [("x", b"1"), ("x", b"4")]
    cell = [{"key": key, "value": value} for key, value in own]
    if column is _MAP:
        own, shown = [("x", b"1"), (VALUE, b"2")], [("x", b"1")]
        cell = own
    given = options_of(registry.url, **in_headers("avro-confluent", **{"schema-id-location": location}))  # fmt: skip
    if column is _MAP:
        given["metadata.h"] = "headers"

    found = written(StructType([ID, column]), [(1, cell), (2, None)], given)

    names = [KEY, VALUE] if location == "header" else []
    assert [headers[: len(shown)] for _, _, headers in found[:1]] == [shown]
    assert [name for name, _ in found[0][2][len(shown) :]] == names
    assert [name for name, _ in found[1][2]] == names


def test_without_a_registry_a_rows_own_stay():
    """Bytes that are copied as they are need them."""
    given = table_options(key__format="raw", value__format="raw", value__fields__include=None, **{"value.fields-include": "EXCEPT_KEY"})  # fmt: skip
    columns = StructType([StructField("id", BinaryType()), StructField("v", BinaryType()), _HEADERS])  # fmt: skip

    ((_, _, headers),) = written(columns, [(b"k", b"v", [{"key": VALUE, "value": b"2"}])], given)

    assert headers == [(VALUE, b"2")]


def test_a_registry_without_guids(monkeypatch):
    """Its ids go into headers, which Confluent's deserializers read as well."""
    from tests.unit.registry.fake_registry import serving

    with serving() as old:
        _answer(old)
        given = options_of(old.url, **in_headers("avro-confluent"))

        ((key, value, headers),) = written(StructType([ID, NAME]), [(1, "a")], given)

        assert headers == [(KEY, b"\0\0\0\0\5"), (VALUE, b"\0\0\0\0\6")]
        assert (key, value) == (b"\2", b"\2\2\2a")


def _answer(registry: FakeRegistry) -> None:
    registry.answers["/subjects/orders-key/versions"] = [(200, {"id": 5})]
    registry.answers["/subjects/orders-value/versions"] = [(200, {"id": 6})]


def test_many_schemas(registry):
    """Each is asked for once, and each message is read by its own."""
    key = avro_message(registry, None, 1)[0]
    key_header = avro_message(registry, None, 1)[2][0]
    guids = []
    for number in range(300):
        schema = AVRO_VALUE.replace('"v"', f'"v{number}"')
        serializer = AvroSerializer(registry.client, schema, conf={"schema.id.serializer": header_schema_id_serializer})  # fmt: skip
        headers: list[tuple[str, bytes | None]] = [key_header]
        value = theirs(serializer, "value", {"id": number, "name": "a"}, headers)
        guids.append((key, value, headers))

    found = decoded(guids * 2, COLUMNS, options_of(registry.url))

    assert [row[0] for row in rows(found)] == [*range(300)] * 2
    assert len([path for _, path in registry.asked if "/guids/" in path]) == 301


def test_array_of_messages_is_not_copied_without_headers(registry):
    """Where no message has a header, the messages are those that came."""
    from pyspark_upsert_kafka.connector.format_catalog import read_value_side
    from pyspark_upsert_kafka.connector.reading.decoded_messages import with_schema_ids

    options = read_options(options_of(registry.url), format_options, stream=True)
    side = read_value_side(table_to_read(COLUMNS, options), options)
    batch = RawBatch("t", 0, BytesColumn.of([b"k"]), BytesColumn.of([b"v"]), [0])

    assert with_schema_ids(batch, None, side) == (batch, [])
    ids = replace(batch, schema_ids={Detail.VALUE_SCHEMA_ID: BytesColumn.of([b"\0\0\0\0\1"])})
    assert with_schema_ids(ids, None, side)[0].values == [b"\0\0\0\0\1v"]
    assert with_schema_ids(ids, None)[0].values == [b"v"]
