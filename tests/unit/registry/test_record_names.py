"""`scan.record-names`: of a topic of several record types only messages of some are read, told by the schemas they name."""

from __future__ import annotations

import json
import logging
import zlib
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.connector.format_catalog import (
    check_read_sides,
    format_options,
    read_value_side,
)
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder
from pyspark_upsert_kafka.connector.reading.wanted_records import WantedRecords
from pyspark_upsert_kafka.connector.schema_inference import inferred_schema
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, SchemaError
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.formats.record_names import RecordNames
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.registry import client, framing
from pyspark_upsert_kafka.registry.glue_framing import header_of
from tests.table_options import table_options

COLUMNS = StructType(
    [StructField("id", LongType()), StructField("name", StringType()), StructField("_change_type", StringType())]
)  # fmt: skip
ID, NAME = {"name": "id", "type": "long"}, {"name": "name", "type": "string"}
ORDER = {"type": "record", "name": "Order", "namespace": "com.acme", "fields": [ID, NAME]}
CUSTOMER = {"type": "record", "name": "com.acme.Customer", "fields": [NAME]}
OTHER_ORDER = {**ORDER, "namespace": "org.shop"}
PLAIN_ORDER = {**ORDER, "namespace": ""}
OF_JSON = {
    "title": "com.acme.Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
}
PROTO = """syntax = "proto3"; package com.acme;
message Order { int64 id = 1; string name = 2; message Line { int64 id = 1; } }
message Customer { string name = 1; map<string, string> tags = 2; }
"""


def of_id(number: int, payload: bytes) -> bytes:
    """A message of this schema."""
    return b"\0" + number.to_bytes(4, "big") + payload


@pytest.fixture
def avro(registry):
    """A registry with a schema of each kind, by its id."""
    schemas = [
        ORDER,
        CUSTOMER,
        OTHER_ORDER,
        PLAIN_ORDER,
        [ORDER, CUSTOMER],
        ["null", "long", ORDER],
    ]
    for number, schema in enumerate(schemas, 1):
        registry.schema(number, schema)
    registry.schema(7, '"string"')
    registry.schema(8, OF_JSON, schemaType="JSON")
    registry.schema(9, "{")
    return registry


def options_of(url: str, names: str | None = "com.acme.Order", **more: Any) -> dict[str, str]:
    """Options of a table of orders, whose keys are JSON."""
    name = more.pop("format", "avro-confluent")
    return table_options(
        topic=more.pop("topic", "orders"),
        value__format=name,
        **{f"value.{name}.url": url, "scan.record-names": names, "read.mode": "changelog", **more},
    )


def records_of(given: dict[str, str], columns: StructType = COLUMNS) -> WantedRecords:
    """What takes out the messages that these options mean."""
    options = read_options(given, format_options, stream=True)
    return WantedRecords(table_to_read(columns, options), options)


def a_batch(*values: bytes | None, keys: list[bytes | None] | None = None, **more: Any) -> RawBatch:
    """Messages at rising offsets."""
    given = keys or [b'{"id":%d}' % at for at in range(len(values))]
    return RawBatch(
        "orders", 0, BytesColumn.of(given), BytesColumn.of(values), [*range(len(values))], **more
    )


AN_ORDER, A_CUSTOMER = b"\2\2a", b"\2a"
"""An order and a customer in Avro."""


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        ("com.acme.Order", [1]),
        ("Customer", [2]),
        (".Order", [4]),
        ("com.acme.Order;.Order", [1, 4]),
        ("com.acme.Order;org.shop.Order;Customer", [1, 2, 3]),
        ("acme.Order", []),
        ("order", []),
        ("string", [7]),
    ],
)
def test_messages_are_chosen_by_the_name_of_their_writers_schema(avro, names, kept):
    """A full name means that type; a simple one a type of any namespace, one with a dot before it a type without one."""
    given = options_of(avro.url, names)
    messages = [
        of_id(1, AN_ORDER),
        of_id(2, A_CUSTOMER),
        of_id(3, AN_ORDER),
        of_id(4, AN_ORDER),
        of_id(7, b"\2a"),
    ]

    found = records_of(given).of(a_batch(*messages))

    assert [value[4] for value in found.values] == kept


