"""LocalKafka: a real single-node Apache Kafka on this machine, for tests and demos."""

from pyspark_upsert_kafka.kafka.local.broker import LocalKafka
from pyspark_upsert_kafka.kafka.local.security import LocalAcl, LocalCertificates, LocalSecurity

__all__ = ["LocalAcl", "LocalCertificates", "LocalKafka", "LocalSecurity"]
