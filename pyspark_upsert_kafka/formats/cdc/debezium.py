"""Debezium's envelope, whichever way it is encoded."""

from __future__ import annotations

from pyspark.sql.types import LongType

from pyspark_upsert_kafka.formats.cdc.envelope_metadata import PROPERTIES, Place, millis
from pyspark_upsert_kafka.formats.cdc.operations import Operations
from pyspark_upsert_kafka.formats.cdc.row_changes import Op, Words

DEBEZIUM = Operations(
    "op",
    {"c": Op.INSERT, "r": Op.INSERT, "u": Op.UPDATE, "d": Op.DELETE},
    {"t": "a truncate of the table ('op' is 't')"},
)
"""``r`` is a row that the connector's snapshot has read."""

WORDS = Words("before", "before", "after", "Debezium")

PLACES = {
    "value.ingestion-timestamp": Place(("ts_ms",), LongType(), millis),
    "value.source.timestamp": Place(("source", "ts_ms"), LongType(), millis),
    "value.source.database": Place(("source", "db")),
    "value.source.schema": Place(("source", "schema")),
    "value.source.table": Place(("source", "table")),
    "value.source.properties": Place(("source",), PROPERTIES),
}