def test_a_schema_is_asked_for_once_however_many_messages_name_it(avro):
    """The types that were passed over are known by their names."""
    records = records_of(options_of(avro.url))
    for _ in range(3):
        found = records.of(
            a_batch(*[of_id(2, A_CUSTOMER), of_id(1, AN_ORDER), of_id(7, b"\2a")] * 50)
        )

    assert [*found.offsets] == list(range(1, 150, 3))
    assert avro.paths() == ["/schemas/ids/2", "/schemas/ids/1", "/schemas/ids/7"]
    assert records.seen == {"com.acme.Customer": False, "com.acme.Order": True, "string": False}


def test_a_batch_of_wanted_messages_is_not_copied(avro):
    """It is passed on as it is."""
    batch = a_batch(of_id(1, AN_ORDER), None, of_id(1, AN_ORDER))

    assert records_of(options_of(avro.url)).of(batch) is batch


def test_a_union_of_records_is_told_by_its_branch(avro):
    """As where several types are references in one schema; the branch stands behind the id."""
    messages = [
        of_id(5, b"\0" + AN_ORDER),
        of_id(5, b"\2" + A_CUSTOMER),
        of_id(6, b"\4" + AN_ORDER),
        of_id(6, b"\0"),
        of_id(6, b"\2\2"),
    ]

    assert list(records_of(options_of(avro.url)).of(a_batch(*messages)).offsets) == [0, 2]
    assert list(records_of(options_of(avro.url, "Customer")).of(a_batch(*messages)).offsets) == [1]


@pytest.mark.parametrize(
    "message",
    [
        b"", b"\0", b"\0\0\0", b"{}", of_id(99, AN_ORDER), of_id(9, AN_ORDER), of_id(5, b""), of_id(5, b"\x80"),
        of_id(5, b"\6"), of_id(5, b"\1"), b"\xff" * 40, of_id(5, b"\x80" * 30), b"\1" + bytes(16),
    ],
)  # fmt: skip
def test_a_message_whose_type_is_not_known_is_kept(avro, message):
    """It may be a wanted one: it cannot be decoded, and the options say what is done with it."""
    given = options_of(avro.url, **{"error-handling.mode": "ignore"})
    batch = records_of(given).of(a_batch(of_id(2, A_CUSTOMER), message, of_id(1, AN_ORDER)))

    assert list(batch.offsets) == [1, 2]
    options = read_options(given, format_options, stream=True)
    rows = RowDecoder(table_to_read(COLUMNS, options), options, "UTC").decode(batch)
    assert [bad.index for bad in rows.bad] == [0]


def test_an_id_that_the_registry_learns_later_counts_then(avro):
    """That an id is unknown is not kept for good."""
    records = records_of(options_of(avro.url))
    assert len(records.of(a_batch(of_id(50, A_CUSTOMER)))) == 1
    avro.schema(50, CUSTOMER)
    client._UNKNOWN._registries.clear()

    assert len(records.of(a_batch(of_id(50, A_CUSTOMER)))) == 0


def test_a_registry_that_is_down_fails_the_read(monkeypatch):
    """No message is passed over unseen."""

    def down(*_: object, **__: object) -> None:
        raise BrokerError("The schema registry gives no answer.")

    monkeypatch.setattr(framing, "schema_of_id", down)

    with pytest.raises(BrokerError, match="no answer"):
        records_of(options_of("http://nowhere")).of(a_batch(of_id(1, AN_ORDER)))


def test_a_simple_name_that_two_types_have_is_refused(avro):
    """Rather than one of them is read silently."""
    records = records_of(options_of(avro.url, "Order"))
    assert len(records.of(a_batch(of_id(1, AN_ORDER), of_id(2, A_CUSTOMER)))) == 1

    with pytest.raises(OptionError, match=r"may mean 'com\.acme\.Order' or 'org\.shop\.Order'"):
        records.of(a_batch(of_id(3, AN_ORDER)))


def test_a_name_that_is_given_in_full_is_not_meant_by_a_simple_one():
    """So a type without a namespace can be read beside one with."""
    names = RecordNames(["com.acme.Order", "Order"])

    assert [names.has(name) for name in ("com.acme.Order", "Order", "com.acme.Order")] == [True] * 3


