"""The CDC formats: value formats whose messages say what they did to a row (insert, update, delete)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.table.metadata import METADATA_OF_FORMATS, MetadataColumn

_OF_DEBEZIUM = (
    "value.schema",
    "value.ingestion-timestamp",
    "value.source.timestamp",
    "value.source.database",
    "value.source.schema",
    "value.source.table",
    "value.source.properties",
)

CDC_FORMATS: Mapping[str, tuple[str, ...]] = {
    "canal-json": (
        "value.database",
        "value.table",
        "value.sql-type",
        "value.pk-names",
        "value.ingestion-timestamp",
        "value.event-timestamp",
    ),
    "debezium-avro-confluent": (),
    "debezium-json": _OF_DEBEZIUM,
    "maxwell-json": (
        "value.database",
        "value.table",
        "value.primary-key-columns",
        "value.ingestion-timestamp",
    ),
    "ogg-json": (
        "value.table",
        "value.primary-keys",
        "value.ingestion-timestamp",
        "value.event-timestamp",
    ),
}
"""Their names, and the metadata that each of them reads; keys and types are Flink's."""

DEBEZIUM_FORMATS = ("debezium-avro-confluent", "debezium-json")
"""Those that Kafka Connect's converters write."""


def check_metadata(columns: Iterable[MetadataColumn], value_format: str) -> None:
    """Raises SchemaError for a column that shows metadata of another format."""
    known = CDC_FORMATS.get(value_format, ())
    for column in columns:
        if column.key in METADATA_OF_FORMATS and column.key not in known:
            has = ", ".join(map(repr, known)) if known else "none of its own"
            raise SchemaError(
                f"Column {column.name!r} shows the metadata {column.key!r}, which the format '{value_format}' does not "
                f"have: it has {has}."
            )
