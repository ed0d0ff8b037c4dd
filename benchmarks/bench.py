"""Where the benchmark runs: a session, a broker, a registry, a folder, and topics of its own."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from data import rows
from descriptors import descriptor_file
from pyspark.sql import SparkSession
from sides import sink_options

PARTITIONS = 4


@dataclass(frozen=True)
class Bench:
    """Where the benchmark runs."""

    spark: SparkSession
    servers: str
    registry: str
    count: int
    runs: int
    folder: Path

    def topic(self) -> str:
        """A new topic."""
        name = f"bench-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 3})
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
        return name

    def drop(self, topic: str) -> None:
        """Deletes a topic, so that the disk does not fill."""
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 3})
        admin.delete_topics([topic])[topic].result()

    def options(self, topic: str, format_: str = "json") -> dict[str, str]:
        """This connector's options for a topic."""
        more = {}
        if format_ == "protobuf":
            more = descriptor_file(self.folder)
        if format_ == "avro-confluent":
            more = {f"{side}.avro-confluent.url": self.registry for side in ("key", "value")}
        return sink_options(True, self.servers, topic, format_, **more)[1]

    def filled(self, count: int, keys: int, format_: str = "json") -> str:
        """A topic with ``count`` messages over ``keys`` keys."""
        topic = self.topic()
        source = rows(self.spark, count, keys, 2)
        options = self.options(topic, format_)
        source.write.format("upsert-kafka").options(**options).mode("append").save()
        return topic
