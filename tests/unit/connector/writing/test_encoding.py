"""Rows to messages: kinds of change, the key, the value, and writable metadata."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.writing.row_encoding import Changes, RowEncoder
from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.core.metadata import METADATA, Detail
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_write
from tests.table_options import table_options
from tests.unit.formats.protobuf.codecs import descriptor_file
from tests.unit.registry.fake_registry import serving
from tests.unit.spark_arrow import spark_array

UTC = timezone.utc
HEADERS = METADATA["header-list"].types[0]
ID, NAME = ("id", LongType()), ("name", StringType())
KIND = ("_change_type", StringType())

Column = tuple[str, DataType]


def arrow(type_: DataType, zone: str, text: pa.DataType) -> pa.DataType:
    """The type in which Spark hands a column over: timestamps in the session's zone."""
    if isinstance(type_, ArrayType):
        return pa.list_(pa.field("element", arrow(type_.elementType, zone, text)))
    if isinstance(type_, MapType):
        return pa.map_(arrow(type_.keyType, zone, text), arrow(type_.valueType, zone, text))
    if isinstance(type_, StructType):
        return pa.struct(
            [pa.field(f.name, arrow(f.dataType, zone, text), f.nullable) for f in type_.fields]
        )
    if isinstance(type_, TimestampType):
        return pa.timestamp("us", zone)
    return text if isinstance(type_, StringType) else to_arrow_type(type_)


def encoded(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Any]],
    *,
    zone: str = "UTC",
    text: pa.DataType = pa.string(),  # noqa: B008 - a value
    **given: Any,
) -> Changes:
    """The messages of these rows in a JSON table keyed by ``id``."""
    options = write_options(table_options(**given), format_options)
    schema = StructType([StructField(*column) for column in columns])
    encoder = RowEncoder(table_to_write(schema, options), options, zone)
    arrays = [
        spark_array([row[at] for row in rows], arrow(type_, zone, text))
        for at, (_, type_) in enumerate(columns)
    ]
    return encoder.encode(pa.RecordBatch.from_arrays(arrays, [name for name, _ in columns]))


def pairs(changes: Changes) -> list[tuple[bytes | None, bytes | None]]:
    """Key and value of each message."""
    return [row[1:3] for row in changes.messages.rows()]


def test_without_a_change_column_every_row_is_an_upsert() -> None:
    """The key holds the key columns, the value all columns in the order of the schema."""
    changes = encoded([NAME, ID], [("a", 1), (None, 2)])
    assert pairs(changes) == [
        (b'{"id":1}', b'{"name":"a","id":1}'),
        (b'{"id":2}', b'{"name":null,"id":2}'),
    ]
    assert changes.preimages is None
    messages = changes.messages
    assert (messages.topics, messages.timestamps, messages.headers) == ("t", None, None)


def _in_any_case(*spellings: str) -> list[str]:
    return [form for text in spellings for form in (text, text.upper(), text.title(), text.lower())]


@pytest.mark.parametrize("kind", _in_any_case("insert", "update_postimage", "upsert", "+I", "+U"))
def test_kinds_that_write_the_row(kind: str) -> None:
    """Kinds insert, update_postimage, upsert, +I and +U, in any case, are the message's value."""
    changes = encoded([ID, NAME, KIND], [(1, "a", kind)])
    assert pairs(changes) == [(b'{"id":1}', b'{"id":1,"name":"a"}')]
    assert changes.preimages is None


@pytest.mark.parametrize("kind", _in_any_case("delete", "-D"))
def test_kinds_that_delete(kind: str) -> None:
    """Kinds delete and -D, in any case, are a tombstone, whatever the other columns hold."""
    changes = encoded([ID, NAME, KIND], [(1, "a", kind), (2, None, kind)])
    assert pairs(changes) == [(b'{"id":1}', None), (b'{"id":2}', None)]
    assert changes.preimages is None


@pytest.mark.parametrize("kind", _in_any_case("update_preimage", "-U"))
def test_kinds_that_say_what_was(kind: str) -> None:
    """Kinds update_preimage and -U, in any case, are marked, for a later change of the key to decide."""
    changes = encoded([ID, NAME, KIND], [(1, "a", "+I"), (1, "a", kind), (1, "b", "+U")])
    assert changes.messages.values.to_pylist() == [
        b'{"id":1,"name":"a"}',
        None,
        b'{"id":1,"name":"b"}',
    ]
    assert changes.preimages is not None
    assert changes.preimages.tolist() == [False, True, False]


