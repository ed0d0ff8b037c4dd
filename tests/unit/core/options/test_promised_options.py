"""Every option that users were promised: its name, its type and its default, written down by hand."""

from __future__ import annotations

import re

import pytest

from pyspark_upsert_kafka.connector.format_catalog import FORMATS, format_options
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.core.options.catalog import OPTIONS
from pyspark_upsert_kafka.core.options.parsers import Time
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.formats.raw import UTF_8, charset
from pyspark_upsert_kafka.registry.access import addresses
from tests.table_options import table_options

CONNECTOR = [  # name, a text, its value, the default
    ("ddl", "CREATE TABLE", "CREATE TABLE", None),
    ("connector", "upsert-kafka", "upsert-kafka", None),
    ("topic", "a;b", ("a", "b"), None),
    ("topic-pattern", "a.*", re.compile("a.*"), None),
    ("primary-key", "a,b", ("a", "b"), None),
    ("key.fields", "a;b", ("a", "b"), None),
    ("properties.bootstrap.servers", "a:1", "a:1", None),
    ("properties.allow.auto.create.topics", "true", True, False),
    ("properties.sasl.oauthbearer.token.provider", "a:b", "a:b", None),
    ("key.format", "json", "json", None),
    ("value.format", "json", "json", None),
    ("key.fields-prefix", "k_", "k_", ""),
    ("value.fields-include", "EXCEPT_KEY", "EXCEPT_KEY", "ALL"),
    ("kafka.client", "kafka-python", "kafka-python", "librdkafka"),
    ("kafka.client.native", "false", False, True),
    ("metadata.<column>", "offset", (("<column>", "offset"),), ()),
    ("properties.<name>", "${env:A}", (("<name>", "${env:A}"),), ()),
    ("read.mode", "append", "append", None),
    ("scan.deletes", "drop", "drop", "emit"),
    ("scan.schema-changes", "restart", "restart", "ignore"),
    ("scan.startup.mode", "timestamp", "timestamp", "earliest-offset"),
    ("scan.startup.timestamp-millis", "7", 7, None),
    ("scan.startup.timestamp", "-10 min", Time(600_000, is_ago=True), None),
    ("scan.startup.specific-offsets", "partition:0,offset:42", ((0, 42),), None),
    ("properties.auto.offset.reset", "latest", "latest", "none"),
    ("scan.bounded.mode", "timestamp", "timestamp", None),
    ("scan.bounded.timestamp-millis", "7", 7, None),
    ("scan.bounded.timestamp", "1970-01-01T00:00:01Z", Time(1000), None),
    ("scan.bounded.specific-offsets", "partition:0,offset:42", ((0, 42),), None),
    ("scan.topic-partition-discovery.interval", "10 s", 10, 5 * 60),
    ("scan.outage.timeout", "1 min", 60, 10 * 60),
    ("properties.isolation.level", "read_uncommitted", "read_uncommitted", "read_committed"),
    ("scan.headers", "type=Order;tenant=7", (("tenant", b"7"), ("type", b"Order")), None),
    ("scan.record-names", "com.acme.Order;Refund", ("com.acme.Order", "Refund"), None),
    ("minPartitions", "4", 4, None),
    ("scan.snapshot.memory", "1 gb", 2**30, None),
    ("scan.snapshot.merge-partitions", "true", True, False),
    ("scan.parallelism", "4", 4, None),
    ("maxOffsetsPerTrigger", "4", 4, None),
    ("maxBytesPerTrigger", "64 mb", 64 * 2**20, None),
    ("minOffsetsPerTrigger", "4", 4, None),
    ("maxTriggerDelay", "1 min", 60, 15 * 60),
    ("scan.watermark.alignment.max-drift", "1 min", 60, None),
    ("scan.filter-pushdown", "one-filter-per-load", "one-filter-per-load", None),
    ("scan.key-partitioner", "murmur2", "murmur2", None),
    ("failOnDataLoss", "false", False, True),
    ("error-handling.mode", "column", "column", "fail"),
    ("error-handling.log.target", "bad", "bad", None),
    ("properties.group.id", "g", "g", None),
    ("sink.buffer-flush.max-rows", "1000", 1000, 0),
    ("sink.buffer-flush.interval", "1s", 1, 0),
    ("sink.parallelism", "4", 4, None),
    ("sequence-by", "at", "at", None),
    ("sink.delivery-guarantee", "none", "none", "at-least-once"),
    ("sink.transactional-id-prefix", "p", "p", None),
]

