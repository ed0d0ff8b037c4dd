"""The environment of the benchmark: a session, a broker, a registry, a folder, and separate topics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from data import rows, with_deletes, with_envelopes
from descriptors import descriptor_file
from pyspark.sql import SparkSession
from sides import sink_options
from topics import PARTITIONS, drop_topic, new_topic


@dataclass(frozen=True)
class Bench:
    """Where the benchmark runs."""

    spark: SparkSession
    servers: str
    registry: str
    count: int
    runs: int
    folder: Path

    def topic(self, partitions: int = PARTITIONS) -> str:
        """A new topic."""
        return new_topic(self.servers, partitions)

    def drop(self, topic: str) -> None:
        """Deletes a topic, so that the disk does not fill."""
        drop_topic(self.servers, topic)

    def options(self, topic: str, format_: str = "json") -> dict[str, str]:
        """This connector's options for a topic."""
        more = {}
        if format_ == "protobuf":
            more = descriptor_file(self.folder)
        if format_ == "debezium-json":
            more = {"key.format": "json"}
        if format_ == "avro-confluent":
            more = {f"{side}.avro-confluent.url": self.registry for side in ("key", "value")}
        return sink_options(True, self.servers, topic, format_, **more)[1]

    def filled(
        self,
        count: int,
        keys: int,
        format_: str = "json",
        *,
        deletes: bool = False,
        partitions: int = PARTITIONS,
    ) -> str:
        """A topic with ``count`` messages over ``keys`` keys; with ``deletes`` every fiftieth is a tombstone."""
        topic = self.topic(partitions)
        source = rows(self.spark, count, keys, 2)
        source = with_deletes(source) if deletes else source
        options = self.options(topic, format_)
        if format_ == "debezium-json":
            source = with_envelopes(source)
            options |= {"value.format": "json", "value.fields-include": "EXCEPT_KEY"}
        source.write.format("upsert-kafka").options(**options).mode("append").save()
        return topic