def test_tombstones_have_no_schema_and_are_read(avro):
    """They delete their key, whatever type that had."""
    assert list(
        records_of(options_of(avro.url)).of(a_batch(of_id(2, A_CUSTOMER), None)).offsets
    ) == [1]


def test_tombstones_are_passed_over_where_messages_are_rows(avro):
    """An append source has no deletes: a message without a value is of no record type, and no bad message."""
    given = options_of(avro.url, **{"read.mode": "append", "primary-key": None, "key.format": None})
    records = records_of(given, StructType(COLUMNS.fields[:2]))

    assert list(records.of(a_batch(None, of_id(1, AN_ORDER), None)).offsets) == [1]


KEY = {"type": "record", "name": "K", "fields": [ID]}
OTHER_KEY = {"type": "record", "name": "CK", "fields": [{"name": "mail", "type": "string"}]}


def with_avro_keys(url: str, **more: Any) -> dict[str, str]:
    """The same with keys of Avro."""
    return options_of(
        url, **{"key.format": "avro-confluent", "key.avro-confluent.url": url, **more}
    )


def test_a_tombstone_whose_key_is_of_another_type_is_passed_over(avro):
    """Its key's schema has none of the key's columns; a key that is no record may be of the table."""
    avro.schema(20, KEY)
    avro.schema(21, OTHER_KEY)
    keys = [of_id(20, b"\2"), of_id(21, b"\2a"), of_id(7, b"\2a"), of_id(21, b"\2b"), None, b"x"]
    batch = a_batch(*[None] * 3, of_id(1, AN_ORDER), None, None, keys=keys)

    assert list(records_of(with_avro_keys(avro.url)).of(batch).offsets) == [0, 2, 3, 4, 5]


def test_a_tombstone_without_a_key_column_in_json_is_passed_over(avro):
    """Such a key is that of another type. One that cannot be read, or is missing, may be of the table, and so may one of a value."""
    keys = [b'{"mail":"a"}', b'{"id":1}', b"?", None, b'{"mail":"b"}', b'{"id":null}', b"{}"]
    batch = a_batch(*[None] * 4, of_id(1, AN_ORDER), None, None, keys=keys)

    assert list(records_of(options_of(avro.url)).of(batch).offsets) == [1, 2, 3, 4]


def test_a_tombstone_with_one_column_of_the_key_deletes_its_key(avro):
    """As a message with a value does, whose key lacks a column."""
    keys = [b'{"id":1}', b'{"name":"a"}', b'{"mail":"a"}']
    given = options_of(avro.url, **{"primary-key": "id,name"})

    assert list(records_of(given).of(a_batch(None, None, None, keys=keys)).offsets) == [0, 1]


def test_ids_in_headers_count(avro):
    """Of a message with a header that names no schema the type is not known: it is kept, and cannot be decoded."""
    ids = BytesColumn.of([of_id(1, b""), of_id(2, b""), None, b"wrong", of_id(2, b"")])
    batch = a_batch(
        AN_ORDER,
        A_CUSTOMER,
        of_id(2, A_CUSTOMER),
        AN_ORDER,
        None,
        schema_ids={Detail.VALUE_SCHEMA_ID: ids},
    )

    assert list(records_of(options_of(avro.url)).of(batch).offsets) == [0, 3, 4]


def test_json_is_told_by_titles(registry):
    """A schema without a title has no name that could be given."""
    for number, schema in enumerate(
        [OF_JSON, {**OF_JSON, "title": "Customer"}, {"type": "object"}, {**OF_JSON, "title": 7}], 1
    ):
        registry.schema(number, schema, schemaType="JSON")
    given = options_of(registry.url, "Order;Customer", format="json-registry")
    messages = [of_id(number, b"{}") for number in (1, 2, 3, 4)]

    records = records_of(given)

    assert list(records.of(a_batch(*messages)).offsets) == [0, 1]
    assert [name for name, is_wanted in records.seen.items() if not is_wanted] == [""]


