"""The columns of a table whose user gives none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from pyspark.sql.types import StructType

from pyspark_upsert_kafka import read_changes, read_table
from pyspark_upsert_kafka.connector.datasource import UpsertKafkaDataSource
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, SchemaError
from pyspark_upsert_kafka.core.metadata import METADATA
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.table import table_to_read
from tests.table_options import table_options
from tests.unit.registry.fake_registry import FakeRegistry, serving

ID = {"name": "id", "type": "long"}
NAME = {"name": "name", "type": "string"}
AGE = {"name": "age", "type": ["null", "int"], "default": None}


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    """A registry with a key and a value of the topic ``orders``."""
    with serving() as registry:
        registry.version("orders-value", "latest", record(ID, NAME, AGE))
        registry.version("orders-key", "latest", record(ID))
        yield registry


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    """A record schema."""
    return {"type": "record", "name": "r", "fields": list(fields)}


def columns(registry: FakeRegistry | None = None, **given: str | None) -> str:
    """The columns in DDL; names of options as in `table_options`."""
    confluent = {
        "topic": "orders",
        "key__format": "avro-confluent",
        "value__format": "avro-confluent",
    }
    if registry is not None:
        confluent |= {f"{side}__avro_confluent__url": registry.url for side in ("key", "value")}
    options = table_options(**{**confluent, **given})
    options = {name: text for name, text in options.items() if not name.endswith(unused(options))}
    return ddl(UpsertKafkaDataSource(options).schema(), options)


def unused(options: dict[str, Any]) -> tuple[str, ...]:
    """The address is an option of one format only."""
    others = [s for s in ("key", "value") if options.get(f"{s}.format") != "avro-confluent"]
    return tuple(f"{side}.avro-confluent.url" for side in others) or ("?",)


def ddl(schema: StructType, options: dict[str, str]) -> str:
    """The columns, after a look whether they are a table to read."""
    modes = [text.lower() for name, text in options.items() if name.lower() == "read.mode"]
    plan = read_options(options, format_options, stream="snapshot" not in modes)
    table_to_read(schema, plan)
    return ", ".join(
        f"{field.name} {field.dataType.simpleString().upper()}{'' if field.nullable else ' NOT NULL'}"
        for field in schema
    )


def test_columns_of_the_registry(registry):
    """The value's columns in their order; only the key's stay NOT NULL, since a delete has no others."""
    assert columns(registry) == "id BIGINT NOT NULL, name STRING, age INT, _change_type STRING"
    assert registry.paths() == ["/subjects/orders-value/versions/latest"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"read__mode": "changelog"}, "id BIGINT NOT NULL, name STRING, age INT, _change_type STRING"),
        ({"read__mode": "snapshot"}, "id BIGINT NOT NULL, name STRING NOT NULL, age INT"),
        ({"READ__MODE": "Snapshot"}, "id BIGINT NOT NULL, name STRING NOT NULL, age INT"),
        ({"scan__deletes": "drop"}, "id BIGINT NOT NULL, name STRING, age INT"),
        (
            {"read__mode": "append", "key__format": None, "primary_key": None},
            "id BIGINT NOT NULL, name STRING NOT NULL, age INT",
        ),
        ({"scan__bounded__mode": "unbounded"}, "id BIGINT NOT NULL, name STRING, age INT, _change_type STRING"),
    ],
)  # fmt: skip
def test_what_is_read_decides(registry, given, expected):
    """The change column is there unless none can be; NOT NULL is kept where it can be."""
    assert columns(registry, **given) == expected


def test_a_column_with_a_default_may_be_missing_in_older_messages(registry):
    """In a snapshot it is nullable, unless it is one of the key, which no message lacks."""
    fields = [ID | {"default": 0}, NAME | {"default": ""}, {"name": "n", "type": "int"}]
    registry.version("orders-value", "latest", record(*fields))

    assert (
        columns(registry, read__mode="snapshot")
        == "id BIGINT NOT NULL, name STRING, n INT NOT NULL"
    )


def test_a_batch_takes_the_columns_too(registry):
    """Spark asks for columns before it says what it reads: a snapshot shows the change column as well."""
    assert columns(registry).endswith("_change_type STRING")
    options = table_options(
        topic="orders",
        value__format="avro-confluent",
        value__avro_confluent__url=registry.url,
    )

    source = UpsertKafkaDataSource(options)

    assert source.reader(source.schema()) is not None
    assert source.streamReader(source.schema()) is not None


EXCEPT_KEY = {"value__fields_include": "EXCEPT_KEY"}


@pytest.mark.parametrize(
    ("key", "value", "given", "expected"),
    [
        (record(ID), record(NAME), EXCEPT_KEY, "id BIGINT NOT NULL, name STRING"),
        (record(ID), record(NAME), {}, "id BIGINT NOT NULL, name STRING"),
        (record(AGE, ID), record(NAME, ID), EXCEPT_KEY, "id BIGINT NOT NULL, name STRING"),
        (
            record({"name": "id", "type": "int"}),
            record(NAME, ID),
            EXCEPT_KEY,
            "id INT NOT NULL, name STRING",
        ),
        (
            record(ID),
            record(NAME, ID),
            EXCEPT_KEY | {"key__fields_prefix": "k_", "primary_key": "k_id"},
            "k_id BIGINT NOT NULL, name STRING, id BIGINT",
        ),
        (
            record(NAME, ID),
            record(AGE),
            EXCEPT_KEY | {"primary_key": "id,name"},
            "id BIGINT NOT NULL, name STRING NOT NULL, age INT",
        ),
        (
            record(NAME, ID),
            record(AGE, NAME),
            {"primary_key": "name, ID"},
            "id BIGINT NOT NULL, age INT, name STRING NOT NULL",
        ),
        ('"long"', record(NAME), {}, "id BIGINT NOT NULL, name STRING"),
        (["null", "string"], record(NAME), EXCEPT_KEY, "id STRING, name STRING"),
        (
            {"type": "fixed", "name": "f", "size": 2},
            record(NAME),
            EXCEPT_KEY | {"key__fields_prefix": "k_", "primary_key": "k_id"},
            "k_id BINARY NOT NULL, name STRING",
        ),
    ],
)  # fmt: skip
def test_columns_of_the_key(registry, key, value, given, expected):
    """What the value does not hold comes from the key's schema, first, in the order of the key."""
    registry.version("orders-key", "latest", key)
    registry.version("orders-value", "latest", value)

    assert columns(registry, **given) == f"{expected}, _change_type STRING"


