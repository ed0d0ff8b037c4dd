"""Which Kafka client an option value means; its module is loaded only when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from pyspark_upsert_kafka.kafka.interfaces import Client

_MODULES = {"librdkafka": "librdkafka", "kafka-python": "kafka_python"}


def load_client(name: str) -> Client:
    """The client for a value of ``kafka.client``."""
    module = import_module(f"pyspark_upsert_kafka.kafka.{_MODULES[name]}")
    return cast("Client", module.CLIENT)