@pytest.mark.parametrize(
    ("names", "kept"),
    [("com.acme.Order", [0, 1]), ("Customer", [2]), ("Line", [3]), ("com.acme.Order.Line", [3])],
)
def test_protobuf_is_told_by_message_indexes(registry, names, kept):
    """Of a file of several messages each says which it is; one within another has its name too."""
    registry.schema(1, PROTO, schemaType="PROTOBUF")
    given = options_of(registry.url, names, format="proto-registry")
    indexes = [b"\0", b"\2\0", b"\2\2", b"\4\0\0"]
    messages = [of_id(1, each + b"\x08\1") for each in indexes]

    assert list(records_of(given).of(a_batch(*messages)).offsets) == kept


def test_a_message_of_another_kind_of_schema_is_of_another_type(avro):
    """It is passed over, and named by its kind."""
    records = records_of(options_of(avro.url))

    assert len(records.of(a_batch(of_id(8, b"{}")))) == 0
    assert list(records.seen) == ["a schema of the type JSON"]


@pytest.mark.parametrize("compressed", [False, True])
def test_glue_names_versions(glue, compressed):
    """By 16 bytes; of a union, and of Protobuf, what is compressed says it."""
    for number, schema in enumerate([ORDER, CUSTOMER, [ORDER, CUSTOMER]], 1):
        glue.schema(number, "AVRO", json.dumps(schema))

    def message(number: int, payload: bytes) -> bytes:
        begin = header_of(UUID(int=number), compressed=compressed)
        return begin + (zlib.compress(payload) if compressed else payload)

    name = "avro-glue"
    given = table_options(
        topic="orders", value__format=name,
        **{f"value.{name}.region": "eu-central-1", f"value.{name}.endpoint": glue.url,
           "scan.record-names": "Order", "read.mode": "changelog"},
    )  # fmt: skip
    messages = [
        message(1, AN_ORDER),
        message(2, A_CUSTOMER),
        message(3, b"\0" + AN_ORDER),
        message(3, b"\2" + A_CUSTOMER),
        b"\3\5" + bytes(16),
    ]

    assert list(records_of(given).of(a_batch(*messages)).offsets) == [0, 2, 4]


def test_formats_without_schemas_refuse_the_option():
    """Nothing in their messages says the type."""
    given = table_options(**{"scan.record-names": "Order", "read.mode": "changelog"})
    options = read_options(given, format_options, stream=True)

    with pytest.raises(
        OptionError,
        match=r"'scan\.record-names' is for values whose messages name their schema.*'json' is no",
    ):
        check_read_sides(table_to_read(COLUMNS, options), options)


def columns_by(registry, names: str | None, **more: Any) -> list[str]:
    """The names of the columns that are inferred."""
    given = options_of(registry.url, names, **more)
    given |= {"read.mode": "snapshot", "primary-key": "name"}
    return inferred_schema(given).names


def newest(registry, schema: Any, number: int = 1) -> None:
    """The default subject has this schema, as its version of that number."""
    registry.version("orders-value", "latest", schema)
    registry.answers["/subjects/orders-value/versions/latest"][0][1]["version"] = number


TOPIC_AND_RECORD = "orders-com.acme.Order"


def test_columns_are_those_of_the_default_subject(registry):
    """If its newest schema is of the record type, no other is looked for."""
    registry.version("orders-value", "latest", ORDER)

    assert columns_by(registry, "com.acme.Order") == ["id", "name"]
    assert columns_by(registry, "Order") == ["id", "name"]
    assert {*registry.paths()} == {"/subjects/orders-value/versions/latest"}


@pytest.mark.parametrize("subject", [TOPIC_AND_RECORD, "com.acme.Order"])
@pytest.mark.parametrize("default", [None, CUSTOMER])
def test_columns_are_those_of_the_records_subject(registry, subject, default):
    """Where a writer has TopicRecordNameStrategy or RecordNameStrategy, also beside a subject of another record type."""
    registry.version(subject, "latest", ORDER)
    if default:
        newest(registry, default)

    assert columns_by(registry, "com.acme.Order") == ["id", "name"]


def test_the_subject_of_topic_and_record_comes_first(registry):
    """That of the record alone may be of other topics."""
    registry.version(TOPIC_AND_RECORD, "latest", ORDER)
    registry.version("com.acme.Order", "latest", {**ORDER, "fields": [NAME]})

    assert columns_by(registry, "com.acme.Order") == ["id", "name"]


