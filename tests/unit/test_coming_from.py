"""The pages for those who come from Flink and from Spark's kafka source name every option, and none that is not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyspark_upsert_kafka import OptionError
from pyspark_upsert_kafka.connector.format_catalog import FORMATS, format_options
from pyspark_upsert_kafka.core.options.catalog import OPTIONS
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from tests.table_options import table_options

DOCS = Path(__file__).parents[2] / "docs"

FLINK = [
    # UpsertKafkaDynamicTableFactory.requiredOptions and optionalOptions, and its documentation.
    "connector", "topic", "topic-pattern", "properties.bootstrap.servers", "properties.*", "key.format",
    "key.fields-prefix", "value.format", "value.fields-include", "scan.parallelism", "scan.bounded.mode",
    "scan.bounded.specific-offsets", "scan.bounded.timestamp-millis",
    "scan.topic-partition-discovery.interval", "sink.parallelism", "sink.buffer-flush.max-rows",
    "sink.buffer-flush.interval", "sink.delivery-guarantee", "sink.transactional-id-prefix",
    "sink.transaction-naming-strategy",
]  # fmt: skip
SPARK = [
    # Structured Streaming + Kafka Integration Guide, and KafkaSourceProvider.
    "kafka.bootstrap.servers", "kafka.*", "assign", "subscribe", "subscribePattern", "startingTimestamp",
    "startingOffsetsByTimestamp", "startingOffsets", "endingTimestamp", "endingOffsetsByTimestamp",
    "endingOffsets", "failOnDataLoss", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs", "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay",
    "minPartitions", "maxRecordsPerPartition", "groupIdPrefix", "kafka.group.id", "includeHeaders",
    "startingOffsetsByTimestampStrategy", "topic",
]  # fmt: skip
_NAME = re.compile(r"`([^`]+)`")
KNOWN = {*OPTIONS, "properties.*", "properties.default.api.timeout.ms"}


def named_in(page: str, section: str) -> dict[str, str]:
    """For each name that a table of this section has, what the table says of it: ``here`` of one that is only here."""
    text = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {name: row[1] for row in rows for name in _NAME.findall(row[0])}


def options_of(page: str, section: str) -> dict[str, str]:
    """For each option of the others that a table of this section names, what the table says it is here."""
    return {name: here for name, here in named_in(page, section).items() if here != "here"}


TABLES: Mapping[str, dict[str, str]] = {
    "upsert-kafka": options_of("coming-from-flink.md", "Options of `upsert-kafka`"),
    "flink kafka": options_of("coming-from-flink.md", "Options of `kafka`"),
    "spark kafka": options_of("coming-from-spark-kafka.md", "Options"),
}
ROWS = [(name, here) for table in TABLES.values() for name, here in table.items()]


def test_every_option_of_flink_and_of_spark_is_there() -> None:
    """Whoever has a job with an option finds what becomes of it."""
    assert [name for name in FLINK if name not in TABLES["upsert-kafka"]] == []
    assert [name for name in SPARK if name not in TABLES["spark kafka"]] == []


@pytest.mark.parametrize(("name", "here"), ROWS)
def test_what_an_option_is_here(name: str, here: str) -> None:
    """One that is the same is declared, another name is declared, and what is said not to exist is refused."""
    if here == "same":
        assert name in KNOWN
        return
    if here != "none":
        assert here.strip("`") in KNOWN
    if name in ("PRIMARY KEY (...)", "kafka.*") or name.startswith("spark.kafka."):
        return
    given = {**table_options(), name: "1"}
    with pytest.raises(OptionError):
        read_options(given, format_options, stream=True)
    with pytest.raises(OptionError):
        write_options(given, format_options, update_mode=True)


def test_every_format_of_the_table() -> None:
    """Those that are the same exist, others do not, and each that exists is in the table: the same, or only here."""
    formats = named_in("coming-from-flink.md", "Formats")
    there = {name for name, here in formats.items() if here in ("same", "here")}

    assert there == {*FORMATS}
    assert {name for name in formats if formats[name] == "none"}.isdisjoint(FORMATS)