OF_FORMATS = {
    "json": [
        ("fail-on-missing-field", "true", True, False),
        ("ignore-parse-errors", "true", True, False),
        ("timestamp-format.standard", "ISO-8601", "ISO-8601", "SQL"),
        ("map-null-key.mode", "DROP", "DROP", "FAIL"),
        ("map-null-key.literal", "nil", "nil", "null"),
        ("encode.decimal-as-plain-number", "true", True, False),
        ("encode.ignore-null-fields", "true", True, False),
    ],
    "csv": [
        ("field-delimiter", r"\t", "\t", ","),
        ("quote-character", "'", "'", None),
        ("disable-quote-character", "true", True, False),
        ("allow-comments", "true", True, False),
        ("ignore-parse-errors", "true", True, False),
        ("array-element-delimiter", "|", "|", ";"),
        ("escape-character", "\\", "\\", None),
        ("null-literal", "", "", None),
        ("write-bigdecimal-in-scientific-notation", "true", True, False),
    ],
    "avro": [
        ("schema", '"int"', '"int"', None),
        ("encoding", "binary", "binary", "binary"),
        ("timestamp_mapping.legacy", "false", False, True),
    ],
    "avro-confluent": [
        ("url", "http://a:1", addresses("http://a:1"), None),
        ("subject", "s", "s", None),
        ("schema", '"int"', '"int"', None),
        ("auto.register.schemas", "false", False, True),
        ("schema-id-location", "header", "header", "payload"),
        ("basic-auth.credentials-source", "URL", "URL", None),
        ("basic-auth.user-info", "me:pw", "me:pw", None),
        ("bearer-auth.credentials-source", "STATIC_TOKEN", "STATIC_TOKEN", None),
        ("bearer-auth.token", "t", "t", None),
        ("bearer-auth.issuer.endpoint.url", "https://a/t", "https://a/t", None),
        ("bearer-auth.client.id", "a", "a", None),
        ("bearer-auth.client.secret", "s", "s", None),
        ("bearer-auth.scope", "a b", "a b", None),
        ("bearer-auth.token.provider", "a:b", "a:b", None),
        ("bearer-auth.token.provider.config", "a=b", "a=b", None),
        ("bearer-auth.logical.cluster", "lsrc-1", "lsrc-1", None),
        ("bearer-auth.identity.pool.id", "pool-1", "pool-1", None),
        ("ssl.truststore.location", "a.pem", "a.pem", None),
        ("ssl.truststore.password", "pw", "pw", None),
        ("ssl.keystore.location", "a.pem", "a.pem", None),
        ("ssl.keystore.password", "pw", "pw", None),
        ("schema-registry.url", "http://a:1", addresses("http://a:1"), None),
        ("schema-registry.subject", "s", "s", None),
        ("schema-registry.schema", '"int"', '"int"', None),
    ],
    "protobuf": [
        ("descriptor-file", "a.desc", "a.desc", None),
        ("message-name", "a.M", "a.M", None),
        ("ignore-parse-errors", "true", True, False),
        ("read-default-values", "true", True, False),
        ("write-null-string-literal", "nil", "nil", ""),
    ],
    "raw": [
        ("charset", "UTF-16", charset("utf-16"), UTF_8),
        ("endianness", "little-endian", "little-endian", "big-endian"),
    ],
}
OF_FORMATS |= dict.fromkeys(CDC_FORMATS, OF_FORMATS["json"][1:])
OF_FORMATS["debezium-json"] = [("schema-include", "true", True, False), *OF_FORMATS["json"][1:]]
OF_FORMATS["debezium-avro-confluent"] = OF_FORMATS["avro-confluent"]
OF_FORMATS["canal-json"] = [
    *OF_FORMATS["json"][1:],
    ("database.include", "a.*", re.compile("a.*"), None),
    ("table.include", "a.*", re.compile("a.*"), None),
]
OF_FORMATS["avro-registry"] = OF_FORMATS["avro-confluent"]
OF_FORMATS["json-registry"] = [*OF_FORMATS["avro-confluent"], *OF_FORMATS["json"]]
OF_FORMATS["proto-registry"] = [
    *OF_FORMATS["avro-confluent"],
    ("message-name", "a.M", "a.M", None),
    *OF_FORMATS["protobuf"][2:],
]