@pytest.mark.parametrize("kind", ["gone", "", " insert", "+", "i", "d", "insert ", "+D", "None"])
def test_any_other_kind_is_an_error_that_names_it(kind: str) -> None:
    """What is not a kind of change is an error that names the value and the kinds there are."""
    with pytest.raises(EncodeError) as error:
        encoded([ID, NAME, KIND], [(1, "a", "insert"), (2, "b", kind)])
    assert repr(kind) in str(error.value)
    assert "update_preimage" in str(error.value)
    assert error.value.column == "_change_type"


@pytest.mark.parametrize("others", [[], ["delete"], ["insert", "-U"]])
def test_a_null_kind_is_an_error(others: list[str]) -> None:
    """NULL is not a kind of change: not an upsert by default."""
    with pytest.raises(EncodeError, match="NULL is not a kind of change"):
        encoded([ID, NAME, KIND], [(1, "a", kind) for kind in [*others, None]])


def test_kinds_in_a_column_of_the_users_own_name() -> None:
    """``metadata.<column>`` = ``change-type`` makes any column the change column."""
    op = ("Op", StringType())
    changes = encoded([ID, NAME, op], [(1, "a", "-D")], **{"metadata.op": "change-type"})
    assert pairs(changes) == [(b'{"id":1}', None)]
    physical = encoded([ID, KIND], [(1, "gone")], **{"metadata._change_type": "none"})
    assert pairs(physical) == [(b'{"id":1}', b'{"id":1,"_change_type":"gone"}')]


@pytest.mark.parametrize("kind", ["insert", "delete", "update_preimage"])
def test_null_in_a_key_column_is_an_error_that_names_it(kind: str) -> None:
    """A NULL in a key column is an error naming the column once, in Flink's words, for every kind."""
    columns = [ID, NAME, ("region", StringType()), KIND]
    with pytest.raises(EncodeError) as error:
        encoded(
            columns, [(1, "a", "eu", kind), (2, "b", None, kind)], **{"primary-key": "id,region"}
        )
    assert error.value.column == "region"
    assert str(error.value) == (
        "Column 'region' cannot be written: it is NOT NULL, however, a null value is being written into "
        "it. It is part of the primary key: leave such rows out, or give them a value"
    )


def test_the_key_is_in_primary_key_order() -> None:
    """Key columns stand in the order of ``primary-key``, the value's in that of the schema."""
    columns = [("a", LongType()), ("v", StringType()), ("b", LongType())]
    changes = encoded(columns, [(1, "x", 2)], **{"primary-key": "b,a"})
    assert pairs(changes) == [(b'{"b":2,"a":1}', b'{"a":1,"v":"x","b":2}')]


def test_except_key_and_prefix() -> None:
    """EXCEPT_KEY leaves key columns out of the value; the prefix is stripped in the key alone."""
    columns = [("k_id", LongType()), ("id", StringType()), ("k_v", StringType())]
    options = {
        "primary-key": "k_id", "key.fields-prefix": "k_", "value.fields-include": "EXCEPT_KEY",
    }  # fmt: skip
    changes = encoded(columns, [(1, "one", None)], **options)
    assert pairs(changes) == [(b'{"id":1}', b'{"id":"one","k_v":null}')]


def test_an_except_key_value_of_nulls_or_of_nothing_is_no_tombstone() -> None:
    """A row whose value is all NULL, or has no columns, is a live row."""
    options = {"value.fields-include": "EXCEPT_KEY"}
    assert pairs(encoded([ID, NAME], [(1, None)], **options)) == [(b'{"id":1}', b'{"name":null}')]
    assert pairs(encoded([ID], [(1,), (2,)], **options)) == [
        (b'{"id":1}', b"{}"),
        (b'{"id":2}', b"{}"),
    ]
    ignored = {**options, "value.json.encode.ignore-null-fields": "true"}
    assert pairs(encoded([ID, NAME], [(1, None)], **ignored)) == [(b'{"id":1}', b"{}")]


def test_metadata_columns_are_in_neither_key_nor_value() -> None:
    """Metadata columns never enter the message; those that cannot be written are ignored."""
    columns = [
        ID, NAME, ("_topic", StringType()), ("_partition", METADATA["partition"].types[0]),
        ("_offset", LongType()), ("_timestamp", TimestampType()), ("_timestamp_type", StringType()),
        ("_headers", HEADERS), ("_leader_epoch", METADATA["partition"].types[0]), ("_error", METADATA["error"].types[0]),
        KIND,
    ]  # fmt: skip
    at = datetime(2024, 1, 1, tzinfo=UTC)
    row = (1, "a", "elsewhere", 99, 7, at, "CreateTime", [], 3, None, "upsert")
    messages = encoded(columns, [row]).messages
    assert messages.topics == "t", "with one topic the column is ignored"
    assert messages.values.to_pylist() == [b'{"id":1,"name":"a"}']
    assert messages.timestamps == [int(at.timestamp() * 1000)]