def test_columns_are_those_of_an_older_schema_of_the_default_subject(registry):
    """Where schemas of several record types are versions of one subject."""
    newest(registry, CUSTOMER, 4)
    registry.version("orders-value", 2, ORDER)
    registry.version("orders-value", 1, {**ORDER, "fields": [NAME]})

    assert columns_by(registry, "com.acme.Order") == ["id", "name"]


def test_several_topics_have_the_subject_of_the_record(registry):
    """There is no default subject of several topics."""
    registry.version("com.acme.Order", "latest", ORDER)

    assert columns_by(registry, "com.acme.Order", topic="a;b") == ["id", "name"]


def test_a_subject_that_is_given_is_the_only_one(registry):
    """No other is looked for."""
    registry.version("mine", "latest", ORDER)
    more = {"value.avro-confluent.subject": "mine"}

    assert columns_by(registry, "com.acme.Order", **more) == ["id", "name"]
    assert registry.paths() == ["/subjects/mine/versions/latest"]


def test_a_union_of_the_subject_gives_the_columns_of_its_branch(registry):
    """Several record types that are references of one schema."""
    registry.version("orders-value", "latest", [CUSTOMER, ORDER])

    assert columns_by(registry, "com.acme.Order") == ["id", "name"]
    assert columns_by(registry, "Customer") == ["name"]


def test_protobuf_gives_the_columns_of_the_message(registry):
    """And ``message-name``, if it is given, wins."""
    registry.version("orders-value", "latest", PROTO, schemaType="PROTOBUF")

    assert columns_by(registry, "Customer", format="proto-registry") == ["name", "tags"]
    assert columns_by(registry, None, format="proto-registry") == ["id", "name"]


def test_columns_that_are_not_known_say_where_they_were_looked_for(registry):
    """The error names the subject that is not there, or the record that it is of."""
    with pytest.raises(
        SchemaError, match=r"no subject 'orders-value'.*Nor is there a schema of 'Order'"
    ):
        columns_by(registry, "Order")
    newest(registry, CUSTOMER)

    with pytest.raises(
        SchemaError, match=r"'orders-value' is one of 'com\.acme\.Customer'.*Nor is there"
    ):
        columns_by(registry, "com.acme.Order")


def test_doctor_asks_for_the_same_schema(registry):
    """The newest schema of a side is the one that gives the columns."""
    registry.version(TOPIC_AND_RECORD, "latest", ORDER)
    given = options_of(registry.url)
    options = read_options(given, format_options, stream=True)
    side = read_value_side(table_to_read(COLUMNS, options), options)

    assert side.format.newest_schema is not None
    assert side.format.newest_schema(side.spec) == TOPIC_AND_RECORD


@pytest.fixture
def warnings(caplog, monkeypatch):
    """What was logged, none of it before."""
    monkeypatch.setattr(errors, "_warned", set())
    caplog.set_level(logging.WARNING)
    return caplog


def test_several_record_types_are_told_where_none_is_chosen(avro, warnings):
    """Once; the warning names them and the option. With the option there is nothing to tell."""
    for names in (None, "Order"):
        given = options_of(avro.url, names)
        options = read_options(given, format_options, stream=True)
        decoder = read_value_side(table_to_read(COLUMNS, options), options).decoder()
        for number in (1, 2, 3, 1):
            decoder.decode([of_id(number, AN_ORDER)])

    (told,) = [each.message for each in warnings.records if "several record types" in each.message]
    assert (
        "in 'orders' are of several record types, such as 'com.acme.Order', 'com.acme.Customer'"
        in told
    )
    assert "'scan.record-names'" in told


def test_one_type_whose_schema_changes_is_not_several(avro, warnings):
    """Versions of a schema have its name."""
    avro.schema(30, {**ORDER, "fields": [ID, NAME, {"name": "x", "type": "int", "default": 0}]})
    options = read_options(options_of(avro.url, None), format_options, stream=True)
    decoder = read_value_side(table_to_read(COLUMNS, options), options).decoder()
    decoder.decode([of_id(1, AN_ORDER), of_id(30, AN_ORDER + b"\0")])

    assert not warnings.records
