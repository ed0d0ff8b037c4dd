"""Clients by the values of ``kafka.client``: one that only reads is enough to read, and is refused where something is sent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql.types import StringType, StructType

from pyspark_upsert_kafka import kafka
from pyspark_upsert_kafka.connector.dead_letter_replay import Original, replay
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.batch_reader import BatchReader
from pyspark_upsert_kafka.connector.writing.delivery import SentMessages, open_sender, transactions
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions, WriteOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client, load_sending_client
from tests.table_options import table_options
from tests.unit.kafka import memory_client

SCHEMA = StructType().add("id", StringType()).add("v", StringType())
RAW = {"key.format": "raw", "value.format": "raw", "value.fields-include": "EXCEPT_KEY"}
ORIGINAL = Original(TopicPartition("t", 0), 5, 0, b"1", b"?")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of these tests is there under the name ``memory``, with a topic of two partitions."""
    monkeypatch.setitem(sys.modules, f"{kafka.__name__}.memory", memory_client)
    first = [(5, b"1", b"a"), (6, b"2", b"b"), (9, b"1", None), (10, b"3", b"c")]
    partitions = [{at: (key, value) for at, key, value in first}, {0: (b"4", b"d")}]
    monkeypatch.setitem(memory_client.TOPICS, "t", partitions)


def reading(**given: str) -> ReadOptions:
    """Options of a read by the client of these tests."""
    raw = table_options(**RAW, **given)
    options = read_options(raw, format_options, stream=False)
    return replace(options, table=replace(options.table, client="memory"))


def writing(**given: str) -> WriteOptions:
    """Options of a write by the client of these tests."""
    options = write_options(table_options(**given), format_options)
    return replace(options, table=replace(options.table, client="memory"))


def plan_with_dead_letters() -> None:
    """Plans a read whose bad messages go to another topic."""
    bad = {"error-handling.mode": "log", "error-handling.log.target": "bad"}
    options = reading(**bad)
    BatchReader(table_to_read(SCHEMA, options), options).partitions()


def test_a_client_that_only_reads_is_enough_to_read_a_table(memory):
    """Two rows of the first partition, where one is deleted and offsets have gaps, and one of the second."""
    options = reading()
    reader = BatchReader(table_to_read(SCHEMA, options), options)

    batches = [batch for part in reader.partitions() for batch in reader.read(part)]

    rows = sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())
    assert rows == [("2", "b"), ("3", "c"), ("4", "d")]


@pytest.mark.parametrize(
    ("details", "ids", "headers"),
    [
        ({Detail.TIMESTAMP}, {}, []),
        ({Detail.VALUE_SCHEMA_ID}, {Detail.VALUE_SCHEMA_ID: [b"7", None]}, []),
        ({Detail.KEY_SCHEMA_ID}, {}, []),
        ({Detail.HEADERS}, {}, [[("__value_schema_id", b"7")], ()]),
        (
            {Detail.HEADERS, Detail.VALUE_SCHEMA_ID},
            {Detail.VALUE_SCHEMA_ID: [b"7", None]},
            [[("__value_schema_id", b"7")], ()],
        ),
    ],
)
def test_what_is_wanted_of_headers(memory, monkeypatch, details, ids, headers):
    """A client gives them all; ids of schemas are taken out of them, and what nobody wants is dropped, whatever client it is."""
    monkeypatch.setitem(memory_client.HEADERS, ("t", 0, 5), [("__value_schema_id", b"7")])
    settings = ReadSettings.of(reading(), frozenset(details))

    first, *_ = load_client("memory").reader(settings).read(Range("t", 0, 5, 7))

    assert first.schema_ids == ids
    assert first.headers == headers


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda: open_sender(writing(), SentMessages(), with_metadata=True), "writing a table"),
        (lambda: transactions(writing()), "'sink.delivery-guarantee' = 'exactly-once'"),
        (plan_with_dead_letters, "'error-handling.mode' = 'log'"),
        (lambda: replay([ORIGINAL], reading()), "writing dead letters back"),
    ],
)
def test_it_is_refused_where_something_is_sent(memory, use: Callable[[], object], what: str):
    """The error names the option and what needs another client."""
    with pytest.raises(OptionError) as error:
        use()

    assert str(error.value) == (
        f"'kafka.client' = 'memory' only reads, and cannot be used for {what}: set it to 'librdkafka'."
    )


def test_the_clients_of_the_connector_send():
    """Each value of ``kafka.client`` is good for writing."""
    assert load_sending_client("librdkafka", "a test") is load_client("librdkafka")