TOPIC = ("_topic", StringType())


def test_a_row_chooses_its_topic_from_the_list() -> None:
    """With a list of topics each row names the one it is for, deletes too."""
    rows = [(1, "b", "+I"), (2, "a", "-D"), (3, "b", "-U")]
    messages = encoded([ID, TOPIC, KIND], rows, topic="a;b").messages
    assert messages.topics == ["b", "a", "b"]


@pytest.mark.parametrize(("topic", "shown"), [("c", "c"), (None, "null"), ("", "null"), ("A", "A")])
def test_a_topic_outside_the_list_is_an_error(topic: str | None, shown: str) -> None:
    """A name outside the list, or none, is an error in Flink's words."""
    with pytest.raises(EncodeError) as error:
        encoded([ID, TOPIC], [(1, "a"), (2, topic)], topic="a;b")
    assert f"Expected topic to be in: [a, b] but was: {shown}" in str(error.value)


def test_record_timestamps_in_milliseconds() -> None:
    """``_timestamp`` is cut to milliseconds; NULL is now, which Kafka's client knows as 0."""
    rows = [(1, datetime(2024, 1, 1, 0, 0, 0, 123_999, UTC)), (2, None)]
    for zone in ("UTC", "Asia/Tokyo", "Z", "-08"):
        messages = encoded([ID, ("_timestamp", TimestampType())], rows, zone=zone).messages
        assert messages.timestamps == [1_704_067_200_123, 0]
    only_now = encoded([ID, ("_timestamp", TimestampType())], [(1, None)]).messages
    assert only_now.timestamps == [0]


@pytest.mark.parametrize(
    ("zone", "ms"),
    [("UTC", 1_704_067_200_000), ("Asia/Tokyo", 1_704_034_800_000), ("-08", 1_704_096_000_000)],
)
def test_a_timestamp_ntz_is_a_time_in_the_sessions_zone(zone: str, ms: int) -> None:
    """A ``_timestamp`` without a zone is local time in the session's, however that is spelt."""
    row = (1, datetime(2024, 1, 1))  # noqa: DTZ001
    messages = encoded([ID, ("_timestamp", TimestampNTZType())], [row], zone=zone).messages
    assert messages.timestamps == [ms]


@pytest.mark.parametrize(
    "at",
    [
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
    ],
)  # fmt: skip
def test_a_timestamp_before_1970_is_an_error(at: datetime) -> None:
    """Kafka has no record timestamps before 1970: an error, not another time."""
    rows = [(1, datetime(2024, 1, 1, tzinfo=UTC)), (2, at)]
    with pytest.raises(EncodeError, match="1970") as error:
        encoded([ID, ("_timestamp", TimestampType())], rows)
    assert error.value.column == "_timestamp"


def test_an_encoder_gets_its_columns_in_exactly_their_types() -> None:
    """Timestamps in any spelling of the session's zone and Spark's large types are written alike."""
    at = datetime(2024, 1, 1, tzinfo=UTC)
    columns = [("id", TimestampType()), NAME, ("all", ArrayType(TimestampType())), KIND]
    expected = b'{"id":"2024-01-01 00:00:00Z","name":"a","all":["2024-01-01 00:00:00Z"]}'
    for zone in ("UTC", "Asia/Tokyo", "Z", "-08", "GMT+01:00"):
        assert pairs(encoded(columns, [(at, "a", [at], "+I")], zone=zone)) == [
            (b'{"id":"2024-01-01 00:00:00Z"}', expected)
        ]
    large = encoded(
        [ID, NAME, KIND, TOPIC], [(1, "a", "+I", "b")], text=pa.large_string(), topic="a;b"
    )
    assert pairs(large) == [(b'{"id":1}', b'{"id":1,"name":"a"}')]
    assert large.messages.topics == ["b"]


def test_a_null_struct_of_not_null_fields_in_other_types() -> None:
    """Is written as NULL when its column comes in another type than the encoder's, too."""
    part = StructType([StructField("c", StringType(), nullable=False)])
    columns = [ID, ("m", MapType(StringType(), part)), ("s", part)]
    changes = encoded(columns, [(1, [("a", None)], None)], text=pa.large_string())
    assert changes.messages.values.to_pylist() == [b'{"id":1,"m":{"a":null},"s":null}']


