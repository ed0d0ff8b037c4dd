"""Spark's own functions for each format that Spark supports too."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema


@dataclass(frozen=True)
class Peer:
    """Functions between a message and a struct of columns; both take the columns as DDL.

    Args:
        functions: Their names, for reading and for writing.
        decode: A column of messages to a column of structs.
        encode: The way back.
    """

    functions: tuple[str, str]
    decode: Callable[[Column, str], Column]
    encode: Callable[[Column, str], Column]

    def name(self, reads: bool) -> str:
        """What a case is compared with."""
        read, write = self.functions
        return f" / {read}" if reads else f" / {write} + kafka sink"


def _avro_schema(columns: str) -> str:
    """The schema that this connector derives for a table with the key ``id``."""
    key = frozenset({"id"})
    return json.dumps(derived_schema(StructType.fromDDL(columns), key, legacy_timestamps=True))


def _envelope(columns: str) -> str:
    """Debezium's envelope around rows of these columns."""
    row = f"STRUCT<{columns.replace(' ', ': ').replace(',:', ',')}>"
    return f"before {row}, after {row}, op STRING"


PEERS = {
    "json": Peer(
        ("from_json", "to_json"),
        lambda message, columns: f.from_json(message.cast("string"), columns),
        lambda row, _: f.to_json(row),
    ),
    "csv": Peer(
        ("from_csv", "to_csv"),
        lambda message, columns: f.from_csv(message.cast("string"), columns),
        lambda row, _: f.to_csv(row),
    ),
    "avro-confluent": Peer(
        ("from_avro(substring)", "to_avro(concat)"),
        # Without a registry: whoever writes these queries knows the schema and its id.
        lambda message, columns: from_avro(
            message.substr(f.lit(6), f.length(message)), _avro_schema(columns)
        ),
        lambda row, columns: f.concat(f.lit(b"\0\0\0\0\1"), to_avro(row, _avro_schema(columns))),
    ),
    "debezium-json": Peer(
        ("from_json(envelope)", "to_json"),
        lambda message, columns: f.from_json(message.cast("string"), _envelope(columns)).after,
        lambda row, _: f.to_json(row),
    ),
    "avro": Peer(
        ("from_avro", "to_avro"),
        lambda message, columns: from_avro(message, _avro_schema(columns)),
        lambda row, columns: to_avro(row, _avro_schema(columns)),
    ),
}