OF_GLUE = [
    ("region", "eu-central-1", "eu-central-1", None),
    ("registry.name", "shop", "shop", "default-registry"),
    ("schema.name", "Order", "Order", None),
    ("schema", '"int"', '"int"', None),
    ("auto.register.schemas", "true", True, None),
    ("compatibility", "full", "FULL", None),
    ("compression", "zlib", "ZLIB", None),
    ("endpoint", "http://a:1", "http://a:1", None),
    ("aws.region", "eu-central-1", "eu-central-1", None),
    ("aws.endpoint", "http://a:1", "http://a:1", None),
    ("schema.autoRegistration", "true", True, None),
    ("schema.compatibility", "NONE", "NONE", None),
    ("schema.compression", "NONE", "NONE", None),
    ("schema.type", "generic_record", "GENERIC_RECORD", None),
    ("cache.size", "200", "200", None),
    ("cache.ttlMs", "1000", "1000", None),
]
OF_FORMATS["avro-glue"] = OF_GLUE
OF_FORMATS["json-glue"] = [*OF_GLUE, *OF_FORMATS["json"]]
OF_FORMATS["protobuf-glue"] = [
    *OF_GLUE,
    *OF_FORMATS["proto-registry"][len(OF_FORMATS["avro-confluent"]) :],
]

GIVEN_AND_DEFAULT = [
    *((OPTIONS, *promised) for promised in CONNECTOR),
    *(
        ({option.name: option for option in format_options(name, side)}, *promised)
        for name, of_format in OF_FORMATS.items()
        for side in (("value",) if name in CDC_FORMATS else ("key", "value"))
        for promised in of_format
    ),
]


@pytest.mark.parametrize(("declared", "name", "text", "value", "default"), GIVEN_AND_DEFAULT)
def test_an_option_means_what_was_promised(declared, name, text, value, default):
    """A text becomes this value, and without one the option has this default."""
    option = declared[name]

    assert option.read({name.lower(): text}) == value
    assert option.read({}) == default


def test_every_option_is_written_down():
    """No option is declared that stands in no table here."""
    declared = {name: [option.name for option in format_options(name, "value")] for name in FORMATS}

    assert [name for name, *_ in CONNECTOR] == [*OPTIONS]
    assert {name: [option for option, *_ in of] for name, of in OF_FORMATS.items()} == declared


@pytest.mark.parametrize("name", FORMATS)
def test_options_can_be_the_key_of_a_cache(name):
    """A worker keeps what it has compiled for them."""
    needed = {
        "protobuf": {"descriptor-file": "/d", "message-name": "m"},
        "avro-confluent": {"url": "http://localhost"},
    }.get(name, {})
    own = {
        f"{side}.{name}.{option}": text
        for side in ("key", "value")
        for option, text in needed.items()
    }
    is_cdc = name in CDC_FORMATS
    given = table_options(key__format="json" if is_cdc else name, value__format=name, **own)

    assert len({read_options(given, format_options, stream=True) for _ in range(2)}) == 1
    assert is_cdc or len({write_options(given, format_options) for _ in range(2)}) == 1
