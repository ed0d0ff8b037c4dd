"""Which Kafka client an option value means; its module is loaded only when it is used."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import cast

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.kafka.interfaces import Client, ReadingClient

MODULES = {
    "librdkafka": "pyspark_upsert_kafka.kafka.librdkafka",
    "kafka-python": "pyspark_upsert_kafka.kafka.kafka_python",
}
"""Where the ``CLIENT`` of each value of ``kafka.client`` is."""


_PACKAGES = {
    "librdkafka": ("confluent-kafka",),
    "kafka-python": ("kafka-python-ng", "kafka-python"),
}
"""The packages of each client, of which one is installed."""


def load_client(name: str) -> ReadingClient:
    """The client for a value of ``kafka.client``."""
    return cast("ReadingClient", import_module(MODULES[name]).CLIENT)


def load_sending_client(name: str, use: str) -> Client:
    """The client for a value of ``kafka.client``, for something that is sent.

    Args:
        name: The value.
        use: What sends, to complete "cannot be used for".

    Raises:
        OptionError: The client only reads.
    """
    client = load_client(name)
    if not isinstance(client, Client):
        raise OptionError(
            f"'kafka.client' = '{name}' only reads, and cannot be used for {use}: set it to 'librdkafka'."
        )
    return client


def client_version(name: str) -> str:
    """The client that a value of ``kafka.client`` means, with the version of its package."""
    for package in _PACKAGES[name]:
        try:
            return f"{name} ({package} {version(package)})"
        except PackageNotFoundError:
            continue
    return name
