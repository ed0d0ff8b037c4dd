"""Brokers of each version that is tried."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.kafka.local.jars import broker_jars
from tools.versions.with_zookeeper import KafkaWithZooKeeper


@dataclass(frozen=True)
class Broker:
    """A version of Kafka.

    Args:
        version: Its number, of which there is a lock file unless ``LocalKafka`` downloads it anyway.
        has_zookeeper: Whether it runs with ZooKeeper; else with KRaft.
        has_topic_ids: Whether it tells a topic from its successor of the same name.
    """

    version: str
    has_zookeeper: bool = False
    has_topic_ids: bool = True

    @property
    def lock(self) -> Path:
        """The list of its jars."""
        return Path(__file__).with_name(f"kafka-{self.version}.lock")

    @contextmanager
    def running(self) -> Iterator[str]:
        """The address of such a broker while it runs.

        Raises:
            BrokerError: Its jars cannot be downloaded, or it does not start.
        """
        jars = broker_jars(self.lock) if self.lock.exists() else None
        if jars and self.has_zookeeper:
            with KafkaWithZooKeeper(jars) as old:
                yield old.bootstrap_servers
            return
        os.environ["LOCAL_KAFKA_JARS"] = str(jars or "")
        try:
            with LocalKafka() as kafka:
                yield kafka.bootstrap_servers
        finally:
            del os.environ["LOCAL_KAFKA_JARS"]


OURS = Broker("4.3.1")
"""The one that ``LocalKafka`` downloads."""

BROKERS = (
    Broker("2.1.1", has_zookeeper=True, has_topic_ids=False),
    Broker("2.8.2", has_zookeeper=True),
    Broker("3.3.2"),
    Broker("3.9.2"),
    Broker("4.0.2"),
    OURS,
    Broker("4.4.0"),
)