@pytest.mark.parametrize("include", ["ALL", "EXCEPT_KEY"])
def test_a_key_of_another_format(registry, include):
    """Its columns are known when the value's schema has them."""
    given = {"key__format": "json", "value__fields_include": include}

    assert columns(registry, **given) == (
        "id BIGINT NOT NULL, name STRING, age INT, _change_type STRING"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"primary_key": "no"}, r"'no' .* no schema\. Columns of the key: \[id\]; .*\[id, name, age\]"),
        ({"primary_key": "no", "key__format": "json"}, r"Columns of the key: \[\]"),
    ],
)  # fmt: skip
def test_a_key_column_that_is_nowhere(registry, given, said):
    """The error lists where it was looked for."""
    with pytest.raises(SchemaError, match=said):
        columns(registry, **given)


@pytest.mark.parametrize(
    ("fields", "format_", "advice"),
    [
        (("before", "after", "op"), "avro-confluent", "a CDC format reads it, for Avro 'debezium-avro-confluent'."),
        (("id", "name"), "debezium-avro-confluent",
         "the fields 'id', 'name'. Rows that the connector has unwrapped (ExtractNewRecordState) are read by 'value.format' = 'avro-confluent'."),
    ],
)  # fmt: skip
def test_rows_in_an_envelope_and_out_of_it(
    registry: FakeRegistry, fields: tuple[str, ...], format_: str, advice: str
) -> None:
    """Debezium writes both, as its connector is told; the error of either format names the other one."""
    of_value = record(*({**NAME, "name": name} for name in fields))
    registry.version("orders-value", "latest", of_value)
    given = {"topic": "orders", "value.format": format_, f"value.{format_}.url": registry.url}

    with pytest.raises(SchemaError) as error:
        UpsertKafkaDataSource(table_options(**given)).schema()

    assert str(error.value).endswith(advice)


