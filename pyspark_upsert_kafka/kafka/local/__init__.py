"""LocalKafka: a real single-node Apache Kafka on this machine, for tests, demos and trials."""

from pyspark_upsert_kafka.kafka.local.broker import LocalKafka

__all__ = ["LocalKafka"]
