"""What a sink is: what tells it from another one, and what may change while a batch is half written."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.writing.update_mode import sink_identity
from pyspark_upsert_kafka.core.options.given import given_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_write

ROWS = StructType([StructField("id", LongType()), StructField("name", StringType())])
GIVEN = {
    "topic": "t", "properties.bootstrap.servers": "localhost:9092", "primary-key": "id",
    "key.format": "json", "value.format": "json", "sink.parallelism": "2",
    "sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "p",
}  # fmt: skip
REGISTRY = {
    "value.format": "avro-confluent", "value.avro-confluent.url": "http://localhost:8081",
    "value.avro-confluent.subject": "s",
}  # fmt: skip


def identity(given: dict[str, str], rows: StructType = ROWS) -> str:
    """The identity of a sink with these options besides."""
    raw = given_options({**GIVEN, **given})
    options = write_options(raw, format_options, update_mode=True)
    return sink_identity(raw, options, rows, table_to_write(rows, options))


@pytest.mark.parametrize(
    "given",
    [
        {"primary-key": "name"},
        {"primary-key": "id,name"},
        {"primary-key": "name,id"},
        {"value.format": "csv"},
        {"key.format": "csv"},
        {"value.json.timestamp-format.standard": "ISO-8601"},
        {"value.fields-include": "EXCEPT_KEY"},
        {"sequence-by": "name"},
        {"metadata.name": "topic"},
        REGISTRY,
        {**REGISTRY, "value.avro-confluent.subject": "another"},
    ],
)
def test_options_that_say_what_a_sink_is_tell_it_from_others(given):
    """Key, formats and what they are told, metadata columns, order."""
    others = [{"primary-key": "id,name"}, {"sequence-by": "id"}, REGISTRY]

    assert identity(given) not in {identity({}), *(identity(it) for it in others if it != given)}


@pytest.mark.parametrize(
    "rows",
    [
        StructType([*ROWS, StructField("more", LongType())]),
        StructType([ROWS["name"], ROWS["id"]]),
        StructType([StructField("id", IntegerType()), ROWS["name"]]),
        StructType([ROWS["id"], StructField("title", StringType())]),
        StructType([ROWS["id"], StructField("name", StringType("UTF8_LCASE"))]),
    ],
)
def test_columns_tell_a_sink_from_others(rows):
    """Their names, types and order."""
    assert identity({}, rows) != identity({})


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({}, {"sink.parallelism": "3"}),
        ({}, {"sink.buffer-flush.max-rows": "9", "sink.buffer-flush.interval": "1 s"}),
        ({}, {"properties.bootstrap.servers": "elsewhere:9092", "properties.linger.ms": "7"}),
        ({}, {"properties.sasl.password": "s"}),
        ({}, {"primary-key": " id "}),
        ({}, {"key.fields": "id", "primary-key": "id"}),
        ({}, {"scan.parallelism": "4"}),
        (REGISTRY, {**REGISTRY, "value.avro-confluent.url": "http://elsewhere:8081"}),
        (REGISTRY, {**REGISTRY, "value.avro-confluent.basic-auth.user-info": "a:b"}),
        (REGISTRY, {**REGISTRY, "value.avro-confluent.ssl.keystore.location": "/k.p12"}),
    ],
)
def test_what_may_change_in_the_middle_of_a_batch_makes_no_difference(given, changed):
    """Clients, addresses, credentials, buffers: the rows that are written are the same."""
    assert identity(changed) == identity(given)


def test_not_null_makes_no_difference():
    """Spark derives it from the query, and the rows are the same."""
    strict = StructType([StructField(each.name, each.dataType, nullable=False) for each in ROWS])

    assert identity({}, strict) == identity({})


def test_types_that_a_ddl_declares_make_one():
    """Two tables of the same rows may declare them otherwise."""
    ddl = "CREATE TABLE t (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka')"
    rows = StructType([StructField("id", IntegerType()), StructField("name", StringType())])

    assert identity({"ddl": ddl}, rows) != identity({"ddl": ddl.replace("BIGINT", "INT")}, rows)


def test_an_identity_is_the_same_in_every_version():
    """A batch that is half written by this version is finished by the next one."""
    assert identity({}) == "e66388319d6be023"