def test_rows_with_an_error_have_null_everywhere(registry):
    """With ``_error`` among the columns, the key's may be NULL too; it is not added by itself."""
    with pytest.raises(SchemaError, match="needs the column '_error"):
        columns(registry, error_handling__mode="column")
    parts = {"stage": "string", "message": "string", "key": "bytes", "value": "bytes"}
    error = record(*({"name": name, "type": ["null", kind]} for name, kind in parts.items()))
    error = {"name": "_error", "type": error | {"name": "e"}}
    registry.version("orders-value", "latest", record(ID, NAME, error))

    assert columns(registry, error_handling__mode="column").startswith(
        "id BIGINT, name STRING, _error STRUCT<"
    )


RESERVED = [each.column for each in METADATA.values() if each.column is not None]


def of_format(registry: FakeRegistry, format_: str, *names: str) -> dict[str, str]:
    """Options of a format whose newest schema has BIGINT fields of these names beside ``id``."""
    fields: Any = record(ID, *(ID | {"name": name} for name in names))
    if format_ == "avro":
        return {"topic": "orders", "value.format": "avro", "value.avro.schema": json.dumps(fields)}
    kind = {}
    if format_ == "json-registry":
        properties = {name: {"type": "integer", "connect.type": "int64"} for name in ("id", *names)}
        fields, kind = {"type": "object", "properties": properties}, {"schemaType": "JSON"}
    elif format_ == "proto-registry":
        lines = "".join(f"int64 {name} = {n};" for n, name in enumerate(("id", *names), 1))
        fields, kind = f'syntax = "proto3"; message m {{ {lines} }}', {"schemaType": "PROTOBUF"}
    elif format_ == "debezium-avro-confluent":
        row = ["null", fields | {"name": "Value"}]
        fields = record(
            {"name": "before", "type": row, "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "op", "type": "string"},
        )
    registry.version("orders-value", "latest", fields, **kind)
    return {"topic": "orders", "value.format": format_, f"value.{format_}.url": registry.url}


@pytest.mark.parametrize("mode", ["snapshot", "changelog", "append"])
@pytest.mark.parametrize("name", [*RESERVED, "_Offset"])
def test_a_field_with_a_reserved_name_is_not_hidden(registry, name, mode):
    """Nobody has asked for metadata there: the error says how to read the field, and then it is one of the row."""
    keyed = mode != "append"
    given = table_options(
        **of_format(registry, "avro", name), **{"read.mode": mode},
        **({"key.format": "raw"} if keyed else {"key.format": None, "primary-key": None}),
    )  # fmt: skip

    with pytest.raises(SchemaError, match=rf"'{name}'.*'metadata\.{name}' = 'none'"):
        UpsertKafkaDataSource(given).schema()

    given |= {f"metadata.{name}": "none", "metadata.kafka_offset": "offset"}
    given |= {"metadata.kind": "change-type"} if mode == "changelog" else {}
    plan = read_options(given, format_options, stream=mode != "snapshot")
    table = table_to_read(UpsertKafkaDataSource(given).schema(), plan)
    assert [field.name for field in table.value] == ["id", name]
    assert {column.name for column in table.metadata} <= {"kafka_offset", "kind"}


@pytest.mark.parametrize(
    "format_",
    ["avro", "avro-confluent", "json-registry", "proto-registry", "debezium-avro-confluent"],
)
def test_fields_with_reserved_names_are_told_of_each_format(registry, format_):
    """All at once, as Kafka Connect's InsertField may have written them; those that an option names are decided."""
    given = table_options(
        key__format="raw", **of_format(registry, format_, "_offset", "_timestamp")
    )

    for ask in (UpsertKafkaDataSource(given).schema, partial(read_table, given), partial(read_changes, given)):  # fmt: skip
        with pytest.raises(
            SchemaError,
            match=r"'_offset', '_timestamp'\. .*'metadata\._offset' = 'none', 'metadata\._timestamp' = 'none'",
        ):
            ask()
    named = {"metadata._offset": "offset", "metadata._timestamp": "none"}
    assert UpsertKafkaDataSource(given | named).schema().names == [
        "id", "_offset", "_timestamp", "_change_type",
    ]  # fmt: skip


def test_a_change_column_whose_name_is_taken(registry):
    """The column that tells deletes needs another name then, also in a DDL; without deletes there is none."""
    given = table_options(**of_format(registry, "avro", "_change_type"), key__format="raw")
    given |= {"metadata._change_type": "none"}
    ddl = (
        "CREATE TABLE t (id BIGINT, _change_type STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', "
        "'topic' = 't', 'properties.bootstrap.servers' = 'nowhere:9092', 'key.format' = 'json', 'value.format' = 'json', "
        "'metadata._change_type' = 'none')"
    )

    for options in (given, {"ddl": ddl}):
        with pytest.raises(SchemaError, match=r"'metadata\.<column>' = 'change-type'"):
            UpsertKafkaDataSource(options).schema()
        without = {**options, "scan.deletes": "drop"}
        assert UpsertKafkaDataSource(without).schema().names == ["id", "_change_type"]


def test_schemas_that_are_given():
    """A schema in an option says the columns as well, and nobody is asked."""
    text = json.dumps(record(ID, NAME))
    plain = {"key__format": "avro", "value__format": "avro", "value__avro__schema": text}
    registered = {
        "value__avro_confluent__url": "http://127.0.0.1:1",
        "value__avro_confluent__schema": text,
        "key__format": "json",
    }

    for given in (plain, registered):
        assert columns(None, **given) == "id BIGINT NOT NULL, name STRING, _change_type STRING"


@pytest.mark.parametrize(
    "given",
    [
        {"value__format": "json"},
        {"value__format": "avro", "key__format": "json"},
        {"value__format": None},
    ],
)
def test_nothing_says_what_the_columns_are(given):
    """The error says how to."""
    with pytest.raises(SchemaError, match=r"has no schema.*\.schema\('id BIGINT"):
        columns(None, **given)


def test_no_options_at_all():
    """Likewise where no option arrives, as in a CREATE TABLE without columns."""
    with pytest.raises(SchemaError, match="has no schema"):
        UpsertKafkaDataSource({}).schema()


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"topic": "other"}, SchemaError, "has no subject 'other-value'.*HTTP 404"),
        ({"topic": "a;b"}, OptionError, r"'value\.avro-confluent\.subject' is required"),
        ({"topic": "unsupported"}, BrokerError, "HTTP 501"),
        ({"primary_key": None}, OptionError, "PRIMARY KEY"),
    ],
)
def test_columns_that_cannot_be_had(registry, change, error, said):
    """Each reason is told as what it is."""
    registry.answers["/subjects/unsupported-value/versions/latest"] = [(501, b"")]
    with pytest.raises(error, match=said):
        columns(registry, **change)


def test_a_value_that_is_no_record(registry):
    """It has no names for columns."""
    registry.version("orders-value", "latest", '"long"')

    with pytest.raises(SchemaError, match="must be a record"):
        columns(registry)


@pytest.mark.parametrize(
    ("watermark", "shown"), [("", "at TIMESTAMP_NTZ"), (", WATERMARK FOR at AS at", "at TIMESTAMP")]
)
def test_the_column_of_a_watermark_is_a_timestamp_with_a_zone(watermark: str, shown: str) -> None:
    """Spark has no watermark of another type; other columns are as they are declared."""
    statement = (
        f"CREATE TABLE t (id BIGINT, at TIMESTAMP(3), other TIMESTAMP(3){watermark}, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'nowhere:9092', "
        "'key.format' = 'json', 'value.format' = 'json')"
    )
    found = ddl(UpsertKafkaDataSource({"ddl": statement}).schema(), {"ddl": statement})

    assert f"{shown}, other TIMESTAMP_NTZ" in found