def test_headers_as_list_and_as_map() -> None:
    """A list keeps order and duplicates, a map has its entries; NULL is none."""
    one = [{"key": "a", "value": b"1"}, {"key": "a", "value": None}, {"key": "", "value": b""}]
    rows = [(1, one), (2, []), (3, None)]
    messages = encoded([ID, ("_headers", HEADERS)], rows).messages
    assert messages.headers == [[("a", b"1"), ("a", None), ("", b"")], [], None]
    mapped = ("h", MapType(StringType(), BinaryType()))
    rows = [(1, [("a", b"1"), ("b", None)]), (2, []), (3, None)]
    messages = encoded([ID, mapped], rows, **{"metadata.h": "headers"}).messages
    assert messages.headers == [[("a", b"1"), ("b", None)], [], None]


def test_a_header_that_names_the_schema_takes_the_place_of_a_rows_own() -> None:
    """Behind the row's others; a tombstone has no value, and so none."""
    name = Detail.VALUE_SCHEMA_ID.value
    own = [{"key": "x", "value": b"1"}, {"key": name, "value": b"of another schema"}]
    rows = [(1, "+I", own), (2, "+I", None), (3, "-D", own)]
    with serving() as registry:
        registry.answers["/subjects/t-value/versions"] = [(200, {"id": 6})]
        options = {
            "value.avro-confluent.url": registry.url,
            "value.avro-confluent.auto.register.schemas": "true",
            "value.avro-confluent.schema-id-location": "header",
        }

        changes = encoded(
            [ID, KIND, ("_headers", HEADERS)], rows, value__format="avro-confluent", **options
        )

    ours = (name, b"\0\0\0\0\6")
    assert changes.messages.headers == [[("x", b"1"), ours], [ours], [("x", b"1")]]


@pytest.mark.parametrize("headers", [[None], [{"key": None, "value": b"1"}]])
def test_a_header_without_a_key_is_an_error(headers: list[Any]) -> None:
    """A header has a key; one without is an error that names the column."""
    with pytest.raises(EncodeError, match="header has no key") as error:
        encoded([ID, ("_headers", ArrayType(HEADERS.elementType))], [(1, headers)])
    assert error.value.column == "_headers"


@pytest.mark.parametrize("format_", ["json", "csv", "avro", "raw"])
@pytest.mark.parametrize("type_", [DoubleType(), FloatType()])
def test_equal_keys_give_equal_bytes(type_: DataType, format_: str) -> None:
    """-0.0 equals 0.0, so it is written as the same key in every format: one key lives in one partition."""
    rows = [(0.0, "a"), (-0.0, "b"), (1.5, "c")]
    keys = encoded([("id", type_), NAME], rows, key__format=format_).messages.keys
    assert keys[0] == keys[1] != keys[2]


def test_every_nan_is_one_key() -> None:
    """A NaN equals every other, also where the format of the key writes its bits."""
    text = 'syntax = "proto3"; message Key { double id = 1; }'
    key = {
        "key.format": "protobuf",
        "key.protobuf.descriptor-file": str(descriptor_file(text)),
        "key.protobuf.message-name": "Key",
    }
    (odd,) = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))
    keys = encoded([("id", DoubleType())], [(odd,), (math.nan,)], **key).messages.keys
    assert keys[0] == keys[1]


def test_values_of_kinds_side_by_side_keep_their_rows() -> None:
    """Deletes between upserts leave each value at its own key, in many rows too."""
    kinds = ["insert", "-D", "+U", "-U", "upsert"]
    rows = [(at, f"n{at}", kinds[at % 5]) for at in range(3_000)]
    changes = encoded([ID, NAME, KIND], rows)
    for (at, name, kind), (key, value) in zip(rows, pairs(changes), strict=True):
        assert json.loads(key or b"") == {"id": at}
        expected = None if kind in ("-D", "-U") else {"id": at, "name": name}
        assert (value and json.loads(value)) == expected


def test_no_rows_are_no_messages() -> None:
    """An empty batch is no messages, in every form."""
    columns = [
        ID, KIND, TOPIC, ("_timestamp", TimestampType()), ("_headers", HEADERS),
    ]  # fmt: skip
    changes = encoded(columns, [], topic="a;b")
    assert len(changes.messages) == 0
    assert changes.preimages is None
