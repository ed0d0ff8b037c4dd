"""Topics on a `LocalKafka` for the programs in this folder: creates them, describes them as tables, and fills them with a plain producer."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic


def table(servers: str, topic: str) -> dict[str, str]:
    """Options of the JSON table in a topic, with the key ``id``."""
    return {
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "primary-key": "id",
        "key.format": "json",
        "value.format": "json",
    }


def create(
    servers: str,
    *topics: str,
    partitions: int,
    compacted: bool = True,
    config: Mapping[str, str] | None = None,
) -> None:
    """Creates topics, with more settings if there are any; those that are not compacted keep each message."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    settings = {"cleanup.policy": "compact" if compacted else "delete", **(config or {})}
    created = admin.create_topics(
        [NewTopic(name, partitions, 1, config=settings) for name in topics]
    )
    for done in created.values():
        done.result()


def producer(servers: str, **config: object) -> Producer:
    """A producer that puts each key into the partition that Java's puts it into, and keeps the order."""
    ours = {"partitioner": "murmur2_random", "enable.idempotence": True, "log_level": 0}
    return Producer({"bootstrap.servers": servers, **ours, **config})
