"""``avro-registry``: the format ``avro-confluent`` under the name that Confluent's Flink has for it."""

from __future__ import annotations

from pyspark_upsert_kafka.formats.avro_confluent import avro_format

FORMAT = avro_format("avro-registry")
